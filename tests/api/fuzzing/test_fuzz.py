"""`epcheck fuzz`: the folder it leaves, its exit codes, and what it says to bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import call, refused
from small_cases import HERE

from epcheck import api


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
