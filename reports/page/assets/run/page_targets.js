// The targets of a run side by side: an operator's versions and dtypes on each, claimed, right, how many ULP, since when.

const STANDINGS = { failure: "wrong", expected: "wrong" };

/** How a case stands for people who compare: a failure that is expected is wrong as well. */
const standingOf = (row) => STANDINGS[row.reading] ?? (row.status === "pass" ? "right" : "declined");

function sideBySide(name, targets, rows) {
  const places = new Map();
  for (const row of rows) {
    const place = `${row.version} ${row.dtype}`;
    if (!places.has(place)) places.set(place, { version: row.version, dtype: row.dtype, rows: [] });
    places.get(place).rows.push(row);
  }
  const ordered = [...places.values()].sort((a, b) => byDtype(b.version, a.version) || byDtype(a.dtype, b.dtype));
  const since = sinceWhen(rows);
  return el("section", { "aria-label": "Targets side by side" },
    el("h2", {}, "Version × dtype × target"),
    el("p", { class: "legend" }, el("span", {}, "Each cell: passing / all cases; whether it is claimed; the largest error of the passing cases, in ULP; the release in which the result last changed (≤: the oldest release in this run).")),
    scrolling(`${name}: versions, dtypes and targets`, el("table", { class: "matrix detailed" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Version, dtype"), targets.map((target) => el("th", { scope: "col" }, target)))),
      el("tbody", {}, ordered.map(({ version, dtype, rows: own }) => el("tr", {},
        el("th", { scope: "row" }, el("a", { href: linkTo({ operator: name, version, dtype }) }, `${version} `, el("code", {}, dtype))),
        targets.map((target) => el("td", {}, detailedCell(own.filter((row) => row.target === target), since, linkTo({ operator: name, version, dtype, target }))))))))));
}

function detailedCell(rows, since, href) {
  if (!rows.length) return null;
  const cell = cellOf(rows, href);
  const errors = rows.filter((row) => row.status === "pass" && row.ulp !== null).map((row) => infinite(row.ulp));
  const lines = [rows.every((row) => row.claimed === false) ? "not claimed" : "", errors.length ? `${plainNumber(Math.max(...errors))} ULP` : "", sinceOf(rows, since)];
  cell.append(...lines.filter(Boolean).map((line) => el("span", { class: "detail" }, line)));
  return cell;
}

/** Row -> [number of the release since which the case stands as it does, whether that is the oldest that ran it]. Rows of
 * targets without an older or newer release in this run are not in it. */
function sinceWhen(rows) {
  const order = new Map(index.releases.map(([target, line, release], number) => [target, { line, release, number }]));
  const cases = new Map();
  for (const row of rows) {
    const { line, release } = order.get(row.target) ?? {};
    if (!release) continue;
    const key = `${line} ${row.id}`;
    cases.set(key, [...(cases.get(key) ?? []), row]);
  }
  const found = new Map();
  for (const of of cases.values()) {
    of.sort((a, b) => order.get(a.target).number - order.get(b.target).number);
    if (new Set(of.map((row) => order.get(row.target).release)).size < 2) continue;
    of.forEach((row, at) => {
      let first = at;
      while (first > 0 && standingOf(of[first - 1]) === standingOf(row)) first -= 1;
      found.set(row, [order.get(of[first].target).number, first === 0]);
    });
  }
  return found;
}

/** Of a cell: the last of its cases that came to stand so, or the first that is wrong. */
function sinceOf(rows, since) {
  const isWrong = rows.some((row) => standingOf(row) === "wrong");
  const deciding = rows.filter((row) => since.has(row) && (isWrong ? standingOf(row) === "wrong" : standingOf(row) !== "declined" || rows.every((other) => standingOf(other) === "declined")));
  if (!deciding.length) return "";
  const [number, isOldest] = deciding.map((row) => since.get(row)).reduce((best, next) => ((isWrong ? next[0] < best[0] : next[0] > best[0]) ? next : best));
  return `since ${isOldest ? "≤ " : ""}${index.releases[number][2]}`;
}
