// Tables whose rows a press on a column's head puts in order; the head says which order that is.

/** A cell as a number, or its text: "≤ 2.5", "1,234", "∞" and "–" (nothing, which comes last). */
function sortKey(cell) {
  const shown = cell.textContent.trim();
  if (shown === "–") return -Infinity;
  if (shown.includes("∞")) return Infinity;
  const number = Number(shown.replace(/[≤,\s]/g, ""));
  return shown === "" || Number.isNaN(number) ? shown : number;
}

/** The head cell of each column: the lowest one above it, where the head has several rows. */
function columnHeads(table) {
  const heads = [];
  for (const [at, row] of [...table.tHead.rows].entries()) {
    let column = 0;
    for (const cell of row.cells) {
      while (at && heads[column]?.rowSpan > 1) column += 1;
      for (let i = 0; i < cell.colSpan; i += 1) heads[column + i] = cell;
      column += cell.colSpan;
    }
  }
  return heads;
}

function sortBy(table, heads, column) {
  const [body] = table.tBodies;
  const keys = new Map([...body.rows].map((row) => [row, sortKey(row.cells[column])]));
  const numbers = [...keys.values()].some((key) => typeof key === "number");
  const descending = heads[column].ariaSort ? heads[column].ariaSort === "ascending" : numbers;
  const compare = (a, b) => (numbers ? (typeof a === "number" ? a : -Infinity) - (typeof b === "number" ? b : -Infinity) || 0 : a.localeCompare(b, "en", { numeric: true }));
  const sorted = [...body.rows].sort((a, b) => (descending ? -1 : 1) * compare(keys.get(a), keys.get(b)));
  for (const head of heads) head.removeAttribute("aria-sort");
  heads[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
  body.append(...sorted);
}

for (const table of document.querySelectorAll("table[data-sortable]")) {
  const heads = columnHeads(table);
  for (const [column, head] of heads.entries()) {
    head.replaceChildren(el("button", { type: "button", click: () => sortBy(table, heads, column) }, head.textContent));
  }
}
