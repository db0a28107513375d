"""Damaged and hostile run folders: a clear sentence, or the right answer; never a wrong number."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from epcheck.conformance.records import strict_json
from epcheck.conformance.records.record import Record, encode
from epcheck.reports import StoreError, create, read_records, read_run, resume, write_json, write_outcomes
from epcheck.reports.checksum import document_with_checksum, line_with_checksum
from epcheck.reports.runs.run_folder import UncheckedWarning
from tests.command_line import Done, call
from tests.fuzzing.damage import damaged, damaged_lines, examples, with_hostile_values
from tests.reports.stored_records import a_run, many, stored

RECORDS = tuple(many(12))
RUN = a_run(len(RECORDS))
COMMANDS = (
    ("report",), ("report", "--ort-conformance", "ort.json"), ("merge", "--out", "merged"), ("coverage", "--run"),
    ("store", "add", "--store", "store"), ("expect", "--reason", "x", "--from"),
)  # fmt: skip
"""What reads a run; the folder is named at the end."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder of a run with RECORDS, beside the working directory of the test."""
    found = stored(tmp_path / "run", RECORDS, RUN)
    (tmp_path / "here").mkdir()
    with contextlib.chdir(tmp_path / "here"):
        yield found


def bare(record: Record) -> bytes:
    return encode(record).encode() + b"\n"


@contextlib.contextmanager
def replaced(path: Path, data: bytes) -> Iterator[None]:
    """The file holds this data for a while; whatever else there is in its folder later goes again."""
    before, names = path.read_bytes(), set(path.parent.iterdir())
    path.write_bytes(data)
    try:
        yield
    finally:
        path.write_bytes(before)
        for new in set(path.parent.iterdir()) - names:
            new.unlink()


@contextlib.contextmanager
def a_sentence_at_most() -> Iterator[None]:
    """A StoreError is one line; nothing else is raised."""
    sentence = ""
    try:
        yield
    except StoreError as error:
        sentence = str(error)
    assert len(sentence.splitlines()) <= 1


def checked(done: Done) -> None:
    """What every command keeps to, whatever it was given."""
    assert done.code in (0, 1, 2)
    assert done.code != 2 or len(done.err.splitlines()) == 1, done.err
    assert all(c.isprintable() or c in "\n\t" for c in done.out + done.err)


def check_all(folder: Path) -> None:
    for command in COMMANDS:
        checked(call(*command, str(folder)))
        shutil.rmtree("merged", ignore_errors=True)


@examples(150)
@hypothesis.given(data=st.data())
def test_a_damaged_journal_gives_a_sentence_or_its_own_records(folder: Path, data: st.DataObject) -> None:
    journal = folder / "journal.jsonl"
    content = journal.read_bytes()
    with replaced(journal, data.draw(damaged(content) | damaged_lines(content))):
        found: list[Record] = []
        with a_sentence_at_most():
            found += read_records(folder)
        by_id = {record.case_id: record for record in RECORDS}
        assert all(by_id[record.case_id] == record for record in found)
        assert len({record.case_id for record in found}) == len(found)


@examples(60)
@hypothesis.given(data=st.data())
def test_a_damaged_description_gives_a_sentence_or_is_what_it_was(folder: Path, data: st.DataObject) -> None:
    path = folder / "run.json"
    with replaced(path, data.draw(damaged(path.read_bytes()))), a_sentence_at_most():
        assert read_run(folder) == RUN


@examples(12)
@hypothesis.given(data=st.data())
def test_a_damaged_folder_is_read_by_no_command_as_another(folder: Path, data: st.DataObject) -> None:
    path = folder / data.draw(st.sampled_from(("run.json", "journal.jsonl")))
    with replaced(path, data.draw(damaged(path.read_bytes()))):
        check_all(folder)


@examples(12)
@hypothesis.given(data=st.data())
def test_a_strangers_description_ends_no_command(folder: Path, data: st.DataObject) -> None:
    path = folder / "run.json"
    document: Any = json.loads(path.read_bytes())
    del document["crc32"]
    text = json.dumps(strict_json.plain(data.draw(with_hostile_values(document))), indent=2)
    with replaced(path, document_with_checksum(text.encode() + b"\n")):
        check_all(folder)


@examples(12)
@hypothesis.given(data=st.data())
def test_a_strangers_record_ends_no_command(folder: Path, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(RECORDS) - 1))
    lines = [bare(record) for record in RECORDS]
    lines[at] = strict_json.dumps(data.draw(with_hostile_values(json.loads(lines[at])))).encode() + b"\n"
    with replaced(folder / "journal.jsonl", b"".join(map(line_with_checksum, lines))):
        check_all(folder)


# What was found, each by its name.


def test_a_flipped_digit_is_noticed(folder: Path) -> None:
    journal = folder / "journal.jsonl"
    content = journal.read_bytes()
    assert content.count(b'"create_s":0.0061') > 2
    journal.write_bytes(content.replace(b'"create_s":0.0061', b'"create_s":0.0062', 1))
    with pytest.raises(StoreError, match=r"line 1: is not a record \(checksum mismatch"):
        list(read_records(folder))


@pytest.mark.parametrize("at", [0, 5, 12])
def test_a_doubled_line_is_noticed(folder: Path, at: int) -> None:
    journal = folder / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:at], lines[3], *lines[at:]]))
    second = 5 if at <= 3 else at + 1
    with pytest.raises(StoreError, match=rf"line {second}: '.*' on 'dml' has a record before; delete one"):
        list(read_records(folder))


def test_a_lost_line_leaves_a_run_that_is_not_complete(folder: Path) -> None:
    journal = folder / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:4] + lines[5:]))
    document = json.loads(write_json(folder).read_text())
    headline = "Incomplete (11 of 12 cases): the run says that it is complete."
    assert (document["complete"], document["headline"].startswith(headline)) == (False, True)


def test_a_changed_description_is_noticed(folder: Path) -> None:
    path = folder / "run.json"
    path.write_bytes(path.read_bytes().replace(b'"planned": 12', b'"planned": 13'))
    with pytest.raises(StoreError, match=r"run\.json: does not describe a run \(checksum mismatch"):
        read_run(folder)


def test_a_journal_of_an_earlier_epcheck_is_read_with_one_warning(folder: Path) -> None:
    (folder / "journal.jsonl").write_bytes(b"".join(map(bare, RECORDS)))
    with pytest.warns(UncheckedWarning, match="12 records have no checksum") as caught:
        assert tuple(read_records(folder)) == RECORDS
    assert len(caught) == 1


def test_a_journal_of_an_earlier_epcheck_is_continued_with_checksums(folder: Path) -> None:
    (folder / "journal.jsonl").write_bytes(b"".join(map(bare, RECORDS[:5])) + b'{"case_id":"cut')
    with pytest.warns(UncheckedWarning, match="5 records"):
        resumed = resume(folder)
    with resumed.journal as journal:
        assert len(resumed.done) == 5
        for record in RECORDS[5:]:
            journal.append(record)
    with pytest.warns(UncheckedWarning, match="5 records"):
        assert tuple(read_records(folder)) == RECORDS


def test_a_line_without_checksum_after_one_with_is_no_record(folder: Path) -> None:
    journal = folder / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:2], bare(RECORDS[2]), *lines[3:]]))
    with pytest.raises(StoreError, match=r"line 3: is not a record \(it has no checksum"):
        list(read_records(folder))


def test_reports_have_the_record_without_its_checksum(folder: Path) -> None:
    records = json.loads(write_json(folder).read_text())["records"]
    kept = [json.loads(encode(record)) for record in RECORDS if record.reading != "ok"]
    assert [record["case_id"] for record in records] == [record["case_id"] for record in kept] != []
    assert [record.keys() for record in records] == [record.keys() for record in kept]


def test_a_run_without_candidates_has_no_coverage(tmp_path: Path) -> None:
    with create(tmp_path / "run", a_run(0, candidates=())):
        pass
    done = call("coverage", "--run", str(tmp_path / "run"))
    assert (done.code, "has no target; name another run" in done.err) == (2, True)


def test_a_resumed_journal_ends_at_its_last_line_however_long_the_rest_is(folder: Path) -> None:
    journal = folder / "journal.jsonl"
    content = journal.read_bytes()
    journal.write_bytes(content + b"x" * 300_000)
    resume(folder).journal.release()
    assert journal.read_bytes() == content


def test_outcomes_are_made_of_a_journal_with_checksums(folder: Path) -> None:
    assert write_outcomes(folder).stat().st_size > 1000
