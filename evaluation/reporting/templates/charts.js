"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

function svg(parent, tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

function html(parent, tag, attributes = {}, text) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

function format(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && size < 0.001) return value.toExponential(1);
  return size >= 1000 ? value.toFixed(0) : value.toPrecision(4).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

const signed = (value) => (value > 0 ? "+" : "") + format(value);
const interval = (low, high) => (low === null ? "no interval" : `[${format(low)}, ${format(high)}]`);

const tip = document.getElementById("tip");
function hover(node, text) {
  const place = (event) => {
    tip.textContent = text;
    tip.style.display = "block";
    const left = Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${event.clientY + 14}px`;
  };
  node.addEventListener("mousemove", place);
  node.addEventListener("mouseleave", () => { tip.style.display = "none"; });
  svg(node, "title", {}, text);
}

function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  const found = [];
  for (let i = Math.ceil(low / unit); i * unit <= high + unit * 1e-9; i += 1) found.push(i * unit);
  return found;
}

/* One small multiple. series: {points: [{x, step, value, low, high, stage}], bridge, chance, borders} */
function drawCurve(parent, series, { height = 170, bare = false } = {}) {
  const width = 300, left = bare ? 4 : 46, right = 8, top = 8, bottom = bare ? 4 : 22;
  const points = series.points;
  const known = (list) => list.filter((value) => value !== null && value !== undefined);
  const bounds = known([
    ...points.flatMap((p) => (bare ? [p.value] : [p.value, p.low, p.high])),
    series.bridge && series.bridge.value, bare ? null : series.chance,
  ]);
  let low = Math.min(...bounds), high = Math.max(...bounds);
  if (high - low < 1e-9) { const pad = Math.abs(high) * 0.05 || 0.05; low -= pad; high += pad; }
  const first = points[0].x, last = points[points.length - 1].x;
  const x = (value) => (last === first ? (left + width - right) / 2
    : left + ((value - first) / (last - first)) * (width - left - right));
  const y = (value) => top + ((high - value) / (high - low)) * (height - top - bottom);
  const name = (p) => (p.stage ? `${p.stage} ${p.step}` : p.step);
  const root = svg(parent, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  if (!bare) {
    for (const tick of ticks(low, high, 4)) {
      svg(root, "line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: "axis" });
      svg(root, "text", { x: left - 5, y: y(tick) + 4, "text-anchor": "end" }, format(tick));
    }
    svg(root, "text", { x: x(first), y: height - 6, "text-anchor": last === first ? "middle" : "start" }, name(points[0]));
    if (last !== first) {
      svg(root, "text", { x: x(last), y: height - 6, "text-anchor": "end" }, name(points[points.length - 1]));
    }
  }
  for (const border of series.borders || []) {
    svg(root, "line", { x1: x(border), x2: x(border), y1: top, y2: height - bottom, class: "chance" });
  }
  const level = (value, name, label) => {
    const line = svg(root, "line", { x1: left, x2: width - right, y1: y(value), y2: y(value), class: name });
    hover(line, `${label} ${format(value)}`);
  };
  if (series.bridge) level(series.bridge.value, "reference", "bridge");
  if (!bare && series.chance !== null && series.chance !== undefined) level(series.chance, "chance", "chance");
  const banded = points.filter((p) => p.low !== null);
  if (!bare && banded.length > 1) {
    const edge = [...banded.map((p) => `${x(p.x)},${y(p.high)}`), ...banded.reverse().map((p) => `${x(p.x)},${y(p.low)}`)];
    svg(root, "polygon", { points: edge.join(" "), class: "band" });
  }
  svg(root, "polyline", { points: points.map((p) => `${x(p.x)},${y(p.value)}`).join(" "), class: "curve" });
  for (const p of points) {
    const label = `${p.stage ? `${p.stage} ` : ""}step ${p.step}: ${format(p.value)} ${interval(p.low, p.high)}`;
    svg(root, "circle", { cx: x(p.x), cy: y(p.value), r: points.length > 60 ? 1.5 : 3, class: "point" });
    hover(svg(root, "circle", { cx: x(p.x), cy: y(p.value), r: 9, class: "hit", "data-value": p.value, "data-step": p.step }), label);
  }
}

function fill(select, values, chosen) {
  for (const [value, label] of values) html(select, "option", { value }, label);
  if (chosen !== undefined && chosen !== null) select.value = chosen;
}
