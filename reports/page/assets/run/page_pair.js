// Of a cause, the smallest case that fails beside the nearest that passes: what each is, and where they differ.

/** The facts of a case that tell it from another: [name, text]. */
function factsOf(record) {
  return [
    ["operator", `${record.operator}-${record.since_version}`], ["dtype", record.dtype], ["binding", record.binding],
    ...Object.entries(record.attributes).map(([name, value]) => [name, text(value)]),
    ...record.values.map((value) => [value.name, `${typed(value)} ${value.preview || ""}`]),
  ];
}

/** What came of it: of a wrong answer the first wrong element, otherwise what the target or the verdict says. */
function resultOf(record) {
  const [difference] = record.candidate.differences ?? [];
  const first = difference?.first?.[0];
  if (record.status === "pass") return el("p", { class: "good" }, "passes");
  if (!first) return el("p", { class: "bad" }, `${record.status}: `, difference?.reason || record.candidate.message || record.reason);
  const ulp = first.ulp === undefined || first.ulp === null ? "" : `, ${text(first.ulp)} ULP`;
  return el("p", { class: "bad" }, `${difference.output}${text(first.at)}: expected `, el("code", {}, first.expected), ", got ", el("code", {}, first.got),
    `${ulp}; ${count(difference.wrong)} of ${count(difference.total)} elements are wrong`);
}

function sideView(record, other) {
  const others = new Map(other ? factsOf(other) : []);
  const rows = factsOf(record).map(([name, value]) => el("tr", { class: other && others.get(name) !== value ? "differs" : null },
    el("th", { scope: "row" }, name), el("td", {}, el("code", {}, value))));
  return [resultOf(record), el("table", { class: "plain" }, el("tbody", {}, rows))];
}

async function fillPair(pair, list) {
  const sides = [...pair.querySelectorAll(".side")];
  const rows = sides.map(({ dataset }) => list.rows.find((row) => row.id === dataset.case && row.target === dataset.target));
  if (rows.includes(undefined)) return;
  const records = await Promise.all(rows.map(loadRecord));
  sides.forEach((side, at) => side.append(...sideView(records[at], records[1 - at])));
}

/** Fill the sides of each cause when it is opened first. */
function openPairs(list) {
  for (const cause of document.querySelectorAll("details.cause")) {
    cause.addEventListener("toggle", () => fillPair(cause.querySelector(".pair"), list), { once: true });
  }
}
