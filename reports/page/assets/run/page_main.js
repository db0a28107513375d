// What is shown follows the address, so every state of the page is a link.

const overview = document.getElementById("overview");
const operatorArticle = document.getElementById("operator");
const casesSection = document.getElementById("cases");
const article = document.getElementById("case");
const title = document.title;
const seen = { view: "", operator: "" };

function sameCase(row, state) {
  return has(row, "case", state.case) && (!state.target || has(row, "target", state.target));
}

async function show(list) {
  const state = readState();
  if (list && "case" in state) await showCase(list, state);
  else if (list && "operator" in state) showOperator(list, state);
  else showOverview(list, state);
}

const toTop = () => scrollTo({ top: 0, behavior: "instant" }); // another view is no way to travel

function reveal(view) {
  const changed = seen.view !== view;
  seen.view = view;
  overview.hidden = view !== "run";
  operatorArticle.hidden = view !== "operator";
  casesSection.hidden = view === "case";
  article.hidden = view !== "case";
  return changed;
}

function showOverview(list, state) {
  const changed = reveal("run");
  seen.operator = "";
  document.title = title;
  list?.update(state);
  showMatrix(state);
  const filters = Object.keys(state).some((name) => !["section", "find", "worst"].includes(name));
  const section = document.getElementById(state.section || (filters ? "cases" : ""));
  if (section && !(list && list.form.contains(document.activeElement)) && !matrixForm.contains(document.activeElement)) {
    section.querySelector(":scope > details")?.setAttribute("open", "");
    section.scrollIntoView({ behavior: changed ? "instant" : "auto" }); // a long way on opening, a short one after
  } else if (changed || !location.hash) toTop();
}

function showOperator(list, state) {
  list.update(state);
  const place = Object.fromEntries(["operator", "target", ...PLACE].filter((name) => name in state).map((name) => [name, state[name]]));
  const { target: _target, ...onAnyTarget } = place;
  const rows = filtered(list.rows, onAnyTarget);
  const changed = reveal("operator");
  if (!changed && seen.operator === linkTo(place)) return;
  seen.operator = linkTo(place);
  operatorArticle.replaceChildren(...(rows.length ? operatorView(rows[0].operator, rows, list, place) : [notFound("operator", state.operator)]));
  document.title = visible(state.operator) + " · epcheck";
  toTop();
  operatorArticle.focus({ preventScroll: true });
}

async function showCase(list, state) {
  const row = list.rows.find((candidate) => sameCase(candidate, state));
  const around = aroundOf(row, state, list);
  list.around = around;
  const content = row ? caseView(await loadRecord(row), row, around) : [notFound("case", state.case)];
  if (readState().case !== state.case) return; // the address has changed meanwhile
  reveal("case");
  article.replaceChildren(...content);
  list.chosen = row ?? null;
  document.title = visible(state.case) + " · epcheck";
  toTop();
  article.focus({ preventScroll: true });
}

/** Where one can go from a case, with the filters that led to it. */
function aroundOf(row, state, list) {
  const filters = list.filters(state);
  const shown = inOrder(filtered(list.rows, filters), filters.sort);
  const at = row ? shown.indexOf(row) : -1;
  const link = (other) => (other ? linkTo({ ...filters, case: other.id, target: list.several ? other.target : undefined }) : "");
  return {
    back: Object.keys(filters).length ? linkTo(filters) : "#section=cases",
    backTo: filters.operator ? `← ${filters.operator}` : "← All cases",
    operator: row && !filters.operator ? linkTo({ operator: row.operator }) : "",
    position: at < 0 ? "" : `${count(at + 1)} of ${count(shown.length)}`,
    previous: link(shown[at - 1]),
    next: at < 0 ? "" : link(shown[at + 1]),
  };
}

function notFound(what, name) {
  return el("section", {}, el("h1", {}, `No such ${what}`), el("p", {}, "This run has no record of ", el("code", {}, name), "."),
    el("p", {}, el("a", { href: "#section=cases" }, "← All cases")));
}

function keys(list) {
  const sections = { m: "matrix", a: "accuracy", f: "findings", c: "cases" };
  addEventListener("keydown", (event) => {
    if (!isForPage(event)) return;
    const inCase = !article.hidden;
    const to = inCase && { j: list.around.next, k: list.around.previous, Escape: list.around.back }[event.key];
    if (to) location.hash = to;
    else if (inCase && event.key === "y") document.getElementById("copy")?.click();
    else if (inCase && event.key === "d") document.getElementById("download")?.click();
    else if (sections[event.key]) location.hash = "#section=" + sections[event.key];
    else if (inCase) return;
    else if (event.key === "j" || event.key === "k") list.step(event.key === "j" ? 1 : -1);
    else if (event.key === "Enter" && list.chosen && event.target.tagName !== "A" && event.target.tagName !== "BUTTON") location.hash = list.linkTo(list.chosen);
    else if (event.key === "Escape" && !operatorArticle.hidden) location.hash = "#section=matrix";
    else if (event.key === "/") {
      event.preventDefault();
      list.search.focus();
    }
  });
}

const closed = []; // groups of causes that are open on paper alone
addEventListener("beforeprint", () => {
  closed.push(...document.querySelectorAll("#findings .findings:not([open])"));
  for (const group of closed) group.open = true;
});
addEventListener("afterprint", () => {
  for (const group of closed.splice(0)) group.open = false;
});

async function main() {
  let list = null;
  matrixForm.append(find, worst);
  matrixForm.hidden = false;
  matrixForm.addEventListener("submit", (event) => event.preventDefault());
  if (typeof DecompressionStream === "undefined") {
    const problem = document.getElementById("list-problem");
    problem.textContent = "This browser cannot unpack the cases (it has no DecompressionStream): open the page in Chrome 80, Firefox 113, Safari 16.4 or newer. Everything else here is complete.";
    problem.hidden = false;
  } else {
    await loadIndex();
    list = new CaseList(index.rows);
    keys(list);
    openPairs(list);
  }
  addEventListener("hashchange", () => show(list));
  await show(list);
  root.dataset.ready = "yes";
}

main();
