// One operator: its versions and dtypes on each provider: claimed, right, how many ULP, since which release.

const byNumber = (a, b) => a.localeCompare(b, "en", { numeric: true });

function operatorView(name, state) {
  const releases = shownReleases(state);
  const own = table.operators.get(name).filter((cell) => releases.some((release) => release.index === cell.provider_release));
  const cells = own.filter((cell) => isDtype(cell.dtype, state.dtype) && (!state.version || String(cell.since_version) === state.version));
  return [
    el("header", { class: "card operator-head " + (own.length ? stateOf(totalOf(own)) : "") },
      stepsOf(name, state),
      el("h1", {}, name),
      el("ul", { class: "standings" }, releases.map((release) => standing(release, totalOf(own.filter((cell) => cell.provider_release === release.index))))),
      table.releases.length > releases.length ? el("p", { class: "quiet" }, el("a", { href: linkTo({ ...state, columns: "all" }) }, `all ${table.releases.length} providers and releases`)) : null,
      state.columns ? el("p", { class: "quiet" }, el("a", { href: linkTo({ ...state, columns: undefined }) }, "the newest release of each provider")) : null),
    el("section", { "aria-label": "Versions and dtypes" },
      el("h2", {}, "Version × dtype × provider"),
      el("p", { class: "legend" }, el("span", {}, "Each cell: right / taken cases; the largest error of the right cases, in ULP; the release in which the result last changed (≤: the oldest release in the store).")),
      chips(state), versionsTable(name, releases, cells, state)),
    ...errorChart(name, releases, own),
  ];
}

function stepsOf(name, state) {
  const names = [...table.operators.keys()];
  const at = names.indexOf(name);
  const step = (other, label, key) => (other ? el("a", { class: "step", rel: key === "j" ? "next" : "prev", href: operatorLink(state, other), title: `key ${key}` }, label) : null);
  return el("p", { class: "steps" }, el("a", { class: "step", href: linkTo({ columns: state.columns, section: "matrix" }), title: "key Esc" }, "← All operators"),
    step(names[at - 1], "Previous", "k"), step(names[at + 1], "Next", "j"));
}

function standing(release, total) {
  const state = total ? stateOf(total) : "not-run";
  const words = !total ? "no record" : taken(total) ? `${count(total.passes)} of ${count(taken(total))} right` : "declined";
  return el("li", {}, el("span", { class: "sign " + state, "aria-hidden": "true" }, SIGNS[state]), el("a", { href: linkTo({ provider: release.key }) }, releaseName(release)), " ", el("span", { class: "quiet" }, words));
}

/** The filters in force, each with a link that removes it. */
function chips(state) {
  const set = ["version", "dtype", "provider"].filter((name) => state[name]);
  if (!set.length) return null;
  return el("p", {}, set.map((name) => el("a", { class: "chip button", href: linkTo({ ...state, [name]: undefined }), title: "Remove this filter" }, `${name}: ${state[name]} ✕`)));
}

function versionsTable(name, releases, cells, state) {
  const rows = new Map();
  for (const cell of cells) {
    const key = `${cell.since_version} ${cell.dtype}`;
    if (!rows.has(key)) rows.set(key, new Map());
    rows.get(key).set(cell.provider_release, cell);
  }
  const versions = [...rows.values()].map((row) => row.values().next().value).map(({ since_version, dtype }) => ({ version: String(since_version), dtype }));
  const newestFirst = versions.map((where, i) => ({ ...where, i })).sort((a, b) => byNumber(b.version, a.version) || a.i - b.i);
  const link = (where, release) => linkTo({ ...state, ...where, provider: release?.key, section: undefined });
  return scrolling(`${name}: versions, dtypes and providers`, el("table", { class: "matrix detailed" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Version, dtype"), releases.map(releaseHead))),
    el("tbody", {}, newestFirst.map(({ version, dtype }) => el("tr", {},
      el("th", { scope: "row" }, el("a", { href: link({ version, dtype }) }, `${version} `, el("code", {}, dtype))),
      releases.map((release) => el("td", {}, detailed(rows.get(`${version} ${dtype}`).get(release.index), link({ version, dtype }, release)))))))));
}

function detailed(cell, href) {
  if (!cell) return null;
  const claim = cell.claimed === false ? "not claimed" : taken(cell) ? "" : cell.claimed ? "claimed" : "declined";
  return cellOf(cell, href, claim, cell.ulp === null ? "" : shownUlp(cell.ulp), sinceOf(cell));
}

const CHARTED = 6; // a chart has so many colours

/** The largest error of what is right, by dtype, of the newest version that is measured. */
function errorChart(name, releases, cells) {
  const measured = cells.filter((cell) => cell.ulp !== null);
  if (!measured.length) return [];
  const version = Math.max(...measured.map((cell) => cell.since_version));
  const newest = measured.filter((cell) => cell.since_version === version);
  const dtypes = [...new Set(newest.map((cell) => cell.dtype))];
  const series = releases.slice(0, CHARTED).map((release) => ({
    name: releaseName(release),
    values: dtypes.map((dtype) => plottedUlp(newest.find((cell) => cell.dtype === dtype && cell.provider_release === release.index))),
  })).filter(({ values }) => values.some((value) => value !== null));
  return [el("section", { "aria-label": "Accuracy" }, el("h2", {}, "Accuracy of passing cases"), chartFigure({
    title: `Largest error of ${name}-${version} by dtype`, labels: dtypes, series, unit: "ULP", kind: "points", log: true, foot: 0.1,
    links: dtypes.map((dtype) => linkTo({ operator: name, version: String(version), dtype })),
  }))];
}

const plottedUlp = (cell) => (!cell ? null : typeof cell.ulp === "object" ? cell.ulp.$float : cell.ulp);
