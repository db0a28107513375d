"""Merging runs: everything once, nothing mixed, what is missing named, and nothing left behind by a refusal."""

from __future__ import annotations

import json
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epcheck.conformance.records.record import Record
from epcheck.conformance.records.run import Share, digest_of
from epcheck.conformance.records.target_facts import differing_facts, join_facts
from epcheck.reports import StoreError, merge_runs, read_records, read_run, summarize, write_run
from tests.reports.stored_records import a_run, a_slice, a_wrong_slice, changed, many, stored

CASES = [a_slice(sample=f"number_{number}") for number in range(6)]
WHOLE = Share(6, digest_of(record.case_id for record in CASES))


def shard(folder: Path, index: int, count: int = 3, **changes: Any) -> Path:
    """Shard `index` of the six cases, run to its end."""
    records = CASES[index - 1 :: count]
    share = replace(WHOLE, index=index, count=count, cut=f"into {count}")
    return stored(folder, records, a_run(len(records), **{"run_id": folder.name, "share": share, **changes}))


def shards(root: Path, *indices: int, **changes: Any) -> list[Path]:
    return [shard(root / f"shard-{index}", index, **changes) for index in indices]


def on(target: str, record: Record) -> Record:
    return changed(record, candidate=replace(record.candidate, target=target))


def whole(folder: Path, target: str = "dml", **changes: Any) -> Path:
    """All six cases on one target."""
    run = a_run(6, run_id=folder.name, candidates=(target,), share=WHOLE)
    facts = {target: run.targets["dml"], "cpu": run.targets["cpu"]}
    return stored(folder, [on(target, record) for record in CASES], replace(run, targets=facts, **changes))


def fact(run_folder: Path, target: str, **facts: str) -> None:
    """Change what a target said of itself in a run."""
    run = read_run(run_folder)
    write_run(run_folder, replace(run, targets={**run.targets, target: {**run.targets[target], **facts}}))


def ids(folder: Path) -> list[tuple[str, str]]:
    return [(record.candidate.target, record.case_id) for record in read_records(folder)]


def refusal(tmp_path: Path, *folders: Path, **options: Any) -> str:
    """Why they are not merged; nothing is left of the attempt, and the runs are as they were."""
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(StoreError) as error:
        merge_runs(folders, tmp_path / "out", **options)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "out").exists()
    return str(error.value).replace(f"{tmp_path}{os.sep}", "")


def test_all_shards_make_the_whole_run(tmp_path: Path) -> None:
    merged = merge_runs(shards(tmp_path, 3, 1, 2), tmp_path / "out").folder
    run = read_run(merged)
    assert sorted(ids(merged)) == sorted(("dml", record.case_id) for record in CASES)
    assert list(read_records(merged)) == [*CASES[0::3], *CASES[1::3], *CASES[2::3]]
    assert (run.status, run.planned, run.run_id, run.share) == ("complete", 6, "out", WHOLE)
    assert run.notes == ("Merged from 3 runs: shard-1, shard-2, shard-3",)
    assert {path.name for path in merged.iterdir()} >= {
        "run.json", "journal.jsonl", "outcomes.parquet", "report.html", "report.json", "junit.xml",
    }  # fmt: skip
    assert json.loads((merged / "report.json").read_text())["complete"] is True


def test_its_times_span_all_runs_and_its_duration_adds_up(tmp_path: Path) -> None:
    times = [("T10:00", "T10:05", 300.0), ("T09:00", "T09:01", 60.0), ("T11:00", "T11:02", 120.0)]
    parts = [
        shard(tmp_path / str(number), number, started=started, finished=finished, duration_s=duration)
        for number, (started, finished, duration) in enumerate(times, 1)
    ]
    run = merge_runs(parts, tmp_path / "out").run
    assert (run.started, run.finished, run.duration_s) == ("T09:00", "T11:02", 480.0)


def test_a_folder_that_holds_runs_stands_for_all_of_them(tmp_path: Path) -> None:
    shards(tmp_path / "artifacts" / "linux", 1, 2)
    extra = shards(tmp_path / "artifacts" / "windows", 3)
    merged = merge_runs([tmp_path / "artifacts", *extra], root=tmp_path / "runs").folder
    assert merged.parent == tmp_path / "runs"
    assert (read_run(merged).status, len(ids(merged))) == ("complete", 6)


def test_missing_shards_are_named_and_the_run_is_not_complete(tmp_path: Path) -> None:
    merged = merge_runs(shards(tmp_path, 2), tmp_path / "out").folder
    run = read_run(merged)
    assert (run.status, run.planned) == ("failed: shards 1/3 of dml, 3/3 of dml are missing", 6)
    assert summarize(run, read_records(merged)).missing == 4
    again = merge_runs(shards(tmp_path / "again", 1, 2), tmp_path / "out2").folder
    assert read_run(again).status == "failed: shard 3/3 of dml is missing"


def test_a_target_that_some_shards_did_not_run_is_incomplete(tmp_path: Path) -> None:
    parts = shards(tmp_path, 1, 2, 3)
    both = tmp_path / "both"
    records = [changed for record in CASES[0::3] for changed in (on("dml", record), on("arc", record))]
    run = replace(read_run(parts[0]), candidates=("dml", "arc"), planned=4)
    stored(both, records, replace(run, targets={**run.targets, "arc": {"adapter": "Arc A770"}}))
    merged = merge_runs([both, *parts[1:]], tmp_path / "out").folder
    assert read_run(merged).status == "failed: shards 2/3 of arc, 3/3 of arc are missing"
    assert read_run(merged).planned == 12


def test_the_same_selection_on_several_targets_becomes_one_run(tmp_path: Path) -> None:
    parts = [whole(tmp_path / "a", "rtx4090"), whole(tmp_path / "b", "arc"), *shards(tmp_path, 1, 2, 3)]
    merged = merge_runs(parts, tmp_path / "out").folder
    run = read_run(merged)
    assert (run.status, run.planned, set(run.candidates)) == ("complete", 18, {"rtx4090", "arc", "dml"})
    assert set(run.targets) == {"rtx4090", "arc", "dml", "cpu"}
    assert len(set(ids(merged))) == 18


def test_failures_stay_failures(tmp_path: Path) -> None:
    wrong = a_wrong_slice(case_id=CASES[3].case_id)
    parts = shards(tmp_path, 2, 3)
    bad = shard(tmp_path / "bad", 1)
    (bad / "journal.jsonl").unlink()
    run = read_run(bad)
    (bad / "run.json").unlink()
    stored(bad, [CASES[0], wrong], run)
    merged = merge_runs([bad, *parts], tmp_path / "out").folder
    assert summarize(read_run(merged), read_records(merged)).by_reading == {"ok": 5, "failure": 1}


def test_stale_expectations_are_those_of_the_whole(tmp_path: Path) -> None:
    parts = shards(tmp_path, 1, 2, 3)
    for part, stale in zip(parts, (("dml: A-*",), ("dml: A-*",), ("dml: B-*",)), strict=True):
        run = read_run(part)
        assert run.share is not None
        write_run(part, replace(run, share=replace(run.share, stale=stale)))
    assert merge_runs(parts, tmp_path / "out").run.stale == ("dml: A-*", "dml: B-*")


def test_a_shard_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    parts = shards(tmp_path, 1, 2, 3)
    twice = shard(tmp_path / "retried", 2)
    assert refusal(tmp_path, *parts, twice) == (
        "shard-2 and retried both hold shard 2/3 of target 'dml'; "
        "leave one out, or give each machine's target its own name in epcheck.toml"
    )
    merged = merge_runs([*parts, parts[1]], tmp_path / "out").folder
    assert len(ids(merged)) == 6  # the same folder twice is no second run


def test_two_machines_that_ran_everything_under_one_name_are_refused(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, whole(tmp_path / "a"), whole(tmp_path / "b"))
    assert sentence.startswith("a and b both hold all of target 'dml'; leave one out, or give each machine's target")


def test_a_driver_that_is_not_the_same_is_refused(tmp_path: Path) -> None:
    parts = shards(tmp_path, 1, 2, 3)
    fact(parts[2], "dml", driver="26.1.0")
    assert refusal(tmp_path, *parts) == (
        "target 'dml' is not the same in shard-1 and shard-3: driver is '25.0.7' and '26.1.0'; "
        "give each machine's target its own name in epcheck.toml, or pass --may-differ driver"
    )


def test_a_fact_that_only_one_machine_tells_is_a_difference(tmp_path: Path) -> None:
    parts = shards(tmp_path, 1, 2)
    fact(parts[1], "dml", layer="debug")
    assert "layer is '' and 'debug'" in refusal(tmp_path, *parts)


def test_what_may_differ_is_kept_side_by_side_and_said(tmp_path: Path) -> None:
    parts = shards(tmp_path, 1, 2, 3)
    fact(parts[2], "dml", os="Windows 11", interpreter="C:/python.exe")
    run = merge_runs(parts, tmp_path / "out", may_differ=("os",)).run
    assert run.targets["dml"]["os"] == "Windows 10.0.19043 (Wine 10.0) | Windows 11"
    assert run.targets["dml"]["interpreter"] == "C:/python.exe"
    assert run.notes[1:] == ("The target dml is not the same on all machines; it differs in os",)


def test_where_a_target_is_installed_is_no_difference(tmp_path: Path) -> None:
    parts = shards(tmp_path, 1, 2, 3)
    for number, part in enumerate(parts):
        fact(part, "dml", interpreter=f"/{number}/python")
    run = merge_runs(parts, tmp_path / "out").run
    assert run.targets["dml"]["interpreter"] == "/0/python | /1/python | /2/python"
    assert len(run.notes) == 1


def test_a_baseline_that_is_not_the_same_everywhere_is_said(tmp_path: Path) -> None:
    parts = [whole(tmp_path / "a", "rtx4090"), whole(tmp_path / "b", "arc")]
    fact(parts[1], "cpu", os="Windows 11")
    run = merge_runs(parts, tmp_path / "out").run
    assert run.targets["cpu"]["os"] == "Linux 6.1 x86_64 | Windows 11"
    assert run.notes[1:] == ("The target cpu is not the same on all machines; it differs in os",)


@pytest.mark.parametrize(
    ("status", "how"),
    [
        ("running", "it is still running or was killed"),
        ("interrupted", "it was interrupted"),
        ("failed: target 'dml': its worker does not start", "it failed: target 'dml': its worker does not start"),
    ],
)
def test_an_unfinished_run_is_refused(tmp_path: Path, status: str, how: str) -> None:
    parts = [*shards(tmp_path, 1, 2), shard(tmp_path / "late", 3, status=status)]
    assert refusal(tmp_path, *parts) == (
        f"late: is not finished, {how}; finish it with epcheck run --resume late, or leave it out"
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"versions": {"epcheck": "0.2.0", "onnx": "1.23.2"}},
            "epcheck 0.1.0 and 0.2.0; run both with the same",
        ),
        ({"versions": {"epcheck": "0.1.0"}}, "onnx 1.23.2 and unknown; run both with the same"),
        ({"baseline": None}, "the baselines are cpu and none; name one with --baseline"),
        (
            {"selection": {**a_run().selection, "reference": True}},
            "only one of them asked onnx.reference about every case",
        ),
        (
            {"share": Share(5, "others"), "selection": {"operators": ["Slice"], "dtypes": "all"}},
            "they select operators Slice, TopK, QLinearConv and Slice",
        ),
        (
            {"share": Share(5, "others")},
            "the same selection has 6 cases and 5, or others; their suites differ",
        ),
    ],
)
def test_runs_that_do_not_belong_together_are_refused(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    parts = [whole(tmp_path / "a", "rtx4090"), whole(tmp_path / "b", "arc", **{"started": "later", **changes})]
    assert refusal(tmp_path, *parts) == f"a and b do not belong together: {sentence}"


def test_shards_of_different_cuts_are_refused(tmp_path: Path) -> None:
    parts = [shard(tmp_path / "a", 1, 3), shard(tmp_path / "b", 2, 2)]
    assert refusal(tmp_path, *parts) == (
        "a and b cut the cases of target 'dml' differently, into shards 1/3 and 2/2; run all with the same number of "
        "shards and the same --balance"
    )


def test_a_run_that_does_not_know_its_share_is_refused(tmp_path: Path) -> None:
    old = stored(tmp_path / "old", CASES, a_run(6))
    assert refusal(tmp_path, old) == "old: was written by an older epcheck and does not name its whole; run it again"


def test_a_journal_that_lost_its_end_is_refused(tmp_path: Path) -> None:
    parts = shards(tmp_path, 1, 2)
    journal = parts[1] / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-10])
    assert refusal(tmp_path, *parts) == (
        "shard-2: is damaged: its journal has 1 of 2 records; complete it with epcheck run --resume shard-2"
    )


def test_a_journal_with_a_line_that_is_no_record_is_refused(tmp_path: Path) -> None:
    parts = shards(tmp_path, 1, 2)
    journal = parts[1] / "journal.jsonl"
    journal.write_bytes(b"{}\n" + journal.read_bytes())
    assert refusal(tmp_path, *parts).startswith(f"{Path('shard-2/journal.jsonl')}, line 1: is not a record")


def test_a_case_that_is_in_two_shards_is_refused(tmp_path: Path) -> None:
    parts = shards(tmp_path, 1, 2)
    (parts[1] / "journal.jsonl").write_bytes((parts[0] / "journal.jsonl").read_bytes())
    case_id = CASES[0].case_id
    assert refusal(tmp_path, *parts) == f"shard-2: is damaged: '{case_id}' on 'dml' is duplicated or does not belong"


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    sentence = "is not a run folder and contains none; name the run folders to merge"
    assert refusal(tmp_path, tmp_path / "empty") == f"empty: {sentence}"
    assert refusal(tmp_path, tmp_path / "nothing") == f"nothing: {sentence}"


def test_a_folder_that_exists_is_not_written_to(tmp_path: Path) -> None:
    parts = shards(tmp_path, 1, 2, 3)
    with pytest.raises(StoreError, match="shard-1: already exists; name another folder for the merged run"):
        merge_runs(parts, parts[0])
    assert len(ids(parts[0])) == 2


@pytest.mark.slow
def test_of_a_large_run_only_ids_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epcheck.reports.merge.write_all", lambda *_folder, **_how: None)  # has bounds of its own
    folder = stored(tmp_path / "large", many(3000), a_run(3000, share=Share(3000, "many")))
    tracemalloc.start()
    try:
        merge_runs([folder], tmp_path / "out")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < (folder / "journal.jsonl").stat().st_size / 4


def test_facts_that_differ_are_told_with_both_values() -> None:
    first, second = {"adapter": "A", "os": "Linux", "interpreter": "/a"}, {"adapter": "B", "os": "Linux", "layer": "on"}
    assert differing_facts(first, second) == [("adapter", "A", "B"), ("layer", "", "on")]
    assert differing_facts(first, second, ("adapter", "layer")) == []
    assert join_facts([first, second, first]) == {
        "adapter": "A | B",
        "os": "Linux",
        "interpreter": "/a",
        "layer": "on",
    }


def test_a_case_that_is_invented_does_not_stand_for_a_lost_one(tmp_path: Path) -> None:
    folders = shards(tmp_path, 1, 2)
    invented = [changed(CASES[2], case_id="Slice-13/float32/invented[runtime]"), CASES[5]]
    share = replace(WHOLE, index=3, count=3, cut="into 3")
    third = stored(tmp_path / "shard-3", invented, a_run(2, run_id="shard-3", share=share))
    assert refusal(tmp_path, *folders, third) == (
        "shard-1, shard-2, shard-3: damaged: a case of 'dml' is not of the selection, and one of the selection is "
        "lost; run the shards again"
    )


def test_a_digest_of_an_earlier_epcheck_is_not_held_against_a_run(tmp_path: Path) -> None:
    share = replace(WHOLE, digest="0123456789abcdef")
    folder = stored(tmp_path / "whole", CASES, a_run(6, run_id="whole", share=share))
    assert read_run(merge_runs([folder], tmp_path / "out").folder).status == "complete"
