curveBoard()(DATA.series.map(unpackSeries));
if (byId("forest")) {
  const without = DATA.without_deltas;
  if (without.length) byId("left").textContent = `To keep this page small, it has no deltas of ${named(without)}; they are in bridge_deltas.csv.`;
  deltaBoard();
  showDeltas(unpackDeltas(DATA.deltas), DATA.step);
}
