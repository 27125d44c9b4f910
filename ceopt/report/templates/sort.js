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
    const order = (first, second) => {
      const [a, b] = [value(first, place), value(second, place)];
      if (a === "" || b === "") return (a === "") - (b === "");
      return way * a.localeCompare(b, document.documentElement.lang, { numeric: true });
    };
    const asNumbers = (first, second) => {
      const [a, b] = [value(first, place), value(second, place)];
      if (a === "" || b === "") return (a === "") - (b === "");
      return way * (Number(a) - Number(b));
    };
    const numeric = [...body.rows].every((row) => !Number.isNaN(Number(value(row, place))));
    body.append(...[...body.rows].sort(numeric ? asNumbers : order));
  }));
}
