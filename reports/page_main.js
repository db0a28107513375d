// What is shown follows the address, so every state of the page is a link.

const overview = document.getElementById("overview");
const article = document.getElementById("case");
const title = document.title;

function sameCase(row, state) {
  return addressable(row.id) === state.case && (!state.target || addressable(row.target) === state.target);
}

async function show(list) {
  const state = readState();
  if (!("case" in state)) {
    article.hidden = true;
    overview.hidden = false;
    document.title = title;
    if (list) list.update(state);
    const target = state.section || (Object.keys(state).length ? "cases" : "");
    const section = document.getElementById(target);
    if (section && !(list && list.form.contains(document.activeElement))) {
      section.querySelector(":scope > details")?.setAttribute("open", "");
      section.scrollIntoView();
    }
    if (!target) scrollTo(0, 0);
    return;
  }
  if (!list) return;
  const row = list.rows.find((candidate) => sameCase(candidate, state));
  const filters = filtersOf(state, list);
  const shown = filtered(list.rows, filters);
  const at = row ? shown.indexOf(row) : -1;
  const link = (other) => (other ? linkTo({ ...filters, case: other.id, target: other.target }) : "");
  const around = {
    back: Object.keys(filters).length ? linkTo(filters) : "#section=cases",
    position: at < 0 ? "" : `${count(at + 1)} of ${count(shown.length)}`,
    previous: link(shown[at - 1]),
    next: at < 0 ? "" : link(shown[at + 1]),
  };
  list.around = around;
  const content = row ? caseView(await loadRecord(row), row, around) : [notFound(state.case)];
  if (readState().case !== state.case) return; // the address has changed meanwhile
  article.replaceChildren(...content);
  article.hidden = false;
  overview.hidden = true;
  document.title = visible(state.case) + " · epcheck";
  scrollTo(0, 0);
  article.focus({ preventScroll: true });
}

function filtersOf(state, list) {
  const { case: _case, section: _section, target, ...filters } = state;
  return list.selects.has("target") && target ? { ...filters, target } : filters;
}

function notFound(id) {
  return el("section", {}, el("h1", {}, "No such case"), el("p", {}, "This run has no record of ", el("code", {}, id), "."),
    el("p", {}, el("a", { href: "#section=cases" }, "← All cases")));
}

function keys(list) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const inCase = !article.hidden;
    const to = inCase && { j: list.around.next, k: list.around.previous, Escape: list.around.back }[event.key];
    if (to) location.hash = to;
    else if (event.key === "/" && !inCase) {
      event.preventDefault();
      list.search.focus();
    }
  });
}

function theme() {
  const root = document.documentElement;
  const stored = () => { try { return localStorage.getItem("epcheck-theme"); } catch { return null; } };
  if (stored()) root.dataset.theme = stored();
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("epcheck-theme", root.dataset.theme); } catch { /* a file without storage: for this visit */ }
  });
}

async function main() {
  theme();
  let list = null;
  if (typeof DecompressionStream === "undefined") {
    const problem = document.getElementById("list-problem");
    problem.textContent = "This browser cannot unpack the cases (it has no DecompressionStream): open the page in Chrome 80, Firefox 113, Safari 16.4 or newer. Everything else here is complete.";
    problem.hidden = false;
  } else {
    list = new CaseList(await loadRows());
    keys(list);
  }
  addEventListener("hashchange", () => show(list));
  await show(list);
  document.documentElement.dataset.ready = "yes";
}

main();
