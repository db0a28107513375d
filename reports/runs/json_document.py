"""The run as one JSON document, for programs that do not want to read a folder."""

from __future__ import annotations

from contextlib import ExitStack
from typing import IO, Any

from epcheck.conformance.records import strict_json
from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import OK
from epcheck.conformance.records.typed_json import to_json
from epcheck.reports.runs.headline import headline
from epcheck.reports.runs.report import Entry
from epcheck.reports.runs.summary import Summary

DOCUMENT_SCHEMA = 4


class Document:
    """`schema` (DOCUMENT_SCHEMA; a reader refuses a newer one), `run` (a Run), `records` (each a Record without its
    heat maps; fields that hold their default are left out; only those whose reading is not `ok`: the journal has all,
    the Parquet file the columns of all), `headline`, `complete` and `summary` (a Summary, without
    the matrix cells' cases). Infinite and undefined numbers are `{"$float": "inf"}`, `"-inf"` or `"nan"`.
    """

    def __init__(self, run: Run, file: IO[bytes], _held: ExitStack) -> None:
        self._run = run
        self._file = file
        self._separator = b"\n"
        file.write(b'{"schema":%d,\n"run":%b,\n"records":[' % (DOCUMENT_SCHEMA, _json(to_json(run))))

    def add(self, entry: Entry) -> None:
        if entry.record.reading == OK:
            return
        self._file.write(self._separator + _without_heat(entry.line))
        self._separator = b",\n"

    def finish(self, summary: Summary) -> None:
        complete = self._run.status == "complete" and not summary.missing
        self._file.write(b'],\n"headline":%b,\n"complete":%b' % (_json(headline(self._run, summary)), _json(complete)))
        self._file.write(b',\n"summary":%b}\n' % _json(to_json(summary)))


def _without_heat(line: bytes) -> bytes:
    if b'"heat"' not in line:
        return line
    record = strict_json.loads(line)
    for opinion in (record["candidate"], record["baseline"] or {}):
        for difference in opinion.get("differences", ()):
            difference.pop("heat", None)
    return _json(record)


def _json(value: Any) -> bytes:
    return strict_json.dumps(value).encode("ascii")
