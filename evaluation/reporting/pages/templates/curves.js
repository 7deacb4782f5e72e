/* Series as drawn: {tier, item, metric, points: [{x, step, value, low, high, stage}], bridge, chance, borders,
   spread, lines: [{name, number, points}], levels: [{name, number, value}]}, lines where there are several */
function unpackPoints(columns) {
  const names = Object.keys(columns);
  return (columns.step || []).map((step, i) => {
    const point = { x: step };
    for (const name of names) point[name] = columns[name][i];
    return point;
  });
}

function unpackSeries(series) {
  if (!series.lines) return { ...series, points: unpackPoints(series.points) };
  return withLines(series, series.lines.map((line) => ({ ...line, points: unpackPoints(line.points) })));
}

/* All points of several lines in one row, each with the name of its line */
function withLines(series, lines) {
  const points = lines.flatMap((line) => line.points.map((p) => ({ ...p, line: line.name })));
  return { ...series, lines, points: points.sort((p, q) => p.x - q.x) };
}

/* DATA.tiers: {tier: {title, kind, rates, item, unit, headline, shown, lower, metrics: {name: {unit, lower, words}}}} */
const metricOf = (series) => DATA.tiers[series.tier].metrics[series.metric] || {};

const levelsOf = (series) => series.levels || [];

/* How values become heights: linear, or logarithmic where they span much */
function scaleOf(series, bare) {
  const known = (list) => list.filter((value) => value !== null && value !== undefined);
  const bounds = known([
    ...series.points.flatMap((p) => (bare ? [p.value] : [p.value, p.low, p.high])),
    ...(bare ? [] : levelsOf(series).map((level) => level.value)), series.bridge && series.bridge.value, bare ? null : series.chance,
  ]);
  let low = Math.min(...bounds), high = Math.max(...bounds);
  const isLog = metricOf(series).unit === "perplexity" && low > 0 && high / low > 8;
  if (high - low < 1e-9) { const pad = Math.abs(high) * 0.05 || 0.05; low -= pad; high += pad; }
  const at = isLog ? Math.log : (value) => value;
  const marks = isLog ? logTicks(low, high) : ticks(low, high, 4);
  return { isLog, marks, height: (value) => (at(high) - at(value)) / (at(high) - at(low)) };
}

/* Of lines; style.css has as many */
const COLOURS = 6;

/* One small multiple */
function drawCurve(parent, series, { height = 170, bare = false } = {}) {
  const width = 300, left = bare ? 4 : 46, right = 8, top = bare ? 4 : 12, bottom = bare ? 4 : 22;
  const points = series.points, scale = scaleOf(series, bare);
  const first = points[0].x, last = points[points.length - 1].x;
  const x = (value) => (last === first ? (left + width - right) / 2
    : left + ((value - first) / (last - first)) * (width - left - right));
  const y = (value) => top + scale.height(value) * (height - top - bottom);
  const root = svg(parent, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${series.tier} ${series.metric} ${series.item}` });
  const across = (value, name) => svg(root, "line", { x1: left, x2: width - right, y1: y(value), y2: y(value), class: name });
  if (!bare) {
    for (const tick of scale.marks) {
      across(tick, "axis");
      svg(root, "text", { x: left - 5, y: y(tick) + 4, "text-anchor": "end" }, format(tick));
    }
    drawSteps(root, points, x, height - 6);
  }
  drawBorders(root, series, x, [top, height - bottom]);
  if (series.bridge) across(series.bridge.value, "reference");
  if (!bare && series.chance !== null && series.chance !== undefined) across(series.chance, "chance");
  for (const level of bare ? [] : levelsOf(series)) {
    const group = svg(root, "g", { class: `line-${level.number % COLOURS}` });
    group.append(across(level.value, "level"));
  }
  for (const line of series.lines || [{ points }]) {
    const group = series.lines ? svg(root, "g", { class: `line-${line.number % COLOURS}` }) : root;
    drawBand(group, bare ? [] : line.points.filter((p) => p.low !== null), x, y);
    svg(group, "polyline", { points: line.points.map((p) => `${x(p.x)},${y(p.value)}`).join(" "), class: "curve" });
    for (const p of line.points) svg(group, "circle", { cx: x(p.x), cy: y(p.value), r: line.points.length > 60 ? 1.5 : 3, class: "point" });
  }
  drawHits(root, series, x, { left, right: width - right, top, height: height - top - bottom });
}

/* Where one stage ends and the next begins, and their names where these fit */
function drawBorders(root, series, x, [top, bottom]) {
  const borders = series.borders || [];
  for (const border of borders) svg(root, "line", { x1: x(border), x2: x(border), y1: top, y2: bottom, class: "border" });
  if (!borders.length) return;
  const stages = [...new Set(series.points.map((p) => p.stage))], last = series.points[series.points.length - 1].x;
  const inner = borders.filter((border) => border > series.points[0].x), edges = [series.points[0].x, ...inner, last];
  edges.slice(0, -1).forEach((edge, i) => {
    const name = stages[i] || "", room = x(edges[i + 1]) - x(edge);
    if (name.length * 6 < room) svg(root, "text", { x: x(edge) + room / 2, y: top - 1, "text-anchor": "middle" }, name);
  });
}

function drawSteps(root, points, x, y) {
  const first = points[0], last = points[points.length - 1];
  const name = (p) => p.label || (p.stage ? `${p.stage}, ${p.step}` : p.step);
  svg(root, "text", { x: x(first.x), y, "text-anchor": first === last ? "middle" : "start" }, name(first));
  if (first !== last) svg(root, "text", { x: x(last.x), y, "text-anchor": "end" }, name(last));
}

function drawBand(root, points, x, y) {
  const up = points.map((p) => `${x(p.x)},${y(p.high)}`), down = points.map((p) => `${x(p.x)},${y(p.low)}`).reverse();
  if (points.length > 1) svg(root, "polygon", { points: [...up, ...down].join(" "), class: "band" });
  if (points.length === 1) svg(root, "line", { x1: x(points[0].x), x2: x(points[0].x), y1: y(points[0].low), y2: y(points[0].high), class: "whisker" });
}

/* Every place on the axis has the column of the plot that is nearest to it, and tells all points there */
function drawHits(root, series, x, area) {
  const places = [...new Set(series.points.map((p) => p.x))];
  places.forEach((value, i) => {
    const from = i ? (x(places[i - 1]) + x(value)) / 2 : area.left;
    const to = i < places.length - 1 ? (x(value) + x(places[i + 1])) / 2 : area.right;
    const points = series.points.filter((p) => p.x === value), [first] = points;
    const lines = points.flatMap(pointText);
    if (series.bridge) lines.push(`bridge ${exact(series.bridge.value)}`);
    lines.push(...levelsOf(series).map((level) => `${level.name} ${exact(level.value)}`));
    if (series.chance !== null && series.chance !== undefined) lines.push(`chance ${format(series.chance)}`);
    const place = { x: from, y: area.top, width: Math.max(0, to - from), height: area.height };
    hover(svg(root, "rect", { ...place, class: "hit", "data-value": first.value, "data-step": first.step }), lines.join("\n"));
  });
}

function pointText(p) {
  const words = [p.line, p.line ? "" : p.stage, `step ${p.step}`, p.label].filter(Boolean).join(" ");
  return [`${words}: ${exact(p.value)}`, `95 % ${interval(p.low, p.high)}`];
}

/* Which colour is whose, where there are several lines */
function drawLegend(all) {
  const lines = new Map(all.flatMap((series) => series.lines || []).map((line) => [line.name, line.number]));
  const levels = new Map(all.flatMap(levelsOf).map((level) => [level.name, level.number]));
  byId("legend").replaceChildren();
  for (const [kind, names] of [["curve", lines], ["level", levels]]) {
    for (const [name, number] of names) {
      const entry = html(byId("legend"), "span", { class: `line-${number % COLOURS}` });
      const key = svg(entry, "svg", { viewBox: "0 0 28 8", class: "key" });
      svg(key, "polyline", { points: "0,4 28,4", class: kind });
      html(entry, "span", {}, name);
    }
  }
}

function spreadText({ steps, sd, half }) {
  const items = half === null ? "" : `; over items ± ${format(half, 3)}`;
  return `spread (SD) of the last ${steps} steps ${format(sd, 3)}${items}`;
}

/* What is shown together: a metric of all items, but all rates of a tier of rates */
const isRate = (series) => DATA.tiers[series.tier].rates && series.item === "overall";
const kindOf = (series) => {
  if (isRate(series)) return `${series.tier} rates`;
  const by = DATA.tiers[series.tier].rates ? ` by ${DATA.tiers[series.tier].item}` : "";
  return `${series.tier} ${series.metric}${by}`;
};
const nameOf = (series) => (isRate(series) ? series.metric : series.item);

/* What a metric counts in and which way is better, as the table of tiers says */
function measureText(series) {
  const { words, unit, lower } = metricOf(series);
  if (isRate(series) || !words) return "";
  return `${words}, ${unit}; ${lower ? "lower" : "higher"} is better`;
}

/* Small multiples of one metric; items are chosen by chips and found by name. Gives what shows other series. */
function curveBoard() {
  const hidden = new Set();
  let all = [];
  const draw = () => {
    const own = all.filter((s) => kindOf(s) === byId("metric").value);
    const wanted = byId("item-filter").value.toLowerCase();
    byId("measure").textContent = own.length ? measureText(own[0]) : "";
    drawChips(own.map(nameOf), hidden, draw);
    byId("curves").replaceChildren();
    for (const series of own) {
      const name = nameOf(series);
      if (hidden.has(name) || !name.toLowerCase().includes(wanted)) continue;
      const card = figure(byId("curves"), name);
      drawCurve(card, series);
      if (series.spread) html(card, "p", { class: "soft" }, spreadText(series.spread));
    }
    if (!byId("curves").children.length) html(byId("curves"), "p", { class: "soft" }, all.length || byId("axis") ? "nothing to show" : "no results yet");
  };
  byId("metric").addEventListener("change", draw);
  byId("item-filter").addEventListener("input", draw);
  return (series) => {
    all = series;
    const kinds = [...new Set(all.map(kindOf))], before = byId("metric").value;
    byId("metric").replaceChildren();
    fill(byId("metric"), kinds.map((name) => [name, name]), kinds.includes(before) ? before : null);
    if (byId("legend")) drawLegend(all);
    draw();
  };
}

function drawChips(items, hidden, draw) {
  const chips = byId("chips");
  chips.replaceChildren();
  if (items.length < 2) return;
  const chip = (name, pressed, choose) => {
    const button = html(chips, "button", { type: "button", "aria-pressed": pressed }, name);
    button.addEventListener("click", () => { choose(); draw(); });
  };
  const isAll = items.every((name) => !hidden.has(name));
  chip(isAll ? "none" : "all", false, () => items.forEach((name) => (isAll ? hidden.add(name) : hidden.delete(name))));
  for (const name of items) chip(name, !hidden.has(name), () => hidden.delete(name) || hidden.add(name));
}
