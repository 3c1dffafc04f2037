// Shows the tip of the mark that the pointer is on.
const tip = document.getElementById("tip");
document.addEventListener("pointermove", (event) => {
  const mark = event.target.closest?.("[data-tip]");
  tip.classList.toggle("is-shown", Boolean(mark));
  if (!mark) return;
  tip.textContent = mark.dataset.tip;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(8, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (event.clientY > innerHeight - box.height - 30 ? event.clientY - box.height - 12 : event.clientY + 16) + "px";
});
// A click on a heading sorts by that column: by data-value if a cell has one, otherwise by its text.
for (const head of document.querySelectorAll("th")) {
  head.addEventListener("click", () => {
    const table = head.closest("table"), body = table.tBodies[0], column = head.cellIndex;
    const order = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
    for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order === 1 ? "ascending" : "descending");
    const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const compare = (a, b) => (isNaN(a) || isNaN(b) ? String(a).localeCompare(String(b)) : a - b);
    body.append(...[...body.rows].sort((a, b) => order * compare(value(a), value(b))));
  });
}
