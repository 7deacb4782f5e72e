/* Curves over steps, or over tokens seen where checkpoints say how many */
const showCurves = curveBoard();

function overTokens(series) {
  const lines = series.lines.map((line) => ({
    ...line,
    points: line.points.filter((p) => p.tokens !== null).map((p) => ({ ...p, x: p.tokens, label: `${compact(p.tokens)} tokens` })),
  }));
  return withLines(series, lines.filter((line) => line.points.length));
}

const compact = (count) => new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 }).format(count);

function curves() {
  const own = DATA.curves[Number(byId("curve-stage").value)];
  const series = own ? own.series.map(unpackSeries) : [];
  const drawn = byId("axis").value === "tokens" ? series.map(overTokens) : series;
  showCurves(drawn.filter((one) => one.points.length));
}

function deltas() {
  const own = DATA.comparisons[Number(byId("pair").value)];
  const rows = own ? unpackDeltas(own.deltas) : [];
  const last = Math.max(...rows.map((row) => row.step));
  showDeltas(rows, rows.length ? last : null, (step) => (own.others[step] === undefined ? step : `${step} (B's ${own.others[step]})`));
}

fill(byId("curve-stage"), DATA.curves.map((one, i) => [i, one.stage]), DATA.stage);
const hasTokens = DATA.curves.some((one) => one.series.some((s) => s.lines.some((line) => line.points.tokens.some((count) => count !== null))));
fill(byId("axis"), [["steps", "steps"], ...(hasTokens ? [["tokens", "tokens seen"]] : [])], DATA.axis);
for (const id of ["curve-stage", "axis"]) byId(id).addEventListener("change", curves);
curves();
fill(byId("pair"), DATA.comparisons.map((one, i) => [i, one.label]));
byId("pair").addEventListener("change", deltas);
deltaBoard();
deltas();
