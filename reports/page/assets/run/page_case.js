// One case, from the verdict down to the raw record.

const seconds = (s) => (s === null || s === undefined ? "–" : s < 1 ? `${(s * 1000).toPrecision(3)} ms` : `${s.toFixed(2)} s`);

function caseView(record, row, around) {
  return [
    caseHead(record, row, around),
    section("Reproduce", copyable(record.repro), downloadable(record.case_id)),
    section("Graph", drawGraph(record), valuesTable(record), attributesTable(record)),
    section("Opinions", opinionsTable(record), ...opinionsOf(record).flatMap(([, opinion]) => differences(opinion)), ulpHistogram(record)),
    record.variants ? section("Variants", variantsTable(record.variants), ...record.variants.flatMap(({ opinion }) => (opinion ? differences(opinion) : []))) : null,
    row.history ? section("History", historyTable(row)) : null,
    record.directml ? section("DirectML", directml(record.directml)) : null,
    section("Record", facts(record), logs(record), raw(record)),
  ].filter(Boolean);
}

function section(title, ...content) {
  return el("section", { "aria-label": title }, el("h2", {}, title), ...content.filter(Boolean));
}

function caseHead(record, row, around) {
  const step = (label, key, link) =>
    link ? el("a", { href: link, class: "step", title: `${label} (key ${key})` }, label) : el("span", { class: "step off" }, label);
  const claim = { true: "claimed", false: "not claimed" }[record.claimed];
  return el("header", { class: "card case-head " + row.reading },
    el("p", { class: "steps" }, el("a", { href: around.back, class: "step", title: "Back (key Esc)" }, around.backTo),
      el("span", { class: "quiet" }, around.position), step("Previous", "k", around.previous), step("Next", "j", around.next)),
    el("h1", {}, el("code", {}, record.case_id)),
    el("p", { class: "badges" },
      el("span", { class: "reading " + row.reading }, el("span", { class: "sign", "aria-hidden": "true" }, SIGNS[row.reading]), inWords(row.reading)),
      el("span", { class: "badge" }, record.status),
      record.blame ? el("span", { class: "badge" }, "blame: " + record.blame) : null,
      claim ? el("span", { class: "badge quiet" }, claim) : null,
      el("span", { class: "badge quiet" }, "on " + record.candidate.target),
      row.since ? el("span", { class: "badge" + (row.since === "broke" ? " worse" : "") }, row.since) : null,
      row.below ? el("span", { class: "badge" }, "DirectML called directly: " + row.below) : null,
      around.operator ? el("a", { href: around.operator }, `all of ${row.operator}`) : null,
      el("a", { href: linkTo({ case: record.case_id, target: record.candidate.target }) }, "link to this case")),
    el("p", { class: "verdict" }, record.reason),
    record.expectation ? expectation(record.expectation, record.reading) : null,
    row.cause ? el("p", { class: "expects" }, el("a", { href: linkTo({ cause: row.cause }) }, "All cases of this cause"), record.expectation ? null : ": " + index.causes[row.cause].slice(0, 2).filter(Boolean).join(" · ")) : null,
    el("p", { class: "expects" }, el("b", {}, "The standard expects: "), record.expects));
}

function expectation(expected, reading) {
  const lead = reading === "fixed" ? "No longer fails, remove the expectation: " : "Expected: ";
  return el("p", { class: "note" }, el("b", {}, lead), expected.reason, " ",
    el("code", {}, expected.case), ` (${expected.status}${expected.when ? `, where ${expected.when}` : ""}) `, safeLink(expected.link));
}

/** A link that a user wrote down; anything but http and https stays text. */
function safeLink(link) {
  if (!link) return null;
  return /^https?:\/\//i.test(link)
    ? el("a", { href: link, rel: "noopener noreferrer nofollow", target: "_blank" }, link)
    : el("code", {}, link);
}

function copyable(command) {
  const code = el("code", {}, command);
  const button = el("button", { type: "button", id: "copy", title: "Copy the command (key y)", click: async () => {
    try {
      await navigator.clipboard.writeText(command);
    } catch {
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  } }, "Copy");
  return el("div", { class: "command" }, el("pre", {}, code), button);
}

/** A button that saves what reproduces the case, where that travels in the page. */
function downloadable(id) {
  const place = el("p", { class: "quiet" });
  loadArchive(id).then((zip) => {
    if (!zip) {
      place.append("This page does not embed the model and data. The command writes them.");
      return;
    }
    const save = () => {
      const address = URL.createObjectURL(new Blob([zip], { type: "application/zip" }));
      el("a", { href: address, download: id.replace(/[^\w.-]+/g, "_").replace(/^_+|_+$/g, "") + ".zip" }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    };
    place.append(el("button", { type: "button", id: "download", title: "Download (key d)", click: save }, `Download (${count(Math.ceil(zip.length / 1024))} KB)`),
      " model, inputs, expected outputs and a script that needs only onnxruntime");
  });
  return place;
}

function table(head, rows, kind = "plain") {
  return scrolling(`Table: ${head.join(", ")}`, el("table", { class: kind },
    el("thead", {}, el("tr", {}, head.map((cell) => el("th", { scope: "col" }, cell)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, cell)))))));
}

function valuesTable(record) {
  return table(["Value", "Is", "Type", "First elements"],
    record.values.map((v) => [el("b", {}, v.name), v.where, el("code", {}, typed(v)), el("code", {}, v.preview || "–")]));
}

function opinionsOf(record) {
  return [["candidate", record.candidate], ["baseline", record.baseline]].filter(([, opinion]) => opinion);
}

function opinionsTable(record) {
  const rows = opinionsOf(record).map(([role, o]) => [
    el("span", {}, el("b", {}, o.target), el("span", { class: "quiet" }, " " + role)),
    el("span", { class: "said " + ({ pass: "good", unplaced: "quiet", skipped: "quiet" }[o.status] || "bad") }, o.status),
    (o.stage && o.status !== "pass" ? `at ${o.stage}: ` : "") + (o.message || "–"),
    o.assignment ? o.assignment.map(([provider, operator]) => `${operator} → ${provider}`).join("; ") : "no record",
    `${seconds(o.create_s)} / ${seconds(o.run_s)}`,
    String(o.attempts ?? 1),
  ]);
  for (const [name, statement] of Object.entries(record.oracles)) {
    rows.push([
      el("span", {}, el("b", {}, name), el("span", { class: "quiet" }, " oracle")),
      el("span", { class: "said " + (statement === "agrees" ? "good" : "bad") }, statement.split(":")[0]),
      statement.includes(":") ? statement.slice(statement.indexOf(":") + 1).trim() : "–", "–", "–", "–",
    ]);
  }
  return table(["Target", "Status", "Details", "Nodes ran on", "Create / run", "Attempts"], rows, "plain opinions");
}

/** What came of the case in other ways of running it; a state that is no answer of the provider is quiet. */
function variantsTable(variants) {
  const kinds = { same: "good", close: "good", skipped: "quiet" };
  const rows = variants.map((v) => [
    el("b", {}, v.variant), el("span", { class: "said " + (kinds[v.state] || "bad") }, v.state), v.reason || "–",
    v.opinion ? `${seconds(v.opinion.create_s)} / ${seconds(v.opinion.run_s)}` : "–",
  ]);
  return table(["Variant", "Result", "Details", "Create / run"], rows, "plain opinions");
}

/** What earlier runs said of the case, the newest first, below what this one says. */
function historyTable(row) {
  const said = (status) => el("span", { class: "said " + ({ pass: "good", unplaced: "quiet", skipped: "quiet", "not in it": "quiet" }[status] || "bad") }, status);
  const earlier = index.earlier[row.target].map(([id, started, changed, report], at) => {
    const status = row.history[at] === "." ? "not in it" : index.statuses[parseInt(row.history[at], 16)];
    const moment = `${started.slice(0, 16).replace("T", " ")} UTC`;
    const address = report && status !== "not in it" ? `${report}${linkTo({ case: row.id, target: row.target })}` : report;
    return [address ? el("a", { href: address }, moment) : moment, el("code", {}, id), said(status), changed || "–"];
  });
  return table(["Run", "Id", "Status", "Changed with it"], [["this run", "", said(row.status), row.since || "–"], ...earlier]);
}

function differences(opinion) {
  return (opinion.differences || []).map((d) => {
    const first = d.first || [];
    const numbers = [`${count(d.wrong)} of ${count(d.total)} elements wrong`];
    if (d.max_ulp !== undefined && d.max_ulp !== null) numbers.push(`at most ${text(d.max_ulp)} ULP`);
    if (d.max_abs !== undefined && d.max_abs !== null) numbers.push(`at most ${text(d.max_abs)} absolute`);
    return el("div", { class: "difference" },
      el("h3", {}, `${opinion.target}: `, el("code", {}, d.output), " ", el("span", { class: "quiet" }, typed(d))),
      el("p", {}, d.reason, el("span", { class: "quiet" }, " · " + numbers.join(", "))),
      el("div", { class: "beside" },
        first.length ? mismatches(first) : null,
        (d.heat || []).length ? drawHeat(d.heat) : null));
  });
}

/** The first wrong elements; integers have no ULP. */
function mismatches(first) {
  const floating = first.some((m) => m.ulp !== undefined && m.ulp !== null);
  const rows = first.map((m) => [
    el("code", {}, text(m.at)), el("code", { class: "good" }, m.expected), el("code", { class: "bad" }, m.got),
    ...(floating ? [text(m.ulp)] : []),
  ]);
  return table(["Coordinates", "Expected", "Got", ...(floating ? ["ULP"] : [])], rows, "plain mismatches");
}

function directml(desc) {
  return el("div", {},
    el("p", {}, el("code", {}, desc.name)),
    (desc.violations || []).length
      ? el("ul", { class: "violations" }, desc.violations.map((v) => el("li", {}, el("b", {}, "Violates: "), v)))
      : el("p", { class: "quiet" }, "All documented constraints are met."),
    table(["Member", "Value"], Object.entries(desc.members).map(([k, v]) => [k, member(v)])));
}

function member(value) {
  if (value && typeof value === "object" && !Array.isArray(value) && value.$float === undefined && value.$int === undefined) {
    return el("span", { class: "tensor" }, Object.entries(value).map(([k, v]) => el("span", {}, el("i", {}, k), " ", el("code", {}, text(v)))));
  }
  return el("code", {}, text(value));
}

function attributesTable(record) {
  const attributes = Object.entries(record.attributes);
  if (!attributes.length) return el("p", { class: "quiet" }, "No attribute is set.");
  return table(["Attribute", "Value"], attributes.map(([name, value]) => [el("b", {}, name), el("code", {}, text(value))]), "plain more");
}

function facts(record) {
  const types = Object.entries(record.types).map(([name, dtype]) => `${name} = ${dtype}`).join(", ");
  return table(["Fact", "Value"], [
    ["operator", el("code", {}, `${record.domain || "ai.onnx"} ${record.operator}-${record.since_version}`)],
    ["model opset", String(record.opset)], ["types", el("code", {}, types || "–")],
    ["sample", el("code", {}, record.sample)], ["binding", el("code", {}, record.binding)],
    ["claim", { true: "the provider's documentation claims it", false: "the provider's documentation does not claim it" }[record.claimed] || "no claim table"],
  ]);
}

function logs(record) {
  return opinionsOf(record).filter(([, o]) => o.log_tail).map(([role, o]) =>
    el("details", { open: true }, el("summary", {}, `Log of ${o.target} (${role}), its end`), el("pre", { class: "log", tabindex: "0" }, o.log_tail)));
}

function raw(record) {
  return el("details", {}, el("summary", {}, "The record as JSON"), el("pre", { class: "log", tabindex: "0" }, JSON.stringify(record, null, 2)));
}
