const FRONT_SERIES = DATA.series.map(unpackSeries);
unitMenu(new Set(DATA.series.map((one) => one.metric)));

/* Each card has its headline's curve in the unit of the page, and its value at the recommended step */
function drawSparks() {
  for (const spark of document.querySelectorAll(".spark")) {
    spark.replaceChildren();
    const known = DATA.sparks[spark.dataset.stage] || [];
    const packed = known.find((one) => isShownUnit(one.tier, one.metric)) || known[0];
    const told = document.querySelector(`.headline[data-stage="${CSS.escape(spark.dataset.stage)}"]`);
    if (!packed) continue;
    const series = unpackSeries(packed);
    told.textContent = packed.told;
    drawCurve(spark, series, { height: 76, bare: true });
    if (series.note) html(spark, "p", { class: "soft" }, series.note);
  }
}

/* What a later checkpoint kept: against the first one that was scored on the item, or a chosen one */
const KEPT = DATA.retention.rows.map(([earlier, later, key, ...values]) => {
  const row = { earlier, later, key };
  DATA.retention.of.forEach((name, i) => { row[name] = values[i]; });
  return row;
});

function keptRow(key) {
  const [tier, item, metric] = DATA.retention.keys[key], rows = KEPT.filter((row) => row.key === key);
  const first = Math.min(...rows.map((row) => row.earlier)), against = chosen("against");
  const from = against ? DATA.retention.labels.indexOf(against) : first;
  const cells = DATA.retention.labels.map((label, at) => {
    const paired = rows.find((row) => row.earlier === from && row.later === at);
    const any = rows.find((row) => row.later === at || row.earlier === at);
    if (!any) return null;
    const value = any.later === at ? any.value : any.earlier_value;
    const lines = [`${item} at ${label}: ${exact(value)}`];
    if (paired) lines.push(`${signed(paired.delta)} ${interval(paired.low, paired.high)} against ${DATA.retention.labels[from]}`, `p (Holm) ${format(paired.p_holm)}, ${paired.n} ${DATA.tiers[tier].unit}`);
    const isLower = (DATA.tiers[tier].metrics[metric] || DATA.tiers[tier]).lower;
    return { value, delta: paired?.delta, isGain: paired && paired.delta > 0 !== isLower, flag: paired?.flag, tip: lines.join("\n") };
  });
  const last = stepOf(DATA.retention.labels[Math.max(...rows.map((row) => row.later))]);
  const isTotal = DATA.tiers[tier].rates && item === "overall", name = isTotal ? metric : item;
  const link = (cell) => pageLink(cell, last.stage, name, `#${last.step ? `step=${last.step}&` : ""}item=${encodeURIComponent(`${tier}/${item}`).replaceAll("%2F", "/")}`);
  return { tier, metric: DATA.tiers[tier].rates ? undefined : metric, cells, link: /^overall( of \d+ shared items?)?$| \(group\)$/.test(item) ? (cell) => cell.append(name) : link };
}

/* `stage2/1000` is a step of stage2 */
function stepOf(label) {
  const [, stage, step] = /^(.*)\/(\d+)$/.exec(label) || [];
  return { stage, step };
}

function drawRetention() {
  const columns = DATA.retention.labels.map((label) => ({
    link: (cell) => pageLink(cell, stepOf(label).stage, label, `#step=${stepOf(label).step}`),
  }));
  const all = DATA.retention.keys.map(([tier, item, metric]) => ({ tier, item, metric }));
  const isRow = ([tier, item, metric]) => (DATA.tiers[tier].rates && item === "overall") || isShown({ tier, item, metric }, all);
  const keys = DATA.retention.keys.map((key, i) => i).filter((i) => isRow(DATA.retention.keys[i]));
  heatMap(byId("retention"), "what later stages kept", columns, keys.map(keptRow));
}

menu("against", "against", [["", "the first that was scored on the item"], ...DATA.retention.labels.slice(0, -1).map((label) => [label, label])]);
view(["unit", "width"], drawSparks);
view(["unit", "against", "print"], drawRetention);
curveBoard(() => FRONT_SERIES);
