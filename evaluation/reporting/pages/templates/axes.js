/* Axes of curves: what they are called, where their ticks are, and how wide a stage is drawn. */

/* At least two ticks, however short the axis */
function enoughTicks(low, high, count) {
  for (let asked = count; asked < 40; asked *= 2) {
    const found = ticks(low, high, asked);
    if (found.length > 1) return found;
  }
  return [low, high];
}

/* Widens a range to `span`, so that differences too small to matter do not look large */
function spanning(low, high, span) {
  const lacking = Math.max(0, span - (high - low)) / 2;
  return [low - lacking, high + lacking];
}

/* Places of steps: in proportion, except that stages of one curve share most of the width equally */
const ALIKE = 0.7;

function placesOf(points, borders, [left, right]) {
  const first = points[0].x, last = points[points.length - 1].x;
  if (last === first) return () => (left + right) / 2;
  const edges = [first, ...borders.filter((border) => border > first && border < last), last];
  const alike = edges.length > 2 ? ALIKE : 0, same = (last - first) / (edges.length - 1);
  const lengths = edges.slice(1).map((edge, i) => alike * same + (1 - alike) * (edge - edges[i]));
  const total = lengths.reduce((sum, length) => sum + length, 0);
  return (value) => {
    let at = left;
    for (let i = 0; i < lengths.length; i += 1) {
      const width = ((right - left) * lengths[i]) / total;
      if (value <= edges[i + 1] || i === lengths.length - 1) return at + (width * (value - edges[i])) / (edges[i + 1] - edges[i]);
      at += width;
    }
    return at;
  };
}

/* Ticks of the horizontal axis: those of the series (`ticks`), or the ends of stages where one line goes
   through several, or else round steps. The axis is named by the series (`axis`), or else `step` */
function drawSteps(root, series, x, [bottom, right]) {
  const points = series.points, places = points.map((p) => p.x), isJoined = Boolean(points[0].stage) && !series.lines;
  const low = Math.min(...places), high = Math.max(...places);
  const marks = series.ticks || (isJoined ? stageEnds(points) : (low === high ? [low] : enoughTicks(low, high, 4)).map((place) => [place, place]));
  let end = -Infinity;
  for (const [place, step] of marks) {
    const tick = x(place), text = shortNumber(step), half = text.length * 3.2, at = Math.min(tick, right - half);
    svg(root, "line", { x1: tick, x2: tick, y1: bottom, y2: bottom + 3, class: "axis" });
    if (at - half <= end) continue;
    svg(root, "text", { x: at, y: bottom + 14, "text-anchor": "middle" }, text);
    end = at + half + 4;
  }
  svg(root, "text", { x: right, y: bottom + 28, "text-anchor": "end" }, series.axis || "step");
}

function stageEnds(points) {
  const ends = points.filter((p, i) => i === points.length - 1 || points[i + 1].stage !== p.stage);
  return ends.map((p) => [p.x, p.step]);
}

const shortNumber = (step) => (step >= 1e12 ? `${format(step / 1e12, 3)}T` : step >= 1e9 ? `${format(step / 1e9, 3)}B` : step >= 1e6 ? `${format(step / 1e6, 3)}M` : step >= 10000 ? `${format(step / 1000, 3)}k` : String(step));

/* Width of a figure, in pixels, so that its text is as large as the page's */
function roomIn(parent, most = 560) {
  const style = getComputedStyle(parent), inside = parent.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return Math.max(240, Math.min(most, inside > 0 ? inside : 300));
}

/* The bounds to draw about a value: of the paired difference from the bridge, or of the value over items */
function boundsOf(point) {
  if (chosen("band") === "paired" && point.paired_low !== null && point.paired_low !== undefined) return [point.paired_low, point.paired_high];
  return point.low === null || point.low === undefined ? null : [point.low, point.high];
}
