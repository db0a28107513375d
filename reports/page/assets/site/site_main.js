// What is shown follows the address, so every view of the site is a link.

const overview = document.getElementById("overview");
const view = document.getElementById("view");
const title = document.title;
const seen = { view: "" };

/** Show what the address says. staying: the reader changed a filter and stays where they are. */
async function show(staying = false) {
  const state = readState();
  const operator = state.operator === undefined ? undefined : operatorNamed(state.operator);
  const release = table.releases.find((known) => known.key === state.provider);
  const name = state.operator !== undefined ? "operator" : state.provider !== undefined ? "provider" : "";
  if (name === "operator") open(operator ? operatorView(operator, state) : [notFound("operator", state.operator)], state.operator);
  else if (name) open(release ? providerView(release) : [notFound("provider", state.provider)], release?.name ?? state.provider);
  else {
    document.title = title;
    drawMatrix(state);
  }
  overview.hidden = Boolean(name);
  view.hidden = !name;
  const place = name + (state.operator ?? "") + (name === "provider" ? state.provider : "");
  const isElsewhere = seen.view !== place;
  seen.view = place;
  if (!staying) go(state, isElsewhere, Boolean(name));
  await drawWrong(state);
}

function open(content, name) {
  view.replaceChildren(...content);
  document.title = visible(name) + " · epcheck";
}

/** Where the page is scrolled to, and what has the focus. */
function go(state, isElsewhere, isView) {
  const section = document.getElementById(state.section || "");
  if (section) section.scrollIntoView({ behavior: isElsewhere ? "instant" : "auto" });
  else if (isElsewhere || !location.hash) scrollTo({ top: 0, behavior: "instant" });
  if (isView && isElsewhere) view.focus({ preventScroll: true });
}

function notFound(what, name) {
  return el("section", {}, el("h1", {}, `No such ${what}`), el("p", {}, "The store has no record of ", el("code", {}, name), "."),
    el("p", {}, el("a", { href: "#section=matrix" }, "← All operators")));
}

function keys() {
  const sections = { p: "providers", m: "matrix", w: "wrong" };
  addEventListener("keydown", (event) => {
    if (!isForPage(event)) return;
    const step = { j: "next", k: "prev" }[event.key];
    const link = step && view.querySelector(`a[rel="${step}"]`);
    if (link && !view.hidden) location.hash = link.hash;
    else if (event.key === "Escape" && !view.hidden) location.hash = view.querySelector(".steps a").hash;
    else if (event.key === "w" && !view.hidden) document.getElementById("wrong").scrollIntoView();
    else if (sections[event.key]) location.hash = "#section=" + sections[event.key];
    else if (event.key === "/") {
      event.preventDefault();
      (view.hidden ? find : search).focus();
    }
  });
}

async function main() {
  if (typeof DecompressionStream === "undefined") {
    const problem = document.getElementById("problem");
    problem.textContent = "This browser cannot unpack the table (it has no DecompressionStream): open the page in Chrome 80, Firefox 113, Safari 16.4 or newer. The matrix of the newest releases is complete.";
    problem.hidden = false;
    root.dataset.ready = "yes";
    return;
  }
  await loadTable();
  buildMatrixControls();
  await buildWrongControls();
  keys();
  addEventListener("hashchange", () => show());
  await show();
  root.dataset.ready = "yes";
}

main();
