/* A task's items, 50 at a time, from the server of this page. What is chosen is part of the address. */
const byId = (id) => document.getElementById(id);
const FIELDS = ["checkpoint", "which", "text"];
let asked = 0, shown = 0;

function html(parent, tag, attributes = {}, text) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

const chosen = () => new URLSearchParams(window.location.hash.slice(1));

function readAddress() {
  const given = chosen();
  for (const name of FIELDS) {
    const field = byId(name), before = field.value;
    if (given.has(name)) field.value = given.get(name);
    if (field.tagName === "SELECT" && field.selectedIndex < 0) field.value = before;
  }
}

function writeAddress(id = "") {
  const kept = new URLSearchParams(FIELDS.map((name) => [name, byId(name).value]).filter(([, value]) => value));
  if (id) kept.set("id", id);
  window.history.replaceState(null, "", `#${kept}`);
}

const linkTo = (item) => `#${new URLSearchParams({ checkpoint: byId("checkpoint").value, id: item.id })}`;

/* Loads items; `first` > 0 adds to those that are shown */
async function load(first = 0) {
  const number = (asked += 1), query = new URLSearchParams(FIELDS.map((name) => [name, byId(name).value]));
  query.set("first", first);
  if (chosen().has("id")) query.set("id", chosen().get("id"));
  byId("count").textContent = "loading …";
  const response = await fetch(`?${query}`), text = await response.text();
  if (number !== asked) return; // a later question was asked meanwhile
  if (!first) { byId("items").replaceChildren(); shown = 0; }
  if (!response.ok) {
    byId("count").textContent = "";
    html(byId("items"), "p", { class: "worse" }, text);
    return;
  }
  const { items, found, total, counts } = JSON.parse(text);
  for (const item of items) drawItem(byId("items"), item, linkTo);
  shown += items.length;
  byId("count").textContent = `${found} of ${total}; ${counts.wrong + counts.right ? `${counts.wrong} wrong, ` : ""}${counts.better} better and ${counts.worse} worse than the bridge`;
  byId("more").hidden = shown >= found;
}

for (const name of FIELDS) byId(name).addEventListener(name === "text" ? "input" : "change", () => { writeAddress(); load(); });
byId("more").addEventListener("click", () => load(shown));
window.addEventListener("hashchange", () => { readAddress(); load(); });
readAddress();
await load();
document.body.dataset.state = "drawn";
