"""The run as one JSON document, for programs that do not want to read a folder."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TextIO

from epcheck.conformance import strict_json
from epcheck.conformance.record import Record, Run, encode, to_json
from epcheck.reports.store import read_records, read_run, write_beside
from epcheck.reports.summary import Summary, Tally, headline

DOCUMENT_SCHEMA = 1


def write_json(folder: Path, path: Path | None = None) -> Path:
    """Write the run as one JSON document (default: `report.json` in its folder):

    `schema` (DOCUMENT_SCHEMA; a reader refuses a newer one), `headline`, `complete`, `run` (a Run), `records` (each a
    Record without its heat maps; fields that hold their default are left out) and `summary` (a Summary, without the
    matrix cells' cases). Infinite and undefined numbers are `{"$float": "inf"}`, `"-inf"` or `"nan"`.

    Raises StoreError when the run cannot be read or the file cannot be written.
    """
    run, path = read_run(folder), path or folder / "report.json"

    def fill(temporary: Path) -> None:
        with temporary.open("w", encoding="ascii", newline="\n") as file:
            summary = _write_records(file, run, folder)
            complete = run.status == "complete" and not summary.missing
            file.write(f',\n"headline":{strict_json.dumps(headline(run, summary))},\n"complete":')
            file.write(f'{strict_json.dumps(complete)},\n"summary":{strict_json.dumps(to_json(summary))}}}\n')

    write_beside(path, fill)
    return path


def _write_records(file: TextIO, run: Run, folder: Path) -> Summary:
    tally = Tally()
    file.write(f'{{"schema":{DOCUMENT_SCHEMA},\n"run":{strict_json.dumps(to_json(run))},\n"records":[')
    separator = "\n"
    for record in read_records(folder):
        tally.add(record)
        file.write(separator + encode(_without_heat(record)))
        separator = ",\n"
    file.write("]")
    return tally.summary(run)


def _without_heat(record: Record) -> Record:
    if not any(opinion.differences for opinion in (record.candidate, record.baseline) if opinion):
        return record
    opinions = {}
    for name in ("candidate", "baseline"):
        if opinion := getattr(record, name):
            cold = tuple(dataclasses.replace(difference, heat=()) for difference in opinion.differences)
            opinions[name] = dataclasses.replace(opinion, differences=cold)
    return dataclasses.replace(record, **opinions)
