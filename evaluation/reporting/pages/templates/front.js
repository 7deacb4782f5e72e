const FRONT_SERIES = DATA.series.map((one) => drawable(one));
unitMenu(new Set(DATA.series.map((one) => one.metric)));

/* Each card has its headline's curve in the unit of the page, and its value at the recommended step */
function drawSparks() {
  for (const spark of document.querySelectorAll(".spark")) {
    spark.replaceChildren();
    const known = (DATA.sparks[spark.dataset.stage] || []).map((one) => drawable(one));
    const series = known.find((one) => isShownUnit(one.tier, one.metric)) || known[0];
    const headline = document.querySelector(`.headline[data-stage="${CSS.escape(spark.dataset.stage)}"]`);
    if (!series) continue;
    headline.textContent = series.sentence;
    drawCurve(spark, series, { height: 76, bare: true });
    if (series.note) html(spark, "p", { class: "soft" }, series.note);
  }
}

view(["unit", "width"], drawSparks);
curveBoard(() => FRONT_SERIES);
