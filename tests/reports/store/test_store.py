"""Opening a store: what is counted, what is named instead, and what can be asked."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epcheck.reports import StoreError
from epcheck.reports.checksum import PARQUET_KEY
from epcheck.reports.runs.parquet import Counts
from epcheck.reports.store.query import query, query_store
from epcheck.reports.store.run_file import FileProblemError, ProblemKind, read_file
from epcheck.reports.store.store import default_store, open_store
from tests.reports.stored_nights import a_night, keep
from tests.reports.stored_records import a_slice, a_wrong_slice, many

FAILING = "SELECT run_id, case_id FROM outcomes WHERE failing ORDER BY ALL"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three nights of one machine; the last one has a failing case."""
    folder = tmp_path / "store"
    for day in (3, 1, 2):
        keep(folder, a_night(day), [a_slice(), a_wrong_slice()] if day == 3 else [a_slice()])
    return folder


def night(day: int) -> str:
    return f"{a_night(day).run_id}.parquet"


def with_metadata(path: Path, metadata: dict[str, str], columns: tuple[str, ...] = ()) -> None:
    """The file again with other metadata, and without checksums, as an earlier epcheck wrote it."""
    metadata = {name: text for name, text in metadata.items() if name != PARQUET_KEY}
    table = pq.read_table(path, columns=list(columns) or None)
    if int(metadata.get("epcheck.schema", "5")) < 5:
        table = table.rename_columns({"binding": "variant"})
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(metadata)


def test_runs_come_in_the_order_of_their_start_with_what_they_count(store: Path) -> None:
    opened = open_store(store)
    assert [run.night for run in opened.runs] == ["2025-01-01", "2025-01-02", "2025-01-03"]
    assert opened.problems == ()
    last = opened.runs[-1]
    assert last.run.targets["dml"]["adapter"] == "Radeon"
    assert last.counted["dml"].operators == {"Slice": Counts(passes=1, failing=1, other=0)}
    assert (last.recorded, last.whole) == (2, True)


def test_files_without_the_newest_columns_are_asked_together_with_others(store: Path) -> None:
    path = store / night(3)
    metadata = {key.decode(): text.decode() for key, text in pq.read_metadata(path).metadata.items()}
    columns = [name for name in pq.read_schema(path).names if name != "cause"]
    with_metadata(path, {**metadata, "epcheck.schema": "2"}, tuple(columns))
    keep(store, a_night(4), [a_wrong_slice()])
    opened = open_store(store)
    assert [run.schema for run in opened.runs] == [5, 5, 2, 5]
    found = query(opened.runs, "SELECT run_id, cause FROM outcomes WHERE failing ORDER BY ALL").to_pylist()
    assert [row["cause"] for row in found] == [None, "wrong values: … of … elements differ · DML_SLICE1_OPERATOR_DESC"]


def test_the_digest_tells_whether_two_runs_have_the_same_cases(store: Path) -> None:
    first, second, third = (run.counted["dml"].digest for run in open_store(store).runs)
    assert first == second != third


def test_a_run_that_did_not_record_all_it_planned_is_not_whole(tmp_path: Path) -> None:
    keep(tmp_path / "store", a_night(1), [a_slice()], planned=2)
    (run,) = open_store(tmp_path / "store").runs
    assert (run.recorded, run.whole) == (1, False)


def test_a_query_sees_the_rows_of_all_runs(store: Path) -> None:
    opened = open_store(store)
    assert query(opened.runs, FAILING).to_pylist() == [
        {"run_id": a_night(3).run_id, "case_id": a_wrong_slice().case_id}
    ]
    assert query(opened.runs[:2], "SELECT count(*) AS n FROM outcomes").to_pylist() == [{"n": 2}]
    assert query((), "SELECT count(*) AS n FROM outcomes").to_pylist() == [{"n": 0}]


def test_a_wrong_query_is_one_sentence(store: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot query the store .*nonsense"):
        query(open_store(store).runs, "SELECT nonsense FROM outcomes")


def test_a_store_in_a_folder_with_odd_characters_can_be_asked(tmp_path: Path, store: Path) -> None:
    odd = tmp_path / "it's [a] store"
    shutil.copytree(store, odd)
    assert query(open_store(odd).runs, FAILING).num_rows == 1


def spoil_truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def spoil_empty(path: Path) -> None:
    path.write_bytes(b"")


def spoil_text(path: Path) -> None:
    path.write_text("not Parquet at all")


def spoil_other_parquet(path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), path)


def spoil_newer(path: Path) -> None:
    with_metadata(path, {"epcheck.schema": "6", "epcheck.run": "{}"})


def spoil_older(path: Path) -> None:
    with_metadata(path, {"epcheck.run": "{}"})


def spoil_run(path: Path) -> None:
    with_metadata(path, {"epcheck.schema": "2", "epcheck.run": "[]", "epcheck.counts": "{}"})


def spoil_counts(path: Path) -> None:
    metadata = {key.decode(): text.decode() for key, text in pq.read_metadata(path).metadata.items()}
    with_metadata(path, {**metadata, "epcheck.counts": '{"dml": {"digest": "", "operators": {"Slice": [1]}}}'})


def spoil_columns(path: Path) -> None:
    metadata = {key.decode(): text.decode() for key, text in pq.read_metadata(path).metadata.items()}
    with_metadata(path, metadata, columns=("case_id",))


def spoil_footer(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1000:-900] = b"\xff" * 100
    path.write_bytes(data)


def spoil_into_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "kind", "says"),
    [
        (spoil_truncated, ProblemKind.TRUNCATED, "is cut off after .* bytes"),
        (spoil_empty, ProblemKind.TRUNCATED, "is cut off after 0 bytes"),
        (spoil_text, ProblemKind.FOREIGN, "is not a Parquet file"),
        (spoil_other_parquet, ProblemKind.FOREIGN, "is a Parquet file, but not a run"),
        (spoil_newer, ProblemKind.NEWER, r"has schema 6, newer than this epcheck reads \(5\); upgrade epcheck"),
        (spoil_older, ProblemKind.OLDER, "has schema 1; make it again with: epcheck report RUN --parquet"),
        (spoil_run, ProblemKind.DAMAGED, "does not describe a run"),
        (spoil_counts, ProblemKind.DAMAGED, "does not describe a run"),
        (spoil_columns, ProblemKind.DAMAGED, "lacks the column"),
        (spoil_footer, ProblemKind.DAMAGED, "is damaged"),
        (spoil_into_a_folder, ProblemKind.FOREIGN, "is not a file"),
    ],
)
def test_a_file_that_cannot_be_counted_is_named_and_hides_no_other(
    store: Path, spoil, kind: ProblemKind, says: str
) -> None:
    spoil(store / night(2))
    opened = open_store(store)
    assert [run.night for run in opened.runs] == ["2025-01-01", "2025-01-03"]
    (problem,) = opened.problems
    assert (problem.path, problem.kind) == (store / night(2), kind)
    with pytest.raises(FileProblemError, match=says):
        read_file(store / night(2))
    assert query(opened.runs, FAILING).num_rows == 1


def test_a_copy_under_another_name_is_counted_once(store: Path) -> None:
    copy = store / f"{a_night(2).run_id} (1).parquet"
    shutil.copy(store / night(2), copy)
    opened = open_store(store)
    assert [run.path.name for run in opened.runs] == [night(1), night(2), night(3)]
    (problem,) = opened.problems
    assert (problem.path, problem.kind) == (copy, ProblemKind.DUPLICATE)


def test_a_run_whose_id_is_no_name_for_a_file_is_foreign(store: Path) -> None:
    metadata = {key.decode(): text.decode() for key, text in pq.read_metadata(store / night(2)).metadata.items()}
    metadata["epcheck.run"] = metadata["epcheck.run"].replace(a_night(2).run_id, "../../etc/passwd")
    with_metadata(store / night(2), metadata)
    (problem,) = open_store(store).problems
    assert (problem.kind, problem.path.name) == (ProblemKind.FOREIGN, night(2))


def test_damage_inside_a_file_is_named_when_it_is_asked_and_the_others_answer(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    paths = [keep(folder, a_night(day), many(400)) for day in (1, 2, 3)]
    chunk = pq.read_metadata(paths[1]).row_group(0).column(2)  # the ids of the failing cases
    data = bytearray(paths[1].read_bytes())
    start = chunk.data_page_offset
    data[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    paths[1].write_bytes(data)
    opened = open_store(folder)
    assert len(opened.runs) == 3
    table, rest = query_store(opened, FAILING)
    assert set(table["run_id"].to_pylist()) == {a_night(1).run_id, a_night(3).run_id}
    assert [run.night for run in rest.runs] == ["2025-01-01", "2025-01-03"]
    assert [(problem.path, problem.kind) for problem in rest.problems] == [(paths[1], ProblemKind.DAMAGED)]


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store; create one with: epcheck store add RUN"):
        open_store(tmp_path / "nothing")


def test_the_environment_names_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EPCHECK_STORE", raising=False)
    assert default_store() == Path("epcheck-store")
    monkeypatch.setenv("EPCHECK_STORE", "/nights")
    assert default_store() == Path("/nights")
