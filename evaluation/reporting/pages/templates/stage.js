const DELTAS = DATA.deltas;
const SERIES = DATA.series.map((one) => drawable(one));
const STEPS = [...new Set([...SERIES.flatMap((one) => one.points.map((p) => p.step)), ...DELTAS.map((d) => d.step)])].sort((a, b) => a - b);
const ITEMS = [...new Set(SERIES.filter((one) => one.item !== "overall" && !one.group).map((one) => `${one.tier}/${one.item}`))];
const FEWEST = 24, CELLS = 20000;
/* Of the table of scores on a screen: steps that always have a column, and cells that are drawn in a second */

unitMenu(new Set(SERIES.map((one) => one.metric)));
menu("step", "step", STEPS.map((step) => [step, `${step}${nameOfStep(step)}`]));
menu("item", "item", [["", "all"], ...ITEMS.map((name) => [name, name.replace("/", " ")])]);
if (byId("band")) menu("band", "band", [["paired", "paired with the bridge"], ["items", "over items"]]);

/* The path of choices to what is shown, each part a link back to it */
function crumbs() {
  const place = byId("crumbs");
  place.replaceChildren();
  pageLink(html(place, "li"), "front", "All stages");
  const part = (text, changes) => {
    const link = html(html(place, "li"), "a", { href: address(changes), "data-key": `crumb ${text}` }, text);
    link.addEventListener("click", (event) => { event.preventDefault(); choose(changes); });
  };
  part(DATA.stage, { step: "", item: "", flip: "" });
  if (chosen("step")) part(labelOf(chosen("step")), { item: "", flip: "" });
  if (STATE.item) part(STATE.item.replace("/", " "), { flip: "" });
  if (STATE.flip) part(STATE.flip.replace("/", " ").replace(":", ", "), {});
}

/* All steps; of hundreds with many items the chosen one, the last one, and others spread evenly */
function someSteps(rows) {
  const room = Math.max(FEWEST, Math.floor(CELLS / Math.max(1, rows)));
  if (STEPS.length <= room || printing.matches) return STEPS;
  const spread = Array.from({ length: room - 1 }, (_, i) => STEPS[Math.round((i * (STEPS.length - 1)) / (room - 2))]);
  const shown = new Set(spread.map(String)).add(chosen("step"));
  return STEPS.filter((step) => shown.has(String(step)));
}

function drawMatrix() {
  const isRow = (s) => isRate(s) || isShown(s, SERIES), steps = someSteps(SERIES.filter(isRow).length);
  const deltas = new Map(DELTAS.map((d) => [`${d.step} ${d.tier} ${d.item} ${d.metric}`, d]));
  const rows = SERIES.filter(isRow).map((series) => {
    const values = new Map(series.points.map((p) => [p.step, p.value]));
    const cells = steps.map((step) => matrixCell(series, step, values.get(step), deltas));
    if (DATA.bridge) cells.unshift(series.bridge ? { value: series.bridge.value, tip: `${nameOf(series)} at ${DATA.bridge}: ${levelText(series.bridge.value, series)}` } : null);
    const isTotal = series.item === "overall" || series.group, name = `${series.tier}/${series.item}`;
    return { tier: series.tier, metric: isRate(series) ? undefined : series.metric, unitOf: series, cells, link: isTotal ? (cell) => cell.append(nameOf(series)) : pick("item", name, series.item, { flip: "" }) };
  });
  const columns = steps.map((step) => ({ isChosen: String(step) === chosen("step"), link: pick("step", step, labelOf(step)) }));
  if (DATA.bridge) columns.unshift({ link: (cell) => cell.append("bridge") });
  heatMap(byId("matrix"), "scores of all steps", columns, rows);
  if (steps.length < STEPS.length) html(byId("matrix"), "p", { class: "soft" }, `${steps.length} of ${STEPS.length} steps are shown; summary.csv has all`);
}

function matrixCell(series, step, value, deltas) {
  if (value === undefined) return null;
  const row = deltas.get(`${step} ${series.tier} ${series.item} ${series.metric}`), lines = [`${nameOf(series)} at ${labelOf(step)}: ${levelText(value, series)}`];
  if (!row) return { value, tip: lines[0] };
  lines.push(`${changeText(row.delta, row.low, row.high, row)} against the bridge`, `${row.flag || "not tested"}, p (Holm) ${format(row.p_holm)}`);
  return { value, delta: row.delta, isGain: row.delta > 0 === row.higher_is_better, flag: row.flag, tip: lines.join("\n") };
}

view(KEYS, crumbs);
view(["step", "item", "unit", "print"], drawMatrix);
curveBoard(() => SERIES);
if (byId("forest")) {
  const without = DATA.without_deltas;
  if (without.length) byId("left").textContent = `To keep this page small, it has no deltas of ${named(without)}; they are in bridge_deltas.csv.`;
  deltaBoard(() => DELTAS);
}
