/* DATA.flips: {items: {"tier/item": {id: shared}}, steps: {step: [entry]}, left: [step]} */
const CHANGES = { wrong: ["worse", "became wrong", "lost most"], right: ["better", "became right", "gained most"], same: ["unclear", "did not change", ""] };
const DRAWN = 400, PREVIEW = 100;

function flips() {
  const step = chosen("step"), item = chosen("item"), wanted = chosen("change"), words = chosen("words");
  const place = byId("flips");
  place.replaceChildren();
  const left = DATA.flips.left;
  if (left.length) {
    html(place, "p", { class: "soft" }, `To keep this page small, it has no flips of ${named(left)}; their per-item scores are next to their results.`);
  }
  let drawn = 0;
  for (const entry of DATA.flips.steps[step] || []) {
    const key = `${entry.tier}/${entry.item}`;
    const textOf = (flip) => JSON.stringify([flip.id, DATA.flips.items[key][flip.id], flip.ours]).replaceAll("\\n", " ");
    const ofChange = Object.keys(CHANGES).flatMap((change) => entry.shown.filter((flip) => flip.change === change && (!wanted || wanted === change)));
    const shown = words ? matching(ofChange, textOf, words) : ofChange;
    if ((item && key !== item) || (!shown.length && (words || !item))) continue;
    html(place, "h3", {}, entry.item);
    html(place, "p", { class: "soft" }, counted(entry, shown.length));
    for (const flip of shown) if (drawn < DRAWN) { drawn += 1; drawFlip(place, entry, flip, DATA.flips.items[key][flip.id]); }
  }
  if (drawn >= DRAWN) html(place, "p", { class: "soft" }, `the first ${DRAWN} are shown; choose an item to see others`);
  if (!drawn) html(place, "p", { class: "soft" }, DATA.flips.steps[step] ? (words ? "no item that is shown has these words" : "nothing changed here") : "there are no per-item scores to compare");
}

function counted(entry, shown) {
  const { kind, unit } = DATA.tiers[entry.tier];
  const [gained, lost] = kind === "nats" ? ["gained", "lost"] : ["became right", "became wrong"];
  return `${entry.tier}: of ${entry.of} ${unit}, ${entry.gained} ${gained} and ${entry.lost} ${lost}; ${shown} shown`;
}

/* A flip is drawn when it is opened */
function drawFlip(place, entry, flip, shared) {
  const key = `${entry.tier}/${entry.item}:${flip.id}`;
  const box = html(place, "details", { "data-flip": key, "data-id": flip.id }), head = html(box, "summary", { "data-key": `flip ${key}` });
  const [name, answer, block] = CHANGES[flip.change], isBlock = entry.shape === "block";
  html(head, "span", { class: name }, isBlock ? block : answer);
  head.append(` · ${flip.id}`);
  if (isBlock) head.append(`: ${signed(flip.ours - shared.theirs, { tier: entry.tier })} nats per token (${aligned(shared.theirs)} → ${aligned(flip.ours)})`);
  if (shared.text && !shared.text.startsWith("(the text is")) html(head, "span", { class: "soft preview" }, ` ${preview(shared.text)}`);
  const draw = () => {
    if (box.children.length === 1) ({ block: drawBlock, choices: drawQuestion, answers: drawAnswers, credit: drawCredit })[entry.shape](box, entry, flip, shared);
  };
  head.addEventListener("click", () => {
    draw();
    choose(box.open ? { flip: "" } : { step: chosen("step"), flip: key }); // `open` is still the state before the click
  });
  box.addEventListener("toggle", draw); // found by the browser's own search
  if (STATE.flip === key) {
    draw();
    box.open = true;
  }
}

/* The question in a line: its beginning, or its end where the beginning was left out */
function preview(text) {
  const line = text.replace(/^\(\d+ characters of solved examples\)/, "").replace(/\s+/g, " ").trim();
  if (line.length <= PREVIEW) return line;
  return line.startsWith("…") ? `…${line.slice(-PREVIEW)}` : `${line.slice(0, PREVIEW)}…`;
}

function drawBlock(box, entry, flip, shared) {
  html(box, "p", { class: "soft" }, shared.cut ? `the beginning of the block, of which ${shared.tokens} tokens are scored` : `${shared.tokens} tokens are scored`);
  html(box, "pre", {}, shared.text);
}

function drawCredit(box, entry, flip, shared) {
  html(box, "p", {}, `credit ${format(flip.ours)}, bridge ${format(shared.theirs)}`);
}

function drawQuestion(box, entry, flip, shared) {
  html(box, "pre", {}, shared.text);
  const [ours, theirs] = [flip.ours, shared.theirs], two = ours.length > 1;
  const scroll = html(box, "div", { class: "scroll", role: "region", tabindex: 0, "aria-label": `candidates of ${entry.tier} ${flip.id}` });
  const grid = html(scroll, "table", { class: "choices" });
  const line = html(html(grid, "thead"), "tr");
  const names = [`${entry.label}, this step`, `${entry.label}, bridge`, ...(two ? ["log-prob, this step", "log-prob, bridge"] : [])];
  html(line, "th", {}, "candidate");
  for (const name of names) html(line, "th", { class: "number" }, name);
  html(line, "th", {}, "chosen by");
  const body = html(grid, "tbody"), best = [ours, theirs].map((side) => Math.max(...side[0]));
  ours[0].forEach((score, i) => {
    const row = html(body, "tr", { class: i === shared.gold ? "chosen" : "" });
    html(row, "td", {}, `${i === shared.gold ? "✓ " : ""}${shared.answers[i] ?? `candidate ${i}`}`);
    for (const value of [score, theirs[0][i], ...(two ? [ours[1][i], theirs[1][i]] : [])]) html(row, "td", { class: "number" }, format(value));
    const choosers = [score === best[0] && "this step", theirs[0][i] === best[1] && "bridge"].filter(Boolean);
    html(row, "td", {}, choosers.join(" and "));
  });
}

function drawAnswers(box, entry, flip, shared) {
  html(box, "pre", {}, shared.text);
  const pair = html(box, "div", { class: "pair" });
  for (const [name, side] of [["this step", flip.ours], ["bridge", shared.theirs]]) {
    const card = html(pair, "section", { class: "card" });
    html(card, "h4", {}, name);
    html(card, "pre", {}, side.text);
    const checks = html(card, "p", { class: "checks" });
    for (const [check, passed] of Object.entries(side.checks)) html(checks, "span", { class: passed ? "better" : "worse" }, `${passed ? "✓" : "✗"} ${check}`);
    for (const why of side.why ?? []) html(card, "p", { class: "soft why" }, why);
    html(card, "p", { class: "soft" }, `${side.tokens ?? "?"} tokens, ended by ${side.stop}`);
  }
}

if (byId("flips")) {
  menu("flip-change", "change", [["", "all"], ["wrong", "wrong"], ["right", "right"], ["same", "neither"]]);
  view(["step", "item", "change"], flips);
  searchField("flip-search", "words", flips);
  window.addEventListener("popstate", showFlip);
  showFlip();
}

/* Opens the flip that the address names, and scrolls to it */
function showFlip() {
  if (!STATE.flip) return;
  const find = () => byId("flips").querySelector(`details[data-flip="${CSS.escape(STATE.flip)}"]`);
  if (!find()) choose({ item: STATE.flip.split(":")[0], change: "", words: "" }); // it is beyond the limit, or filtered out
  const box = find();
  if (!box) return unknown("flip");
  box.open = true;
  box.scrollIntoView({ block: "center" });
}
