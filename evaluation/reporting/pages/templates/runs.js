/* Curves over steps, or over tokens seen where checkpoints say how many */
const CURVES = DATA.curves.map((one) => one.series.map(unpackSeries));

function overTokens(series) {
  const lines = series.lines.map((line) => ({
    ...line,
    points: line.points.filter((p) => p.tokens !== null).map((p) => ({ ...p, x: p.tokens, label: `${shortNumber(p.tokens)} tokens` })),
  }));
  return { ...withLines(series, lines.filter((line) => line.points.length)), axis: "tokens seen" };
}

function drawnCurves() {
  const series = CURVES[Number(byId("curve-stage").value)] || [];
  const drawn = byId("axis").value === "tokens" ? series.map(overTokens) : series;
  return drawn.filter((one) => one.points.length);
}

let pairDeltas = [];

/* The deltas of the chosen pair of runs, and its steps, of which the last one is shown at first */
function choosePair() {
  const own = DATA.comparisons[Number(byId("pair").value)];
  pairDeltas = own ? unpackDeltas(own.deltas) : [];
  const steps = [...new Set(pairDeltas.map((row) => row.step))];
  DATA.defaults.step = steps.length ? Math.max(...steps) : null;
  if (STATE.step && !steps.includes(Number(STATE.step))) unknown("step");
  byId("step").replaceChildren();
  fill(byId("step"), steps.map((step) => [step, own.others[step] === undefined ? step : `${step} (B's ${own.others[step]})`]), chosen("step"));
}

const hasTokens = CURVES.flat().some((one) => one.points.some((p) => p.tokens !== null && p.tokens !== undefined));
unitMenu(new Set(CURVES.flat().map((one) => one.metric)));
fill(byId("curve-stage"), DATA.curves.map((one, i) => [i, one.stage]), DATA.first);
fill(byId("axis"), [["steps", "steps"], ...(hasTokens ? [["tokens", "tokens seen"]] : [])], DATA.axis);
const showCurves = curveBoard(drawnCurves);
for (const id of ["curve-stage", "axis"]) byId(id).addEventListener("change", showCurves);
fill(byId("pair"), DATA.comparisons.map((one, i) => [i, one.label]));
choosePair();
menu("step", "step", []);
const showDeltas = deltaBoard(() => pairDeltas);
byId("pair").addEventListener("change", () => { choosePair(); showDeltas(); });
