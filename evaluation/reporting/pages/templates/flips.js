/* DATA.flips: {items: {"tier/item": {id: shared}}, steps: {step: [moved]}, left: [step]} */
const TURNS = { wrong: ["worse", "became wrong", "lost most"], right: ["better", "became right", "gained most"], same: ["unclear", "did not change", ""] };
const DRAWN = 400, PREVIEW = 100;

function flips() {
  const step = chosen("step"), item = chosen("item"), turn = chosen("turn"), said = chosen("said");
  const place = byId("flips");
  place.replaceChildren();
  const left = DATA.flips.left;
  if (left.length) {
    html(place, "p", { class: "soft" }, `To keep this page small, it has no flips of ${named(left)}; their per-item scores are beside their results.`);
  }
  let drawn = 0;
  for (const moved of DATA.flips.steps[step] || []) {
    const key = `${moved.tier}/${moved.item}`;
    const textOf = (flip) => JSON.stringify([flip.id, DATA.flips.items[key][flip.id], flip.ours]).replaceAll("\\n", " ");
    const ofTurn = Object.keys(TURNS).flatMap((turned) => moved.shown.filter((flip) => flip.turned === turned && (!turn || turn === turned)));
    const shown = said ? matching(ofTurn, textOf, said) : ofTurn;
    if ((item && key !== item) || (!shown.length && (said || !item))) continue;
    html(place, "h3", {}, moved.item);
    html(place, "p", { class: "soft" }, counted(moved, shown.length));
    for (const flip of shown) if (drawn < DRAWN) { drawn += 1; drawFlip(place, moved, flip, DATA.flips.items[key][flip.id]); }
  }
  if (drawn >= DRAWN) html(place, "p", { class: "soft" }, `the first ${DRAWN} are shown; choose an item to see others`);
  if (!drawn) html(place, "p", { class: "soft" }, DATA.flips.steps[step] ? (said ? "no item that is shown has these words" : "nothing changed here") : "there are no per-item scores to compare");
}

function counted(moved, shown) {
  const { kind, unit } = DATA.tiers[moved.tier];
  const [gained, lost] = kind === "nats" ? ["gained", "lost"] : ["became right", "became wrong"];
  return `${moved.tier}: of ${moved.of} ${unit}, ${moved.gained} ${gained} and ${moved.lost} ${lost}; ${shown} shown`;
}

/* A flip is drawn when it is opened */
function drawFlip(place, moved, flip, shared) {
  const key = `${moved.tier}/${moved.item}:${flip.id}`;
  const box = html(place, "details", { "data-flip": key, "data-id": flip.id }), head = html(box, "summary", { "data-key": `flip ${key}` });
  const [name, answer, block] = TURNS[flip.turned], isBlock = moved.shape === "block";
  html(head, "span", { class: name }, isBlock ? block : answer);
  head.append(` · ${flip.id}`);
  if (isBlock) head.append(`: ${signed(flip.ours - shared.theirs)} nats per token (${format(shared.theirs)} → ${format(flip.ours)})`);
  if (shared.text && !shared.text.startsWith("(the text is")) html(head, "span", { class: "soft preview" }, ` ${preview(shared.text)}`);
  const draw = () => {
    if (box.children.length === 1) ({ block: drawBlock, choices: drawQuestion, answers: drawAnswers, credit: drawCredit })[moved.shape](box, moved, flip, shared);
  };
  head.addEventListener("click", () => {
    draw();
    choose(box.open ? { flip: "" } : { step: chosen("step"), flip: key }); // it is still as it was
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

function drawBlock(box, moved, flip, shared) {
  html(box, "p", { class: "soft" }, shared.cut ? `the beginning of the block, of which ${shared.tokens} tokens are scored` : `${shared.tokens} tokens are scored`);
  html(box, "pre", {}, shared.text);
}

function drawCredit(box, moved, flip, shared) {
  html(box, "p", {}, `credit ${format(flip.ours)}, bridge ${format(shared.theirs)}`);
}

function drawQuestion(box, moved, flip, shared) {
  html(box, "pre", {}, shared.text);
  const [ours, theirs] = [flip.ours, shared.theirs], two = ours.length > 1;
  const scroll = html(box, "div", { class: "scroll", role: "region", tabindex: 0, "aria-label": `candidates of ${moved.tier} ${flip.id}` });
  const grid = html(scroll, "table", { class: "choices" });
  const line = html(html(grid, "thead"), "tr");
  const names = [`${moved.label}, this step`, `${moved.label}, bridge`, ...(two ? ["log-prob, this step", "log-prob, bridge"] : [])];
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

function drawAnswers(box, moved, flip, shared) {
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
  menu("flip-turn", "turn", [["", "all"], ["wrong", "wrong"], ["right", "right"], ["same", "neither"]]);
  view(["step", "item", "turn"], flips);
  searchField("flip-search", "said", flips);
  window.addEventListener("popstate", showFlip);
  showFlip();
}

/* The flip that the address names is open, and in sight */
function showFlip() {
  if (!STATE.flip) return;
  const find = () => byId("flips").querySelector(`details[data-flip="${CSS.escape(STATE.flip)}"]`);
  if (!find()) choose({ item: STATE.flip.split(":")[0], turn: "", said: "" }); // among too many, or not searched for
  const box = find();
  if (!box) return unknown("flip");
  box.open = true;
  box.scrollIntoView({ block: "center" });
}
