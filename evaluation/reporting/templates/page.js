"use strict";
// Draws the charts, and the table of all numbers with sorting and search.
const embedded = JSON.parse(document.getElementById("embedded").textContent);

// Columns, texts as places in a list of theirs, become rows.
function unpacked(columns) {
  const cells = Object.entries(columns).map(([name, column]) =>
    [name, column.texts ? column.at.map((place) => column.texts[place]) : column]);
  const count = cells.length ? cells[0][1].length : 0;
  return Array.from({ length: count }, (_, row) =>
    Object.fromEntries(cells.map(([name, column]) => [name, column[row]])));
}

const data = Object.fromEntries(
  Object.entries(embedded.data).map(([name, columns]) => [name, unpacked(columns)]));

const drawn = Object.entries(embedded.specs).map(([id, spec]) =>
  window.vegaEmbed(`#${id}`, { ...spec, datasets: data }, {
    renderer: "svg",
    config: { aria: false }, // the table below has the numbers
    logLevel: 1, // errors; a layer without rows is none
    downloadFileName: id,
    actions: { export: true, source: false, compiled: false, editor: false },
  }));

const HIDDEN = ["step", "role", "metric", "higher_is_better", "chance", "total"];
if (data.table.every((row) => row.stage === data.table[0].stage)) HIDDEN.push("stage");
const SHOWN = Object.keys(embedded.data.table).filter((name) => !HIDDEN.includes(name));
const MOST = 300;
const rows = data.table.map((row) => ({
  row, text: SHOWN.map((name) => row[name] ?? "").join(" ").toLowerCase(),
}));
let order = { name: null, down: false };
const head = document.querySelector("#numbers thead tr");
const body = document.querySelector("#numbers tbody");
const search = document.getElementById("search");

function text(value) {
  return typeof value === "number" ? String(Number(value.toPrecision(5))) : value ?? "–";
}

function compared(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  return (a < b ? -1 : 1) * (order.down ? -1 : 1);
}

function fill() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter((entry) => words.every((word) => entry.text.includes(word)));
  if (order.name) found.sort((a, b) => compared(a.row[order.name], b.row[order.name]));
  body.replaceChildren(...found.slice(0, MOST).map(({ row }) => {
    const line = document.createElement("tr");
    for (const name of SHOWN) line.insertCell().textContent = text(row[name]);
    return line;
  }));
  const more = found.length > MOST ? `, the first ${MOST} are shown` : "";
  document.getElementById("count").textContent = `${found.length} rows${more}`;
}

for (const name of SHOWN) {
  const cell = document.createElement("th");
  cell.scope = "col";
  const button = document.createElement("button");
  button.textContent = name.replace("_", " ");
  button.addEventListener("click", () => {
    order = { name, down: order.name === name && !order.down };
    for (const other of head.children) other.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    fill();
  });
  cell.append(button);
  head.append(cell);
}
search.addEventListener("input", fill);
fill();
Promise.all(drawn).then(() => {
  for (const menu of document.querySelectorAll(".vega-embed summary")) menu.ariaLabel = "save chart";
  const unnamed = '.chart [role="graphics-symbol"]';
  for (const marks of document.querySelectorAll(unnamed)) marks.removeAttribute("role");
  document.documentElement.dataset.drawn = "all";
});
