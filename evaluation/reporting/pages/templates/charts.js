const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

function added(parent, node, attributes, text) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

const svg = (parent, tag, attributes, text) => added(parent, document.createElementNS(SVG, tag), attributes, text);
const html = (parent, tag, attributes = {}, text) => added(parent, document.createElement(tag), attributes, text);

function fill(select, values, chosen) {
  for (const [value, label] of values) html(select, "option", { value }, label);
  if (chosen !== undefined && chosen !== null) select.value = chosen;
}

/* JSON, compressed, in base64 */
async function unpacked(text) {
  if (!window.DecompressionStream) {
    html(document.body, "p", { class: "worse" }, "Figures need a browser from 2023 or later.");
  }
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text(), (_, value) => (value?.$columns ? rowsOf(value.$columns) : value));
}

/* Turns columns into rows again; data store columns, as these are smaller */
function rowsOf(columns) {
  const entries = Object.entries(columns);
  return entries[0][1].map((_, i) => Object.fromEntries(entries.map(([name, values]) => [name, values[i]])));
}

const DATA = await unpacked(byId("data").textContent);

/* What values are compared with: the bridge, or another run */
const OTHER = DATA.other || "the bridge";

/* Ticks, p-values and log-probabilities; levels and changes of metrics are written by `aligned` */
function format(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && size < 0.001) return value.toExponential(digits - 3);
  if (size >= 10 ** digits) return value.toFixed(0);
  return value.toPrecision(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

/* Levels and changes of metrics: four decimals, or two of percent and points, as in all sentences; values that would show as zero have an exponent */
function aligned(raw, of) {
  if (raw === null || raw === undefined) return "–";
  const value = read(raw, of), text = value.toFixed(scaleIn(of) === PERCENT ? 2 : 4);
  return value !== 0 && Number(text) === 0 ? value.toExponential(1) : text;
}

/* What people read of a rate is in percent and points, as in all sentences; files and saved tables have fractions */
const PERCENT = 100;
const scaleIn = (of) => (of && metricOf(of).unit === "fraction" ? PERCENT : 1);

/* DATA.tiers: {tier: {title, kind, rates, item, unit, headline, shown, lower, metrics: {name: {unit, lower, words}}}}.
   A metric that a task or suite adds, as acc_per_char, is of the headline's kind */
function metricOf({ tier, metric }) {
  const { metrics, headline } = DATA.tiers[tier];
  return metrics[metric] || { ...metrics[headline], words: (metric || headline).replaceAll("_", " ") };
}
const read = (value, of) => (value === null || value === undefined ? value : scaleIn(of) * value);
const levelUnit = (of) => (scaleIn(of) === PERCENT ? " %" : "");
const levelText = (value, of) => `${aligned(value, of)}${levelUnit(of)}`;
const signed = (value, of) => `${value > 0 ? "+" : ""}${aligned(value, of)}`;
const changeText = (value, low, high, of) => `${signed(value, of)} ${interval(low, high, of, signed)}${scaleIn(of) === PERCENT ? " points" : ""}`;
const interval = (low, high, of, write = aligned) => (low === null || low === undefined ? "no interval" : `[${write(low, of)}, ${write(high, of)}]`);
const named = (steps) => `${steps.length === 1 ? "step" : `${steps.length} steps:`} ${short(steps.join(", "), 120)}`;

const labelOf = (step) => `step ${step}${nameOfStep(step)}`;
/* What the configuration's list of checkpoints calls a step */
const nameOfStep = (step) => (DATA.names && DATA.names[step] ? ` (${DATA.names[step]})` : "");
const short = (name, most) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

/* Inside Snakemake's report a page is a data: URL, where links to parts of the page do not work */
for (const link of document.querySelectorAll("nav.parts a")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    document.querySelector(link.getAttribute("href")).scrollIntoView();
  });
}

const tip = byId("tip");
function hover(node, text) {
  const place = (event) => {
    tip.textContent = text;
    tip.style.display = "block";
    const left = Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8);
    const below = event.clientY + 14 + tip.offsetHeight < window.innerHeight;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${below ? event.clientY + 14 : event.clientY - tip.offsetHeight - 8}px`;
  };
  node.addEventListener("mousemove", place);
  node.addEventListener("mouseleave", hideTip);
}

/* On a touch screen there is no mouseleave: touching, scrolling and Escape hide a tip, too */
function hideTip() {
  tip.style.display = "none";
}
for (const event of ["pointerdown", "scroll", "resize"]) window.addEventListener(event, hideTip, { capture: true, passive: true });
window.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  const found = [];
  for (let i = Math.ceil(low / unit); i * unit <= high + unit * 1e-9; i += 1) found.push(i * unit);
  return found;
}

/* 1, 2 and 5 times the powers of ten between two bounds */
function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
    for (const factor of [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (value >= low && value <= high) found.push(value);
    }
  }
  return found;
}

/* A figure's card, with its name and a button that saves it; `about` describes it */
function figure(parent, title, about) {
  const card = html(parent, "section", { class: "card" });
  const head = html(card, "div", { class: "head" });
  html(head, "h4", { title }, title);
  const button = html(head, "button", { type: "button", class: "save", title: "save this figure as SVG", "aria-label": `save ${title} as SVG` }, "SVG");
  button.addEventListener("click", () => saveFigure(card.querySelector("svg"), aboutFigure(about())));
  return card;
}

/* Upper bound of the average width of a figure's letters, in pixels */
const LETTER = 6.6;
const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family"];

const withUnit = ({ words, unit }, ofFraction = "%") => (!unit || words === unit ? words : `${words}, ${unit === "fraction" ? ofFraction : unit}`);

/* The description in a saved figure, and the name of its file: stage, item, metric, step, axes */
function aboutFigure({ what, tier, item, metric, step, points, axis = "step" }) {
  const known = metricOf({ tier, metric });
  const stage = DATA.stage || chosen(step ? "pair" : "stage") || "all stages";
  const at = step ? `${labelOf(step)} against ${OTHER}` : points && points[0].step !== undefined ? `steps ${points[0].step} to ${points[points.length - 1].step}` : "";
  const axes = step ? `across: Δ ${withUnit(known, "points")}` : `across: ${axis}, up: ${withUnit(known)}`;
  const name = [stage, tier, item, metric, what, step && labelOf(step).replace(" ", "-")].filter(Boolean).join("_");
  return {
    title: [stage, DATA.tiers[tier].title, item, known.words, at].filter(Boolean).join(" · "),
    axes, file: `${name.replace(/[^\w.-]+/g, "-")}.svg`,
  };
}

/* The figure as a standalone file: with its styles, without the areas for hovering */
function standalone(drawn, { title, axes }) {
  const copy = drawn.cloneNode(true);
  const originals = drawn.querySelectorAll("*"), copies = copy.querySelectorAll("*");
  originals.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of STYLES) copies[i].setAttribute(name, style.getPropertyValue(name));
    copies[i].removeAttribute("class");
    copies[i].removeAttribute("aria-label");
    if (node.dataset.whole) copies[i].textContent = node.dataset.whole;
    if (node.classList.contains("hit")) copies[i].remove();
  });
  const [, , width, height] = drawn.getAttribute("viewBox").split(" ").map(Number);
  const page = getComputedStyle(document.body);
  copy.setAttribute("xmlns", SVG);
  const beyond = Math.max(0, ...[...drawn.querySelectorAll("[data-whole]")].map((node) => LETTER * node.dataset.whole.length - node.getAttribute("x")));
  const whole = width + beyond, lines = [...broken(`${title}; ${axes}`, whole / 6)], room = 14 * lines.length + 10;
  copy.setAttribute("viewBox", `${-beyond} ${-room} ${whole} ${height + room}`);
  copy.setAttribute("width", whole * 2);
  copy.setAttribute("height", (height + room) * 2);
  copy.setAttribute("aria-label", title);
  const texts = lines.map((line, i) => svg(copy, "text", { x: 6 - beyond, y: 14 * (i + 1) - room, fill: page.color, "font-size": 11, "font-family": page.fontFamily }, line));
  const ground = svg(copy, "rect", { x: -beyond, y: -room, width: whole, height: height + room, fill: page.backgroundColor });
  copy.prepend(svg(copy, "title", {}, title), svg(copy, "desc", {}, axes), ground, ...texts);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}`;
}

/* A text in lines of at most so many letters, broken between words */
function broken(text, most) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines[lines.length - 1].length + word.length > most) lines.push("");
    lines[lines.length - 1] += `${lines[lines.length - 1] ? " " : ""}${word}`;
  }
  return lines.filter(Boolean);
}

const saveFigure = (node, about) => saveFile(about.file, "image/svg+xml", standalone(node, about));

/* A button before a table that saves it as CSV: what `rows` returns, by default its cells */
function saveTable(box, name, rows = () => cellsOf(box.querySelector("table"))) {
  const file = `${[DATA.stage || (DATA.other ? "runs" : "all-stages"), name].join("_").replace(/[^\w.-]+/g, "-")}.csv`;
  const button = html(box.parentElement, "button", { type: "button", class: "save", title: "save this table as CSV", "aria-label": `save ${name} as CSV` }, "CSV");
  box.before(button);
  button.addEventListener("click", () => saveFile(file, "text/csv", rows().map((row) => `${row.map(csvCell).join(",")}\r\n`).join("")));
}

const cellsOf = (grid) => [...grid.rows].map((row) => [...row.cells].map((cell) => cell.dataset.value ?? cell.textContent.replace(/\s+/g, " ").trim()));

/* Quoted as RFC 4180 requires; a quote precedes text that a spreadsheet would read as a formula */
function csvCell(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" && /^[=+@\t\r-](?![\d.])/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function saveFile(file, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = html(document.body, "a", { href: url, download: file });
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
