// Light and dark, print, and the help that every page has.

const root = document.documentElement;
const help = document.getElementById("help");

function switchTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("epcheck-theme", root.dataset.theme); } catch { /* a file without storage: for this visit */ }
  redrawCharts();
}

function storedTheme() {
  try { return localStorage.getItem("epcheck-theme"); } catch { return null; }
}

if (storedTheme()) root.dataset.theme = storedTheme();
drawWaiting();
document.getElementById("theme").addEventListener("click", switchTheme);
document.getElementById("help-button").addEventListener("click", () => help.showModal());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);

/** Whether a key belongs to the page: not to a field that is typed into, and not to the browser. */
function isForPage(event) {
  return !(event.ctrlKey || event.metaKey || event.altKey || help.open || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName));
}

addEventListener("keydown", (event) => {
  if (!isForPage(event)) return;
  if (event.key === "?") help.showModal();
  else if (event.key === "t") switchTheme();
});

addEventListener("beforeprint", () => {
  root.dataset.printing = "";
  redrawCharts();
});
addEventListener("afterprint", () => {
  delete root.dataset.printing;
  redrawCharts();
});
