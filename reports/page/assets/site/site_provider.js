// One provider in one release on one adapter: what it is, what its release changed, and what it may be compared with.

function providerView(release) {
  const cells = table.cells.filter((cell) => cell.provider_release === release.index);
  const total = totalOf(cells) ?? totalOf([{ passes: 0, failures: 0, expected: 0, declined: 0 }]);
  return [
    el("header", { class: "card operator-head " + stateOf(total) },
      el("p", { class: "steps" }, el("a", { class: "step", href: "#section=providers", title: "key Esc" }, "← All providers")),
      el("h1", {}, release.name),
      el("p", { class: "verdict" }, `${count(total.passes)} of ${count(taken(total))} cases pass of those it took; ${count(total.failures)} fail, ${count(total.expected)} are expected failures; ${count(total.declined)} declined.`),
      el("p", { class: "quiet" }, release.provider, " on ", release.adapter)),
    el("section", { "aria-label": "What this release changed" }, el("h2", {}, "What this release changed"), ...changesOf(release, cells)),
    el("section", { "aria-label": "Compare" }, el("h2", {}, "Where it differs from others"), compared(release)),
    el("section", { "aria-label": "Fingerprint" }, el("h2", {}, "Fingerprint"), fingerprintOf(release)),
  ];
}

/** The cells that stand since this release as they do, though the store has older ones of them. */
function changesOf(release, cells) {
  if (!table.releases.some((other) => other.line === release.line && other.index < release.index)) {
    return [el("p", { class: "empty" }, "The store has no older release of this provider on this adapter.")];
  }
  const changed = cells.filter((cell) => cell.since === release.index && !cell.since_oldest);
  const parts = [["Wrong since this release", ["failure", "expected"]], ["Right since this release", ["ok"]], ["Declined since this release", ["not-run"]]];
  const lists = parts.map(([title, states]) => changeList(title, changed.filter((cell) => states.includes(stateOf(cell))), release)).filter(Boolean);
  return lists.length ? lists : [el("p", { class: "empty" }, "No change: every operator, version and dtype has the same result as in the previous release.")];
}

function changeList(title, cells, release) {
  if (!cells.length) return null;
  const operators = new Map();
  for (const cell of cells) operators.set(cell.operator, [...(operators.get(cell.operator) || []), cell]);
  return el("details", { open: operators.size <= 40 },
    el("summary", {}, `${title}: ${count(operators.size)} operator${operators.size === 1 ? "" : "s"}`),
    el("ul", { class: "changes" }, [...operators].map(([operator, own]) => el("li", {},
      el("span", { class: "sign " + stateOf(totalOf(own)), "aria-hidden": "true" }, SIGNS[stateOf(totalOf(own))]),
      el("a", { href: linkTo({ operator, provider: release.key, columns: lineOf(release) }) }, operator), " ",
      el("span", { class: "quiet" }, versionsOf(own))))));
}

const lineOf = (release) => table.releases.filter((other) => other.line === release.line).map((other) => other.key).join(",");

/** `13: float16, float32; 11: float16`, shortened. */
function versionsOf(cells) {
  const versions = new Map();
  for (const cell of cells) versions.set(cell.since_version, [...(versions.get(cell.since_version) || []), cell.dtype]);
  const words = [...versions].sort(([a], [b]) => b - a).map(([version, dtypes]) => `${version}: ${dtypes.slice(0, 4).join(", ")}${dtypes.length > 4 ? ` and ${dtypes.length - 4} more` : ""}`);
  return words.slice(0, 4).join("; ") + (words.length > 4 ? `; ${words.length - 4} more versions` : "");
}

function compared(release) {
  const others = table.releases.filter((other) => other !== release);
  if (!others.length) return el("p", { class: "empty" }, "The store has no other provider or release.");
  return el("ul", { class: "changes" }, others.map((other) => el("li", {},
    el("a", { href: linkTo({ columns: [release, other].sort((a, b) => a.index - b.index).map(({ key }) => key).join(","), state: "differs", cases: "common", section: "matrix" }) }, `differs between ${releaseName(release)} and ${releaseName(other)}`))));
}

function fingerprintOf(release) {
  return scrolling(`Fingerprint of ${release.name}`, el("table", { class: "plain" }, el("tbody", {},
    Object.entries(release.fingerprint).map(([part, value]) => el("tr", {}, el("th", { scope: "row" }, part), el("td", {}, value))),
    el("tr", {}, el("th", { scope: "row" }, "runs"), el("td", {}, release.runs.map(([run, target]) => `${run} (${target})`).join(", "))))));
}
