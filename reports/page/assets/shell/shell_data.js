// Data embedded in a page, and the page's state, which lives in its address. A page that uses it declares STATE: the names
// that its addresses have.

const SIGNS = { failure: "✕", flaky: "≠", fixed: "▲", expected: "≈", noted: "i", ok: "✓", "not-run": "–" };
const READINGS = ["failure", "flaky", "fixed", "expected", "noted", "ok", "not-run"];

/** A reading as people read it. */
const inWords = (reading) => reading.replace("-", " ");

function unpacked(id) {
  const encoded = document.getElementById(id).textContent.trim();
  return new Response(new Blob([fromBase64(encoded)]).stream().pipeThrough(new DecompressionStream("gzip")));
}

const unpack = async (id) => JSON.parse(await unpacked(id).text());

const unpackBytes = async (id) => new Uint8Array(await unpacked(id).arrayBuffer());

function fromBase64(letters) {
  return Uint8Array.fromBase64 ? Uint8Array.fromBase64(letters) : Uint8Array.from(atob(letters), (c) => c.charCodeAt(0));
}

/** The n values of a column (see columns.py). Values that are the same are one and the same. */
function expand(column, n) {
  if ("=" in column) return new Array(n).fill(column["="]);
  if ("v" in column) return column.v;
  if ("d" in column) return column.i.map((place) => column.d[place]);
  if ("a" in column) return rowsOf(column.a.map((member) => expand(member, n)), n);
  if ("o" in column) {
    const keys = Object.keys(column.o);
    return rowsOf(keys.map((key) => expand(column.o[key], n)), n).map((row) => Object.fromEntries(row.map((v, i) => [keys[i], v])));
  }
  const which = expand(column["?"], n);
  const sizes = column.g.map(() => 0);
  for (const kind of which) sizes[kind] += 1;
  const members = column.g.map((group, kind) => expand(group, sizes[kind]).values());
  return which.map((kind) => members[kind].next().value);
}

const rowsOf = (columns, n) => Array.from({ length: n }, (_, i) => columns.map((column) => column[i]));

/** A case id as it survives in an address: half a surrogate pair does not. */
const addressable = (id) => id.replace(/[\ud800-\udfff]/gu, "\ufffd");

/** The page's state, which lives in the address: filters, order, `case`, `section`. */
function readState() {
  return Object.fromEntries([...new URLSearchParams(location.hash.slice(1))].filter(([name]) => STATE.includes(name)));
}

function linkTo(state) {
  const parts = Object.entries(state).filter(([, v]) => v !== "" && v !== undefined);
  return "#" + parts.map(([k, v]) => k + "=" + encodeURIComponent(addressable(v))).join("&");
}
