// Drawings: the node with its inputs and outputs, and the map of wrong elements.

const GRAPH = { box: 190, row: 54, edge: 190, node: 200, top: 14 };

const typed = (value) => value.dtype + "[" + value.shape.map(text).join(",") + "]";

const cut = (string, length) => {
  const whole = visible(string);
  return whole.length > length ? whole.slice(0, length - 1) + "…" : whole;
};

/** One node: what goes in on the left, what comes out on the right; a dashed box is an initializer. */
function drawGraph(record) {
  const inputs = record.values.filter((value) => value.where !== "output");
  const outputs = record.values.filter((value) => value.where === "output");
  const attributes = Object.entries(record.attributes);
  const lines = Math.max(inputs.length, outputs.length, 1);
  const nodeHeight = Math.max(64 + Math.min(attributes.length, 6) * 17, lines * 24);
  const height = Math.max(lines * GRAPH.row, nodeHeight) + 2 * GRAPH.top;
  const left = GRAPH.box + GRAPH.edge;
  const right = left + GRAPH.node;
  const width = right + GRAPH.edge + GRAPH.box;
  const middle = height / 2;
  const drawing = svg("svg", {
    class: "graph", viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": visible(`${record.operator} with ${inputs.length} inputs and ${outputs.length} outputs`),
  });
  const place = (i, n, step) => middle + (i - (n - 1) / 2) * step;
  const port = Math.min(GRAPH.row, (nodeHeight - 24) / Math.max(lines - 1, 1));
  inputs.forEach((value, i) => {
    const y = place(i, inputs.length, GRAPH.row);
    drawing.append(edge(GRAPH.box, y, left, place(i, inputs.length, port), value, "start"), valueBox(0, y, value));
  });
  outputs.forEach((value, i) => {
    const y = place(i, outputs.length, GRAPH.row);
    drawing.append(edge(right, place(i, outputs.length, port), right + GRAPH.edge, y, value, "end"));
    drawing.append(valueBox(right + GRAPH.edge, y, value));
  });
  drawing.append(nodeBox(left, middle - nodeHeight / 2, nodeHeight, record, attributes));
  return scrolling(`Graph of ${record.operator}`, drawing);
}

function edge(x1, y1, x2, y2, value, anchor) {
  const bend = GRAPH.edge * 0.25;
  const flat = GRAPH.edge - bend;
  const path = anchor === "start"
    ? `M${x1},${y1} H${x1 + flat} C${x1 + flat + bend / 2},${y1} ${x2 - bend / 2},${y2} ${x2},${y2}`
    : `M${x1},${y1} C${x1 + bend / 2},${y1} ${x2 - flat - bend / 2},${y2} ${x2 - flat},${y2} H${x2}`;
  const x = anchor === "start" ? x1 + flat / 2 : x2 - flat / 2;
  return svg("g", {},
    svg("path", { class: "edge", d: path }),
    svg("path", { class: "arrow", d: `M${x2 - 8},${y2 - 4} L${x2},${y2} L${x2 - 8},${y2 + 4} Z` }),
    svg("text", { class: "type", x, y: (anchor === "start" ? y1 : y2) - 7, "text-anchor": "middle" },
      svg("title", {}, typed(value)), cut(typed(value), 24)));
}

function valueBox(x, y, value) {
  return svg("g", { class: "value " + value.where },
    svg("title", {}, `${value.name}: ${typed(value)} ${value.preview || ""}`),
    svg("rect", { x: x + 1, y: y - 20, width: GRAPH.box - 2, height: 40, rx: value.where === "initializer" ? 3 : 20 }),
    svg("text", { class: "name", x: x + GRAPH.box / 2, y: y - 3, "text-anchor": "middle" }, cut(value.name, 22)),
    svg("text", { class: "detail", x: x + GRAPH.box / 2, y: y + 12, "text-anchor": "middle" },
      value.where === "input" && value.preview ? cut(`input: ${value.preview}`, 26)
        : value.where === "initializer" ? cut(value.preview || "initializer", 26) : value.where));
}

function nodeBox(x, y, height, record, attributes) {
  const at = x + GRAPH.node / 2;
  const shown = attributes.slice(0, attributes.length > 6 ? 5 : 6).map(([name, value]) => `${name} = ${text(value)}`);
  if (attributes.length > 6) shown.push(`… ${attributes.length - 5} more`);
  const first = y + height / 2 - shown.length * 8.5;
  return svg("g", { class: "node" },
    svg("rect", { x, y, width: GRAPH.node, height, rx: 8 }),
    svg("text", { class: "operator", x: at, y: first, "text-anchor": "middle" },
      svg("title", {}, record.operator), cut(record.operator, 20)),
    svg("text", { class: "detail", x: at, y: first + 17, "text-anchor": "middle" },
      cut(`${record.domain || "ai.onnx"} · version ${record.since_version} · opset ${record.opset}`, 34)),
    ...shown.map((line, i) =>
      svg("text", { class: "attribute", x: at, y: first + 40 + i * 17, "text-anchor": "middle" },
        svg("title", {}, line), cut(line, 28))));
}

/** The share of wrong elements over the output, a digit from 1 to 9 (all) in each cell that has any. */
function drawHeat(heat) {
  const size = 20;
  const columns = Math.max(...heat.map((row) => row.length));
  const cells = heat.flatMap((row, y) =>
    row.flatMap((share, x) => [
      svg("rect", {
        class: share ? "wrong" : "right", x: x * size + 0.5, y: y * size + 0.5, width: size - 1, height: size - 1, rx: 2,
        "fill-opacity": share ? 0.25 + (share / 9) * 0.75 : 1,
      }),
      share
        ? svg("text", { class: share > 4 ? "strong" : "weak", x: (x + 0.5) * size, y: (y + 0.72) * size, "text-anchor": "middle" },
            String(share))
        : null,
    ]));
  const [width, height] = [columns * size, heat.length * size];
  return el("figure", { class: "heat" },
    scrolling("Where the wrong elements are",
      svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "where the wrong elements are" }, cells)),
    el("figcaption", {}, "Rows × last axis of the output. A digit is the share of wrong elements in its cell: 9 is all, blank is none."));
}

const EDGES = ["≤ 0.5", ...Array.from({ length: 24 }, (_, power) => `≤ ${count(2 ** power)}`), "beyond"];

/** The errors of candidate and baseline, all elements, by ranges of ULP; null where nothing was measured. */
function ulpHistogram(record) {
  const measured = opinionsOf(record).map(([role, o]) => [`${o.target} (${role})`, o.accuracy || (o.status === "pass" ? record.rounded : null)])
    .filter(([, accuracy]) => accuracy);
  if (!measured.length) return null;
  const ranges = Math.max(2, ...measured.map(([, accuracy]) => accuracy.counts.length));
  return el("div", {},
    chartFigure({
      title: "Errors of all elements", labels: EDGES.slice(0, ranges), unit: "elements", kind: "bars", log: true,
      series: measured.map(([name, { counts }]) => ({ name, values: Array.from({ length: ranges }, (_, i) => counts[i] || null) })),
    }),
    el("p", { class: "quiet" }, "Histogram of ULP errors: each bar counts the elements in its bin. ",
      measured.map(([name, a]) => `${name}: at most ${plainNumber(plotted(a.max_ulp))} ULP, ${plainNumber(plotted(a.sum_ulp) / a.elements)} on average over ${count(a.elements)} elements`).join("; "), "."));
}
