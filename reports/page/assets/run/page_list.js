// The list of cases: filters with counts, search, order, and a table that draws only the rows that are seen.

const FACETS = ["reading", "status", "blame", "below", "operator", "version", "dtype", "binding", "since", "target"];
const GROUPS = ["finding", "cause"]; // which rows belong together; chosen by a link, not in the form
const NOTHING = { blame: "nobody", below: "not asked", since: "as before" }; // what stands for an empty value of a facet
const ROW = 44; // pixels; page.css says the same
const PRINTED = 300;

const byNumber = (a, b) => a.number - b.number;
const largest = (name) => (a, b) => (b[name] ?? -1) - (a[name] ?? -1) || byNumber(a, b);
const infinite = (ulp) => (typeof ulp === "object" && ulp !== null ? Infinity : ulp);
const { compare: byText } = new Intl.Collator("en", { numeric: true });
const ORDERS = {
  "": ["worst first", null],
  id: ["by id", (a, b) => byText(a.id, b.id)],
  ulp: ["largest error first", (a, b) => (infinite(b.ulp) ?? -1) - (infinite(a.ulp) ?? -1) || byNumber(a, b)],
  ms: ["slowest first", largest("ms")],
  status: ["by status", (a, b) => byText(a.status, b.status) || byText(a.blame, b.blame) || byNumber(a, b)],
};

/** Rows in an order of ORDERS; the worst first are those of each reading, in the order that they have. */
function inOrder(rows, order) {
  const compare = (ORDERS[order] || ORDERS[""])[1];
  if (compare) return rows.sort(compare);
  const byReading = Map.groupBy ? Map.groupBy(rows, (row) => row.reading) : new Map(READINGS.map((reading) => [reading, rows.filter((row) => row.reading === reading)]));
  return READINGS.flatMap((reading) => byReading.get(reading) ?? []);
}

const COLUMNS = ["", "id", "status", "ulp", "ms"]; // the order that the head of each column gives

const facetOf = (row, name) => row[name] || NOTHING[name] || "";

/** Whether a text is what a facet asks for; the first of several dtypes counts as one, so that a matrix cell is a filter. */
const isMeant = (own, name, value) => own === value || (name === "dtype" && own.startsWith(value + "-")) || (value.includes("\ufffd") && addressable(own) === value);

const has = (row, name, value) => isMeant(name === "case" ? row.id : facetOf(row, name), name, value);

/** Whether a row has a value of a facet, asked of each text of the column once. */
function asked(name, value) {
  const { texts, at } = coded(name);
  const meant = texts.map((text) => isMeant(text || NOTHING[name] || "", name, value));
  return (row) => meant[at(row.number)];
}

/** The rows that the state's filters leave, as a new list; `except` names a facet that is not applied. */
function filtered(rows, state, except = "") {
  if (!rows.length) return [];
  const tests = [...FACETS, ...GROUPS].filter((name) => name !== except && name in state).map((name) => asked(name, state[name]));
  const words = (state.q || "").toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length) tests.push((row) => contains(row, words));
  return tests.reduce((left, test) => left.filter(test), rows.slice());
}

function contains(row, words) {
  row.haystack ??= visible([row.id, row.status, row.blame, row.reason, ...(index.causes[row.cause] ?? [])].join("\n")).toLowerCase();
  return words.every((word) => row.haystack.includes(word));
}

const shownUlp = (ulp) => (ulp === null || ulp === undefined ? "–" : `${ulp >= 1e6 ? plainNumber(ulp) : text(ulp).replace("inf", "∞")} ULP`);
const shownMs = (ms) => (ms === null || ms === undefined ? "–" : ms < 1000 ? `${ms} ms` : `${(ms / 1000).toPrecision(3)} s`);

class CaseList {
  constructor(rows) {
    this.rows = rows;
    this.shown = [];
    this.state = {};
    this.chosen = null;
    this.printed = 0; // rows laid out for a printer; 0: the page is on a screen
    this.several = rows.length > 0 && coded("target").texts.length > 1;
    this.facets = FACETS.filter((name) => (name !== "target" || this.several) && (!["below", "since"].includes(name) || coded(name).texts.some(Boolean)));
    this.form = document.getElementById("filters");
    this.table = document.getElementById("table");
    this.head = this.table.querySelector(".head");
    this.scroller = document.getElementById("scroller");
    this.body = document.getElementById("rows");
    this.build();
  }

  build() {
    this.search = el("input", {
      type: "search", name: "q", placeholder: "Search ids, reasons and causes", "aria-label": "Search ids, reasons and causes",
      input: () => this.go({ q: this.search.value }, true),
    });
    this.selects = new Map();
    this.form.append(el("label", { class: "search" }, el("span", {}, "search"), this.search));
    for (const name of [...this.facets, "sort"]) {
      const select = el("select", { name, change: () => this.go({ [name]: select.value }) });
      this.selects.set(name, select);
      this.form.append(el("label", {}, el("span", {}, { sort: "order", below: "DirectML directly", since: "since last run" }[name] || name), select));
    }
    this.selects.get("sort").append(...Object.entries(ORDERS).map(([value, [name]]) => el("option", { value }, name)));
    this.headers = [...this.head.children].map((head, at) => {
      const button = el("button", { type: "button", click: () => this.go({ sort: COLUMNS[at] }) }, head.textContent);
      head.replaceChildren(button);
      return head;
    });
    this.form.addEventListener("submit", (event) => event.preventDefault());
    document.getElementById("list").hidden = false;
    this.virtual = new VirtualCore.Virtualizer({
      count: 0, estimateSize: () => ROW, overscan: 8, getScrollElement: () => this.scroller,
      scrollToFn: VirtualCore.elementScroll, observeElementRect: VirtualCore.observeElementRect,
      observeElementOffset: VirtualCore.observeElementOffset, onChange: () => this.draw(),
    });
    this.virtual._didMount();
    this.virtual._willUpdate();
    addEventListener("beforeprint", () => this.print(PRINTED));
    addEventListener("afterprint", () => this.print(0));
  }

  /** Change filters by changing the address; typing does not fill the browser's history. */
  go(change, replace = false) {
    const { case: _case, section: _section, find: _find, worst: _worst, ...state } = { ...readState(), ...change };
    for (const [name, value] of Object.entries(state)) if (value === "" || value === "*") delete state[name];
    if (!replace) {
      location.hash = linkTo(state);
      return;
    }
    history.replaceState(null, "", linkTo(state));
    this.update(state);
  }

  update(state) {
    const same = JSON.stringify(state) === JSON.stringify(this.state);
    this.state = state;
    this.shown = inOrder(filtered(this.rows, state), state.sort);
    if (document.activeElement !== this.search) this.search.value = state.q || "";
    for (const name of this.facets) this.fillSelect(name, this.selects.get(name));
    const order = ORDERS[state.sort] ? state.sort : "";
    this.selects.get("sort").value = order;
    this.headers.forEach((head, at) => (COLUMNS[at] === order ? head.setAttribute("aria-sort", order === "id" || order === "status" ? "ascending" : "descending") : head.removeAttribute("aria-sort")));
    this.result();
    if (!same) this.scroller.scrollTop = 0;
    this.choose(this.chosen && this.shown.includes(this.chosen) ? this.chosen : null);
  }

  fillSelect(name, select) {
    const counts = this.counts(name);
    const chosen = this.state[name];
    const names = [...counts.keys()].sort(byText);
    if (chosen !== undefined && !names.some((known) => addressable(known) === chosen)) names.push(chosen);
    select.replaceChildren(
      el("option", { value: "*" }, "any"),
      ...names.map((value) =>
        el("option", { value: addressable(value) }, `${value} (${count(counts.get(value) || 0)})`)),
    );
    select.value = chosen === undefined ? "*" : chosen;
    select.classList.toggle("set", chosen !== undefined);
  }

  /** How many rows have each value of a facet, under the other filters. */
  counts(name) {
    const counts = new Map();
    if (!this.rows.length) return counts;
    const { texts, at } = coded(name);
    const numbers = new Array(texts.length).fill(0);
    for (const row of name in this.state || this.shown.length < this.rows.length ? filtered(this.rows, this.state, name) : this.rows) numbers[at(row.number)] += 1;
    const add = (value, number) => counts.set(value, (counts.get(value) || 0) + number);
    texts.forEach((text, place) => {
      if (!numbers[place]) return;
      add(text || NOTHING[name] || "", numbers[place]);
      if (name === "dtype" && text.includes("-")) add(text.slice(0, text.indexOf("-")), numbers[place]);
    });
    return counts;
  }

  result() {
    const { shown, rows } = this;
    const of = shown.length === rows.length ? "" : `${count(shown.length)} of `;
    document.getElementById("result").textContent = `${of}${count(rows.length)} case${rows.length === 1 ? "" : "s"}`;
    document.getElementById("chips").replaceChildren(...this.chips());
    this.table.setAttribute("aria-rowcount", shown.length + 1);
    this.virtual.setOptions({ ...this.virtual.options, count: shown.length });
    this.virtual.measure();
    this.draw();
    this.head.style.paddingRight = `calc(0.3rem + ${this.scroller.offsetWidth - this.scroller.clientWidth}px)`; // of a scroll bar
  }

  print(rows) {
    this.printed = rows;
    this.result();
    if (rows && this.shown.length > rows) document.getElementById("result").textContent += `; the first ${count(rows)} are printed`;
  }

  /** The rows that are seen; for a printer, which does not scroll, the first `printed`. */
  draw() {
    const { shown, body, printed } = this;
    const items = printed
      ? shown.slice(0, printed).map((_, i) => ({ index: i, start: i * ROW }))
      : this.virtual.getVirtualItems().filter((item) => item.index < shown.length);
    body.style.height = `${(printed ? items.length : shown.length || 1) * ROW}px`;
    this.scroller.classList.toggle("whole", Boolean(printed));
    body.replaceChildren(...items.map((item) => this.line(shown[item.index], item)));
    if (!shown.length) body.append(el("div", { role: "row", class: "row" }, el("span", { role: "cell", class: "empty" }, "No case matches.")));
  }

  chips() {
    const set = [...this.facets, ...GROUPS, "q"].filter((name) => name in this.state);
    if (!set.length) return [];
    const chip = (name) =>
      el("button", { type: "button", class: "chip", title: "Remove this filter", click: () => this.go({ [name]: "" }) },
        this.chipText(name), " ✕");
    return [...set.map(chip), el("a", { href: "#section=cases", class: "clear" }, "clear all")];
  }

  chipText(name) {
    if (name === "finding") return "one group of findings";
    if (name === "cause") return `cause: ${index.causes[this.state.cause]?.[0] ?? this.state.cause}`;
    return `${name}: ${this.state[name]}`;
  }

  line(row, item) {
    const node = el("div", { role: "row", class: "row", "aria-rowindex": item.index + 2, "aria-current": row === this.chosen ? "true" : null },
      el("span", { role: "cell" }, el("span", { class: "sign " + row.reading, "aria-hidden": "true" }, SIGNS[row.reading]), inWords(row.reading)),
      el("span", { role: "cell", class: "id" },
        el("a", { href: this.linkTo(row) }, el("code", {}, row.id)), this.several ? el("span", { class: "quiet" }, " on ", row.target) : null,
        el("span", { class: "why", title: visible(row.reason) }, row.reason)),
      el("span", { role: "cell" }, row.status, row.blame ? el("span", { class: "quiet" }, " · ", row.blame) : null),
      el("span", { role: "cell", class: "number" }, shownUlp(row.ulp)),
      el("span", { role: "cell", class: "number" }, shownMs(row.ms)));
    node.style.transform = `translateY(${item.start}px)`;
    return node;
  }

  linkTo(row) {
    return linkTo({ ...this.filters(), case: row.id, target: this.several ? row.target : undefined });
  }

  /** The filters in force, without those that belong to an opened case. */
  filters(state = this.state) {
    const { case: _case, section: _section, find: _find, worst: _worst, target, ...filters } = state;
    return this.several && target ? { ...filters, target } : filters;
  }

  /** Mark a row and bring it into view; null marks none. */
  choose(row) {
    this.chosen = row;
    if (row) this.virtual.scrollToIndex(this.shown.indexOf(row), { align: "auto" });
    this.draw();
  }

  /** Mark the row that stands `by` rows below the marked one. */
  step(by) {
    const at = this.chosen ? this.shown.indexOf(this.chosen) + by : 0;
    if (this.shown[at]) this.choose(this.shown[at]);
    this.table.scrollIntoView({ block: "nearest" });
  }
}
