/* Series as drawn: {tier, item, metric, points: [{x, step, value, low, high, stage}], bridge, chance, borders,
   noise, log, lines: [{name, number, points}], levels: [{name, number, value}]}; `lines` where there are several;
   `points` are then those of all lines, each with the name of its line */
function drawable(series, lines = series.lines) {
  const known = { borders: [], levels: [], ...series };
  if (!lines) return known;
  const points = lines.flatMap((line) => line.points.map((p) => ({ ...p, line: line.name })));
  return { ...known, lines, points: points.sort((p, q) => p.x - q.x) };
}

/* How values become heights: on a linear or logarithmic axis */
function scaleOf(series, bare) {
  const known = (list) => list.filter((value) => value !== null && value !== undefined);
  const bounds = known([
    ...series.points.flatMap((p) => [p.value, ...(bare ? [] : boundsOf(p) || [])]),
    ...(bare ? [] : series.levels.map((level) => level.value)), series.bridge && series.bridge.value, bare ? null : series.chance,
  ]);
  let low = Math.min(...bounds), high = Math.max(...bounds);
  const isShare = scaleIn(series) === PERCENT && low >= 0 && high <= 1;
  [low, high] = spanning(low, high, smallestSpan(series, high));
  if (isShare) [low, high] = [Math.max(0, low), Math.min(1, high)]; // there is nothing beyond 0 and 100 %
  const at = series.log ? Math.log : (value) => value, powers = series.log ? logTicks(low, high) : [];
  const marks = powers.length > 1 ? powers : enoughTicks(low, high, 4);
  return { marks, height: (value) => (at(high) - at(value)) / (at(high) - at(low)) };
}

/* The smallest span of the axis: ten times the metric's `worth`, for a perplexity relative to its value */
function smallestSpan(series, high) {
  const { worth = 0.01, unit } = metricOf(series);
  return 10 * worth * (unit === "perplexity" ? Math.abs(high) : 1);
}

/* Number of lines' colours, as in style.css */
const COLOURS = 6;

/* One small multiple; a bare one has no axes but the bounds of its scale */
function drawCurve(parent, series, { height = 190, bare = false } = {}) {
  const width = roomIn(parent), left = 52, right = 8, top = bare ? 8 : 28, bottom = bare ? 8 : 34;
  const points = series.points, scale = scaleOf(series, bare);
  const x = placesOf(points, series.borders, [left, width - right]);
  const y = (value) => top + scale.height(value) * (height - top - bottom);
  const root = svg(parent, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${series.tier} ${series.metric} ${series.item}` });
  const across = (value, name) => svg(root, "line", { x1: left, x2: width - right, y1: y(value), y2: y(value), class: name });
  for (const tick of bare ? new Set([scale.marks[0], scale.marks.at(-1)]) : scale.marks) {
    if (!bare) across(tick, "axis");
    svg(root, "text", { x: left - 5, y: y(tick) + 4, "text-anchor": "end" }, `${format(read(tick, series))}${bare ? levelUnit(series) : ""}`);
  }
  if (!bare) {
    drawSteps(root, series, x, [height - bottom, width - right]);
    svg(root, "text", { x: 2, y: 11 }, axisName(series));
  }
  drawBorders(root, series, x, [top, height - bottom]);
  if (series.bridge) across(series.bridge.value, "reference");
  if (!bare && series.chance !== null && series.chance !== undefined) across(series.chance, "chance");
  for (const level of bare ? [] : series.levels) {
    const group = svg(root, "g", { class: `line-${level.number % COLOURS}` });
    group.append(across(level.value, "level"));
  }
  for (const line of series.lines || [{ points }]) {
    drawLine(series.lines ? svg(root, "g", { class: `line-${line.number % COLOURS}` }) : root, line.points, { x, y, bare });
  }
  drawHits(root, series, x, { left, right: width - right, top, height: height - top - bottom });
}

function drawLine(group, points, { x, y, bare }) {
  drawBand(group, bare ? [] : points.filter(boundsOf).map((p) => ({ x: p.x, low: boundsOf(p)[0], high: boundsOf(p)[1] })), x, y);
  svg(group, "polyline", { points: points.map((p) => `${x(p.x)},${y(p.value)}`).join(" "), class: "curve" });
  for (const p of points) svg(group, "circle", { cx: x(p.x), cy: y(p.value), r: points.length > 60 ? 1.5 : 3, class: "point" });
}

/* Where one stage ends and the next begins, and their names where these fit */
function drawBorders(root, series, x, [top, bottom]) {
  const { borders } = series;
  for (const border of borders) svg(root, "line", { x1: x(border), x2: x(border), y1: top, y2: bottom, class: "border" });
  if (!borders.length) return;
  const last = series.points[series.points.length - 1].x;
  const inner = borders.filter((border) => border > series.points[0].x), edges = [series.points[0].x, ...inner, last];
  edges.slice(0, -1).forEach((edge, i) => {
    const name = series.points.find((p) => p.x > edge)?.stage || "", room = x(edges[i + 1]) - x(edge);
    if (name.length * 6 < room) svg(root, "text", { x: x(edge) + room / 2, y: top - 1, "text-anchor": "middle" }, name);
  });
}

/* The name of the axis of values */
function axisName(series) {
  const { unit, lower, words } = metricOf(series);
  if (!unit) return series.metric;
  return `${words === unit || unit === "perplexity" ? unit : unit === "fraction" ? `${words}, %` : `${words}, ${unit}`}${lower ? " (lower is better)" : ""}`;
}

function drawBand(root, points, x, y) {
  const up = points.map((p) => `${x(p.x)},${y(p.high)}`), down = points.map((p) => `${x(p.x)},${y(p.low)}`).reverse();
  if (points.length > 1) svg(root, "polygon", { points: [...up, ...down].join(" "), class: "band" });
  if (points.length === 1) svg(root, "line", { x1: x(points[0].x), x2: x(points[0].x), y1: y(points[0].low), y2: y(points[0].high), class: "whisker" });
}

/* Each place on the axis has the column of the plot nearest to it; hovering there shows all its points */
function drawHits(root, series, x, area) {
  const places = [...new Set(series.points.map((p) => p.x))];
  places.forEach((value, i) => {
    const from = i ? (x(places[i - 1]) + x(value)) / 2 : area.left;
    const to = i < places.length - 1 ? (x(value) + x(places[i + 1])) / 2 : area.right;
    const points = series.points.filter((p) => p.x === value), [first] = points;
    const lines = points.flatMap((p) => pointText(p, series));
    if (series.bridge) lines.push(`bridge ${levelText(series.bridge.value, series)}`);
    lines.push(...series.levels.map((line) => `${line.name} ${levelText(line.value, series)}`));
    if (series.chance !== null && series.chance !== undefined) lines.push(`chance ${levelText(series.chance, series)}`);
    const place = { x: from, y: area.top, width: Math.max(0, to - from), height: area.height };
    hover(svg(root, "rect", { ...place, class: "hit", "data-value": first.value, "data-step": first.step ?? "" }), lines.join("\n"));
  });
}

function pointText(p, series) {
  const words = [p.line, p.line ? "" : p.stage, p.step === undefined ? "" : `step ${p.step}`, p.label].filter(Boolean).join(" ");
  const lines = [`${words}: ${levelText(p.value, series)}`];
  if (p.low !== undefined) lines.push(`95 % over items ${interval(p.low, p.high, series)}`);
  if (p.paired_low !== null && p.paired_low !== undefined) lines.push(`95 % paired with the bridge ${interval(p.paired_low, p.paired_high, series)}`);
  return lines;
}

/* Names the colours where there are several lines */
function drawLegend(all, place = byId("legend")) {
  const lines = new Map(all.flatMap((series) => series.lines || []).map((line) => [line.name, line.number]));
  const levels = new Map(all.flatMap((series) => series.levels).map((level) => [level.name, level.number]));
  place.replaceChildren();
  for (const [kind, names] of [["curve", lines], ["level", levels]]) {
    for (const [name, number] of names) {
      const entry = html(place, "span", { class: `line-${number % COLOURS}` });
      const key = svg(entry, "svg", { viewBox: "0 0 28 8", class: "key" });
      svg(key, "polyline", { points: "0,4 28,4", class: kind });
      html(entry, "span", {}, name);
    }
  }
}

function noiseText({ sd, half }, series) {
  const size = (value) => `${aligned(value, series)}${scaleIn(series) === PERCENT ? " points" : ""}`;
  const items = half === null ? "" : `; over items ± ${size(half)} at the last checkpoint`;
  return `noise (SD between neighbouring checkpoints) ${size(sd)}${items}`;
}

/* What is shown together: a metric of all items, but all rates of a tier of rates */
const isRate = (series) => DATA.tiers[series.tier].rates && series.item === "overall";
const kindOf = (series) => {
  if (isRate(series)) return `${series.tier} rates`;
  const by = DATA.tiers[series.tier].rates ? ` by ${DATA.tiers[series.tier].item}` : "";
  return `${series.tier} ${series.metric}${by}`;
};

/* What menus call it, with plain names beside the tier's */
const kindInWords = (series) => {
  const { title, rates, item } = DATA.tiers[series.tier], name = `${title} (${series.tier})`;
  return isRate(series) ? `${name}, rates` : `${name}, ${metricOf(series).words || series.metric}${rates ? ` by ${item}` : ""}`;
};
const nameOf = (series) => (isRate(series) ? series.metric : series.item);

/* A metric's unit and direction, from the table of tiers */
function measureText(series) {
  const { words, lower } = metricOf(series);
  if (isRate(series) || !words) return "";
  return `${withUnit(metricOf(series))}; ${lower ? "lower" : "higher"} is better`;
}

/* Small multiples of one metric; items are chosen by chips and found by name. `ask` returns all series. */
function curveBoard(ask) {
  const hidden = new Set(), again = () => keepFocus(draw);
  let all = [];
  const draw = () => {
    const [tier, item] = chosen("item").split(/\/(.*)/s);
    const ofItem = (s) => !item || kindOf(s).includes(" rates") || (s.tier === tier && s.item === item);
    const own = all.filter((s) => kindOf(s) === byId("metric").value && ofItem(s));
    byId("measure").textContent = own.length ? measureText(own[0]) : "";
    drawChips(own.map(nameOf), hidden, again);
    byId("curves").replaceChildren();
    const shown = own.filter((series) => !hidden.has(nameOf(series)));
    for (const series of matching(shown, nameOf, byId("item-filter").value)) drawCard(byId("curves"), series);
    if (!byId("curves").children.length) html(byId("curves"), "p", { class: "soft" }, all.length || byId("axis") ? "nothing to show" : "no results yet");
  };
  const kinds = () => new Map(all.filter((s) => isShownUnit(s.tier, s.metric)).map((s) => [kindOf(s), kindInWords(s)]));
  const offer = () => {
    all = ask();
    if (byId("legend")) drawLegend(all);
    if (STATE.metric && !all.some((s) => kindOf(s) === STATE.metric)) unknown("metric");
    const [tier] = chosen("item").split("/"), before = STATE.metric ?? byId("metric").value, words = kinds(), names = [...words.keys()];
    byId("metric").replaceChildren();
    fill(byId("metric"), [...words]);
    const near = (start) => names.find((name) => start && name.startsWith(`${start} `));
    byId("metric").value = names.includes(before) && (!tier || before.startsWith(tier)) ? before : near(tier) || near(before.split(" ")[0]) || names[0];
  };
  byId("metric").addEventListener("change", () => choose({ metric: byId("metric").value }));
  view(["unit", "item", "band", "width", "metric", "stage", "axis"], () => { offer(); draw(); });
  searchField("item-filter", "find", again);
}

function drawCard(parent, series, what = "curve") {
  const card = figure(parent, nameOf(series), () => ({ ...series, what }));
  drawCurve(card, series);
  if (series.note) html(card, "p", { class: "soft" }, series.note);
  if (series.noise) html(card, "p", { class: "soft" }, noiseText(series.noise, series));
}

function drawChips(items, hidden, draw) {
  const chips = byId("chips");
  chips.replaceChildren();
  if (items.length < 2) return;
  const chip = (name, pressed, change, key = name) => {
    const button = html(chips, "button", { type: "button", "aria-pressed": pressed, "data-key": `chip ${key}` }, name);
    button.addEventListener("click", () => { change(); draw(); });
  };
  const isAll = items.every((name) => !hidden.has(name));
  const every = () => items.forEach((name) => (isAll ? hidden.add(name) : hidden.delete(name)));
  chip(isAll ? "none" : "all", false, every, " all");
  for (const name of items) chip(name, !hidden.has(name), () => hidden.delete(name) || hidden.add(name));
}
