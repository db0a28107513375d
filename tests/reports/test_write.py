"""All reports in one pass: the same files as one by one, each may fail alone, and little of the journal in memory."""

import gc
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from epcheck.conformance.records.record import Record
from epcheck.reports import (
    StoreError,
    data_process,
    read_records,
    read_run,
    summarize,
    write_all,
    write_html,
    write_json,
    write_junit,
    write_outcomes,
)
from tests.reports.stored_records import (
    a_crashed_topk,
    a_refused_qlinearconv,
    a_run,
    a_slice,
    a_wrong_slice,
    changed,
    many,
    stored,
)

RECORDS = (a_slice(), a_wrong_slice(), a_crashed_topk(), a_refused_qlinearconv())
NAMES = ("outcomes.parquet", "report.html", "junit.xml", "report.json")


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.slow
def test_together_they_are_what_each_is_alone(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", many(1300))  # more than a bundle, and than Parquet takes at a time
    write_all(folder)
    together = files(folder)
    for name, write in zip(NAMES, (write_outcomes, write_html, write_junit, write_json), strict=True):
        (folder / name).unlink()
        assert write(folder) == folder / name
    assert files(folder) == together
    assert together.keys() >= set(NAMES)


def test_two_processes_make_what_one_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = stored(tmp_path / "run", RECORDS)
    write_all(folder)
    alone = files(folder)
    for name in NAMES:
        (folder / name).unlink()
    monkeypatch.setattr(data_process, "LARGE_BYTES", 1)
    assert write_all(folder).summary.by_reading == {"ok": 1, "failure": 2, "expected": 1}
    assert files(folder) == alone


def test_reports_that_neither_of_two_processes_can_write_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = stored(tmp_path / "run", RECORDS)
    monkeypatch.setattr(data_process, "LARGE_BYTES", 1)
    for name in ("report.html", "junit.xml"):
        (folder / name).mkdir()
    with pytest.raises(StoreError) as caught:
        write_all(folder)
    page, junit = str(caught.value).split("; ")
    assert page.startswith(f"{folder / 'report.html'}: cannot write (")
    assert junit.startswith(f"{folder / 'junit.xml'}: cannot write (")
    assert (folder / "report.json").is_file()
    assert (folder / "outcomes.parquet").is_file()


def test_reports_are_made_where_the_second_process_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = stored(tmp_path / "run", RECORDS)
    monkeypatch.setattr(data_process, "LARGE_BYTES", 1)
    monkeypatch.setattr(data_process, "PROGRAM", "epcheck.reports.no_such_program")
    write_all(folder)
    assert files(folder).keys() >= set(NAMES)


def test_the_counts_come_with_them(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", RECORDS)
    reported = write_all(folder)
    assert (reported.folder, reported.run) == (folder, read_run(folder))
    assert reported.summary == summarize(read_run(folder), read_records(folder))
    assert reported.summary.by_reading == {"ok": 1, "failure": 2, "expected": 1}


def test_reports_that_cannot_be_written_are_named_and_the_others_are_made(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", RECORDS)
    write_all(folder)
    before = files(folder)
    for name in NAMES:
        (folder / name).unlink()
    for name in ("report.html", "junit.xml"):
        (folder / name).mkdir()  # a file cannot take its place
    with pytest.raises(StoreError) as caught:
        write_all(folder)
    page, junit = str(caught.value).split("; ")
    assert page.startswith(f"{folder / 'report.html'}: cannot write (")
    assert junit.startswith(f"{folder / 'junit.xml'}: cannot write (")
    assert files(folder) == {name: data for name, data in before.items() if name not in ("report.html", "junit.xml")}


def test_a_number_that_no_column_holds_keeps_only_parquet_from_being_made(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", [a_slice(opset=2**40)])
    with pytest.raises(StoreError, match=r"outcomes\.parquet: cannot write \(it cannot hold what the journal says: "):
        write_all(folder)
    assert files(folder).keys() == {"run.json", "journal.jsonl", ".lock", "report.html", "junit.xml", "report.json"}


@pytest.mark.parametrize("damage", [b"{}\n", b""])
def test_a_run_that_cannot_be_read_keeps_its_reports(tmp_path: Path, damage: bytes) -> None:
    folder = stored(tmp_path / "run", RECORDS)
    write_all(folder)
    damaged = "journal.jsonl" if damage else "run.json"
    (folder / damaged).write_bytes((folder / damaged).read_bytes() + damage if damage else b"")
    before = files(folder)
    with pytest.raises(StoreError, match=damaged):
        write_all(folder)
    assert files(folder) == before


def test_an_interruption_leaves_no_half_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = stored(tmp_path / "run", RECORDS)
    before = files(folder)

    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("epcheck.reports.runs.json_document.Document.add", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_all(folder)
    assert files(folder) == before


def across(records: Iterable[Record]) -> Iterator[Record]:
    """The records, of another operator after every hundred: the facts of one operator's cases are held at a time."""
    for number, record in enumerate(records):
        name = f"{record.case.operator}{number // 100}"
        yield changed(record, operator=name, case_id=f"{name}{record.case_id[len(record.case.operator) :]}")


@pytest.mark.slow
def test_of_a_record_little_stays_in_memory(tmp_path: Path) -> None:
    def peak_bytes(count: int) -> int:
        folder = stored(tmp_path / str(count), across(many(count)), a_run(count))
        gc.collect()
        gc.freeze()  # beside all that is there, new cycles would be collected too rarely
        tracemalloc.start()
        try:
            write_all(folder)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak_bytes(10)  # imports and templates
    # Its line has 1,650; the page's index has every id. From a number to its double, each table grows as often; that of
    # several operators has 2,000 cases at most.
    assert (peak_bytes(4200) - peak_bytes(2100)) / 2100 < 600
