/* What is drawn to measure is drawn again for another width, and tables are cut into parts for paper */
let widthSeen = document.body.clientWidth;
window.addEventListener("resize", () => {
  if (Math.abs(document.body.clientWidth - widthSeen) < 8) return;
  widthSeen = document.body.clientWidth;
  redraw(["width"]);
});
printing.addEventListener("change", () => {
  if (printing.matches) for (const box of document.querySelectorAll("details.about")) box.open = true;
  redraw(["print"]);
});

/* When the page was written; of one that lies inside another page a browser does not know */
if (!INSIDE && byId("written")) byId("written").textContent = ` · written ${new Date(document.lastModified).toISOString().slice(0, 16).replace("T", " ")} UTC`;
