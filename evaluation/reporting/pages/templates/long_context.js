/* Loss by position and accuracy by length, DATA.positions and DATA.lengths:
   [{tier, item, of, metric, lines: [{name, number, points: [{first, last, value}]}]}]. Bins and lengths double,
   so on a logarithmic axis they are equally wide; the first bin, from 0, is drawn as one of them. */
const FIRST_BIN = 256;
const binPlace = (first) => Math.log2(first || FIRST_BIN / 2);
const binLabel = (p) => p.first === p.last ? `length ${p.first}` : `positions ${p.first} to ${p.last}`;

function ofLengths(series, axis) {
  const place = (p) => ({ ...p, x: binPlace(p.first), label: binLabel(p) });
  const lines = series.lines.map((line) => ({ ...line, points: line.points.map(place) }));
  const ticks = lines[0].points.map((p) => [p.x, p.first]);
  return drawable({ ...series, ticks, axis: `${axis} (logarithmic)` }, lines);
}

for (const [name, axis] of [["positions", "position"], ["lengths", "length"]]) {
  if (!byId(name)) continue;
  view(["item", "band", "width"], () => {
    const all = DATA[name].map((one) => ofLengths(one, axis)), own = all.filter((s) => s.of.includes(chosen("item")));
    drawLegend(all, byId(`${axis}-legend`));
    byId(name).replaceChildren();
    for (const series of own.length ? own : all) drawCard(byId(name), series, `by ${axis}`);
  });
}
