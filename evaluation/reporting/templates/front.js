const byId = (id) => document.getElementById(id);

for (const spark of document.querySelectorAll(".spark")) {
  const series = DATA.sparks[spark.dataset.stage];
  if (series && series.points.length) drawCurve(spark, series, { height: 60, bare: true });
}

function curves() {
  byId("curves").replaceChildren();
  for (const series of DATA.series) {
    if (`${series.tier} ${series.metric}` !== byId("metric").value) continue;
    const card = html(byId("curves"), "section", { class: "card" });
    html(card, "h3", {}, series.item);
    drawCurve(card, series);
  }
  if (!byId("curves").children.length) html(byId("curves"), "p", { class: "soft" }, "no results yet");
}

fill(byId("metric"), [...new Set(DATA.series.map((s) => `${s.tier} ${s.metric}`))].map((name) => [name, name]));
byId("metric").addEventListener("change", curves);
curves();
