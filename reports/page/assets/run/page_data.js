// The data embedded in the page: the index of all cases, their records in chunks, and small repros.

const index = { rows: [], columns: {}, accuracy: [], releases: [], causes: {}, earlier: {}, statuses: [], bundle: 1, archives: null };

/** A case as the index knows it, in the order of the run's journal. Its fields are read from the columns. */
class Row {
  constructor(number) {
    this.number = number;
  }

  get id() {
    return this.whole ??= valueAt(index.columns.id, this.number) || `${this.operator}-${this.version}/${this.dtype}/${this.sample}[${this.binding}]`;
  }
}

const valueAt = (column, number) => ("i" in column ? column.d[column.i[number]] : "v" in column ? column.v[number] : column["="]);

/** A column (see columns.py) as the texts in it, and the place among them of the text of each row. */
function coded(name) {
  const column = index.columns[name] ?? { "=": "" };
  if (!("v" in column)) return { texts: column.d ?? [column["="]], at: column.i ? (number) => column.i[number] : () => 0 };
  const places = new Map([...new Set(column.v)].map((value, place) => [value, place]));
  const codes = column.v.map((value) => places.get(value));
  return (index.columns[name] = { d: [...places.keys()], i: codes }) && coded(name);
}

async function loadIndex() {
  const { count: rows, rows: columns, ...rest } = await unpack("index");
  Object.assign(index, rest, { columns: columns.o });
  for (const [name, column] of Object.entries(columns.o)) {
    if (name !== "id") Object.defineProperty(Row.prototype, name, { get() { return valueAt(index.columns[name] ?? column, this.number); } });
  }
  index.rows = Array.from({ length: rows }, (_, number) => new Row(number));
}

const chunks = new Map();

/** The whole record of a row. */
async function loadRecord(row) {
  const number = Math.floor(row.number / index.bundle);
  if (!chunks.has(number)) {
    const size = Math.min(index.bundle, index.rows.length - number * index.bundle);
    chunks.set(number, unpack("bundle-" + number).then((column) => expand(column, size)));
  }
  const record = (await chunks.get(number))[row.number % index.bundle];
  const known = { case_id: row.id, since_version: Number(row.version), dtype: row.dtype, sample: row.sample, binding: row.binding, status: row.status, blame: row.blame, reason: row.reason };
  return { ...known, ...record, repro: record.repro.replaceAll("{id}", () => row.id) };
}

/** What reproduces a case as a zip file, or null where the page has none. */
async function loadArchive(id) {
  index.archives ??= unpackBytes("archives").then(filesById);
  const found = await index.archives;
  return found.get(id) ?? null;
}

/** A line of JSON with the sizes of files, and the files: id -> file. */
function filesById(bytes) {
  let at = bytes.indexOf(10) + 1;
  const sizes = Object.entries(JSON.parse(new TextDecoder().decode(bytes.subarray(0, at))));
  return new Map(sizes.map(([id, size]) => [id, bytes.subarray(at, (at += size))]));
}

const STATE = ["operator", "version", "dtype", "binding", "reading", "status", "blame", "target", "finding", "cause", "below", "since", "q", "sort", "case", "section", "find", "worst"];
