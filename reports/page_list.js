// The list of cases: filters with counts, search, and as many rows as one can look at.

const FACETS = ["reading", "status", "blame", "operator", "version", "dtype", "variant", "target"];
const PAGE = 200;

/** The rows that the state's filters leave; `except` names a facet that is not applied. */
function filtered(rows, state, except = "") {
  const wanted = [...FACETS, "finding"].filter((name) => name !== except && name in state);
  const words = (state.q || "").toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter(
    (row) => wanted.every((name) => row[name] === state[name]) && (!words.length || contains(row, words)),
  );
}

function contains(row, words) {
  row.haystack ??= visible([row.id, row.status, row.blame, row.reason].join("\n")).toLowerCase();
  return words.every((word) => row.haystack.includes(word));
}

class CaseList {
  constructor(rows) {
    this.rows = rows;
    this.shown = [];
    this.limit = PAGE;
    this.facets = FACETS.filter((name) => name !== "target" || new Set(rows.map((row) => row.target)).size > 1);
    this.form = document.getElementById("filters");
    this.body = document.getElementById("rows");
    this.more = document.getElementById("more");
    this.build();
  }

  build() {
    this.search = el("input", {
      type: "search", name: "q", placeholder: "Search ids and reasons", "aria-label": "Search ids and reasons",
      input: () => this.go({ q: this.search.value }, true),
    });
    this.selects = new Map();
    this.form.append(el("label", { class: "search" }, el("span", {}, "search"), this.search));
    for (const name of this.facets) {
      const select = el("select", { name, change: () => this.go({ [name]: select.value }) });
      this.selects.set(name, select);
      this.form.append(el("label", {}, el("span", {}, name), select));
    }
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.more.addEventListener("click", () => {
      this.limit += 5 * PAGE;
      this.draw();
    });
    document.getElementById("list").hidden = false;
  }

  /** Change filters by changing the address; typing does not fill the browser's history. */
  go(change, replace = false) {
    const { case: _case, section: _section, ...state } = { ...readState(), ...change };
    for (const [name, value] of Object.entries(state)) if (value === "" || value === "*") delete state[name];
    if (!replace) {
      location.hash = linkTo(state);
      return;
    }
    history.replaceState(null, "", linkTo(state));
    this.update(state);
  }

  update(state) {
    this.state = state;
    this.limit = PAGE;
    this.shown = filtered(this.rows, state);
    if (document.activeElement !== this.search) this.search.value = state.q || "";
    for (const [name, select] of this.selects) this.fillSelect(name, select);
    this.draw();
  }

  fillSelect(name, select) {
    const counts = new Map();
    for (const row of filtered(this.rows, this.state, name)) counts.set(row[name], (counts.get(row[name]) || 0) + 1);
    const chosen = this.state[name];
    if (chosen !== undefined && !counts.has(chosen)) counts.set(chosen, 0);
    const names = [...counts.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    select.replaceChildren(
      el("option", { value: "*" }, "any"),
      ...names.map((value) =>
        el("option", { value, selected: value === chosen }, `${value || "nobody"} (${count(counts.get(value))})`),
      ),
    );
    select.value = chosen === undefined ? "*" : chosen;
    select.classList.toggle("set", chosen !== undefined);
  }

  draw() {
    const { shown, rows } = this;
    const of = shown.length === rows.length ? "" : `${count(shown.length)} of `;
    document.getElementById("result").textContent = `${of}${count(rows.length)} case${rows.length === 1 ? "" : "s"}`;
    document.getElementById("chips").replaceChildren(...this.chips());
    this.body.replaceChildren(...shown.slice(0, this.limit).map((row) => this.line(row)));
    const rest = shown.length - this.limit;
    this.more.hidden = rest <= 0;
    this.more.textContent = `Show ${count(Math.min(rest, 5 * PAGE))} more of ${count(rest)}`;
    if (!shown.length) this.body.append(el("tr", {}, el("td", { colspan: 4, class: "empty" }, "No case matches.")));
  }

  chips() {
    const set = [...this.facets, "finding", "q"].filter((name) => name in this.state);
    if (!set.length) return [];
    const chip = (name) =>
      el("button", { type: "button", class: "chip", title: "Remove this filter", click: () => this.go({ [name]: "" }) },
        name === "finding" ? "one group of findings" : `${name}: ${this.state[name] || "nobody"}`, " ✕");
    return [...set.map(chip), el("a", { href: "#section=cases", class: "clear" }, "clear all")];
  }

  line(row) {
    const link = linkTo({ ...this.filters(), case: row.id, target: row.target });
    return el("tr", {},
      el("td", {}, el("span", { class: "sign " + row.reading, "aria-hidden": "true" }, SIGNS[row.reading]), row.reading),
      el("td", {}, el("a", { href: link }, el("code", {}, row.id)),
        this.selects.has("target") ? el("span", { class: "quiet" }, " on ", row.target) : null),
      el("td", {}, row.status, row.blame ? el("span", { class: "quiet" }, " · ", row.blame) : null),
      el("td", { class: "why" }, row.reason));
  }

  /** The filters in force, without those that belong to an opened case. */
  filters() {
    const { case: _case, section: _section, target, ...filters } = this.state || {};
    return this.selects.has("target") && target ? { ...filters, target } : filters;
  }
}
