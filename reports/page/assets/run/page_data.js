// The data embedded in the page: the index of all cases, their records in chunks, and small repros.

const index = { rows: [], accuracy: [], releases: [], causes: {}, earlier: {}, statuses: [], bundle: 1, archives: null };

/** The index: one row object a case, in the order of the run's journal. */
async function loadIndex() {
  const packed = await unpack("index");
  index.bundle = packed.bundle;
  index.accuracy = packed.accuracy;
  index.releases = packed.releases;
  index.causes = packed.causes;
  index.earlier = packed.earlier;
  index.statuses = packed.statuses;
  if (!packed.count) return;
  const columns = Object.entries(packed.rows.o).map(([name, column]) => [name, expand(column, packed.count)]);
  for (let number = 0; number < packed.count; number += 1) {
    const row = { number };
    for (const [name, values] of columns) row[name] = values[number];
    row.id ||= `${row.operator}-${row.version}/${row.dtype}/${row.sample}[${row.binding}]`;
    index.rows.push(row);
  }
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
  return { case_id: row.id, ...record, repro: record.repro.replaceAll("{id}", () => row.id) };
}

/** What reproduces a case as a zip file, or null where the page has none. */
async function loadArchive(id) {
  index.archives ??= unpack("archives");
  const found = await index.archives;
  return Object.hasOwn(found, id) ? fromBase64(found[id]) : null;
}

const STATE = ["operator", "version", "dtype", "binding", "reading", "status", "blame", "target", "finding", "cause", "below", "since", "q", "sort", "case", "section", "find", "worst"];
