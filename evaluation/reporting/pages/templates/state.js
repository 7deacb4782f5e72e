/* A reader's choices are in the address (#step=30&item=tier3/quiz), so that they can be shared and undone.
   Inside Snakemake's report a page has no address: there choices last as long as the page is open. */
const KEYS = Object.keys(DATA.defaults);
const STATE = {}, VIEWS = [];

/* The reader's choice, or else the page's default */
const chosen = (key) => String(STATE[key] ?? DATA.defaults[key] ?? "");

function address(changes = {}) {
  const all = { ...STATE, ...changes };
  const pairs = KEYS.filter((key) => all[key]).map((key) => [key, all[key]]);
  return `#${new URLSearchParams(pairs).toString().replaceAll("%2F", "/")}`;
}

function readAddress() {
  const given = new URLSearchParams(window.location.hash.slice(1));
  byId("unknown").hidden = true;
  const changed = KEYS.filter((key) => (given.get(key) ?? undefined) !== STATE[key]);
  for (const key of changed) {
    if (given.has(key)) STATE[key] = given.get(key);
    else delete STATE[key];
  }
  for (const [key, value] of given) if (value && !KEYS.includes(key)) showUnknown(key, value);
  return changed;
}

/* `typed`: entered letter by letter, so it adds no entry to the browser's history */
function choose(changes, typed = false) {
  const changed = Object.keys(changes).filter((key) => (STATE[key] ?? "") !== changes[key]);
  for (const key of changed) {
    if (changes[key]) STATE[key] = changes[key];
    else delete STATE[key];
  }
  if (!changed.length) return;
  if (!typed) byId("unknown").hidden = true;
  try {
    window.history[typed ? "replaceState" : "pushState"](null, "", address());
  } catch { /* a page inside a page has no address */ }
  redraw(changed);
}

/* A part of the page that is drawn again when one of `keys` changes */
function view(keys, draw) {
  VIEWS.push({ keys, draw });
  draw();
}

/* Draws again; the keyboard's focus returns to the element with the same data-key */
function redraw(changed) {
  keepFocus(() => {
    for (const { keys, draw } of VIEWS) if (keys.some((key) => changed.includes(key))) draw();
  });
}

function keepFocus(draw) {
  const key = document.activeElement?.dataset?.key;
  draw();
  if (key) document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

window.addEventListener("popstate", () => redraw(readAddress()));

/* A menu that sets `key`, and `changes` with it; it always shows the current choice */
function menu(id, key, values, changes = {}) {
  const select = byId(id);
  if (!select) return;
  fill(select, values);
  select.addEventListener("change", () => choose({ [key]: select.value === String(DATA.defaults[key] ?? "") ? "" : select.value, ...changes }));
  view([key], () => {
    select.value = chosen(key);
    if (select.selectedIndex < 0) unknown(key);
    select.value = chosen(key);
  });
}

/* The address asks for something that this page does not have: the page names it, and shows the default */
function unknown(key) {
  const asked = STATE[key];
  delete STATE[key];
  if (asked !== undefined) showUnknown(key, asked, chosen(key) ? `; ${key} ${chosen(key)} is shown` : "");
}

function showUnknown(key, asked, instead = "") {
  const place = byId("unknown"), before = place.hidden ? "" : `${place.textContent} `;
  place.textContent = `${before}The address asks for ${key} ${asked}, which this page does not have${instead}.`;
  place.hidden = false;
}

/* A search field, whose words are in the address under `key`; `draw` shows what is found */
function searchField(id, key, draw) {
  const field = byId(id);
  field.addEventListener("input", () => choose({ [key]: field.value }, true));
  view([key], () => {
    if (field.value !== chosen(key)) field.value = chosen(key);
    draw();
  });
}

/* A link to another page of the report, and to choices there: by its relative path, or by its path in
   Snakemake's report.zip; inside report.html there is nothing to link to */
const INSIDE = window.location.protocol === "data:";
const ZIPPED = /\/data\/raw\/[0-9a-f]{16,64}\/[^/]+$/.test(window.location.pathname);

function pageLink(parent, page, text) {
  const target = DATA.pages[page];
  if (INSIDE || !target) return html(parent, "span", {}, text);
  return html(parent, "a", { href: ZIPPED ? target.zipped : target.file }, text);
}

for (const place of document.querySelectorAll("[data-page]")) {
  const text = place.textContent;
  place.textContent = "";
  pageLink(place, place.dataset.page, text);
}

/* Rows that have all words: as whole words if any row has them so (20 is not 200), else within words */
function matching(rows, textOf, wanted) {
  let left = rows.map((row) => [row, textOf(row).toLowerCase()]);
  for (const word of wanted.toLowerCase().split(/\s+/).filter(Boolean)) {
    const literal = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const whole = new RegExp(`(?<![\\p{L}\\p{N}])${literal}(?![\\p{L}\\p{N}])`, "u");
    const asWords = left.filter(([, text]) => whole.test(text));
    left = asWords.length ? asWords : left.filter(([, text]) => text.includes(word));
  }
  return left.map(([row]) => row);
}

/* Units that losses are shown in: one at a time, on the whole page */
const UNITS = Object.fromEntries(Object.values(DATA.tiers).filter((tier) => tier.kind === "nats").flatMap(({ headline, metrics }) =>
  [headline, ...Object.keys(metrics)].filter((name) => !metrics[name].secondary).map((name) => [name, metrics[name].unit])));
const isLoss = (tier) => DATA.tiers[tier].kind === "nats";
const isShownUnit = (tier, metric) => !isLoss(tier) || !(metric in UNITS) || metric === chosen("unit");
const shownMetric = (tier) => (isLoss(tier) ? chosen("unit") : DATA.tiers[tier].shown);

/* Whether a metric represents its item: the tier's metric, or its substitute for items without it */
function isShown({ tier, item, metric }, all) {
  if (metric === shownMetric(tier)) return true;
  return metric === DATA.tiers[tier].unranked && !all.some((one) => one.tier === tier && one.item === item && one.metric === shownMetric(tier));
}

function unitMenu(metrics) {
  const known = Object.keys(UNITS).filter((name) => metrics.has(name));
  if (byId("unit") && known.length < 2) byId("unit").parentElement.hidden = true;
  menu("unit", "unit", known.map((name) => [name, UNITS[name]]));
}

const printing = window.matchMedia("print");
readAddress();
