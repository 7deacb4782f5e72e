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

/* Scores of the runs of a stage next to each other, with the paired deltas of those that were compared */
function drawRuns() {
  const all = (CURVES.get(chosen("stage")) || []).filter((one) => isRate(one) || isShown(one, ALL_CURVES));
  const steps = new Map();
  for (const line of all.flatMap((one) => one.lines)) steps.set(line.name, new Set([...(steps.get(line.name) || []), ...line.points.map((p) => p.step)]));
  const shared = [...([...steps.values()][0] || [])].filter((step) => [...steps.values()].every((own) => own.has(step)));
  const names = [...steps.keys()], at = new Map(names.map((name) => [name, Math.max(...(shared.length ? shared : steps.get(name)))]));
  const [first] = names, rows = all.map((one) => ({
    tier: one.tier, metric: isRate(one) ? undefined : one.metric, unitOf: one, link: (cell) => cell.append(nameOf(one)),
    cells: names.map((name) => runCell(one, name, first, at)),
  }));
  heatMap(byId("runs-matrix"), "scores of all runs", names.map((name) => ({ link: (cell) => cell.append(`${name}, step ${at.get(name)}`) })), rows.filter((row) => row.cells.some(Boolean)));
}

function runCell(series, name, first, at) {
  const valueOf = (run) => series.lines.find((line) => line.name === run)?.points.find((p) => p.step === at.get(run))?.value;
  const value = valueOf(name), before = valueOf(first), lower = metricOf(series).lower;
  if (value === undefined) return null;
  const pair = DATA.comparisons.find((one) => one.run === name && one.stage === chosen("stage"));
  const row = pair?.deltas.find((one) => one.step === at.get(first) && (pair.others[one.step] ?? one.step) === at.get(name) && one.tier === series.tier && one.item === series.item && one.metric === series.metric);
  const delta = row ? -row.delta : before === undefined ? undefined : value - before; // rows are of the first run minus this one
  const lines = [`${nameOf(series)}, ${name} at step ${at.get(name)}: ${levelText(value, series)}`];
  if (row) lines.push(`${changeText(-row.delta, row.high === null ? null : -row.high, row.low === null ? null : -row.low, row)} against ${first}, p (Holm) ${format(row.p_holm)}`);
  return { value, delta, isGain: delta > 0 !== Boolean(lower), flag: { better: "worse", worse: "better" }[row?.flag], tip: lines.join("\n") };
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
view(["unit", "stage", "print"], drawRuns);
menu("pair", "pair", DATA.comparisons.map((one) => [one.label, one.label]), { step: "" });
view(["pair"], choosePair);
menu("step", "step", []);
deltaBoard(() => pairDeltas);
