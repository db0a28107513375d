"""`epcheck fuzz`: the folder it leaves, its exit codes, and what it says to bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epcheck import api
from epcheck.api.fuzzing import history_file, nightly_search
from epcheck.api.fuzzing.nightly_search import Budget, searches
from epcheck.api.progress import SILENT
from epcheck.conformance.targets.specification import resolve
from tests.command_line import call, refused
from tests.conformance.small_cases import HERE


@pytest.fixture(autouse=True)
def _beside_the_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)


def fuzz(backend: str, out: Path, operator: str = "Concat", nodes: int = 200) -> api.FuzzResult:
    target = f"python:fuzzing_backends:{backend}"
    options = api.FuzzOptions(target, "none", (operator,), seed=1, nodes=nodes, out=out, jobs=1)
    return api.fuzz(options)


def test_a_fault_has_a_folder_that_anybody_can_run(tmp_path: Path) -> None:
    result = fuzz("refuses_negative_axes", tmp_path)
    assert not result.conforms
    (folder,) = result.folders
    assert folder.parent == tmp_path / "faults"
    names = {path.name for path in folder.iterdir()}
    assert names >= {"model.onnx", "run.py", "case.json", "bug.md", "node.jsonl"}
    report = (folder / "bug.md").read_text(encoding="utf-8")
    assert report.startswith("# Concat: refused on python:fuzzing_backends:refuses_negative_axes\n")
    assert "- attributes: axis=-1" in report
    done = subprocess.run(
        [sys.executable, "run.py", "CPUExecutionProvider"], cwd=folder, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [r.status for r in api.replay(api.ReplayOptions(folder, targets=("cpu",), baseline="none"))] == ["pass"]


def test_examples_are_replayed_until_they_pass(tmp_path: Path) -> None:
    fuzz("refuses_negative_axes", tmp_path)
    database = (tmp_path / "examples.jsonl").read_text(encoding="utf-8")
    assert len(database.splitlines()) == 1
    others = fuzz("right", tmp_path, operator="Slice", nodes=1)
    assert (others.replayed, others.conforms) == (0, True)
    assert (tmp_path / "examples.jsonl").read_text(encoding="utf-8") == database
    again = fuzz("refuses_negative_axes", tmp_path, nodes=1)
    assert (again.replayed, [fault.replayed for fault in again.faults]) == (1, [True])
    mended = fuzz("right", tmp_path, nodes=1)
    assert (mended.replayed, mended.conforms) == (1, True)
    assert (tmp_path / "examples.jsonl").read_text(encoding="utf-8") == ""


def test_the_result_is_one_json_document(tmp_path: Path) -> None:
    result = fuzz("refuses_negative_axes", tmp_path)
    document = json.loads((tmp_path / "fuzz.json").read_text(encoding="utf-8"))
    assert document["schema"] == 1
    assert (document["judged"], document["seed"], document["conforms"]) == (200, 1, False)
    (fault,) = document["faults"]
    assert (fault["operator"], fault["status"], fault["new"]) == ("Concat", "refused", True)
    assert fault["node"]["attributes"] == {"axis": {"int": -1}}
    assert fault["id"] == result.faults[0].cause.id


def test_the_command_ends_with_0_or_1(tmp_path: Path) -> None:
    options = (
        "--baseline",
        "none",
        "--nodes",
        "60",
        "--seed",
        "1",
        "--op",
        "Concat",
        "--out",
        str(tmp_path),
        "-j",
        "1",
    )
    wrong = call("fuzz", "-t", "python:fuzzing_backends:refuses_negative_axes", *options)
    assert wrong.code == 1
    assert "fault Concat refused" in wrong.out
    right = call("fuzz", "-t", "python:fuzzing_backends:right", *options, "--json", str(tmp_path / "more.json"))
    assert right.code == 0
    assert "0 new faults and 0 known ones in 60 nodes" in right.out
    assert json.loads((tmp_path / "more.json").read_text(encoding="utf-8"))["replayed"] == 1


def test_what_the_baseline_shows_too_is_listed_apart_and_fails_nothing(tmp_path: Path) -> None:
    target = "python:fuzzing_backends:refuses_negative_axes"
    options = ("--nodes", "60", "--seed", "1", "--op", "Concat", "--out", str(tmp_path), "-j", "1")
    done = call("fuzz", "-t", target, "--baseline", "python:fuzzing_backends:refuses_them_too", *options)
    assert done.code == 0
    assert "baseline too Concat refused" in done.out
    assert "0 new faults and 0 known ones, 1 that the baseline shows too, in 60 nodes" in done.out
    assert "keep as a case" not in done.out
    (fault,) = json.loads((tmp_path / "fuzz.json").read_text(encoding="utf-8"))["faults"]
    assert (fault["shared"], fault["new"], fault["blame"]) == (True, False, "both")
    (report,) = (tmp_path / "faults").glob("*/bug.md")
    assert "- the baseline fails in the same way" in report.read_text(encoding="utf-8")
    other = call("fuzz", "-t", target, "--baseline", "python:fuzzing_backends:right", *options)
    assert (other.code, "1 found before and still there" in other.out) == (1, True)


def test_bad_input_is_one_sentence(tmp_path: Path) -> None:
    assert refused("fuzz", "-t", "cpu", "--op", "Slize").startswith("unknown operator 'Slize'. Did you mean ")
    assert refused("fuzz", "-t", "gpu").startswith("unknown target 'gpu'")
    (tmp_path / "examples.jsonl").write_text("\n{]\n", encoding="utf-8")
    sentence = refused("fuzz", "-t", "cpu", "--out", str(tmp_path))
    assert sentence.startswith(f"{tmp_path / 'examples.jsonl'}, line 2: not a node: ")
    assert sentence.endswith("correct or delete the line")


def test_a_night_searches_and_replays_what_earlier_nights_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    target = "python:fuzzing_backends:refuses_negative_axes"
    run = api.RunOptions(
        targets=(target,), baseline="none", operators=("Concat",), limit=1, reference=False, root=tmp_path, jobs=1
    )
    options = api.NightlyOptions(run, tmp_path / "store", fuzz_minutes=0.02, fuzz_out=tmp_path / "fuzz")
    first = api.nightly(options)
    (search,) = first.searches
    assert (search.target, search.what, search.replayed, search.ended) == (target, "nodes", 0, "")
    assert [(fault.operator, fault.status, fault.replayed) for fault in search.new] == [("Concat", "refused", False)]
    assert Path(search.faults[0].folder).is_relative_to(tmp_path / "fuzz")
    assert (Path(search.faults[0].folder) / "run.py").is_file()
    (again,) = api.nightly(options).searches
    assert (again.replayed, again.new, [fault.replayed for fault in again.again]) == (1, (), [True])
    text = (first.folder / "nightly.md").read_text(encoding="utf-8")
    assert "1 new fault, 0 found before and still failing" in text
    assert again.seed == search.seed + 1
    (history,) = (tmp_path / "store").glob("searches-*.json")
    assert json.loads(history.read_text(encoding="utf-8"))["searches"] == 2


def a_night(tmp_path: Path, operator: str = "Identity", **options: Any) -> api.Night:
    target = "python:fuzzing_backends:right"
    run = api.RunOptions(
        targets=(target,), baseline="none", operators=(operator,), limit=1, reference=False, root=tmp_path, jobs=1
    )
    return api.nightly(api.NightlyOptions(run, tmp_path / "store", fuzz_out=tmp_path / "fuzz", **options))


def test_a_night_searches_for_a_share_of_its_time_and_judges_no_node_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setattr(nightly_search, "LEAST_S", 2.0)
    assert a_night(tmp_path, fuzz_minutes=0).searches == ()
    assert not (tmp_path / "fuzz").exists()
    first = a_night(tmp_path)
    (search,) = first.searches
    assert 2 <= search.seconds < 30
    assert search.judged > 100
    (document,) = json.loads((first.folder / "nightly.json").read_text(encoding="utf-8"))["searches"]
    assert (document["judged"], document["seconds"]) == (search.judged, search.seconds)
    assert f"{search.judged:,} nodes judged in {search.seconds:,.0f} s" in (first.folder / "nightly.html").read_text(
        "utf-8"
    )
    before = history_file.read(history_file.path_in(tmp_path / "store", search.target))
    assert (before.searches, 0 < len(before.nodes) <= search.judged) == (1, True)
    (again,) = a_night(tmp_path).searches
    after = history_file.read(history_file.path_in(tmp_path / "store", search.target))
    assert again.repeated > 0
    assert len(after.nodes) > len(before.nodes)
    history_file.path_in(tmp_path / "store", search.target).write_text("damaged", encoding="utf-8")
    (anew,) = a_night(tmp_path).searches
    assert "it cannot be read: " in anew.sentences
    assert anew.seed == search.seed


def test_the_share_is_a_tenth_of_the_run_and_at_least_30_seconds_in_all() -> None:
    assert [60 * Budget.of(None, None, run_s, targets).minutes for run_s, targets in ((5, 1), (5, 2), (900, 1))] == [
        30, 15, 90,
    ]  # fmt: skip
    assert Budget.of(2.0, None, 900, 3) == Budget(2.0, 0.0)
    assert Budget.of(0.0, 1.0, 900, 3) == Budget(0.0, 1.0)


def test_a_target_that_cannot_be_searched_is_passed_over_unless_the_user_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = replace(resolve("cpu"), name="directml", calls_directml=True)
    monkeypatch.setattr("epcheck.api.fuzzing.fuzz.resolve", lambda *_: target)
    common = api.FuzzOptions(seed=739_000, baseline="none", out=tmp_path)
    assert list(searches(["directml"], common, Budget.of(None, None, 1, 1), tmp_path, SILENT)) == []
    (asked,) = searches(["directml"], common, Budget.of(1.0, None, 1, 1), tmp_path, SILENT)
    assert asked.sentences.startswith("Not searched: --target directml: fuzzing draws ONNX nodes")
    assert asked.seed == 739_000_000
