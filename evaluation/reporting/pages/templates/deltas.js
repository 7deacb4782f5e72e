/* Deltas against OTHER, forest plots of a step and a table of all. */

/* Draws both, from what `deltas` returns */
function deltaBoard(deltas) {
  const plots = () => forest(deltas()), rows = () => table(deltas());
  tableHead();
  view(["sort"], () => { if (!sorting()) unknown("sort"); });
  view(["step", "unit", "width", "pair"], plots);
  menu("deltas-tier", "tier", [["", "all"], ...Object.entries(DATA.tiers).map(([name, { title }]) => [name, `${title} (${name})`])]);
  menu("deltas-flag", "flag", [["", "all"], ...Object.entries(FLAGS)]);
  menu("deltas-of", "of", [["", "all"], ["chosen", "the chosen one"]]);
  view(["item", "sort", "pair", "tier", "flag", "of", "step"], () => { most = ROWS; rows(); });
  byId("more").addEventListener("click", () => { most = Infinity; rows(); });
  searchField("search", "search", rows);
  saveTable(byId("deltas").parentElement, "deltas", () => csvOf(searched(deltas())));
}

function forest(deltas) {
  const step = chosen("step");
  byId("forest").replaceChildren();
  for (const tier of Object.keys(DATA.tiers)) {
    const rows = deltas.filter((d) => String(d.step) === step && d.tier === tier && d.headline && isShownUnit(tier, d.metric));
    for (const label of new Set(rows.map((d) => d.label))) drawForest(tier, rows.filter((d) => d.label === label));
  }
  if (!byId("forest").children.length) html(byId("forest"), "p", { class: "soft" }, `no step has been compared with ${OTHER} yet`);
}

function drawForest(tier, rows) {
  const gain = (row) => (row.higher_is_better ? row.delta : -row.delta);
  rows.sort((a, b) => gain(b) - gain(a));
  const isLower = (DATA.tiers[tier].metrics[rows[0].label] || DATA.tiers[tier]).lower;
  const lower = isLower ? ", lower is better" : "";
  const { unit, words } = DATA.tiers[tier].metrics[rows[0].label] || {}, isRates = rows[0].label === "rates", name = isLoss(tier) ? unit : words || rows[0].label;
  const card = figure(byId("forest"), `${DATA.tiers[tier].title} (${tier}): Δ ${name}${lower}`, () => ({ what: "forest", tier, metric: rows[0].label, step: rows[0].step }));
  const width = roomIn(card), left = Math.min(196, width * 0.4), right = 12, height = 24 * rows.length + 44;
  const reach = Math.max(...rows.flatMap((d) => [d.delta, d.low, d.high].map((v) => Math.abs(v ?? 0)))) || 1;
  const x = (value) => left + ((Math.max(-reach, Math.min(reach, value)) + reach) / (2 * reach)) * (width - left - right);
  const root = svg(card, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${tier} against ${OTHER}` });
  for (const tick of ticks(-reach, reach, width > 400 ? 5 : 3)) {
    svg(root, "line", { x1: x(tick), x2: x(tick), y1: 4, y2: height - 34, class: Math.abs(tick) < reach * 1e-9 ? "zero" : "axis" });
    svg(root, "text", { x: x(tick), y: height - 20, "text-anchor": "middle" }, format(read(tick, rows[0])));
  }
  svg(root, "text", { x: width - right, y: height - 5, "text-anchor": "end" }, `Δ ${unit === "fraction" ? `${words}, points` : isRates ? "rates, points" : unit || rows[0].label}, ${labelOf(rows[0].step)} minus ${OTHER}`);
  if (DATA.power && DATA.power[tier]) html(card, "p", { class: "soft" }, DATA.power[tier]);
  rows.forEach((row, i) => drawDelta(svg(root, "g", {}), row, { x, y: 18 + 24 * i, left, width }));
}

const MARKS = { better: "M-5 4L0 -5L5 4Z", worse: "M-5 -4L0 5L5 -4Z", unclear: "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z" };

function drawDelta(line, row, { x, y, left, width }) {
  const flag = row.flag || "unclear";
  const isTotal = row.name === "overall";
  svg(line, "text", { x: left - 8, y: y + 4, "text-anchor": "end", class: isTotal ? "total" : "", "data-whole": row.name }, short(row.name, Math.floor(left / 6.6)));
  if (row.mde !== null) svg(line, "rect", { x: x(-row.mde), y: y - 5, width: x(row.mde) - x(-row.mde), height: 10, class: "seen" });
  if (row.low !== null) svg(line, "line", { x1: x(row.low), x2: x(row.high), y1: y, y2: y, class: `mark-${flag}`, "stroke-width": 2 });
  svg(line, "path", { d: MARKS[flag], transform: `translate(${x(row.delta)} ${y})`, class: `mark-${flag}` });
  svg(line, "rect", { x: 0, y: y - 11, width, height: 22, class: "hit", "data-value": row.delta });
  const known = [`${row.name}: ${changeText(row.delta, row.low, row.high, row)}`,
    `${levelText(row.value, row)}, ${OTHER} ${levelText(row.bridge, row)}`,
    `${row.flag || "not tested"}, p (Holm) ${format(row.p_holm)}, minimum detectable ${aligned(row.mde, row)}`];
  hover(line, (row.note ? [...known, row.note] : known).join("\n"));
}

const COLUMNS = [["step", 1], ["tier", 0], ["item", 0], ["metric", 0], ["value", 1], ["bridge", 1], ["delta", 1],
  ["low", 1], ["high", 1], ["p_holm", 1], ["mde", 1], ["n", 1], ["flag", 0], ["note", 0]];
/* Columns in the metric's unit, and those that are shown: with that unit */
const MEASURED = ["value", "bridge", "delta", "low", "high", "mde"];
const SHOWN = COLUMNS.flatMap((column) => (column[0] === "metric" ? [column, ["unit", 0]] : [column]));
const unitOf = (row) => (scaleIn(row) === PERCENT ? "%, points" : metricOf(row).unit);
const FLAGS = { better: "better", worse: "worse", unclear: "unclear", none: "not tested" };
const ROWS = 500;
let most = ROWS;
/* Rows that are shown at once; all of tens of thousands would take seconds */

/* `sort` is a column, with a minus before it for descending order; null if there is no such column */
function sorting() {
  const wanted = chosen("sort"), column = wanted.replace(/^-/, "");
  return COLUMNS.some(([name]) => name === column) ? { column, up: column === wanted } : null;
}

function searched(deltas) {
  const asked = { tier: chosen("tier"), flag: chosen("flag"), step: chosen("of") && chosen("step"), item: chosen("item") };
  const has = (key, value) => !asked[key] || asked[key] === value;
  const own = deltas.filter((row) => has("item", `${row.tier}/${row.item}`) && has("tier", row.tier) && has("flag", row.flag ?? "none") && has("step", String(row.step)));
  const rows = matching(own, (row) => `${labelOf(row.step)} ${row.tier} ${row.item} ${row.metric} ${row.flag}`, byId("search").value);
  const order = sorting(), rank = (row) => (MEASURED.includes(order.column) ? read(row[order.column], row) : row[order.column]);
  rows.sort((a, b) => {
    const [p, q] = [rank(a), rank(b)];
    if (p === q) return 0;
    if (p === null) return 1;
    if (q === null) return -1;
    return (p < q ? -1 : 1) * (order.up ? 1 : -1);
  });
  return rows;
}

const csvOf = (rows) => [COLUMNS.map(([name]) => name), ...rows.map((row) => COLUMNS.map(([name]) => row[name]))];

function table(deltas) {
  const rows = searched(deltas), body = byId("deltas").tBodies[0], order = sorting();
  for (const cell of byId("deltas").tHead.querySelectorAll("th")) {
    cell.setAttribute("aria-sort", cell.dataset.name !== order.column ? "none" : order.up ? "ascending" : "descending");
  }
  body.replaceChildren();
  for (const row of rows.slice(0, most)) {
    const line = html(body, "tr");
    for (const [name, isNumber] of SHOWN) {
      const text = MEASURED.includes(name) ? aligned(row[name], row) : name === "p_holm" ? aligned(row[name]) : name === "unit" ? unitOf(row) : row[name] ?? "";
      html(line, "td", { class: isNumber ? "number" : name === "flag" ? row.flag || "" : name }, text);
    }
  }
  byId("count").textContent = `${rows.length} of ${deltas.length} deltas${rows.length > most ? `, the first ${most} shown` : ""}`;
  byId("more").hidden = rows.length <= most;
}

function tableHead() {
  const head = html(byId("deltas").tHead, "tr");
  for (const [name, isNumber] of SHOWN) {
    if (name === "unit") { html(head, "th", { scope: "col" }, name); continue; }
    const cell = html(head, "th", { class: isNumber ? "number" : "", "aria-sort": "none", scope: "col", "data-name": name });
    html(cell, "button", { type: "button" }, name === "bridge" && DATA.other ? OTHER : name).addEventListener("click", () => {
      const order = sorting(), falls = order.column === name && order.up;
      choose({ sort: name === "step" && !falls ? "" : `${falls ? "-" : ""}${name}` });
    });
  }
}
