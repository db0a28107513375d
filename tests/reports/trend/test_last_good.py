"""Which run of a store a night is held against, and which side of a run a comparison means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epcheck import reports
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.run import Run
from epcheck.reports.diff.compared_runs import open_pair, open_single
from epcheck.reports.store.store import open_store
from epcheck.reports.trend.flaky_cases import flaky_cases
from epcheck.reports.trend.last_good import last_good, read_last_good
from tests.reports.stored_records import a_run, a_slice, a_wrong_slice, an_opinion, changed, stored

DML = {"dml": {"adapter": "H200"}}


def keep(store: Path, night: int, *records: Record, **changes: Any) -> str:
    """A night in the store; its run id."""
    run_id = f"202501{night:02}-010000-aaaa"
    started = f"2025-01-{night:02}T01:00:00+00:00"
    fields = {"targets": DML, "selection": {}, **changes}
    records = records or (a_slice(),)
    run = a_run(fields.pop("planned", len(records)), run_id=run_id, started=started, **fields)
    folder = stored(store.parent / "runs" / run_id, records, run)
    store.mkdir(exist_ok=True)
    reports.write_outcomes(folder, store / f"{run_id}.parquet")
    return run_id


def tonight(**changes: Any) -> Run:
    return a_run(1, run_id="tonight", **{"started": "2025-01-30T01:00:00Z", "targets": DML, "selection": {}, **changes})


def found(store: Path, target: str = "dml", **changes: Any) -> tuple[str, str] | None:
    chosen = last_good(open_store(store), tonight(**changes), target)
    return (chosen.stored.run_id, chosen.target) if chosen else None


def test_the_newest_night_of_the_class_is_taken(tmp_path: Path) -> None:
    store = tmp_path / "store"
    keep(store, 1)
    wanted = keep(store, 2, targets={"dml": {"adapter": "H200", "driver_version": "another"}})
    keep(store, 3, targets={"dml": {"adapter": "Radeon"}})
    keep(store, 4, selection={"thin": True})
    assert found(store) == (wanted, "dml")


@pytest.mark.parametrize(
    "why", [{"status": "interrupted"}, {"status": "failed: lost"}, {"planned": 2}, {"worse": ("dml",)}]
)
def test_nights_that_were_not_good_are_passed_over(tmp_path: Path, why: dict[str, Any]) -> None:
    wanted = keep(tmp_path / "store", 1)
    keep(tmp_path / "store", 2, **why)
    assert found(tmp_path / "store") == (wanted, "dml")


def test_a_night_after_this_one_is_no_predecessor(tmp_path: Path) -> None:
    keep(tmp_path / "store", 5)
    assert found(tmp_path / "store", started="2025-01-04T01:00:00Z") is None


def test_another_release_is_a_predecessor_unless_it_has_a_target_of_its_own(tmp_path: Path) -> None:
    both = {"dml": DML["dml"], "dml@1.20.1": DML["dml"]}
    older = changed(a_slice(), candidate=an_opinion("dml@1.20.1"))
    wanted = keep(tmp_path / "store", 1, older, candidates=("dml@1.20.1",), targets=both)
    assert found(tmp_path / "store") == (wanted, "dml@1.20.1")
    assert found(tmp_path / "store", candidates=("dml", "dml@1.20.1"), targets=both) is None
    assert found(tmp_path / "store", "dml@1.20.1", candidates=("dml", "dml@1.20.1"), targets=both) == (
        wanted,
        "dml@1.20.1",
    )


def test_a_case_that_changes_with_nothing_else_changing_is_flaky(tmp_path: Path) -> None:
    case_id = a_slice().case_id
    wrong = a_wrong_slice(dtype="float32", case_id=case_id, sample="inner_backward_by_2")
    steady = a_slice("int8")
    for night in range(1, 8):
        keep(tmp_path / "store", night, wrong if night in (2, 5) else a_slice(), steady)
    assert flaky_cases(open_store(tmp_path / "store"), tonight(), "dml") == {case_id}


def test_a_case_that_broke_and_was_mended_once_is_not_flaky(tmp_path: Path) -> None:
    wrong = a_wrong_slice(dtype="float32", case_id=a_slice().case_id, sample="inner_backward_by_2")
    for night in range(1, 8):
        keep(tmp_path / "store", night, wrong if 3 <= night <= 5 else a_slice())
    assert flaky_cases(open_store(tmp_path / "store"), tonight(), "dml") == frozenset()


def test_a_night_whose_rows_are_damaged_is_named_and_the_one_before_is_taken(tmp_path: Path) -> None:
    store = tmp_path / "store"
    wanted, damaged = keep(store, 1), keep(store, 2)
    file = store / f"{damaged}.parquet"
    content = file.read_bytes()
    file.write_bytes(content[:4] + bytes(200) + content[204:])  # the end, which says what is in it, is whole
    compared_run, opened = read_last_good(open_store(store), tonight(), "dml")
    assert compared_run is not None
    assert (compared_run.run.run_id, len(compared_run.rows)) == (wanted, 1)
    assert [problem.path.name for problem in opened.problems] == [file.name]


@pytest.fixture
def two_targets(tmp_path: Path) -> Path:
    records = [changed(a_slice(), candidate=an_opinion(name)) for name in ("dml", "cpu")]
    return stored(tmp_path / "two", records, a_run(2, run_id="two", candidates=("dml", "cpu")))


def test_two_targets_of_one_run(two_targets: Path) -> None:
    older, newer = open_pair(two_targets, None, "cpu", "dml")
    assert (older.target, newer.target) == ("cpu", "dml")
    assert [len(compared_run.rows) for compared_run in (older, newer)] == [1, 1]


def test_which_target_is_meant_has_to_be_clear(two_targets: Path, tmp_path: Path) -> None:
    single_target = stored(tmp_path / "one", [a_slice()], a_run(1))
    assert [compared_run.target for compared_run in open_pair(two_targets, single_target)] == ["dml", "dml"]
    assert [compared_run.target for compared_run in open_pair(single_target, two_targets)] == ["dml", "dml"]
    with pytest.raises(reports.StoreError, match="has the targets 'dml', 'cpu'; choose one with --target-a"):
        open_pair(two_targets, two_targets)
    with pytest.raises(reports.StoreError, match="cannot compare 'dml' with itself"):
        open_pair(two_targets, None, "dml", "dml")


def test_folder_journal_and_file_of_a_store_say_the_same(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", [a_slice(), a_wrong_slice()], a_run(2))
    by_journal = open_single(folder).rows
    file = reports.write_outcomes(folder, tmp_path / "run.parquet")
    assert sorted(open_single(file).rows) == sorted(by_journal)
    reports.write_outcomes(folder)
    assert sorted(open_single(folder).rows) == sorted(by_journal)


def test_a_file_that_belongs_to_another_run_is_not_believed(tmp_path: Path) -> None:
    other = stored(tmp_path / "other", [a_wrong_slice()], a_run(1, run_id="other"))
    folder = stored(tmp_path / "run", [a_slice()], a_run(1))
    reports.write_outcomes(other, folder / "outcomes.parquet")
    assert [row.status for row in open_single(folder).rows] == ["pass"]
