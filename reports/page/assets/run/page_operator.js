// One operator: its versions by dtype, what is wrong with it, how accurate it is. The list of its cases stands below.

const PLACE = ["version", "dtype", "binding"]; // what of an operator an address may be about

const byDtype = byText;

function operatorView(name, rows, list, state) {
  const target = list.state.target;
  const targets = [...new Set(rows.map((row) => row.target))].filter((targetName) => !target || addressable(targetName) === target);
  const of = (targetName) => rows.filter((row) => row.target === targetName);
  return [
    el("header", { class: "card operator-head " + worstOf(rows) },
      el("p", { class: "steps" }, el("a", { href: "#section=matrix" }, "← All operators")),
      el("h1", {}, name, ...PLACE.filter((place) => place in state).map((place) => el("span", { class: "quiet" }, ` ${place === "version" ? `version ${state.version}` : state[place]}`))),
      el("p", { class: "verdict" }, countsInWords(rows)),
      PLACE.some((place) => place in state) ? el("p", {}, el("a", { href: linkTo({ operator: name, target: state.target }) }, `Show all versions and dtypes of ${name}`)) : null),
    ...(targets.length > 1 ? [sideBySide(name, targets, rows)] : []),
    ...targets.map((targetName) => el("section", {},
      el("h2", {}, "Version × dtype", list.several ? el("span", { class: "quiet" }, " on ", targetName) : null), versionsTable(name, targetName, of(targetName), list))),
    ...targets.flatMap((targetName) => findingsOf(targetName, of(targetName), list)),
    ...accuracyOf(name, targets, list, state),
  ];
}

const worstOf = (rows) => READINGS.find((reading) => rows.some((row) => row.reading === reading));

/** How the cases are read, in words. */
function countsInWords(rows) {
  const counts = READINGS.map((reading) => [rows.filter((row) => row.reading === reading).length, reading]).filter(([n]) => n);
  const passing = rows.filter((row) => row.status === "pass").length;
  return `${count(passing)} of ${count(rows.length)} cases pass; ` + counts.map(([n, reading]) => `${count(n)} ${inWords(reading)}`).join(", ") + ".";
}

function versionsTable(name, target, rows, list) {
  const cells = new Map();
  for (const row of rows) {
    const key = row.version + " " + row.dtype;
    if (!cells.has(key)) cells.set(key, []);
    cells.get(key).push(row);
  }
  const versions = [...new Set(rows.map((row) => row.version))].sort(byDtype);
  const dtypes = [...new Set(rows.map((row) => row.dtype))].sort(byDtype);
  const head = (dtype) => el("th", { scope: "col" }, dtype.split("-").map((part) => el("span", {}, part)));
  const link = (more) => linkTo({ operator: name, ...more, target: list.several ? target : undefined });
  return scrolling(`${name}: versions and dtypes`, el("table", { class: "matrix" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Version"), dtypes.map(head))),
    el("tbody", {}, versions.map((version) => el("tr", {},
      el("th", { scope: "row" }, el("a", { href: link({ version }) }, version)),
      dtypes.map((dtype) => el("td", {}, cellOf(cells.get(version + " " + dtype), link({ version, dtype })))))))));
}

function cellOf(rows, href) {
  if (!rows) return null;
  const passing = rows.filter((row) => row.status === "pass").length;
  const worst = worstOf(rows);
  return el("a", { class: "cell " + worst, href, title: inWords(worst) }, `${SIGNS[worst]} ${passing === rows.length ? passing : `${passing}/${rows.length}`}`);
}

function findingsOf(target, rows, list) {
  const groups = new Map();
  for (const row of rows) {
    if (!row.finding) continue;
    if (!groups.has(row.finding)) groups.set(row.finding, []);
    groups.get(row.finding).push(row);
  }
  if (!groups.size) return [];
  const rank = ([, [first]]) => READINGS.indexOf(first.reading);
  const ordered = [...groups].sort((a, b) => rank(a) - rank(b) || b[1].length - a[1].length);
  return [el("section", {},
    el("h2", {}, "What is wrong", list.several ? el("span", { class: "quiet" }, " on ", target) : null),
    el("ul", { class: "groups" }, ordered.slice(0, 100).map(([finding, [first, ...more]]) => el("li", { class: "finding " + first.reading },
      el("a", { href: linkTo({ operator: first.operator, finding }) },
        el("span", { class: "sign " + first.reading, "aria-hidden": "true" }, SIGNS[first.reading]),
        `${count(more.length + 1)} × ${first.reading}: ${first.status}`),
      first.blame ? el("span", { class: "badge quiet" }, `blame: ${first.blame}`) : null,
      el("span", { class: "why" }, first.reason),
      el("span", { class: "where" }, first.id, more.length ? ` and ${count(more.length)} more` : "")))))];
}

/** Largest and mean errors by dtype, candidate against baseline. */
function accuracyOf(name, targets, list, state) {
  return targets.flatMap((target) => {
    const profiles = index.accuracy.filter(([of, operator, dtype]) => of === target && operator === name && (!state.dtype || has({ dtype }, "dtype", state.dtype)));
    if (!profiles.length) return [];
    const series = [["largest", 0], ["mean", 2]].flatMap(([figure, at]) => [
      { name: `${target}, ${figure}`, values: profiles.map(([, , , candidate]) => plotted(candidate?.[at])) },
      { name: `baseline, ${figure}`, values: profiles.map(([, , , , baseline]) => plotted(baseline?.[at])) },
    ]).filter(({ values }) => values.some((value) => value !== null));
    return [el("section", {}, el("h2", {}, "Accuracy", list.several ? el("span", { class: "quiet" }, " on ", target) : null),
      chartFigure({
        title: `Errors of ${name} by dtype`, labels: profiles.map(([, , dtype]) => dtype), series, unit: "ULP", kind: "points", log: true, foot: 0.1, most: 10_000,
        links: profiles.map(([, , dtype]) => linkTo({ operator: name, dtype })),
      }))];
  });
}

/** A stored number for a chart, where "inf" stands for what has no number. */
const plotted = (value) => (value === undefined || value === null ? null : typeof value === "object" ? value.$float : value);
