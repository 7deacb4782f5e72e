/* Loss by position, DATA.positions: [{tier, item, metric, lines: [{name, number, points: [{first, last, value}]}]}].
   Bins double, so on a logarithmic axis they are equally wide; the first one, from 0, is drawn as one of them. */
const FIRST_BIN = 256;
const binPlace = (first) => Math.log2(first || FIRST_BIN / 2);

function ofPositions(series) {
  const place = (p) => ({ ...p, x: binPlace(p.first), label: `positions ${p.first} to ${p.last}` });
  const lines = series.lines.map((line) => ({ ...line, points: line.points.map(place) }));
  const ticks = lines[0].points.map((p) => [p.x, p.first]);
  return withLines({ ...series, ticks, axis: "position (logarithmic)" }, lines);
}

view(["item", "band", "width"], () => {
  const all = DATA.positions.map(ofPositions), own = all.filter((s) => `${s.tier}/${s.item}` === chosen("item"));
  drawLegend(all, byId("position-legend"));
  byId("positions").replaceChildren();
  for (const series of own.length ? own : all) drawCard(byId("positions"), series, "by position");
});
