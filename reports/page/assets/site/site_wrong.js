// What is wrong, in groups: searched and filtered. The same group of several providers is listed once.

const MOST = 60;
const wrongForm = document.getElementById("wrong-controls");
const search = el("input", { type: "search", name: "q", placeholder: "Search operators, samples and reasons", "aria-label": "Search what is wrong", input: () => changeState({ q: search.value }) });
const statusSelect = el("select", { name: "status", "aria-label": "Status", change: () => changeState({ status: statusSelect.value }) });

async function buildWrongControls() {
  const statuses = [...new Set((await loadDeviations()).map((group) => group.status))].sort();
  statusSelect.append(el("option", { value: "" }, "every status"), ...statuses.map((status) => el("option", { value: status }, status)));
  wrongForm.append(el("label", { class: "search" }, el("span", {}, "search"), search), el("label", {}, el("span", {}, "status"), statusSelect));
  wrongForm.addEventListener("submit", (event) => event.preventDefault());
  wrongForm.hidden = false;
}

async function drawWrong(state) {
  const groups = await loadDeviations();
  if (document.activeElement !== search) search.value = state.q || "";
  statusSelect.value = [...statusSelect.options].some(({ value }) => value === state.status) ? state.status : "";
  const found = groups.filter((group) => isAskedFor(group, state));
  const together = new Map();
  for (const group of found) together.set(group.operator + group.key, [...(together.get(group.operator + group.key) || []), group]);
  const ordered = [...together.values()].sort((a, b) => casesOf(b) - casesOf(a));
  const rest = ordered.length > MOST ? `; the ${MOST} largest are shown` : "";
  document.getElementById("wrong-result").textContent = `${count(casesOf(found))} case${casesOf(found) === 1 ? "" : "s"} in ${count(ordered.length)} group${ordered.length === 1 ? "" : "s"}${rest}`;
  document.getElementById("wrong-list").replaceChildren(...ordered.slice(0, MOST).map(wrongItem));
}

const casesOf = (groups) => groups.reduce((sum, group) => sum + group.cases, 0);

function isAskedFor(group, state) {
  const release = table.releases[group.provider_release];
  const shown = state.provider ? release.key === state.provider : shownReleases(state).includes(release);
  if (!shown || (state.operator && group.operator !== operatorNamed(state.operator)) || (state.status && group.status !== state.status)) return false;
  if (state.dtype && !group.dtypes.some((dtype) => isDtype(dtype, state.dtype))) return false;
  if (state.version && !group.versions.some((version) => String(version) === state.version)) return false;
  group.haystack ??= visible([group.operator, group.sample, group.reason, group.status, group.blame, ...group.case_ids].join("\n")).toLowerCase();
  return (state.q || "").toLowerCase().split(/\s+/).every((word) => group.haystack.includes(word));
}

function wrongItem(groups) {
  const [first] = groups;
  return el("li", { class: "finding " + first.reading },
    el("span", { class: "what" }, el("b", {}, el("a", { href: linkTo({ operator: first.operator }) }, first.operator)), " ", el("code", {}, first.sample)),
    el("span", { class: "badge" }, first.status),
    first.blame ? el("span", { class: "badge quiet" }, `blame: ${first.blame}`) : null,
    groups.map((group) => el("a", { class: "badge", href: linkTo({ operator: group.operator, provider: table.releases[group.provider_release].key }) }, `${releaseName(table.releases[group.provider_release])}: ${count(group.cases)}`)),
    el("span", { class: "why" }, first.reason),
    el("span", { class: "where" }, `version${first.versions.length > 1 ? "s" : ""} ${first.versions.join(", ")} · ${first.dtypes.slice(0, 10).join(", ")}${first.dtypes.length > 10 ? ` and ${first.dtypes.length - 10} more` : ""}`),
    el("span", { class: "where" }, el("code", {}, first.repro)));
}
