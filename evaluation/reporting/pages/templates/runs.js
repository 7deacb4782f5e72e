/* Curves over steps, or over training tokens where checkpoints record their number */
const CURVES = new Map(DATA.curves.map((one) => [one.stage, one.series.map((series) => drawable(series))]));

function overTokens(series) {
  const lines = series.lines.map((line) => ({
    ...line,
    points: line.points.filter((p) => p.tokens !== null).map((p) => ({ ...p, x: p.tokens, label: `${shortNumber(p.tokens)} tokens` })),
  }));
  return { ...drawable(series, lines.filter((line) => line.points.length)), axis: "tokens seen" };
}

function drawnCurves() {
  const series = CURVES.get(chosen("stage")) || [];
  const drawn = chosen("axis") === "tokens" ? series.map(overTokens) : series;
  return drawn.filter((one) => one.points.length);
}

let pairDeltas = [];

/* Takes the deltas and steps of the chosen pair of runs; the last step is the default */
function choosePair() {
  const own = DATA.comparisons.find((one) => one.label === chosen("pair"));
  pairDeltas = own ? own.deltas : [];
  const steps = [...new Set(pairDeltas.map((row) => row.step))];
  DATA.defaults.step = steps.length ? Math.max(...steps) : null;
  if (STATE.step && !steps.includes(Number(STATE.step))) unknown("step");
  byId("step").replaceChildren();
  fill(byId("step"), steps.map((step) => [step, own.others[step] === undefined ? step : `${step} (B's ${own.others[step]})`]), chosen("step"));
}

const ALL_CURVES = [...CURVES.values()].flat();
const hasTokens = ALL_CURVES.some((one) => one.points.some((p) => p.tokens !== null && p.tokens !== undefined));
unitMenu(new Set(ALL_CURVES.map((one) => one.metric)));
menu("curve-stage", "stage", DATA.curves.map((one) => [one.stage, one.stage]));
menu("axis", "axis", [["steps", "steps"], ...(hasTokens ? [["tokens", "tokens seen"]] : [])]);
curveBoard(drawnCurves);
menu("pair", "pair", DATA.comparisons.map((one) => [one.label, one.label]), { step: "" });
view(["pair"], choosePair);
menu("step", "step", []);
deltaBoard(() => pairDeltas);
