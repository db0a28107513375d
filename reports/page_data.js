// The data that travels in the page, and how it becomes nodes: text is only ever set as text.

const SIGNS = { failure: "✕", fixed: "▲", expected: "≈", noted: "i", ok: "✓" };
const READINGS = ["failure", "fixed", "expected", "noted", "ok"];
const COLUMNS = ["operator", "version", "dtype", "variant", "target", "status", "blame", "reading", "reason", "finding"];
const INVISIBLE =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Control, invisible and direction-changing characters written out. */
function visible(value) {
  return String(value).replace(INVISIBLE, (c) => {
    const code = c.charCodeAt(0);
    return code < 256 ? "\\x" + code.toString(16).padStart(2, "0") : "\\u" + code.toString(16).padStart(4, "0");
  });
}

/** An element: el("a", {class: "x", href: "#"}, "text", node, ...). Strings become text nodes, null is left out. */
function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(key, value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null) node.setAttribute(key, value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
  return node;
}

/** A stored value as text: numbers that JSON has no form for, and integers too long for the page's, are marked. */
function text(value) {
  if (value === null || value === undefined) return "–";
  if (Array.isArray(value)) return "[" + value.map(text).join(", ") + "]";
  if (typeof value === "object") {
    if (typeof value.$float === "string") return value.$float;
    if (typeof value.$int === "string") return value.$int;
    return "{" + Object.entries(value).map(([k, v]) => k + ": " + text(v)).join(", ") + "}";
  }
  return String(value);
}

const count = (n) => n.toLocaleString("en");

async function unpack(id) {
  const packed = document.getElementById(id).textContent.trim();
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** The index: one row object a case, the worst reading first. */
async function loadRows() {
  const index = await unpack("index");
  const rows = index.ids.map((id, number) => {
    const row = { id, number };
    for (const name of COLUMNS) row[name] = index.texts[index[name][number]];
    return row;
  });
  const rank = new Map(READINGS.map((reading, i) => [reading, i]));
  return rows.sort((a, b) => rank.get(a.reading) - rank.get(b.reading) || a.number - b.number);
}

const bundles = new Map();

/** The whole record of a row. */
async function loadRecord(row) {
  const size = Number(document.getElementById("bundle-size").textContent);
  const number = Math.floor(row.number / size);
  if (!bundles.has(number)) bundles.set(number, unpack("bundle-" + number));
  return (await bundles.get(number))[row.number % size];
}

/** A case id as it survives in an address: half a surrogate pair does not. */
const addressable = (id) => id.replace(/[\ud800-\udfff]/gu, "\ufffd");

/** The page's state, which lives in the address: filters, `q`, `case`, `target`, `section`. */
function readState() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

function linkTo(state) {
  const parts = Object.entries(state).filter(([, v]) => v !== "" && v !== undefined);
  return "#" + parts.map(([k, v]) => k + "=" + encodeURIComponent(addressable(v))).join("&");
}
