/* A question or prompt with what the model answered, as viewer/items.py has it; `linkTo` gives its address, if it has one */
function drawItem(place, item, linkTo) {
  const card = html(place, "article", { class: "card item", "data-id": item.id }), head = html(card, "h2");
  const change = item.before === null || item.score === null ? 0 : item.before - item.score;
  const verdict = item.loss ? [change > 0 ? "better" : change < 0 ? "worse" : "unclear", `${item.score.toFixed(4)} ${item.loss}`] : item.score === null ? ["unclear", "not judged"] : item.score >= 1 ? ["better", "right"] : item.score > 0 ? ["unclear", `credit ${item.score.toPrecision(3)}`] : ["worse", "wrong"];
  html(head, "span", { class: `pill ${verdict[0]}` }, verdict[1]);
  head.append(` ${item.id}${item.about.sample ? `, sample ${item.about.sample}` : ""} `);
  if (item.before !== null && item.before !== item.score) html(head, "small", { class: "soft" }, `bridge: ${item.loss ? item.before.toFixed(4) : item.before >= 1 ? "right" : item.before > 0 ? `credit ${item.before.toPrecision(3)}` : "wrong"} `);
  if (linkTo) html(head, "a", { href: linkTo(item), "aria-label": `link to ${item.id}` }, "link");
  html(card, "pre", { class: "turn" }, item.prompt);
  if (item.choices.length) drawChoices(card, item);
  for (const output of item.outputs) {
    html(card, "h3", { class: "role" }, "the model's answer");
    html(card, "pre", { class: "turn answer" }, output);
  }
  const facts = [item.references.length && `right answer: ${item.references.join(" | ")}`, item.extracted && item.extracted !== item.outputs[0] && `read from it: ${item.extracted}`, ...item.reasons, item.method && `judged by ${item.method}: ${Object.entries(item.scores).map(([name, value]) => `${name} ${value}`).join(", ")}`];
  for (const fact of facts.filter(Boolean)) html(card, "p", { class: "soft" }, fact);
  const about = Object.entries(item.about).filter(([name, value]) => name !== "sample" && value !== null);
  if (about.length) html(card, "p", { class: "soft" }, about.map(([name, value]) => `${name.replaceAll("_", " ")}: ${value}`).join(" · "));
  if (item.solved) {
    const box = html(card, "details");
    html(box, "summary", {}, `${item.solved.length} characters of solved examples before it`);
    html(box, "pre", {}, item.solved);
  }
}

function drawChoices(card, item) {
  const box = html(card, "div", { class: "scroll", role: "region", tabindex: 0, "aria-label": `candidates of ${item.id}` });
  const grid = html(box, "table", { class: "choices" }), head = html(html(grid, "thead"), "tr");
  html(head, "th", { scope: "col" }, "candidate");
  for (const name of ["score that ranks", "log-prob"]) html(head, "th", { scope: "col", class: "number" }, name);
  html(head, "th", { scope: "col" }, "chosen");
  const body = html(grid, "tbody");
  for (const { text, score, logprob, is_right, is_first } of item.choices) {
    const row = html(body, "tr", is_right ? { class: "chosen" } : {});
    html(row, "td", {}, `${is_right ? "✓ " : ""}${text}`);
    for (const value of [score, logprob]) html(row, "td", { class: "number" }, value.toFixed(3));
    html(row, "td", {}, is_first ? "by the model" : "");
  }
}
