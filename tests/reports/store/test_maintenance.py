"""Keeping a store: adding, checking and pruning."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epcheck.reports import StoreError, write_outcomes
from epcheck.reports.runs.parquet import write_table
from epcheck.reports.store import maintenance
from epcheck.reports.store.maintenance import Addition
from epcheck.reports.store.run_file import ProblemKind, StoredRun
from epcheck.reports.store.store import open_store
from tests.command_line import call, refused
from tests.reports.stored_nights import a_night, keep
from tests.reports.stored_records import a_slice, a_wrong_slice, many, stored

NOW = datetime(2025, 1, 11, 12, tzinfo=UTC)


def names(store: Path) -> list[str]:
    return sorted(path.name for path in store.iterdir())


def a_run_folder(root: Path, day: int = 1, records: tuple = (a_slice(),), planned: int | None = None) -> Path:
    run = a_night(day)
    keep(root / "unused", run, records, planned)
    return root / "runs" / run.run_id


def test_a_run_folder_becomes_a_file_named_by_its_run(tmp_path: Path) -> None:
    folder, store = a_run_folder(tmp_path), tmp_path / "store"
    added = maintenance.add(store, folder)
    assert (added.run_id, added.addition) == (a_night(1).run_id, Addition.ADDED)
    assert names(store) == [f"{a_night(1).run_id}.parquet"]
    assert open_store(store).runs[0].recorded == 1
    assert maintenance.add(store, folder).addition is Addition.THERE


def test_a_file_of_another_machine_gets_the_name_of_its_run(tmp_path: Path) -> None:
    file = keep(tmp_path / "other", a_night(1), [a_slice()]).rename(tmp_path / "other" / "copied.parquet")
    maintenance.add(tmp_path / "store", file)
    assert names(tmp_path / "store") == [f"{a_night(1).run_id}.parquet"]


def test_a_whole_store_and_a_folder_of_runs_can_be_added(tmp_path: Path) -> None:
    keep(tmp_path / "other", a_night(1), [a_slice()])
    keep(tmp_path / "other", a_night(2), [a_slice()])
    for place in ("other", "runs"):
        assert len(maintenance.sources(tmp_path / place)) == 2
    with pytest.raises(StoreError, match="no run in this folder"):
        maintenance.sources(tmp_path)


def test_another_run_of_the_same_name_is_refused_and_the_first_one_stays(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for machine in ("a", "b"):
        (tmp_path / machine).mkdir()
    maintenance.add(store, keep(tmp_path / "a" / "of", replace(a_night(1), run_id="merged"), [a_slice()]))
    other = keep(tmp_path / "b" / "of", replace(a_night(2), run_id="merged"), [a_slice(), a_wrong_slice()])
    with pytest.raises(StoreError, match="another run named 'merged' is in the store, begun 2025-01-01"):
        maintenance.add(store, other)
    assert open_store(store).runs[0].recorded == 1


def test_of_a_run_that_was_resumed_the_fuller_one_stays(tmp_path: Path) -> None:
    store = tmp_path / "store"
    part = keep(tmp_path / "a", a_night(1), [a_slice()], planned=2)
    whole = tmp_path / "b" / part.name
    shutil.rmtree(tmp_path / "runs")
    keep(tmp_path / "b", a_night(1), [a_slice(), a_wrong_slice()])
    additions = [maintenance.add(store, source).addition for source in (part, whole, part)]
    assert additions == [Addition.ADDED, Addition.REPLACED, Addition.FULLER]
    assert open_store(store).runs[0].whole


def test_a_file_that_was_cut_off_is_replaced(tmp_path: Path) -> None:
    folder, store = a_run_folder(tmp_path), tmp_path / "store"
    maintenance.add(store, folder)
    (file,) = store.iterdir()
    file.write_bytes(file.read_bytes()[:-50])
    assert maintenance.add(store, folder).addition is Addition.ADDED
    assert maintenance.check(store)[1] == ()


def test_a_damaged_file_is_not_added(tmp_path: Path) -> None:
    file = keep(tmp_path / "other", a_night(1), many(200))
    damage(file)
    with pytest.raises(StoreError, match="is damaged"):
        maintenance.add(tmp_path / "store", file)
    assert not (tmp_path / "store").exists()


def test_a_dry_run_adds_nothing(tmp_path: Path) -> None:
    folder, store = a_run_folder(tmp_path), tmp_path / "store"
    for source in (folder, write_outcomes(folder)):
        assert maintenance.add(store, source, dry_run=True).addition is Addition.ADDED
    assert not store.exists()


def test_a_run_whose_id_would_leave_the_store_is_refused(tmp_path: Path) -> None:
    run = replace(a_night(1), run_id="../outside", planned=1)
    folder = stored(tmp_path / "run", [a_slice()], run)
    with pytest.raises(StoreError, match="is not a valid file name"):
        maintenance.add(tmp_path / "store", folder)


def damage(file: Path) -> None:
    """Flip a bit in the middle of the data, which only a checksum tells."""
    chunk = pq.read_metadata(file).row_group(0).column(2)
    data = bytearray(file.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size - 3] ^= 1
    file.write_bytes(data)


def test_checking_names_each_file_in_trouble_and_why(tmp_path: Path) -> None:
    store = tmp_path / "store"
    good, cut, bit, twice = (keep(store, a_night(day), many(300)) for day in (1, 2, 3, 4))
    cut.write_bytes(cut.read_bytes()[:-7])
    damage(bit)
    shutil.copy(twice, store / "again.parquet")
    (store / "notes.txt").write_text("mine")
    opened, problems = maintenance.check(store)
    assert [(problem.path.name, problem.kind) for problem in problems] == [
        (cut.name, ProblemKind.TRUNCATED),
        (bit.name, ProblemKind.DAMAGED),
        ("again.parquet", ProblemKind.DUPLICATE),
        ("notes.txt", ProblemKind.FOREIGN),
    ]
    assert all(problem.path.name in problem.sentence for problem in problems)
    assert good.name in {run.path.name for run in opened.runs}


def test_two_rows_of_one_case_are_a_duplicate(tmp_path: Path) -> None:
    path = keep(tmp_path / "store", a_night(1), [a_slice()])
    row = pq.read_table(path)
    with path.open("wb") as file:
        write_table(pa.concat_tables([row, row]), a_night(1), file)
    (problem,) = maintenance.check(tmp_path / "store")[1]
    assert (problem.kind, "two rows of the same target and case" in problem.sentence) == (ProblemKind.DUPLICATE, True)


@pytest.fixture
def ten_nights(tmp_path: Path) -> Path:
    """Ten nights of a machine that ends with two partial ones, and one old night of another."""
    store = tmp_path / "store"
    for day in range(1, 11):
        keep(store, a_night(day), [a_slice()], planned=2 if day > 8 else 1)
    keep(store, a_night(1, "GeForce"), [a_slice()])
    return store


def days(runs: tuple[StoredRun, ...]) -> list[tuple[int, str]]:
    return [(int(run.night[-2:]), run.run.targets["dml"]["adapter"]) for run in runs]


def test_pruning_by_age_keeps_the_last_good_run_of_each_class(ten_nights: Path) -> None:
    pruned = maintenance.prune(open_store(ten_nights), NOW, older_than_days=1)
    assert days(pruned.removed) == [(day, "Radeon") for day in (1, 2, 3, 4, 5, 6, 7, 9, 10)]
    assert days(pruned.protected) == [(1, "GeForce"), (8, "Radeon")]
    assert days(open_store(ten_nights).runs) == [(1, "GeForce"), (8, "Radeon")]
    assert pruned.size_bytes > 0


def test_pruning_by_count_counts_each_class_by_itself(ten_nights: Path) -> None:
    pruned = maintenance.prune(open_store(ten_nights), NOW, keep=2)
    assert days(pruned.protected) == [(8, "Radeon")]
    assert days(open_store(ten_nights).runs) == [(1, "GeForce"), (8, "Radeon"), (9, "Radeon"), (10, "Radeon")]


def test_a_dry_run_removes_nothing(ten_nights: Path) -> None:
    before = names(ten_nights)
    assert len(maintenance.prune(open_store(ten_nights), NOW, keep=2, dry_run=True).removed) == 7
    assert names(ten_nights) == before


def test_a_file_in_trouble_is_never_pruned(ten_nights: Path) -> None:
    first = ten_nights / f"{a_night(1).run_id}.parquet"
    first.write_bytes(b"PAR1")
    maintenance.prune(open_store(ten_nights), NOW, older_than_days=0)
    assert first.exists()


def test_the_commands_do_what_the_calls_do(ten_nights: Path) -> None:
    where = ("--store", str(ten_nights))
    listed = call("store", "list", *where)
    assert (listed.code, "11 runs in" in listed.out) == (0, True)
    (ten_nights / "notes.parquet").write_text("mine")
    checked = call("store", "check", *where)
    assert (checked.code, checked.err) == (
        2,
        f"epcheck: foreign: {ten_nights / 'notes.parquet'}: is not a Parquet file\n",
    )
    pruned = call("store", "prune", *where, "--keep", "1", "--dry-run")
    assert (pruned.code, f"{a_night(7).run_id}: would be removed" in pruned.out) == (0, True)
    assert "pass --older-than DAYS, --keep N, or both" in refused("store", "prune", *where)
    added = call("store", "add", str(ten_nights), "--store", str(ten_nights.parent / "copy"))
    assert (added.code, added.out.count(": added")) == (2, 11)
