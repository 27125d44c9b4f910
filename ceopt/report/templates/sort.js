for (const table of document.querySelectorAll("table.sorts")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const value = (row, place) => {
    const cell = row.cells[place];
    return cell.dataset.value ?? cell.textContent;
  };
  heads.forEach((head, place) => head.firstElementChild.addEventListener("click", () => {
    const way = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    heads.forEach((other) => other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", way === 1 ? "ascending" : "descending");
    const numeric = [...body.rows].every((row) => !Number.isNaN(Number(value(row, place))));
    const compare = numeric
      ? (a, b) => Number(a) - Number(b)
      : (a, b) => a.localeCompare(b, document.documentElement.lang, { numeric: true });
    const order = (first, second) => {
      const [a, b] = [value(first, place), value(second, place)];
      if (a === "" || b === "") return (a === "") - (b === "");
      return way * compare(a, b);
    };
    body.append(...[...body.rows].sort(order));
  }));
}
