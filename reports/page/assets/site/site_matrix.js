// The matrix of operators and providers: which rows and columns the address asks for.

const matrix = document.getElementById("matrix-table");
const matrixForm = document.getElementById("matrix-controls");
const columnsForm = document.querySelector("#columns form");
const ROWS = {
  "": ["all operators", () => true],
  differs: ["where providers differ", (totals) => new Set(totals.filter(Boolean).map(standingOf)).size > 1],
  wrong: ["wrong somewhere", (totals) => totals.some((total) => total && standingOf(total) === "wrong")],
  failure: ["wrong and not known", (totals) => totals.some((total) => total && stateOf(total) === "failure")],
  declined: ["declined somewhere", (totals) => totals.some((total) => total && standingOf(total) === "declined")],
  right: ["right wherever there is a record", (totals) => totals.every((total) => !total || standingOf(total) === "right")],
};

const find = el("input", { type: "search", name: "find", placeholder: "Find an operator", "aria-label": "Find an operator", input: () => changeState({ find: find.value }) });
const rowsSelect = el("select", { name: "state", "aria-label": "Operators by result", change: () => changeState({ state: rowsSelect.value, ...(rowsSelect.value === "differs" ? { cases: "common" } : {}) }) },
  Object.entries(ROWS).map(([value, [name]]) => el("option", { value }, name)));
const dtypeSelect = el("select", { name: "dtype", "aria-label": "dtype", change: () => changeState({ dtype: dtypeSelect.value }) });

const casesSelect = el("select", { name: "cases", "aria-label": "Cases", change: () => changeState({ cases: casesSelect.value }) },
  el("option", { value: "" }, "every case"), el("option", { value: "common" }, "cases that all columns have"));

/** Change the address without a step in the browser's history, and show what it says. */
function changeState(change) {
  history.replaceState(null, "", linkTo({ ...readState(), section: "", ...change }) || "#");
  show(true);
}

function buildMatrixControls() {
  dtypeSelect.append(el("option", { value: "" }, "all dtypes"), ...table.dtypes.map((dtype) => el("option", { value: dtype }, dtype)));
  matrixForm.append(find, rowsSelect, dtypeSelect, casesSelect);
  matrixForm.addEventListener("submit", (event) => event.preventDefault());
  matrixForm.hidden = false;
  if (table.releases.length < 2) return;
  columnsForm.append(
    ...table.releases.map((release) => el("label", {},
      el("input", { type: "checkbox", name: "column", value: release.key, change: chooseColumns }), ` ${release.name} `, el("span", { class: "quiet" }, release.adapter))),
    el("p", {}, el("a", { href: "#columns=all" }, "all"), " · ", el("a", { href: "#" }, "the newest release of each")));
  document.getElementById("columns").hidden = false;
}

function chooseColumns() {
  changeState({ columns: [...columnsForm.querySelectorAll("input:checked")].map((box) => box.value).join(",") });
}

const drawn = { key: null };

/** Draw the matrix that the address asks for, unless it is there already. */
function drawMatrix(state) {
  const releases = shownReleases(state);
  if (document.activeElement !== find) find.value = state.find || "";
  rowsSelect.value = ROWS[state.state] ? state.state : "";
  dtypeSelect.value = table.dtypes.includes(state.dtype) ? state.dtype : "";
  casesSelect.value = state.cases === "common" ? "common" : "";
  for (const box of columnsForm.querySelectorAll("input")) box.checked = releases.some((release) => release.key === box.value);
  const key = JSON.stringify([releases.map((release) => release.key), find.value, rowsSelect.value, dtypeSelect.value, casesSelect.value]);
  if (drawn.key === key) return;
  const rows = matrixRows(releases, find.value.toLowerCase(), ROWS[rowsSelect.value][1]);
  const first = drawn.key === null && rows.length === table.operators.size && !state.columns && !dtypeSelect.value && !casesSelect.value;
  drawn.key = key;
  document.getElementById("result").textContent = `${rows.length === table.operators.size ? "" : count(rows.length) + " of "}${count(table.operators.size)} operators`;
  if (first) return; // the page has this one as it is
  matrix.tHead.rows[0].replaceChildren(el("th", { scope: "col" }, "Operator"), ...releases.map((release) => releaseHead(release)));
  matrix.tBodies[0].replaceChildren(...rows.map(([operator, totals]) => el("tr", {},
    el("th", { scope: "row" }, el("a", { href: operatorLink(state, operator) }, operator)),
    totals.map((total, i) => el("td", {}, total && cellOf(total, operatorLink(state, operator, releases[i])))))));
}

/** [operator, its totals by column] of the rows that are asked for. */
function matrixRows(releases, wanted, isAsked) {
  const rows = [];
  for (const [operator, cells] of table.operators) {
    if (!operator.toLowerCase().includes(wanted)) continue;
    const own = cells.filter((cell) => isDtype(cell.dtype, dtypeSelect.value));
    const columns = releases.map((release) => own.filter((cell) => cell.provider_release === release.index));
    const totals = casesSelect.value ? commonTotals(columns) : columns.map(totalOf);
    if (totals.some(Boolean) && isAsked(totals)) rows.push([operator, totals]);
  }
  return rows;
}

const releaseHead = (release) => el("th", { scope: "col" }, el("a", { href: linkTo({ provider: release.key }), title: `${release.provider} ${release.release} on ${release.adapter}` }, el("span", {}, release.short), el("span", {}, release.release), isAmbiguous(release) ? el("span", {}, release.adapter) : null));

const operatorLink = (state, operator, release) => linkTo({ operator, provider: release?.key, dtype: state.dtype, columns: state.columns });
