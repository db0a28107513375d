// The data embedded in the site: provider releases, the cells of the table, and what is wrong in groups.

const STATE = ["operator", "version", "dtype", "provider", "columns", "cases", "find", "state", "q", "status", "section"];

const table = { releases: [], cells: [], operators: new Map(), dtypes: [], deviations: null };

async function loadTable() {
  const packed = await unpack("table");
  table.releases = packed.releases.map((release, index) => ({ ...release, index }));
  const columns = Object.entries(packed.cells).map(([name, column]) => [name, expand(column, packed.count)]);
  for (let number = 0; number < packed.count; number += 1) {
    const cell = {};
    for (const [name, values] of columns) cell[name] = values[number];
    table.cells.push(cell);
    if (!table.operators.has(cell.operator)) table.operators.set(cell.operator, []);
    table.operators.get(cell.operator).push(cell);
  }
  table.dtypes = [...new Set(table.cells.map((cell) => firstDtype(cell.dtype)))];
}

/** What is wrong, unpacked when it is first asked for. */
function loadDeviations() {
  table.deviations ??= unpack("deviations").then((packed) => (packed.count ? expand(packed.rows, packed.count) : []));
  return table.deviations;
}

const firstDtype = (dtype) => dtype.split("-")[0];

/** Whether a dtype is the one that is asked for, or begins with it, as a column of the matrix of a run does. */
const isDtype = (dtype, wanted) => !wanted || dtype === wanted || dtype.startsWith(wanted + "-") || addressable(dtype) === wanted;

/** An operator by its name in an address, in which half a surrogate pair does not survive. */
function operatorNamed(name) {
  return table.operators.has(name) ? name : [...table.operators.keys()].find((known) => addressable(known) === name);
}

/** The provider releases that are shown: those that the address names, or the newest of each provider and adapter. */
function shownReleases(state) {
  const keys = (state.columns || "").split(",").filter(Boolean);
  if (keys[0] === "all") return table.releases;
  const named = table.releases.filter((release) => keys.includes(release.key));
  return named.length ? named : table.releases.filter((release) => release.newest);
}

const NAMES = ["passes", "failures", "expected", "declined"];

/** Cells added up; null without any. */
function totalOf(cells) {
  if (!cells.length) return null;
  const total = Object.fromEntries(NAMES.map((name) => [name, 0]));
  for (const cell of cells) for (const name of NAMES) total[name] += cell[name];
  return total;
}

const CODES = { r: "passes", f: "failures", e: "expected", d: "declined" };

/** `totalOf` for each column, of the cases alone that all columns have. columns: cells by operator, version and dtype. */
function commonTotals(columns) {
  const places = columns.map((cells) => new Map(cells.map((cell) => [`${cell.since_version} ${cell.dtype}`, cell])));
  const totals = columns.map(() => Object.fromEntries(NAMES.map((name) => [name, 0])));
  for (const [place, { codes }] of places[0] ?? []) {
    const strings = places.map((cells) => cells.get(place)?.codes ?? "");
    for (let i = 0; i < codes.length; i += 1) {
      if (strings.every((string) => string[i] in CODES)) strings.forEach((string, column) => (totals[column][CODES[string[i]]] += 1));
    }
  }
  return totals.map((total) => (NAMES.some((name) => total[name]) ? total : null));
}

const taken = (total) => total.passes + total.failures + total.expected;
const stateOf = (total) => (total.failures ? "failure" : total.expected ? "expected" : total.passes ? "ok" : "not-run");

/** How a total stands for people who compare: known or not, wrong is wrong. */
const standingOf = (total) => ({ failure: "wrong", expected: "wrong", ok: "right", "not-run": "declined" })[stateOf(total)];

const numbersOf = (total) => (!taken(total) ? "" : total.passes === taken(total) ? String(total.passes) : `${total.passes}/${taken(total)}`);

/** A cell of a matrix; `more` are lines below its numbers. */
function cellOf(total, href, ...more) {
  const state = stateOf(total);
  return el("a", { class: "cell " + state, href },
    el("span", { class: "sign", "aria-hidden": "true" }, SIGNS[state]), el("span", { class: "unseen" }, `${state} `), numbersOf(total),
    more.filter(Boolean).map((line) => el("span", { class: "detail" }, line)));
}

const shownUlp = (ulp) => `${typeof ulp === "object" ? "∞" : ulp >= 1e4 ? ulp.toExponential(1).replace("e+", "e") : ulp} ULP`;

/** Since which release a cell is as it is: `since 1.24.4`, or `since 1.17.3 or before`. */
function sinceOf(cell) {
  if (cell.since === null) return "";
  const { release } = table.releases[cell.since];
  return cell.since_oldest ? `since ≤ ${release}` : `since ${release}`;
}

const isAmbiguous = (release) => table.releases.some((other) => other !== release && other.name === release.name);
const releaseName = (release) => release.name + (isAmbiguous(release) ? ` on ${release.adapter}` : "");
