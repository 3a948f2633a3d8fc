// What a reader may do with a report: sort, filter, choose subjects and whom they
// are compared with. Without it the page reads as it is. Names are text that others
// wrote: they reach the page as text only, never as markup, selectors or code.
//
// A row's `data-v` holds a word for each column: a figure in its base unit (`12.5`),
// the lowest and highest (`1:2`), a part of a whole (`3/4`), before and after (`1>2`),
// `-` for nothing, `.` for a text, `!` for a failure.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  const make = (name, text, properties = {}) =>
    Object.assign(document.createElement(name), { textContent: text }, properties);
  const collator = new Intl.Collator("en", { numeric: true });

  const tables = all("main table").map((table) => {
    const names = Number(table.dataset.names);
    const heads = Array.from(table.tHead.rows[0].cells);
    const titles = heads.map((head) => head.textContent);
    const rows = Array.from(table.tBodies[0].rows, (line) => ({
      line,
      cells: Array.from(line.cells),
      words: line.dataset.v.split(" "),
      texts: null,
      subject: line.dataset.subject,
    }));
    return { names, heads, titles, rows, body: table.tBodies[0] };
  });

  const places = new Map();
  for (const table of tables) for (const row of table.rows) places.set(row.line, [table, row]);

  // Everything that is of a subject, rows and marks of pictures, by its name.
  const subjects = new Map();
  for (const mark of all("[data-subject]")) {
    const name = mark.dataset.subject;
    if (!subjects.has(name)) subjects.set(name, []);
    subjects.get(name).push(mark);
  }

  const figure = (word) => {
    const value = parseFloat(word);
    return Number.isFinite(value) ? value : null;
  };

  // ---- Sorting: highest first, lowest first, as it was. What is missing stays last.

  const textOf = (row, column) => (row.texts || row.cells.map((cell) => cell.textContent))[column];

  function compare(column, sign) {
    return (a, b) => {
      const [left, right] = [figure(a.words[column]), figure(b.words[column])];
      if (left !== null && right !== null) return sign * (left - right);
      if (left !== null || right !== null) return left === null ? 1 : -1;
      const [one, other] = [textOf(a, column), textOf(b, column)];
      const isText = (row, text) => row.words[column] === "." && text !== "" && text !== "-";
      const [first, second] = [isText(a, one), isText(b, other)];
      if (first !== second) return first ? -1 : 1;
      return sign * collator.compare(one, other);
    };
  }

  function sort(table, column) {
    const head = table.heads[column];
    const before = head.getAttribute("aria-sort");
    const hasFigures = table.rows.some((row) => figure(row.words[column]) !== null);
    const order = hasFigures ? ["descending", "ascending", null] : ["ascending", "descending", null];
    const next = order[(order.indexOf(before) + 1) % order.length];
    table.heads.forEach((other) => other.removeAttribute("aria-sort"));
    const rows = table.rows.slice();
    if (next) {
      head.setAttribute("aria-sort", next);
      rows.sort(compare(column, next === "ascending" ? 1 : -1));
    }
    table.body.append(...rows.map((row) => row.line));
  }

  for (const table of tables.filter((table) => table.rows.length > 1)) {
    table.heads.forEach((head, column) => {
      const button = make("button", table.titles[column], { type: "button" });
      button.addEventListener("click", () => sort(table, column));
      head.replaceChildren(button);
    });
  }

  // ---- Which subjects are shown.

  const picked = new Set(subjects.keys());
  const filter = byId("filter");
  const baseline = byId("baseline");
  const told = byId("told");

  function isWanted(name) {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const without = words.filter((word) => word.length > 1 && word.startsWith("-"));
    const within = words.filter((word) => !word.startsWith("-"));
    const text = name.toLowerCase();
    if (without.some((word) => text.includes(word.slice(1)))) return false;
    return within.length === 0 || within.some((word) => text.includes(word));
  }

  function show() {
    let count = 0;
    for (const [name, marks] of subjects) {
      const isShown = picked.has(name) && isWanted(name);
      count += isShown;
      for (const mark of marks) mark.classList.toggle("out", !isShown);
    }
    const shown = count === subjects.size ? "" : `${count} of ${subjects.size} subjects are shown. `;
    const base = baseline.value === "" ? "" : `Figures are multiples of those of ${[...subjects.keys()][baseline.value]}, whose own stay as measured.`;
    told.textContent = shown + base;
  }

  const boxes = byId("pick").querySelector("fieldset");
  for (const name of subjects.keys()) {
    const box = make("input", "", { type: "checkbox", checked: true });
    box.addEventListener("change", () => {
      picked[box.checked ? "add" : "delete"](name);
      show();
    });
    const label = make("label", "", { title: name });
    label.append(box, name);
    boxes.append(label);
    baseline.append(make("option", name, { value: String(baseline.length - 1) }));
  }
  function pickAll(isChecked) {
    all("input", boxes).forEach((box) => { box.checked = isChecked; });
    picked.clear();
    if (isChecked) for (const name of subjects.keys()) picked.add(name);
    show();
  }
  byId("all").addEventListener("click", () => pickAll(true));
  byId("none").addEventListener("click", () => pickAll(false));
  filter.addEventListener("input", show);
  byId("tools").addEventListener("submit", (event) => event.preventDefault());
  byId("tools").hidden = subjects.size < 2;
  document.addEventListener("click", (event) => {
    if (!byId("pick").contains(event.target)) byId("pick").open = false;
  });

  // ---- Figures as multiples of a subject's.

  function multiple(value, base) {
    if (base === 0) return value === 0 ? "=" : "-";
    const ratio = value / base;
    if (ratio !== 0 && Math.abs(ratio) < 0.01) return ratio > 0 ? "<0.01×" : "-";
    return `${ratio.toFixed(ratio >= 99.95 ? 0 : ratio >= 9.995 ? 1 : 2)}×`;
  }

  // The column whose figure a span is of: `TPS` of `TPS min-max`.
  const middleOf = (table, column) =>
    table.titles.indexOf(table.titles[column].replace(/ (min-max|interval|95 %.*)$/, ""));

  function relative(table, row, base, column) {
    const word = row.words[column];
    const [low, high] = word.split(":").map(figure);
    if (high !== undefined) {
      const middle = figure(base.words[middleOf(table, column)]);
      return middle === null ? null : `${multiple(low, middle)}-${multiple(high, middle)}`;
    }
    const of = base.words[column];
    if (/[/>]/.test(word) || low === null) return null;
    return figure(of) === null || /[/>:]/.test(of) ? "-" : multiple(low, figure(of));
  }

  function rebase() {
    const name = baseline.value === "" ? null : [...subjects.keys()][baseline.value];
    for (const table of tables) {
      const key = (row) => (row.texts || row.cells.map((cell) => cell.textContent)).slice(1, table.names).join("\n");
      const bases = new Map();
      for (const row of table.rows) {
        if (row.subject === undefined) continue;
        row.texts = row.texts || row.cells.map((cell) => cell.textContent);
        row.line.classList.toggle("base", row.subject === name);
        if (row.subject === name && !bases.has(key(row))) bases.set(key(row), row);
      }
      for (const row of table.rows.filter((row) => row.subject !== undefined)) {
        const base = bases.get(key(row));
        for (let column = table.names; column < row.cells.length; column += 1) {
          const isKept = name === null || row === base;
          const text = isKept ? null : base ? relative(table, row, base, column) : figure(row.words[column]) === null ? null : "-";
          const shown = text === null ? row.texts[column] : text;
          if (row.cells[column].textContent !== shown) row.cells[column].textContent = shown;
        }
      }
    }
    show();
  }
  baseline.addEventListener("change", rebase);

  // ---- What is under the pointer.

  for (const title of all("svg title")) {
    const mark = title.parentNode;
    if (mark.localName !== "svg") mark.dataset.tip = title.textContent;
    if (mark.localName !== "svg" || mark.hasAttribute("aria-label")) title.remove();
  }
  const tip = make("div", "", { id: "tip", hidden: true });
  tip.setAttribute("role", "tooltip");
  document.body.append(tip);

  function described(cell) {
    const line = cell.parentNode;
    const [table, row] = places.get(line) || [];
    const column = cell.cellIndex;
    if (!row || column < table.names || figure(row.words[column]) === null) return null;
    const unit = table.heads[column].dataset.unit;
    const exact = (word) => `${Number(word).toLocaleString("en", { maximumFractionDigits: 3 })}`;
    const parts = row.words[column].split(/([:/>])/);
    const separators = { ":": " to ", "/": " of ", ">": " -> " };
    const value = parts.map((part) => separators[part] || exact(part)).join("");
    const shown = row.texts ? row.texts[column] : cell.textContent;
    const name = row.cells.slice(0, table.names).map((cell) => cell.textContent).join(", ");
    return `${name}\n${table.titles[column]}: ${shown}${unit ? `\n${value} ${unit}` : ""}`;
  }

  function hover(event) {
    const mark = event.target.closest("[data-tip]");
    const cell = mark ? null : event.target.closest("tbody td");
    const text = mark ? mark.dataset.tip : cell && described(cell);
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - box.width - 8);
    const above = event.clientY - box.height - 12;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 8 ? above : event.clientY + 18}px`;
  }
  document.addEventListener("pointermove", hover, { passive: true });
  for (const kind of ["scroll", "pointerleave"]) {
    document.addEventListener(kind, () => { tip.hidden = true; }, { passive: true, capture: true });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    tip.hidden = true;
    byId("pick").open = false;
  });

  // ---- Links to rows, and where one is.

  function arrive() {
    let id = location.hash.slice(1);
    try {
      id = decodeURIComponent(id);
    } catch {
      return;
    }
    const goal = byId(id);
    if (!goal || !goal.classList.contains("out")) return;
    filter.value = "";
    pickAll(true);
    goal.scrollIntoView();
  }
  addEventListener("hashchange", arrive);

  document.addEventListener("click", (event) => {
    const link = event.target.closest("tbody th a");
    if (!link || !navigator.clipboard) return;
    navigator.clipboard.writeText(link.href).then(
      () => { told.textContent = "The link to this row is copied."; },
      () => { told.textContent = "The link to this row is in the address bar."; },
    );
  });

  const bar = document.querySelector(".bar");
  const fit = () => {
    const isSticky = getComputedStyle(bar).display !== "contents";
    const height = isSticky ? bar.offsetHeight : bar.querySelector("nav").offsetHeight;
    document.documentElement.style.scrollPaddingTop = `${height + 8}px`;
  };
  addEventListener("resize", fit);
  fit();

  const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((entry) => entry.isIntersecting)) {
      const link = links.get(entry.target.id);
      links.forEach((other) => other.removeAttribute("aria-current"));
      link.setAttribute("aria-current", "true");
      const list = link.closest("ol");
      list.scrollLeft = link.offsetLeft - list.offsetLeft - (list.clientWidth - link.offsetWidth) / 2;
    }
  }, { rootMargin: "-25% 0px -70% 0px" });
  all("main > section").forEach((section) => links.has(section.id) && watcher.observe(section));

  show();
  arrive();
})();
