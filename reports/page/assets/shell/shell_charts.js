// Charts: a Chart (see chart.py) as a figure, drawn by uPlot, with its numbers in a table.

const PALETTE = 6;
const live = new Map(); // div.plot -> the uPlot in it

/** The colour that a custom property stands for here and now: a canvas knows no CSS. */
function colour(name) {
  const probe = el("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const plainNumber = (n) =>
  n === null || n === undefined ? "–" : typeof n === "string" ? (n.startsWith("-") ? "−∞" : "∞")
    : Math.abs(n) >= 1e6 || (n && Math.abs(n) < 1e-4) ? n.toExponential(2).replace(/\.?0*e\+?/, "e")
      : Number.isInteger(n) ? count(n) : String(Number(n.toPrecision(3)));

/** The values of a series as they are drawn: what an axis cannot show stands at its edge. A logarithmic chart is drawn
 * by exponents, because uPlot's own logarithmic axis is blank beyond 16 decades, and errors of float32 have had 55. */
function drawable(chart, values) {
  const above = chart.most ?? Infinity;
  const numbers = chart.series.flatMap((s) => s.values).filter((n) => typeof n === "number" && n <= above && (!chart.log || n > (chart.foot || 0)));
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  const foot = chart.log && chart.foot ? chart.foot : numbers.length ? (chart.log ? least / 2 : least) : 1;
  const edge = capOf(chart) ?? (numbers.length ? (chart.log ? most * 10 : most * 1.1 || 1) : 1);
  const drawn = values.map((n) => (n === null ? null : typeof n === "string" ? (n.startsWith("-") ? foot : edge) : n > above ? edge : chart.log && n < foot ? foot : n));
  return chart.log ? drawn.map((n) => (n === null ? null : Math.log10(n))) : drawn;
}

/** The number at the upper edge of a chart that has numbers above it. */
const capOf = (chart) => (chart.most && chart.series.some(({ values }) => values.some((n) => n === "inf" || n > chart.most)) ? chart.most : null);

function seriesOptions(chart, series, i) {
  const stroke = colour(series.reading || `series-${i % PALETTE}`);
  const options = {
    label: visible(series.name), stroke, width: 2,
    value: (_plot, _drawn, _series, at) => (at === null || at === undefined ? "–" : plainNumber(series.values[at])),
    dash: chart.kind === "line" && i ? [[8, 4], [2, 3], [10, 3, 2, 3], [4, 4], [1, 4]][(i - 1) % 5] : undefined,
  };
  if (chart.kind === "points") {
    return { ...options, width: 0, fill: i % 2 ? "transparent" : stroke, paths: () => null,
      points: { show: i < 2, size: i ? 9 : 7, width: 1.6, stroke, fill: i ? "transparent" : stroke } };
  }
  if (chart.kind === "bars") {
    const [share, align] = chart.series.length > 1 ? [0.42, i ? 1 : -1] : [0.8, 0];
    return { ...options, width: 1, fill: i ? "transparent" : stroke, points: { show: false }, fillTo: (plot) => plot.scales.y.min, paths: uPlot.paths.bars({ size: [share, 60], align }) };
  }
  return { ...options, points: { show: chart.labels.length < 120, size: 5, fill: stroke } };
}

/** Whole decades around the exponents that are drawn. A bar of the least height is still one. */
function decades(chart) {
  return (_plot, least, most) => {
    if (typeof least !== "number" || !Number.isFinite(least)) return [-1, 0];
    const low = Math.floor(least);
    return [chart.kind === "bars" ? low - 0.3 : low, Math.max(Math.ceil(most), low + 1)];
  };
}

/** From zero, where the length of a bar tells the number. */
function fromZero(_plot, least, most) {
  return [Math.min(0, least), Math.max(most, 0) * 1.05 || 1];
}

/** Around all that is drawn: rates that differ in their last digits are still told apart. No share is above 100 %. */
function aroundAll(chart) {
  return (_plot, least, most) => {
    if (typeof least !== "number") return [0, 1];
    const [low, high] = least === most ? [least - 1, most + 1] : uPlot.rangeNum(least, most, 0.1, false);
    return chart.unit === "%" ? [Math.max(low, 0), Math.min(high, 100)] : [low, high];
  };
}

/** At most eight exponents to be written at the axis. */
function decadeSplits(_plot, _axis, least, most) {
  const [low, high] = [Math.ceil(least), Math.floor(most)];
  const step = Math.max(1, Math.ceil((high - low) / 7));
  return Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, i) => low + i * step);
}

const decade = (exponent) => (Math.abs(exponent) > 3 ? `1e${exponent}` : plainNumber(Number(`1e${exponent}`)));

/** With as many digits as neighbours at the axis differ in. */
const atStep = (n, step) => (step < 1 && step > 1e-8 ? String(Number(n.toFixed(10))) : plainNumber(n));

function chartOptions(chart, width) {
  const whole = chart.labels.map((label) => shorten(label.replace(/^.*::/, ""), 40));
  const ink = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 } };
  const font = "12px system-ui, sans-serif";
  const room = (width - 100) / Math.max(1, whole.length);
  const upright = widest(whole, font) + 12 > room;
  const labels = upright ? whole.map((label) => shorten(label, 30)) : whole;
  const step = upright ? Math.max(1, Math.ceil(14 / room)) : 1;
  const below = upright ? Math.ceil(widest(labels, font)) + 24 : 34;
  return {
    width, height: 240 + below,
    padding: [chart.marks.length ? 20 : 10, 12, 0, 0],
    legend: { show: chart.series.length > 1, live: true }, // of a single series, the title says it
    cursor: { drag: { setScale: false, x: false, y: false }, points: { size: 9 } },
    scales: {
      x: { time: false, range: [-0.6, labels.length - 0.4] },
      y: { range: chart.log ? decades(chart) : chart.kind === "bars" ? fromZero : aroundAll(chart) },
    },
    axes: [
      { ...ink, font, size: below, rotate: upright ? -90 : 0, grid: { show: false },
        splits: () => labels.map((_, i) => i).filter((i) => i % step === 0),
        values: (_plot, splits) => splits.map((i) => labels[i] ?? "") },
      { ...ink, font, size: 64, label: chart.unit || undefined, labelFont: font, labelSize: chart.unit ? 20 : 0,
        ...(chart.log ? { splits: decadeSplits } : {}),
        values: (_plot, splits, _axis, _space, step) => splits.map((n) => (n === null ? "" : chart.log ? (n === Math.log10(capOf(chart) ?? 0) ? "≥ " : "") + decade(n) : atStep(n, step))) },
    ],
    series: [
      { label: " ", value: (_plot, at) => (at === null ? "" : visible(chart.labels[at] ?? "")) },
      ...chart.series.map((series, i) => seriesOptions(chart, series, i)),
    ],
    hooks: { draw: [(plot) => drawDiamonds(plot, chart), (plot) => drawMarks(plot, chart)] },
  };
}

/** The width of the widest text, as a canvas writes it. */
function widest(texts, font) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = font;
  return Math.max(0, ...texts.map((text) => pen.measureText(text).width));
}

const shorten = (string, length) => {
  const whole = visible(string);
  return whole.length > length ? whole.slice(0, length - 1) + "…" : whole;
};

/** The second pair of a chart of points is told from the first by its shape; of a pair, the second is hollow. */
function drawDiamonds(plot, chart) {
  if (chart.kind !== "points") return;
  const { ctx } = plot;
  const half = 5 * devicePixelRatio;
  ctx.save();
  ctx.lineWidth = 1.6 * devicePixelRatio;
  plot.data.slice(3).forEach((values, k) => {
    const i = k + 2;
    if (!plot.series[i + 1].show) return;
    ctx.strokeStyle = ctx.fillStyle = colour(`series-${i % PALETTE}`);
    values.forEach((value, at) => {
      if (value === null) return;
      const [x, y] = [plot.valToPos(at, "x", true), plot.valToPos(value, "y", true)];
      ctx.beginPath();
      for (const [dx, dy] of [[0, -half], [half, 0], [0, half], [-half, 0]]) ctx.lineTo(x + dx, y + dy);
      ctx.closePath();
      if (i % 2) ctx.stroke();
      else ctx.fill();
    });
  });
  ctx.restore();
}

function drawMarks(plot, chart) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour("ink");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.font = `600 ${12 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  chart.marks.forEach((mark, i) => {
    const x = plot.valToPos(mark.at, "x", true);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText(String(i + 1), x, bbox.top - 5 * devicePixelRatio);
  });
  ctx.restore();
}

/** Draw the chart in its div, anew if need be. What it shows is in the table, so the drawing itself is one image. */
function drawChart(place, chart) {
  live.get(place)?.destroy();
  live.delete(place);
  const width = Math.floor(place.clientWidth);
  if (!width || typeof uPlot === "undefined") return;
  const data = [chart.labels.map((_, i) => i), ...chart.series.map((series) => drawable(chart, series.values))];
  const plot = new uPlot(chartOptions(chart, width), data, place);
  plot.root.querySelector(".u-wrap").setAttribute("role", "img");
  plot.root.querySelector(".u-wrap").setAttribute("aria-label", visible(`Chart: ${chart.title}. The numbers are in the table below it.`));
  plot.root.querySelector(".u-legend")?.setAttribute("aria-hidden", "true");
  plot.over.addEventListener("click", () => {
    const link = chart.links?.[plot.cursor.idx];
    if (link) location.href = link;
  });
  plot.over.classList.toggle("links", Boolean(chart.links?.length));
  live.set(place, plot);
}

/** A drawing changes the height of what is observed, so it waits for the next frame: within one it would be a loop. */
const resized = new ResizeObserver((entries) => requestAnimationFrame(() => {
  for (const { target } of entries) {
    if (!target.isConnected) forget(target);
    else if (target.clientWidth && live.get(target)?.width !== Math.floor(target.clientWidth)) drawChart(target, target.chart);
  }
}));

function forget(place) {
  resized.unobserve(place);
  live.get(place)?.destroy();
  live.delete(place);
}

/** Begin to draw: as soon as the div has a width, and again whenever that changes. */
function plotInto(place, chart) {
  place.chart = chart;
  resized.observe(place);
}

/** A Chart as a figure, made by script. */
function chartFigure(chart) {
  const whole = { kind: "line", log: false, marks: [], links: [], unit: "", ...chart };
  const drawn = whole.series.flatMap((s) => s.values).filter((n) => n !== null);
  const above = drawn.filter((n) => n === "inf" || n > (whole.most ?? Infinity)).length;
  const place = el("div", { class: "plot" });
  plotInto(place, whole);
  const rows = whole.labels.map((label, at) =>
    el("tr", {}, el("th", { scope: "row" }, label), whole.series.map((s) => el("td", { class: "number" }, plainNumber(s.values[at])))));
  return el("figure", { class: "chart" },
    el("figcaption", {}, whole.title), place,
    above ? el("p", { class: "beyond" }, `${count(above)} of ${count(drawn.length)} are ${whole.most ? `above ${count(whole.most)} ${whole.unit}` : "infinite"} and drawn at the upper edge.`) : null,
    el("details", {}, el("summary", {}, "The numbers" + (whole.unit ? `, in ${whole.unit}` : "")),
      scrolling(`${whole.title}: the numbers`, el("table", { class: "plain" },
        el("thead", {}, el("tr", {}, el("td"), whole.series.map((s) => el("th", { scope: "col", class: "number" }, s.name)))),
        el("tbody", {}, rows)))));
}

/** Charts that wait for their first drawing, now: what stands below them is then where an address finds it. */
function drawWaiting() {
  for (const place of document.querySelectorAll(".plot")) if (place.chart && !live.has(place)) drawChart(place, place.chart);
}

function redrawCharts() {
  for (const place of [...live.keys()]) {
    if (place.isConnected) drawChart(place, place.chart);
    else forget(place);
  }
}

for (const figure of document.querySelectorAll("figure.chart")) {
  const data = figure.querySelector('script[type="application/json"]');
  if (data) plotInto(figure.querySelector(".plot"), JSON.parse(data.textContent));
}
