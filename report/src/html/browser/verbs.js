// What the tests ask of a page.
window.table = (title, load = 0) => [...document.querySelectorAll("main table")]
    .filter((table) => table.caption.textContent.startsWith(title + ","))[load];
window.column = (table, name) => [...table.tHead.rows[0].cells]
    .findIndex((cell) => cell.textContent === name);
window.lines = (table) => [...table.tBodies[0].rows]
    .filter((row) => row.getClientRects().length > 0);
window.cells = (table, name) => lines(table).map((row) => row.cells[column(table, name)].textContent);
window.press = (table, name) => table.tHead.rows[0].cells[column(table, name)].querySelector("button").click();
window.choose = (id, value) => {
    const field = document.getElementById(id);
    field.value = field.options
        ? [...field.options].find((option) => option.textContent === value).value : value;
    field.dispatchEvent(new Event(field.options ? "change" : "input", { bubbles: true }));
};
window.tick = (name) => [...document.querySelectorAll("#pick label")]
    .find((label) => label.textContent === name).querySelector("input").click();
