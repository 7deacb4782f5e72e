const DELTAS = DATA.deltas.rows.map(([step, key, ...values]) => {
  const [keyNames, valueNames] = DATA.deltas.of, row = { step };
  keyNames.forEach((name, i) => { row[name] = DATA.deltas.keys[key][i]; });
  valueNames.forEach((name, i) => { row[name] = values[i]; });
  row.note = DATA.deltas.notes[row.note];
  return row;
});

const SERIES = DATA.series.map(unpackSeries);
const STEPS = [...new Set([...SERIES.flatMap((one) => one.points.map((p) => p.step)), ...DELTAS.map((d) => d.step)])].sort((a, b) => a - b);
const ITEMS = [...new Set(SERIES.filter((one) => one.item !== "overall").map((one) => `${one.tier}/${one.item}`))];
const NARROW = 24;
/* Steps in the score matrix on a screen; there may be hundreds */

unitMenu(new Set(SERIES.map((one) => one.metric)));
menu("step", "step", STEPS.map((step) => [step, step]));
menu("item", "item", [["", "all"], ...ITEMS.map((name) => [name, name.replace("/", " ")])]);
if (byId("band")) menu("band", "band", [["paired", "paired with the bridge"], ["items", "over items"]]);

/* Where the reader is, each part a way back to it */
function crumbs() {
  const place = byId("crumbs");
  place.replaceChildren();
  pageLink(html(place, "li"), "front", "All stages");
  const part = (text, changes) => {
    const link = html(html(place, "li"), "a", { href: address(changes), "data-key": `crumb ${text}` }, text);
    link.addEventListener("click", (event) => { event.preventDefault(); choose(changes); });
  };
  part(DATA.stage, { step: "", item: "", flip: "" });
  if (chosen("step")) part(`step ${chosen("step")}`, { item: "", flip: "" });
  if (STATE.item) part(STATE.item.replace("/", " "), { flip: "" });
  if (STATE.flip) part(STATE.flip.replace("/", " ").replace(":", ", "), {});
}

/* Steps that there is room for: the chosen one, the last one, and others spread evenly */
function someSteps() {
  if (STEPS.length <= NARROW || printing.matches) return STEPS;
  const spread = Array.from({ length: NARROW - 1 }, (_, i) => STEPS[Math.round((i * (STEPS.length - 1)) / (NARROW - 2))]);
  return [...new Set([...spread, Number(chosen("step"))])].sort((a, b) => a - b);
}

function drawMatrix() {
  const steps = someSteps(), deltas = new Map(DELTAS.map((d) => [`${d.step} ${d.tier} ${d.item} ${d.metric}`, d]));
  const isRow = (s) => (isRate(s) ? true : s.metric === shownMetric(s.tier));
  const rows = SERIES.filter(isRow).map((series) => {
    const values = new Map(series.points.map((p) => [p.step, p.value]));
    const cells = steps.map((step) => matrixCell(series, step, values.get(step), deltas));
    if (DATA.bridge) cells.unshift(series.bridge ? { value: series.bridge.value, tip: `${nameOf(series)} at ${DATA.bridge}: ${exact(series.bridge.value)}` } : null);
    const isTotal = series.item === "overall", name = `${series.tier}/${series.item}`;
    return { tier: series.tier, cells, link: isTotal ? (cell) => cell.append(nameOf(series)) : pick("item", name, series.item, { flip: "" }) };
  });
  const columns = steps.map((step) => ({ isChosen: String(step) === chosen("step"), link: pick("step", step, `step ${step}`) }));
  if (DATA.bridge) columns.unshift({ link: (cell) => cell.append("bridge") });
  heatMap(byId("matrix"), "scores of all steps", columns, rows);
  if (steps.length < STEPS.length) html(byId("matrix"), "p", { class: "soft" }, `${steps.length} of ${STEPS.length} steps are shown; score_matrix.csv has all`);
}

function matrixCell(series, step, value, deltas) {
  if (value === undefined) return null;
  const row = deltas.get(`${step} ${series.tier} ${series.item} ${series.metric}`), lines = [`${nameOf(series)} at step ${step}: ${exact(value)}`];
  if (!row) return { value, tip: lines[0] };
  lines.push(`${signed(row.delta)} ${interval(row.low, row.high)} against the bridge`, `${row.flag || "not tested"}, p (Holm) ${format(row.p_holm)}`);
  return { value, delta: row.delta, isGain: row.delta > 0 === (row.want === ">= 0"), flag: row.flag, tip: lines.join("\n") };
}

function forest() {
  const step = Number(chosen("step"));
  byId("forest").replaceChildren();
  for (const tier of Object.keys(DATA.tiers)) {
    const rows = DELTAS.filter((d) => d.step === step && d.tier === tier && d.headline && isShownUnit(tier, d.metric));
    for (const label of new Set(rows.map((d) => d.label))) drawForest(tier, rows.filter((d) => d.label === label));
  }
  if (!byId("forest").children.length) html(byId("forest"), "p", { class: "soft" }, "no step has been compared with the bridge yet");
}

function drawForest(tier, rows) {
  const gain = (row) => (row.want === "<= 0" ? -row.delta : row.delta);
  rows.sort((a, b) => gain(b) - gain(a));
  const isLower = (DATA.tiers[tier].metrics[rows[0].label] || DATA.tiers[tier]).lower;
  const lower = isLower ? ", lower is better" : "";
  const { unit, words } = DATA.tiers[tier].metrics[rows[0].label] || {}, name = isLoss(tier) ? unit : words || rows[0].label;
  const card = figure(byId("forest"), `${tier}: Δ ${name}${lower}`, () => ({ what: "forest", tier, metric: rows[0].label, step: rows[0].step }));
  const width = roomIn(card), left = Math.min(196, width * 0.4), right = 12, height = 24 * rows.length + 44;
  const reach = Math.max(...rows.flatMap((d) => [d.delta, d.low, d.high].map((v) => Math.abs(v ?? 0)))) || 1;
  const x = (value) => left + ((Math.max(-reach, Math.min(reach, value)) + reach) / (2 * reach)) * (width - left - right);
  const root = svg(card, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${tier} against the bridge` });
  for (const tick of ticks(-reach, reach, width > 400 ? 5 : 3)) {
    svg(root, "line", { x1: x(tick), x2: x(tick), y1: 4, y2: height - 34, class: Math.abs(tick) < reach * 1e-9 ? "zero" : "axis" });
    svg(root, "text", { x: x(tick), y: height - 20, "text-anchor": "middle" }, format(tick));
  }
  svg(root, "text", { x: width - right, y: height - 5, "text-anchor": "end" }, `Δ ${unit === "fraction" ? words : unit || rows[0].label}, step ${rows[0].step} less the bridge`);
  if (DATA.power[tier]) html(card, "p", { class: "soft" }, DATA.power[tier]);
  rows.forEach((row, i) => drawDelta(svg(root, "g", {}), row, { x, y: 18 + 24 * i, left, width }));
}

const MARKS = { better: "M-5 4L0 -5L5 4Z", worse: "M-5 -4L0 5L5 -4Z", unclear: "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z" };

function drawDelta(line, row, { x, y, left, width }) {
  const flag = row.flag || "unclear";
  const isTotal = row.name === "overall";
  svg(line, "text", { x: left - 8, y: y + 4, "text-anchor": "end", class: isTotal ? "total" : "" }, short(row.name, Math.floor(left / 6.6)));
  if (row.mde !== null) svg(line, "rect", { x: x(-row.mde), y: y - 5, width: x(row.mde) - x(-row.mde), height: 10, class: "seen" });
  if (row.low !== null) svg(line, "line", { x1: x(row.low), x2: x(row.high), y1: y, y2: y, class: `mark-${flag}`, "stroke-width": 2 });
  svg(line, "path", { d: MARKS[flag], transform: `translate(${x(row.delta)} ${y})`, class: `mark-${flag}` });
  svg(line, "rect", { x: 0, y: y - 11, width, height: 22, class: "hit", "data-value": row.delta });
  const known = [`${row.name}: ${row.delta > 0 ? "+" : ""}${exact(row.delta)} ${interval(row.low, row.high)}`,
    `${exact(row.value)}, bridge ${exact(row.bridge)}`,
    `${row.flag || "not tested"}, p (Holm) ${format(row.p_holm)}, smallest seen ${format(row.mde)}`];
  hover(line, (row.note ? [...known, row.note] : known).join("\n"));
}

const COLUMNS = [["step", 1], ["tier", 0], ["item", 0], ["metric", 0], ["value", 1], ["bridge", 1], ["delta", 1],
  ["low", 1], ["high", 1], ["p_holm", 1], ["mde", 1], ["n", 1], ["flag", 0], ["note", 0]];
const ROWS = 500;
let order = { column: "step", up: true };

function table() {
  const own = chosen("item") ? DELTAS.filter((row) => `${row.tier}/${row.item}` === chosen("item")) : DELTAS;
  const rows = matching(own, (row) => `step ${row.step} ${row.tier} ${row.item} ${row.metric} ${row.flag}`, byId("search").value);
  const rank = (row) => row[order.column];
  rows.sort((a, b) => {
    const [p, q] = [rank(a), rank(b)];
    if (p === q) return 0;
    if (p === null) return 1;
    if (q === null) return -1;
    return (p < q ? -1 : 1) * (order.up ? 1 : -1);
  });
  const body = byId("deltas").tBodies[0];
  body.replaceChildren();
  for (const row of rows.slice(0, ROWS)) {
    const line = html(body, "tr");
    for (const [name, isNumber] of COLUMNS) {
      const isPlain = !isNumber || name === "step" || name === "n";
      html(line, "td", { class: isNumber ? "number" : name === "flag" ? row.flag || "" : name }, isPlain ? row[name] ?? "" : format(row[name]));
    }
  }
  byId("count").textContent = `${rows.length} rows${rows.length > ROWS ? `, the first ${ROWS} shown; search to see others` : ""}`;
}

function tableHead() {
  const head = html(byId("deltas").tHead, "tr");
  for (const [name, isNumber] of COLUMNS) {
    const cell = html(head, "th", { class: isNumber ? "number" : "", "aria-sort": "none", scope: "col" });
    html(cell, "button", { type: "button" }, name).addEventListener("click", () => {
      order = { column: name, up: order.column === name ? !order.up : true };
      for (const other of head.children) other.setAttribute("aria-sort", "none");
      cell.setAttribute("aria-sort", order.up ? "ascending" : "descending");
      table();
    });
  }
}

view(KEYS, crumbs);
view(["step", "item", "unit", "print"], drawMatrix);
curveBoard(SERIES);
if (byId("forest")) {
  const without = DATA.without_deltas;
  if (without.length) byId("left").textContent = `To keep this page small, it has no deltas of ${named(without)}; they are in bridge_deltas.csv.`;
  view(["step", "unit", "width"], forest);
  tableHead();
  byId("search").addEventListener("input", table);
  view(["item"], table);
}
