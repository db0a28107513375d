"""The run folder: what is written is there, what is cut short is found, and nothing else is believed."""

import errno
import io
import json
import math
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from epcheck.conformance.records import atomic_file
from epcheck.conformance.records.opinion import Mismatch
from epcheck.reports import (
    Journal,
    StoreError,
    create,
    latest,
    new_run_folder,
    read_records,
    read_run,
    resume,
    write_outcomes,
)
from tests.reports.stored_records import (
    a_crashed_topk,
    a_refused_qlinearconv,
    a_run,
    a_slice,
    a_wrong_slice,
    many,
    stored,
)

pq = pytest.importorskip("pyarrow.parquet")


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    records = (a_slice(), a_wrong_slice(), a_crashed_topk(), a_refused_qlinearconv())
    assert tuple(read_records(stored(tmp_path / "run", records))) == records


def test_the_run_comes_back_as_it_was(tmp_path: Path) -> None:
    run = a_run(1, stale=("Slice-*",), notes=("one driver only",))
    assert read_run(stored(tmp_path / "run", [a_slice()], run)) == run


def test_hostile_text_comes_back_unchanged(tmp_path: Path) -> None:
    record = a_slice(reason="a\x00b\n</script>\u2028\udc80", attributes={"n\x00": "<b>"})
    assert list(read_records(stored(tmp_path / "run", [record]))) == [record]


def test_floats_without_a_json_number_come_back_and_the_line_is_strict_json(tmp_path: Path) -> None:
    record = a_slice(attributes={"inf": math.inf, "minus": -math.inf, "ulp": [1.5, math.inf]})
    folder = stored(tmp_path / "run", [record])

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    line = (folder / "journal.jsonl").read_text()
    assert json.loads(line, parse_constant=refuse)["attributes"]["inf"] == {"$float": "inf"}
    assert list(read_records(folder)) == [record]


def test_numpy_values_are_stored_as_plain_numbers(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    folder = stored(tmp_path / "run", [a_slice(attributes={"k": np.int64(3), "pads": np.array([1, 2])})])
    assert next(read_records(folder)).case.attributes == {"k": 3, "pads": [1, 2]}


def test_a_record_is_on_disk_when_append_returns(tmp_path: Path) -> None:
    with create(tmp_path / "run", a_run(2)) as journal:
        journal.append(a_slice())
        assert list(read_records(tmp_path / "run")) == [a_slice()]


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    records = [[a_wrong_slice(case_id=f"{thread}.{number}") for number in range(50)] for thread in range(4)]
    with create(tmp_path / "run", a_run(200)) as journal:
        threads = [threading.Thread(target=lambda own=own: [journal.append(r) for r in own]) for own in records]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = {record.case_id: record for record in read_records(tmp_path / "run")}
    assert found == {record.case_id: record for own in records for record in own}


@pytest.mark.parametrize("cut", [1, 2, 500])
def test_a_truncated_last_line_is_cut_off_and_its_case_run_again(tmp_path: Path, cut: int) -> None:
    folder = stored(tmp_path / "run", [a_slice(), a_wrong_slice()])
    journal = folder / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-cut])
    assert list(read_records(folder)) == [a_slice()]

    resumed = resume(folder)
    assert resumed.run == a_run(2)
    assert resumed.done == {("dml", a_slice().case_id)}
    resumed.journal.append(a_wrong_slice())
    resumed.journal.close(resumed.run)
    assert list(read_records(folder)) == [a_slice(), a_wrong_slice()]


def test_done_tells_candidates_apart(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", [a_slice()])
    with resume(folder).journal:
        pass
    resumed = resume(folder)
    resumed.journal.release()
    assert ("dml", a_slice().case_id) in resumed.done
    assert ("other", a_slice().case_id) not in resumed.done


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (b"{not json", "is not a record"),
        (b"[]", "not a Record"),
        (b'{"case_id": "x"}', "missing"),
        (b"\x00\x00\x00", "is not a record"),
        (b"\xff\xfe", "is not a record"),
        (b"[" * 100_000, "is not a record"),
        (b'{"case_id": NaN}', "NaN is not JSON"),
        ('{"case_id": "\u00e9"}'.encode(), "is not a record"),
    ],
)
def test_a_corrupt_line_in_the_middle_is_named(tmp_path: Path, damage: bytes, says: str) -> None:
    folder = stored(tmp_path / "run", [a_slice(), a_wrong_slice()])
    journal = folder / "journal.jsonl"
    first, second = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(first + damage + b"\n" + second)
    for read in (lambda: list(read_records(folder)), lambda: resume(folder)):
        with pytest.raises(StoreError, match=says) as caught:
            read()
        assert f"{journal}, line 2" in str(caught.value)
        assert "delete that line and continue the run with --resume" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "damaged", "words"),
    [
        ("values", [3], r"values\[0\]: expected object, got int"),
        (
            "values",
            [{"name": "x", "dtype": "int8", "shape": ["2"], "where": "input"}],
            r"values\[0\]\.shape\[0\]: expected int, got str",
        ),
        ("values", {}, "values: expected array, got object"),
        ("types", {"T": 3}, r"types\[...\]: expected str, got int"),
        ("types", [], "types: expected object, got array"),
        ("directml", {"name": "DML"}, "directml: object missing required field members"),
        ("directml", 3, "directml: expected object | null, got int"),
        ("attributes", None, "attributes: expected object, got null"),
    ],
)
def test_what_is_damaged_inside_a_case_is_a_corrupt_line(tmp_path: Path, name: str, damaged: Any, words: str) -> None:
    folder = stored(tmp_path / "run", [a_slice()])
    journal = folder / "journal.jsonl"
    journal.write_text(json.dumps({**json.loads(journal.read_text()), name: damaged}) + "\n")
    with pytest.raises(StoreError, match=rf"line 1: is not a record \(not a Record: {words}"):
        list(read_records(folder))


def test_a_status_nobody_knows_is_not_believed(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", [a_slice()])
    journal = folder / "journal.jsonl"
    journal.write_text(journal.read_text().replace('"status":"pass","blame"', '"status":"fine","blame"'))
    with pytest.raises(StoreError, match=r"line 1: .*status 'fine' is none of 'pass'"):
        list(read_records(folder))


class FullDisk(io.FileIO):
    """A file on a disk that takes `room` more bytes and then is full."""

    room = 100

    def write(self, data: object) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = bytes(data)[: self.room]  # type: ignore[call-overload]
        self.room -= len(taken)
        return super().write(taken)


def test_a_full_disk_loses_no_record_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", [a_slice()], a_run(2))
    lock = (folder / ".lock").open("ab")
    journal = Journal(folder, FullDisk(folder / "journal.jsonl", "ab"), lock)  # type: ignore[arg-type]
    with pytest.raises(StoreError, match=r"journal\.jsonl: cannot write \(No space left on device\).*--resume"):
        journal.append(a_wrong_slice())
    with pytest.raises(StoreError, match="closed after an earlier failure"):
        journal.append(a_wrong_slice())
    journal.close(a_run(2, status="failed: the disk is full"))

    assert read_run(folder).status == "failed: the disk is full"
    assert (folder / "journal.jsonl").read_bytes().endswith(b"}\n")
    assert list(read_records(folder)) == [a_slice()]
    resumed = resume(folder)
    assert resumed.done == {("dml", a_slice().case_id)}
    resumed.journal.release()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_real_full_device_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with (
        (tmp_path / "lock").open("ab") as lock,
        Path("/dev/full").open("wb", buffering=0) as full,
        pytest.raises(StoreError, match="No space left on device"),
    ):
        Journal(tmp_path / "run", full, lock).append(a_slice())


def test_a_killed_process_leaves_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from tests.reports.stored_records import a_run, a_slice; from epcheck.reports import create\n"
        "create(Path(sys.argv[2]), a_run(2)).append(a_slice()); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(Path(__file__).parents[3]), str(tmp_path / "run")], check=False)
    resumed = resume(tmp_path / "run")
    resumed.journal.release()
    assert resumed.done == {("dml", a_slice().case_id)}


def test_two_processes_never_share_a_folder(tmp_path: Path) -> None:
    with create(tmp_path / "run", a_run()):
        with pytest.raises(StoreError, match="another process is writing this run"):
            resume(tmp_path / "run")
        with pytest.raises(StoreError, match="another process is writing this run"):
            create(tmp_path / "run", a_run())
    with pytest.raises(StoreError, match="already holds a run"):
        create(tmp_path / "run", a_run())
    resume(tmp_path / "run").journal.release()


def test_new_folders_are_named_by_time_and_the_latest_is_found(tmp_path: Path) -> None:
    folder = new_run_folder(tmp_path / "runs")
    assert folder != new_run_folder(tmp_path / "runs")
    assert len(folder.name) == len("20250102-030405-beef")
    for name in ("20250102-030405-beef", "20241231-235959-ffff", "20260101-000000-0000"):
        stored(tmp_path / "old" / name, [a_slice()])
    (tmp_path / "old" / "20270101-000000-0000").mkdir()  # never began: it holds no run
    assert latest(tmp_path / "old").name == "20260101-000000-0000"


def test_a_new_run_removes_half_written_reports_of_killed_ones(tmp_path: Path) -> None:
    """A night that was killed is not resumed, so nobody writes its page again (benchmarks/attacks/kills.py)."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    before = new_run_folder(tmp_path)
    half = before / f".nightly.html.{atomic_file.machine()}-{ended.pid}.tmp"
    for file in (half, before / "report.html"):
        file.touch()
    new_run_folder(tmp_path)
    assert [path.name for path in before.iterdir()] == ["report.html"]


@pytest.mark.parametrize("call", [latest, read_run, resume])
def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path, call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(StoreError) as caught:
        call(tmp_path / "nowhere")
    assert "nowhere" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "does not describe a run"), ("[]", "not a Run"), ("{}", "missing"), ('{"schema": 99}', "newer than this")],
)
def test_a_bad_description_is_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    folder = stored(tmp_path / "run", [a_slice()])
    (folder / "run.json").write_text(text)
    with pytest.raises(StoreError, match=says):
        read_run(folder)


def test_parquet_has_a_row_for_each_record_and_the_run_in_its_metadata(tmp_path: Path) -> None:
    path = write_outcomes(stored(tmp_path / "run", [a_slice(), a_wrong_slice()]))
    metadata = pq.read_metadata(path).metadata
    assert json.loads(metadata[b"epcheck.run"])["run_id"] == "20250102-030405-beef"
    assert metadata[b"epcheck.schema"] == b"5"
    counts = json.loads(metadata[b"epcheck.counts"])
    assert counts["dml"]["operators"] == {"Slice": [1, 1, 0]}
    table = pq.read_table(path)
    row, right = table.to_pylist()
    assert (right["case_id"], right["record"]) == (a_slice().case_id, None)
    assert json.loads(row.pop("record"))["case_id"] == a_wrong_slice().case_id
    assert row == {
        "run_id": "20250102-030405-beef",
        "failing": True,
        "cause": "wrong values: … of … elements differ · DML_SLICE1_OPERATOR_DESC",
        "assignment": "DmlExecutionProvider Slice",
        "case_id": "Slice-13/float16/negative_step_past_both_ends[runtime]",
        "operator": "Slice",
        "domain": "",
        "since_version": 13,
        "opset": 13,
        "dtype": "float16",
        "sample": "negative_step_past_both_ends",
        "binding": "runtime",
        "target": "dml",
        "status": "mismatch",
        "blame": "candidate",
        "reading": "failure",
        "claimed": True,
        "reason": "output: 6 of 8 elements differ from the truth; the baseline and two oracles agree with it",
        "create_s": 0.0061,
        "run_s": 0.00098,
        "attempts": 2,
        "baseline": "cpu",
        "baseline_status": "pass",
        "max_ulp": 2048.0,
        "wrong_elements": 6,
        "excused_elements": 0,
        "excused_ulp": None,
        **dict.fromkeys(("ulp_elements", "ulp_max", "ulp_sum", "ulp_counts")),
        **dict.fromkeys(("baseline_ulp_max", "baseline_ulp_sum", "baseline_ulp_counts")),
    }


def test_parquet_of_a_run_without_records_is_empty_not_absent(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", [], a_run(3, status="failed: no adapter"))
    assert pq.read_table(write_outcomes(folder)).num_rows == 0


def test_parquet_takes_half_a_surrogate_pair_and_an_infinite_ulp(tmp_path: Path) -> None:
    wrong = a_wrong_slice(reason="\udc80")
    difference = wrong.candidate.differences[0]
    object.__setattr__(difference, "max_ulp", math.inf)
    object.__setattr__(difference, "first", (Mismatch((0,), "1", "inf", math.inf),))
    row = pq.read_table(write_outcomes(stored(tmp_path / "run", [wrong]))).to_pylist()[0]
    assert (row["reason"], row["max_ulp"]) == ("\\udc80", math.inf)


def test_failing_rows_have_row_groups_of_their_own_and_all_are_sorted(tmp_path: Path) -> None:
    samples = ("d", "b", "a", "c")
    records = [make(sample=sample) for sample in samples for make in (a_slice, a_wrong_slice)]
    file = pq.ParquetFile(write_outcomes(stored(tmp_path / "run", records)))
    groups = [file.read_row_group(number).to_pylist() for number in range(file.num_row_groups)]
    assert [[row["failing"] for row in group] for group in groups] == [[True] * 4, [False] * 4]
    assert [[row["sample"] for row in group] for group in groups] == [["a", "b", "c", "d"]] * 2


def test_what_is_neither_right_nor_owed_is_counted_apart(tmp_path: Path) -> None:
    idle = a_slice(sample="not_claimed", status="unplaced", claimed=False)
    tolerated = a_wrong_slice(reading="expected")
    gelu = a_slice(sample="gelu", operator="Gelu", domain="com.microsoft")
    path = write_outcomes(stored(tmp_path / "run", [a_slice(), idle, tolerated, gelu]))
    counts = json.loads(pq.read_metadata(path).metadata[b"epcheck.counts"])
    assert counts["dml"]["operators"] == {"Slice": [1, 1, 1], "com.microsoft::Gelu": [1, 0, 0]}


@pytest.mark.slow
def test_many_records_go_through_in_batches(tmp_path: Path) -> None:
    assert pq.read_table(write_outcomes(stored(tmp_path / "run", many(2500)))).num_rows == 2500
