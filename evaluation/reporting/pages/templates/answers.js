/* DATA.answers: [{tier, item, of, wrong, shown: [item]}], of a stage without a bridge */
function drawAnswersGiven() {
  const place = byId("answers"), item = chosen("item");
  place.replaceChildren();
  for (const entry of DATA.answers) {
    const shown = chosen("words") ? matching(entry.shown, (one) => JSON.stringify(one).replaceAll("\\n", " "), chosen("words")) : entry.shown;
    if ((item && `${entry.tier}/${entry.item}` !== item) || (!shown.length && chosen("words"))) continue;
    const box = html(place, "details"), name = `${entry.item}: ${entry.wrong} of ${entry.of} wrong; ${shown.length} shown`;
    html(box, "summary", {}, name);
    const draw = () => { if (box.children.length === 1) for (const one of shown) drawItem(box, one); };
    box.addEventListener("toggle", draw);
    if (item || chosen("words")) { draw(); box.open = true; }
  }
  if (!place.children.length) html(place, "p", { class: "soft" }, DATA.answers.length ? "no answer that is shown has these words" : "there are no questions with answers, or their texts are no longer in the cache");
}
view(["item"], drawAnswersGiven);
searchField("answer-search", "words", drawAnswersGiven);
