"use strict";
// What the theme leaves without a name for those who hear the page.
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");

// A long table is sorted by a click on a head of its columns, numbers as numbers.
{
  const value = (row, column) => row.cells[column].textContent.trim();
  const compare = (a, b) => {
    const [x, y] = [parseFloat(a), parseFloat(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
  };
  for (const table of document.querySelectorAll(".md-content table:not([class])")) {
    const body = table.tBodies[0];
    if (!body || body.rows.length < 40) continue;
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      head.classList.add("sorts");
      button.addEventListener("click", () => {
        const down = head.ariaSort === "ascending" ? -1 : 1;
        for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
        head.ariaSort = down > 0 ? "ascending" : "descending";
        body.append(...[...body.rows].sort((a, b) => down * compare(value(a, column), value(b, column))));
      });
    });
  }
}

// On a phone each claim and each experiment is a card (site.css): its cells carry the name of their column, and a role,
// because a cell that is no longer laid out as one loses it.
for (const table of document.querySelectorAll(".md-content table:not([class])")) {
  const heads = [...(table.tHead?.rows[0].cells ?? [])];
  const names = heads.map((head) => head.textContent.trim());
  if (!names.includes("statement") && !names.includes("title")) continue;
  table.dataset.cards = "";
  table.role = "table";
  for (const head of heads) head.role = "columnheader";
  for (const row of table.rows) row.role = "row";
  for (const row of table.tBodies[0].rows) {
    [...row.cells].forEach((cell, column) => {
      cell.role = "cell";
      cell.dataset.head = names[column];
      if (cell.textContent.trim() === "–") cell.dataset.empty = "";
    });
  }
}
