"use strict";
(() => {
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
  const table = document.getElementById("rows");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const headings = Array.from(table.tHead.rows[0].cells);
  const filter = document.getElementById("filter");
  const state = document.getElementById("state");
  const shown = document.getElementById("shown");
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase() + " " + row.title.toLowerCase()]));

  function compare(left, right, column) {
    const isNumber = headings[column].classList.contains("number");
    const a = isNumber ? left.cells[column].dataset.raw : left.cells[column].textContent;
    const b = isNumber ? right.cells[column].dataset.raw : right.cells[column].textContent;
    if (a === "" || b === "") return a === b ? 0 : a === "" ? Infinity : -Infinity;
    return isNumber ? Number(a) - Number(b) : a.localeCompare(b, "en");
  }

  // Empty values stay last, whichever way the rows are sorted.
  function sortBy(column) {
    const heading = headings[column];
    const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of headings) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    rows.sort((left, right) => {
      const order = compare(left, right, column);
      return Math.abs(order) === Infinity ? order : sign * order;
    });
    body.append(...rows);
  }

  function show() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const isShown = words.every((word) => texts.get(row).includes(word)) &&
        (state.value === "" || row.className === state.value);
      row.hidden = !isShown;
      if (isShown) ++count;
    }
    shown.textContent = `${count} of ${rows.length} rows`;
  }

  headings.forEach((heading, column) => heading.firstElementChild.addEventListener("click", () => sortBy(column)));
  filter.addEventListener("input", show);
  state.addEventListener("change", show);
})();
