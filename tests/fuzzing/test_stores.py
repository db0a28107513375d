"""Damaged files of a store, and files of strangers: a problem with a name, or the right answer."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import hypothesis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from epcheck.conformance.records import strict_json
from epcheck.reports.checksum import NO_CHECKSUMS, PARQUET_KEY, parquet_with_checksums
from epcheck.reports.runs import parquet
from epcheck.reports.store.query import query_store
from epcheck.reports.store.run_file import ProblemKind
from epcheck.reports.store.store import open_store
from tests.command_line import call
from tests.fuzzing.damage import damaged, examples, with_hostile_values
from tests.fuzzing.parquet_mutations import OF_CONTENT, mutated
from tests.reports.stored_nights import a_night, keep
from tests.reports.stored_records import many

COMMANDS = (
    ("trend", "--store", "store", "--html", "trend.html"), ("site", "store", "--out", "site"),
    ("store", "list", "--store", "store"), ("store", "check", "--store", "store"),
)  # fmt: skip
SQL = "SELECT * EXCLUDE (record) FROM outcomes ORDER BY run_id, target, case_id"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """A store of two nights; the second is what the tests change."""
    for day in (1, 2):
        keep(tmp_path / "store", a_night(day), list(many(60)))
    with contextlib.chdir(tmp_path):
        yield tmp_path / "store"


def second_night(store: Path) -> Path:
    return max(store.glob("*.parquet"))


def what_it_says(store: Path) -> tuple[list[Any], list[Any], int]:
    """Runs, rows, and how many files have a problem."""
    table, opened = query_store(open_store(store), SQL)
    runs = [(found.run, {name: of.as_json() for name, of in found.counted.items()}) for found in opened.runs]
    return runs, table.to_pylist(), len(opened.problems)


def check_all() -> None:
    for command in COMMANDS:
        done = call(*command)
        assert done.code in (0, 1, 2)
        assert all(c.isprintable() or c in "\n\t" for c in done.out + done.err)


def of_a_stranger(store: Path, run: Any, counts: Any) -> bytes:
    """The second night with other metadata, and checksums that fit."""
    written = pa.BufferOutputStream()
    with pq.ParquetWriter(written, parquet.SCHEMA) as writer:
        writer.write_table(pq.read_table(second_night(store)).cast(parquet.SCHEMA))
        writer.add_key_value_metadata({
            parquet.SCHEMA_KEY: str(parquet.SCHEMA_VERSION), PARQUET_KEY: NO_CHECKSUMS,
            parquet.RUN_KEY: strict_json.dumps(run), parquet.COUNTS_KEY: strict_json.dumps(counts),
        })  # fmt: skip
    return b"".join(parquet_with_checksums(memoryview(written.getvalue())))


def metadata(store: Path) -> tuple[Any, Any]:
    """The run and the counts of the second night, as JSON."""
    fields = pq.read_metadata(second_night(store)).metadata
    return json.loads(fields[parquet.RUN_KEY.encode()]), json.loads(fields[parquet.COUNTS_KEY.encode()])


@examples(80)
@hypothesis.given(data=st.data())
def test_a_damaged_file_is_a_problem_or_says_what_it_said(store: Path, data: st.DataObject) -> None:
    path = second_night(store)
    before = path.read_bytes()
    right = what_it_says(store)
    path.write_bytes(data.draw(damaged(before)))
    found = what_it_says(store)
    path.write_bytes(before)
    assert found == right or (found[2] == 1 and len(found[0]) == 1)


@examples(15)
@hypothesis.given(data=st.data())
def test_a_strangers_file_ends_no_command(store: Path, data: st.DataObject) -> None:
    path, (run, counts) = second_night(store), metadata(store)
    before = path.read_bytes()
    which = data.draw(st.booleans())
    changed = data.draw(with_hostile_values(run if which else counts))
    path.write_bytes(of_a_stranger(store, *((changed, counts) if which else (run, changed))))
    check_all()
    path.write_bytes(before)


@examples(25)
@hypothesis.given(seed=st.integers(0, 2**32))
def test_a_file_that_is_written_otherwise_ends_no_command(store: Path, seed: int) -> None:
    """1,000 of them: benchmarks/attacks/corruptions.py --kinds columns,rows."""
    path = second_night(store)
    before = path.read_bytes()
    path.write_bytes(mutated(before, Random(seed), OF_CONTENT)[1])
    check_all()
    assert call("diff", *map(str, sorted(store.glob("*.parquet")))).code in (0, 1, 2)
    path.write_bytes(before)


# What was found, each by its name.


def damage_of(store: Path, old: bytes, new: bytes) -> None:
    path = second_night(store)
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


def test_another_digit_in_the_metadata_is_noticed(store: Path) -> None:
    damage_of(store, b'"planned":60', b'"planned":61')
    (problem,) = open_store(store).problems
    assert (problem.kind, "checksum mismatch" in problem.sentence) == (ProblemKind.DAMAGED, True)


@pytest.mark.parametrize("place", [4, 200, 1000, 3000])
def test_another_bit_in_the_rows_is_noticed(store: Path, place: int) -> None:
    path = second_night(store)
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    assert what_it_says(store)[2] == 1
    assert call("store", "check", "--store", "store").code == 2


def test_a_file_of_an_earlier_epcheck_has_no_checksums_and_is_read(store: Path) -> None:
    right = what_it_says(store)
    damage_of(store, PARQUET_KEY.encode(), b"x" * len(PARQUET_KEY))
    assert what_it_says(store) == right


@pytest.mark.parametrize(
    "counts",
    [
        {"dml": {"digest": "x", "operators": {"Slice": [1, float("inf"), 0]}, "failing": {}}},
        {"dml": {"digest": "x", "operators": {"Slice": [1, 2**64, 0]}, "failing": {}}},
        {"dml": {"digest": "x", "operators": {"Slice": [1, -1, 0]}, "failing": {}}},
        {"dml": {"digest": "x", "operators": {"Slice": [1, 1.5, 0]}, "failing": {}}},
        {"dml": {"digest": "x", "operators": {"Slice": [1, 0, 0]}, "failing": {"crash": "AQAAAA=="}}},
        {"dml": {"digest": "\ud800", "operators": {"Slice": [1, 0, 0]}, "failing": {}}},
        {"\ud800": {"digest": "x", "operators": {"Slice": [1, 0, 0]}, "failing": {}}},
        {"dml": None},
        [],
    ],
)
def test_counts_that_are_none_are_a_problem(store: Path, counts: Any) -> None:
    run, _ = metadata(store)
    second_night(store).write_bytes(of_a_stranger(store, run, counts))
    (problem,) = open_store(store).problems
    assert (problem.kind, "does not describe a run" in problem.sentence) == (ProblemKind.DAMAGED, True)
    check_all()
