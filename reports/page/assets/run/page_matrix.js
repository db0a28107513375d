// The matrix of operators: by default those with which something is wrong, with their families.

const matrixForm = document.getElementById("matrix-controls");
const matrixRows = [...document.querySelectorAll("#matrix tr[data-operator]")];
const matrixGroups = [...document.querySelectorAll("#matrix tbody")];
const ANY = "any", DIFFERS = "differs";
const WRONG = READINGS.slice(0, 4);
const differing = new Set(matrixRows.filter((row) => "differs" in row.dataset).map((row) => row.dataset.operator));
const find = el("input", { type: "search", name: "find", placeholder: "Find an operator", "aria-label": "Find an operator", input: () => goMatrix() });
const worst = el("select", { name: "worst", "aria-label": "Operators by their worst case", change: () => goMatrix() },
  el("option", { value: "" }, "only what is wrong"),
  el("option", { value: ANY }, "all operators"),
  ...READINGS.slice(0, 5).map((reading) => el("option", { value: reading }, `with ${reading}`)),
  document.getElementById("side-by-side") ? el("option", { value: DIFFERS }, "where targets differ") : null);

function goMatrix() {
  history.replaceState(null, "", linkTo({ section: "matrix", find: find.value, worst: worst.value }));
  showMatrix(readState());
}

/** The rows of the matrix that the address asks for: a name is looked for among all operators. */
function showMatrix(state) {
  if (document.activeElement !== find) find.value = state.find || "";
  worst.value = [...worst.options].some(({ value }) => value === state.worst) ? state.worst : "";
  const wanted = find.value.toLowerCase();
  const byWorst = {
    "": (row) => wanted !== "" || WRONG.includes(row.dataset.worst),
    [ANY]: () => true,
    [DIFFERS]: (row) => differing.has(row.dataset.operator),
  }[worst.value] ?? ((row) => row.querySelector(".cell." + worst.value));
  const shown = new Set();
  for (const row of matrixRows) {
    row.hidden = !row.dataset.operator.toLowerCase().includes(wanted) || !byWorst(row);
    if (!row.hidden) shown.add(row.dataset.operator);
  }
  for (const group of matrixGroups) group.hidden = ![...group.rows].some((row) => row.dataset.operator && !row.hidden);
  for (const region of document.querySelectorAll("#matrix .window")) region.hidden = !region.querySelector("tbody:not([hidden])");
  describeMatrix(shown.size, new Set(matrixRows.map((row) => row.dataset.operator)).size, worst.value === "" && wanted === "");
}

function describeMatrix(shown, all, isDefault) {
  const place = document.getElementById("matrix-shown");
  const operators = `${count(all)} operator${all === 1 ? "" : "s"}`;
  const link = (worstCase, words) => el("a", { href: linkTo({ section: "matrix", worst: worstCase }) }, words);
  const rest = shown === all ? [] : [" ", link(ANY, `Show all ${operators}`)];
  const words = isDefault && shown === all ? `Something is wrong in each of ${operators}.`
    : isDefault ? (shown ? `Something is wrong in ${count(shown)} of ${operators}.` : `Nothing is wrong in ${operators}.`)
      : shown ? `${count(shown)} of ${operators}.` : "No operator matches.";
  place.replaceChildren(words, ...rest, ...(isDefault ? [] : [" ", link("", "Show only what is wrong")]));
}
