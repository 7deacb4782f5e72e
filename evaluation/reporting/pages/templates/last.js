/* Draws again when the width changes, and for paper, where tables are cut into parts */
let widthSeen = document.body.clientWidth;
window.addEventListener("resize", () => {
  if (Math.abs(document.body.clientWidth - widthSeen) < 8) return;
  widthSeen = document.body.clientWidth;
  redraw(["width"]);
});
/* On paper nothing can be opened */
function forPaper() {
  if (printing.matches) for (const box of document.querySelectorAll("details.about")) box.open = true;
}
printing.addEventListener("change", () => { forPaper(); redraw(["print"]); });
forPaper();
for (const box of document.querySelectorAll("main .scroll[aria-label]:not(#matrix *)")) {
  if (!box.querySelector("#deltas")) saveTable(box, box.ariaLabel);
}

/* When the page was written, which a browser does not know of a page inside another one */
if (!INSIDE && byId("written")) byId("written").textContent = ` · written ${new Date(document.lastModified).toISOString().slice(0, 16).replace("T", " ")} UTC`;

for (const button of document.querySelectorAll("button.copy")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "copied";
  });
}
