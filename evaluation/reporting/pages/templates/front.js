for (const spark of document.querySelectorAll(".spark")) {
  const series = DATA.sparks[spark.dataset.stage];
  if (series) drawCurve(spark, unpackSeries(series), { height: 60, bare: true });
}
curveBoard()(DATA.series.map(unpackSeries));
