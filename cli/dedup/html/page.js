// Only comfort: without it, tables cannot be sorted and closed examples are not printed.
"use strict";

function value(row, column) {
  const cell = row.cells[column];
  const number = cell.dataset.value;
  return number === undefined ? cell.textContent : Number(number);
}

function sort(table, column, header) {
  const up = header.ariaSort === "descending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => {
    const [x, y] = [value(a, column), value(b, column)];
    const order = typeof x === "number" ? x - y : x.localeCompare(y);
    return up ? order : -order;
  });
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table")) {
  if (table.tBodies[0].rows.length < 2) continue;
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    const button = document.createElement("button");
    button.append(...header.childNodes);
    button.addEventListener("click", () => sort(table, column, header));
    header.append(button);
  });
}

addEventListener("beforeprint", () => {
  for (const example of document.querySelectorAll("details.example")) example.open = true;
});
