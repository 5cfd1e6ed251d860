"use strict";
const { sheet, hash } = document.body.dataset;
const selects = [...document.querySelectorAll("select")];
const place = `evenhand rating ${hash}`;

// A browser may refuse to remember; then the page works until it is closed.
function remembered() {
  try { return JSON.parse(localStorage.getItem(place)) || {}; } catch { return {}; }
}
function remember(marks) {
  try { localStorage.setItem(place, JSON.stringify(marks)); } catch { /* not allowed here */ }
}
function named(select) { return `${select.dataset.id} ${select.dataset.question}`; }

function show() {
  const given = selects.filter((select) => select.value !== "").length;
  document.getElementById("done").textContent = `${given} of ${selects.length} marks given.`;
}

function table() {
  const questions = [...new Set(selects.map((select) => select.dataset.question))];
  const rows = new Map();
  for (const select of selects) {
    const { id, question } = select.dataset;
    if (!rows.has(id)) rows.set(id, {});
    rows.get(id)[question] = select.value;
  }
  const lines = [["id", "sheet", ...questions]];
  for (const [id, marks] of rows) lines.push([id, sheet, ...questions.map((name) => marks[name])]);
  return lines.map((line) => line.join(",") + "\r\n").join("");
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([table()], { type: "text/csv" }));
  link.download = `${sheet}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
}

const before = remembered();
for (const select of selects) {
  select.value = before[named(select)] || "";
  select.addEventListener("change", () => {
    remember({ ...remembered(), [named(select)]: select.value });
    show();
  });
}
document.getElementById("save").addEventListener("click", save);
show();
