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

/* What a later checkpoint retained, against the first one that was scored on the item, or a chosen one */
const KEPT = new Map();
for (const row of DATA.retention) {
  const key = `${row.tier} ${row.metric} ${row.item}`;
  KEPT.set(key, [...(KEPT.get(key) || []), row]);
}
const CHECKPOINTS = [...new Set(DATA.retention.flatMap((row) => [row.earlier, row.later]))];

function keptRow(rows) {
  const [{ tier, item, metric }] = rows;
  const from = chosen("against") || CHECKPOINTS.find((label) => rows.some((row) => row.earlier === label));
  const cells = CHECKPOINTS.map((label) => {
    const paired = rows.find((row) => row.earlier === from && row.later === label);
    const any = rows.find((row) => row.later === label || row.earlier === label);
    if (!any) return null;
    const value = any.later === label ? any.value : any.earlier_value;
    const lines = [`${item} at ${label}: ${levelText(value, rows[0])}`];
    if (paired) lines.push(`${changeText(paired.delta, paired.low, paired.high, paired)} against ${from}`, `p (Holm) ${format(paired.p_holm)}, ${paired.n} ${DATA.tiers[tier].unit}`);
    const isLower = (DATA.tiers[tier].metrics[metric] || DATA.tiers[tier]).lower;
    return { value, delta: paired?.delta, isGain: paired && paired.delta > 0 !== isLower, flag: paired?.flag, tip: lines.join("\n") };
  });
  const last = stepOf(CHECKPOINTS.findLast((label) => rows.some((row) => row.later === label)));
  const isTotal = DATA.tiers[tier].rates && item === "overall", name = isTotal ? metric : item;
  const link = (cell) => pageLink(cell, last.stage, name, `#${last.step ? `step=${last.step}&` : ""}item=${encodeURIComponent(`${tier}/${item}`).replaceAll("%2F", "/")}`);
  return { tier, metric: DATA.tiers[tier].rates ? undefined : metric, unitOf: rows[0], cells, link: /^overall( of \d+ shared items?)?$| \(group\)$/.test(item) ? (cell) => cell.append(name) : link };
}

/* `stage2/1000` is a step of stage2 */
function stepOf(label) {
  const [, stage, step] = /^(.*)\/(\d+)$/.exec(label) || [];
  return { stage, step };
}

function drawRetention() {
  const columns = CHECKPOINTS.map((label) => ({
    link: (cell) => pageLink(cell, stepOf(label).stage, label, `#step=${stepOf(label).step}`),
  }));
  const all = [...KEPT.values()], first = all.map(([row]) => row);
  const isRow = (row) => (DATA.tiers[row.tier].rates && row.item === "overall") || isShown(row, first);
  heatMap(byId("retention"), "what later stages kept", columns, all.filter(([row]) => isRow(row)).map(keptRow));
}

menu("against", "against", [["", "the first that was scored on the item"], ...CHECKPOINTS.slice(0, -1).map((label) => [label, label])]);
view(["unit", "width"], drawSparks);
view(["unit", "against", "print"], drawRetention);
curveBoard(() => FRONT_SERIES);
