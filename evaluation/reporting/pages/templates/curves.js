/* Series as drawn: {tier, item, metric, points: [{x, step, value, low, high, stage}], bridge, chance, borders, spread} */
function unpackSeries(series) {
  const columns = series.points, names = Object.keys(columns);
  const points = (columns.step || []).map((step, i) => {
    const point = { x: step };
    for (const name of names) point[name] = columns[name][i];
    return point;
  });
  return { ...series, points };
}

/* DATA.tiers: {tier: {title, kind, rates, item, unit, headline, shown, lower, metrics: {name: {unit, lower, words}}}} */
const metricOf = (series) => DATA.tiers[series.tier].metrics[series.metric] || {};

/* How values become heights: linear, or logarithmic where they span much */
function scaleOf(series, bare) {
  const known = (list) => list.filter((value) => value !== null && value !== undefined);
  const bounds = known([
    ...series.points.flatMap((p) => [p.value, ...(bare ? [] : boundsOf(p) || [])]),
    series.bridge && series.bridge.value, bare ? null : series.chance,
  ]);
  let low = Math.min(...bounds), high = Math.max(...bounds);
  [low, high] = spanning(low, high, smallestSpan(series, high));
  const isLog = metricOf(series).unit === "perplexity" && low > 0 && high / low > 8;
  const at = isLog ? Math.log : (value) => value, powers = isLog ? logTicks(low, high) : [];
  const marks = powers.length > 1 ? powers : enoughTicks(low, high, 4);
  return { isLog, marks, height: (value) => (at(high) - at(value)) / (at(high) - at(low)) };
}

/* Ten times what is worth telling, of a perplexity what that is of its logarithm */
function smallestSpan(series, high) {
  const { worth = 0.01, unit } = metricOf(series);
  return 10 * worth * (unit === "perplexity" ? Math.abs(high) : 1);
}

/* One small multiple; a bare one has no axes but the bounds of its scale */
function drawCurve(parent, series, { height = 190, bare = false } = {}) {
  const width = roomIn(parent), left = 52, right = 8, top = bare ? 8 : 28, bottom = bare ? 8 : 34;
  const points = series.points, scale = scaleOf(series, bare);
  const x = placesOf(points, series.borders || [], [left, width - right]);
  const y = (value) => top + scale.height(value) * (height - top - bottom);
  const root = svg(parent, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${series.tier} ${series.metric} ${series.item}` });
  const across = (value, name) => svg(root, "line", { x1: left, x2: width - right, y1: y(value), y2: y(value), class: name });
  if (!bare) {
    for (const tick of scale.marks) {
      across(tick, "axis");
      svg(root, "text", { x: left - 5, y: y(tick) + 4, "text-anchor": "end" }, format(tick));
    }
    drawSteps(root, points, x, [height - bottom, width - right]);
    svg(root, "text", { x: 2, y: 11 }, axisName(series));
  } else {
    const ends = scale.marks.filter((tick, i, all) => i === 0 || i === all.length - 1);
    for (const tick of ends) svg(root, "text", { x: left - 5, y: y(tick) + 4, "text-anchor": "end" }, format(tick));
  }
  drawBorders(root, series, x, [top, height - bottom]);
  if (series.bridge) across(series.bridge.value, "reference");
  if (!bare && series.chance !== null && series.chance !== undefined) across(series.chance, "chance");
  drawBand(root, bare ? [] : points.filter(boundsOf).map((p) => ({ x: p.x, low: boundsOf(p)[0], high: boundsOf(p)[1] })), x, y);
  svg(root, "polyline", { points: points.map((p) => `${x(p.x)},${y(p.value)}`).join(" "), class: "curve" });
  for (const p of points) svg(root, "circle", { cx: x(p.x), cy: y(p.value), r: points.length > 60 ? 1.5 : 3, class: "point" });
  drawHits(root, series, x, { left, right: width - right, top, height: height - top - bottom });
}

/* Where one stage ends and the next begins, and their names where these fit */
function drawBorders(root, series, x, [top, bottom]) {
  const borders = series.borders || [];
  for (const border of borders) svg(root, "line", { x1: x(border), x2: x(border), y1: top, y2: bottom, class: "border" });
  if (!borders.length) return;
  const last = series.points[series.points.length - 1].x;
  const inner = borders.filter((border) => border > series.points[0].x), edges = [series.points[0].x, ...inner, last];
  edges.slice(0, -1).forEach((edge, i) => {
    const name = series.points.find((p) => p.x > edge)?.stage || "", room = x(edges[i + 1]) - x(edge);
    if (name.length * 6 < room) svg(root, "text", { x: x(edge) + room / 2, y: top - 1, "text-anchor": "middle" }, name);
  });
}

/* What the axis of values is called */
function axisName(series) {
  const { unit, lower, words } = metricOf(series);
  if (!unit) return series.metric;
  return `${words === unit || unit === "perplexity" ? unit : unit === "fraction" ? words : `${words}, ${unit}`}${lower ? " (lower is better)" : ""}`;
}

function drawBand(root, points, x, y) {
  const up = points.map((p) => `${x(p.x)},${y(p.high)}`), down = points.map((p) => `${x(p.x)},${y(p.low)}`).reverse();
  if (points.length > 1) svg(root, "polygon", { points: [...up, ...down].join(" "), class: "band" });
  if (points.length === 1) svg(root, "line", { x1: x(points[0].x), x2: x(points[0].x), y1: y(points[0].low), y2: y(points[0].high), class: "whisker" });
}

/* Every step has the column of the plot that is nearest to it */
function drawHits(root, series, x, area) {
  series.points.forEach((p, i, all) => {
    const from = i ? (x(all[i - 1].x) + x(p.x)) / 2 : area.left;
    const to = i < all.length - 1 ? (x(p.x) + x(all[i + 1].x)) / 2 : area.right;
    const lines = [`${p.stage ? `${p.stage} ` : ""}step ${p.step}: ${exact(p.value)}`, `95 % over items ${interval(p.low, p.high)}`];
    if (p.paired_low !== null && p.paired_low !== undefined) lines.push(`95 % paired with the bridge ${interval(p.paired_low, p.paired_high)}`);
    if (series.bridge) lines.push(`bridge ${exact(series.bridge.value)}`);
    if (series.chance !== null && series.chance !== undefined) lines.push(`chance ${format(series.chance)}`);
    const place = { x: from, y: area.top, width: Math.max(0, to - from), height: area.height };
    hover(svg(root, "rect", { ...place, class: "hit", "data-value": p.value, "data-step": p.step }), lines.join("\n"));
  });
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
  return `${words === unit ? unit : `${words}, ${unit}`}; ${lower ? "lower" : "higher"} is better`;
}

/* Small multiples of one metric; items are chosen by chips and found by name */
function curveBoard(all) {
  const hidden = new Set(), again = () => keepFocus(draw);
  const draw = () => {
    const [tier, item] = chosen("item").split(/\/(.*)/s);
    const ofItem = (s) => !item || kindOf(s).includes(" rates") || (s.tier === tier && s.item === item);
    const own = all.filter((s) => kindOf(s) === byId("metric").value && ofItem(s));
    byId("measure").textContent = own.length ? measureText(own[0]) : "";
    drawChips(own.map(nameOf), hidden, again);
    byId("curves").replaceChildren();
    const shown = own.filter((series) => !hidden.has(nameOf(series)));
    for (const series of matching(shown, nameOf, byId("item-filter").value)) drawCard(byId("curves"), series);
    if (!byId("curves").children.length) html(byId("curves"), "p", { class: "soft" }, all.length ? "nothing to show" : "no results yet");
  };
  const kinds = () => [...new Set(all.filter((s) => isShownUnit(s.tier, s.metric)).map(kindOf))];
  const offer = () => {
    const [tier] = chosen("item").split("/"), before = byId("metric").value, names = kinds();
    byId("metric").replaceChildren();
    fill(byId("metric"), names.map((name) => [name, name]));
    const near = (start) => names.find((name) => start && name.startsWith(`${start} `));
    byId("metric").value = names.includes(before) && (!tier || before.startsWith(tier)) ? before : near(tier) || near(before.split(" ")[0]) || names[0];
  };
  byId("metric").addEventListener("change", draw);
  byId("item-filter").addEventListener("input", again);
  view(["unit", "item", "band", "width"], () => { offer(); draw(); });
}

function drawCard(parent, series) {
  const card = figure(parent, nameOf(series), () => ({ ...series, what: "curve" }));
  drawCurve(card, series);
  if (series.note) html(card, "p", { class: "soft" }, series.note);
  if (series.spread) html(card, "p", { class: "soft" }, spreadText(series.spread));
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
