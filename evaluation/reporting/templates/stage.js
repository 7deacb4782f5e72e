const byId = (id) => document.getElementById(id);
const DELTAS = DATA.deltas.map((row) => Object.fromEntries(DATA.columns.map((name, i) => [name, row[i]])));
const metrics = [...new Set(DATA.series.map((s) => `${s.tier} ${s.metric}`))];

function curves() {
  const chosen = byId("metric").value, wanted = byId("item-filter").value.toLowerCase();
  byId("curves").replaceChildren();
  for (const series of DATA.series) {
    if (`${series.tier} ${series.metric}` !== chosen || !series.item.toLowerCase().includes(wanted)) continue;
    const card = html(byId("curves"), "section", { class: "card" });
    html(card, "h3", {}, series.item);
    drawCurve(card, series);
    if (series.spread) {
      html(card, "p", { class: "soft" },
        `spread (SD) of the last ${series.spread.steps} steps ${format(series.spread.sd)}; items ± ${format(series.spread.half)}`);
    }
  }
  if (!byId("curves").children.length) html(byId("curves"), "p", { class: "soft" }, "nothing to show");
}

function forest() {
  const step = Number(byId("forest-step").value);
  byId("forest").replaceChildren();
  for (const tier of ["tier2", "tier3", "tier4"]) {
    const rows = DELTAS.filter((d) => d.step === step && d.tier === tier && d.headline);
    if (rows.length) drawForest(tier, rows);
  }
}

function drawForest(tier, rows) {
  const gain = (row) => (row.want === "<= 0" ? -row.delta : row.delta);
  rows.sort((a, b) => gain(b) - gain(a));
  const card = html(byId("forest"), "section", { class: "card" });
  html(card, "h3", {}, `${tier}: ${rows[0].label}${rows[0].want === "<= 0" ? ", lower is better" : ""}`);
  const width = 420, left = 160, right = 12, height = 24 * rows.length + 30;
  const reach = Math.max(...rows.flatMap((d) => [d.delta, d.low, d.high, d.mde].map((v) => Math.abs(v ?? 0)))) || 1;
  const x = (value) => left + ((value + reach) / (2 * reach)) * (width - left - right);
  const root = svg(card, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  for (const tick of ticks(-reach, reach, 5)) {
    svg(root, "line", { x1: x(tick), x2: x(tick), y1: 4, y2: height - 20, class: "axis" });
    svg(root, "text", { x: x(tick), y: height - 6, "text-anchor": "middle" }, format(tick));
  }
  rows.forEach((row, i) => {
    const y = 18 + 24 * i, name = row.name.length > 24 && tier !== "tier4" ? `${row.name.slice(0, 23)}…` : row.name;
    const mark = `mark-${row.flag || "unclear"}`, line = svg(root, "g", {});
    svg(line, "text", { x: left - 8, y: y + 4, "text-anchor": "end" }, name);
    if (row.mde !== null) svg(line, "rect", { x: x(-row.mde), y: y - 4, width: x(row.mde) - x(-row.mde), height: 8, class: "seen" });
    if (row.low !== null) svg(line, "line", { x1: x(row.low), x2: x(row.high), y1: y, y2: y, class: mark, "stroke-width": 2 });
    svg(line, "circle", { cx: x(row.delta), cy: y, r: 4, class: mark });
    svg(line, "rect", { x: 0, y: y - 11, width, height: 22, class: "hit" });
    hover(line, `${row.name}: ${signed(row.delta)} ${interval(row.low, row.high)}\n${row.flag || "not tested"}, p (Holm) ${format(row.p_holm)}, smallest seen ${format(row.mde)}`);
  });
}

const COLUMNS = [["step", 1], ["tier", 0], ["item", 0], ["metric", 0], ["value", 1], ["bridge", 1], ["delta", 1],
  ["low", 1], ["high", 1], ["p_holm", 1], ["mde", 1], ["n", 1], ["flag", 0], ["note", 0]];
let order = { column: "step", up: true };

function table() {
  const wanted = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = DELTAS.filter((row) => {
    const text = `step ${row.step} ${row.tier} ${row.item} ${row.metric} ${row.flag}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
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
  for (const row of rows.slice(0, 500)) {
    const line = html(body, "tr");
    for (const [name, isNumber] of COLUMNS) {
      const isPlain = !isNumber || name === "step" || name === "n";
      html(line, "td", { class: isNumber ? "number" : name === "flag" ? row.flag || "" : name }, isPlain ? row[name] ?? "" : format(row[name]));
    }
  }
  byId("count").textContent = `${rows.length} rows${rows.length > 500 ? ", the first 500 shown; search to see others" : ""}`;
}

function tableHead() {
  const head = html(byId("deltas").tHead, "tr");
  for (const [name, isNumber] of COLUMNS) {
    const cell = html(head, "th", { class: isNumber ? "number" : "", "aria-sort": "none" });
    html(cell, "button", { type: "button" }, name).addEventListener("click", () => {
      order = { column: name, up: order.column === name ? !order.up : true };
      for (const other of head.children) other.setAttribute("aria-sort", "none");
      cell.setAttribute("aria-sort", order.up ? "ascending" : "descending");
      table();
    });
  }
}

function flips() {
  const step = Number(byId("flip-step").value), item = byId("flip-item").value;
  byId("flips").replaceChildren();
  const rows = DATA.flips.filter((flip) => flip.step === step && (!item || flip.task === item));
  for (const flip of rows) {
    const box = html(byId("flips"), "details");
    const head = html(box, "summary");
    html(head, "span", { class: flip.gained ? "better" : "worse" }, flip.gained ? "turned right " : "turned wrong ");
    head.append(`${flip.task} · ${flip.id}`);
    html(box, "pre", {}, flip.text);
    if (flip.sides) {
      const pair = html(box, "div", { class: "pair" });
      for (const [name, text, checks] of flip.sides) {
        const side = html(pair, "section", { class: "card" });
        html(side, "h3", {}, name);
        html(side, "pre", {}, text);
        html(side, "p", { class: "soft" }, checks);
      }
    }
    if (flip.candidates) {
      const grid = html(html(box, "div", { class: "scroll" }), "table");
      const line = html(html(grid, "thead"), "tr");
      for (const name of ["candidate", "right", "log-prob here", "log-prob bridge", "chosen by"]) html(line, "th", {}, name);
      const body = html(grid, "tbody");
      for (const one of flip.candidates) {
        const cells = html(body, "tr");
        for (const text of [one.text, one.gold ? "✓" : "", format(one.ours), format(one.theirs), one.chosen]) html(cells, "td", {}, text);
      }
    }
  }
  if (!rows.length) html(byId("flips"), "p", { class: "soft" }, "no item changed sides, or there are no per-item scores");
}

fill(byId("metric"), metrics.map((name) => [name, name]));
byId("metric").addEventListener("change", curves);
byId("item-filter").addEventListener("input", curves);
curves();
if (byId("forest")) {
  const steps = [...new Set(DELTAS.map((d) => d.step))].map((step) => [step, step]);
  fill(byId("forest-step"), steps, DATA.step);
  byId("forest-step").addEventListener("change", forest);
  forest();
  tableHead();
  byId("search").addEventListener("input", table);
  table();
  fill(byId("flip-step"), [...new Set(DATA.flips.map((f) => f.step))].map((step) => [step, step]), DATA.step);
  fill(byId("flip-item"), [["", "all"], ...[...new Set(DATA.flips.map((f) => f.task))].map((name) => [name, name])]);
  byId("flip-step").addEventListener("change", flips);
  byId("flip-item").addEventListener("change", flips);
  flips();
}
