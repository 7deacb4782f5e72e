/* A table with a row for each item, coloured by differences; the largest one of a tier's metric is darkest.
   columns: [{name, link}], rows: [{tier, metric, unitOf: {tier, metric}, link, cells: [{value, delta, isGain, flag, tip}]}] */
const DARKEST = 45;
const FEW = 7;
/* Columns that fit on paper; on a screen the table scrolls */

function heatMap(place, label, columns, rows) {
  const before = place.querySelector(".scroll")?.scrollLeft ?? 0;
  place.replaceChildren();
  if (!rows.length) html(place, "p", { class: "soft" }, "no results yet");
  const size = printing.matches ? FEW : columns.length;
  for (let from = 0; from < columns.length && rows.length; from += size) {
    const box = html(place, "div", { class: "scroll", role: "region", tabindex: 0, "aria-label": label });
    heatPart(html(box, "table", { class: "matrix" }), columns, rows, [from, from + size]);
    if (!from) saveTable(box, label);
    box.scrollLeft = before;
    if (STATE.step || place.dataset.drawn) showPicked(box); // as opened, it begins with the bridge and the first step
  }
  place.dataset.drawn = "yes";
}

/* Scrolls the chosen column into view, next to the names of rows */
function showPicked(box) {
  const cell = box.querySelector(".picked"), names = box.querySelector("th").offsetWidth;
  if (!cell) return;
  const left = cell.getBoundingClientRect().left - box.getBoundingClientRect().left;
  if (left < names || left + cell.offsetWidth > box.clientWidth) box.scrollLeft += left - (box.clientWidth + names - cell.offsetWidth) / 2;
}

function heatPart(grid, columns, rows, [from, to]) {
  const head = html(html(grid, "thead"), "tr");
  html(head, "th", { scope: "col" }, "item");
  for (const { link, isChosen } of columns.slice(from, to)) link(html(head, "th", { scope: "col", class: isChosen ? "number picked" : "number" }));
  const titles = rows.map(titleOf);
  for (const part of new Set(titles)) {
    const own = rows.filter((row, i) => titles[i] === part), body = html(grid, "tbody");
    const title = html(body, "tr");
    html(title, "th", { scope: "rowgroup", colspan: Math.min(to, columns.length) - from + 1, class: "group" }, part);
    const most = Math.max(...own.flatMap((row) => row.cells.map((cell) => Math.abs(cell?.delta ?? 0))));
    for (const row of own) heatRow(html(body, "tr"), row, most, [from, to]);
  }
}

function titleOf({ tier, metric }) {
  const { title, metrics } = DATA.tiers[tier], { words, unit } = metrics[metric || shownMetric(tier)] || {};
  return isLoss(tier) ? `${title} (${tier}), ${unit}` : `${title} (${tier}), ${unit === "fraction" ? `${words}, %` : words}`;
}

const SIGNS = { better: " ▲", worse: " ▼" };
/* A cell without a sign has an invisible one, so that decimals are aligned */

function heatRow(line, row, most, [from, to]) {
  row.link(html(line, "th", { scope: "row" }));
  for (const cell of row.cells.slice(from, to)) {
    const known = { class: "number" };
    if (cell && cell.delta && most) {
      known.class += cell.isGain ? " gain" : " loss";
      known.style = `--share: ${((DARKEST * Math.abs(cell.delta)) / most).toFixed(1)}%`;
    }
    if (cell) known["data-value"] = cell.value;
    const place = html(line, "td", known, cell ? aligned(cell.value, row.unitOf) : "–");
    if (cell) html(place, "span", { class: SIGNS[cell.flag] ? "" : "none" }, SIGNS[cell.flag] || SIGNS.better);
    if (cell?.tip) hover(place, cell.tip);
  }
}

/* A step or item as a button in a table's head */
const pick = (key, value, text, changes) => (cell) => {
  const button = html(cell, "button", { type: "button", class: "pick", "data-key": `${key} ${value}`, "aria-pressed": chosen(key) === String(value) }, text);
  button.addEventListener("click", () => choose({ [key]: chosen(key) === String(value) ? "" : String(value), ...changes }));
};
