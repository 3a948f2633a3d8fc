(() => {
  const wrong = [];
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map((heading) => Number(heading.localName[1]));
  if (levels[0] !== 1 || levels.filter((level) => level === 1).length !== 1) wrong.push("not one h1 at the top");
  levels.forEach((level, index) => {
    if (index > 0 && level > levels[index - 1] + 1) wrong.push(`h${level} after h${levels[index - 1]}`);
  });
  for (const table of document.querySelectorAll("table")) {
    if (!table.caption || !table.caption.textContent.trim()) wrong.push("a table without a caption");
  }
  for (const head of document.querySelectorAll("th")) {
    if (!["col", "row"].includes(head.scope)) wrong.push(`a header of nothing: ${head.outerHTML}`);
  }
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  ids.filter((id, index) => ids.indexOf(id) !== index).forEach((id) => wrong.push(`twice: ${id}`));
  for (const link of document.querySelectorAll("a[href^='#']")) {
    if (!document.getElementById(decodeURIComponent(link.hash.slice(1)))) wrong.push(`to nowhere: ${link.hash}`);
  }
  return wrong;
})()
