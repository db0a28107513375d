"""`epcheck bisect` with made-up environments: real workers, a real runtime, and a fault planted from a release on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from epcheck import api
from epcheck.conformance.releases.search import FIRST_WRONG, NEVER_WRONG, Conclusion
from tests.command_line import call, refused

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the made-up interpreters are shell scripts")

SLICE = "Slice-13/float32/rank_1_last_axis[runtime]"

PLANTED = """
import os
import time
import onnxruntime

if int(os.environ["RELEASE"]) >= 5:
    made, ran = onnxruntime.InferenceSession.__init__, onnxruntime.InferenceSession.run

    def make(self, model, *options, **named):
        made(self, model, *options, **named)
        self.planted, self.is_slow = b"Slice" in model, b"Conv" in model

    def run(self, *arguments):
        started = time.perf_counter()
        values = ran(self, *arguments)
        until = started + 3 * (time.perf_counter() - started)
        while self.is_slow and time.perf_counter() < until:
            pass
        return [value + self.planted for value in values] if self.planted else values

    onnxruntime.InferenceSession.__init__, onnxruntime.InferenceSession.run = make, run
"""
"""What every made-up release executes at its start: from release 1.5 on the outputs of Slice are 1 too large, and
Conv takes 3 times as long."""


@pytest.fixture
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Releases 1.0 to 1.8 of onnxruntime, made of this interpreter; 1.4 and 1.8 do not start."""
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "sitecustomize.py").write_text(PLANTED, encoding="utf-8")
    for number in range(9):
        home = tmp_path / "runtimes" / f"onnxruntime-1.{number}"
        (home / "bin").mkdir(parents=True)
        (home / "complete").touch()
        start = "exit 3" if number in (4, 8) else f'RELEASE={number} PYTHONPATH={planted} exec {sys.executable} "$@"'
        (home / "bin" / "python").write_text(f"#!/bin/sh\n{start}\n", encoding="utf-8")
        (home / "bin" / "python").chmod(0o755)
    monkeypatch.setenv("EPCHECK_RUNTIMES", str(tmp_path / "runtimes"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def other() -> str:
    """A case that no release gets wrong."""
    return "Neg-6/float32/matrix[runtime]"


@pytest.mark.usefixtures("environments")
def test_a_planted_fault_is_found_in_environments_that_are_there(tmp_path: Path, other: str) -> None:
    ids = (SLICE, other)
    options = api.BisectOptions(ids, target="cpu", releases="1.0..1.8", json=tmp_path / "found.json")
    found = api.bisect(options)
    assert {history.case_id: history.conclusion for history in found.bisection.cases} == {
        SLICE: Conclusion(FIRST_WRONG, 3, 5, (4,)),
        other: Conclusion(NEVER_WRONG, 0, 7),
    }
    assert found.wrong_now
    assert set(found.bisection.left_out) == {"1.4", "1.8"}
    document = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert (document["target"], document["package"], len(document["releases"])) == ("cpu", "onnxruntime", 9)
    assert document["cases"][0] == {
        "case": SLICE, "kind": "first wrong", "before": "1.3", "since": "1.5", "skipped": ["1.4"],
        "words": "wrong since 1.5 (mismatch), right in 1.3; or since 1.4 already, which could not be judged",
        "trials": document["cases"][0]["trials"],
    }  # fmt: skip
    assert {name: trial["status"] for name, trial in document["cases"][0]["trials"].items()} == {
        "1.0": "pass", "1.3": "pass", "1.5": "mismatch", "1.6": "mismatch", "1.7": "mismatch",
    }  # fmt: skip
    assert document["cases"][0]["trials"]["1.5"]["message"].startswith("output: 1 of 1 elements is wrong")
    assert "onnxruntime" in document["facts"]["1.5"]


@pytest.mark.usefixtures("environments")
def test_the_failures_of_a_run_are_bisected_together_and_grouped(tmp_path: Path) -> None:
    run = call("run", "-t", "cpu@1.7", "--baseline", "none", "--no-reference", "--op", "Slice", "--dtype", "float32",
               "-k", "rank_1_last_axis", "-k", "rank_2_last_axis", "--root", str(tmp_path))  # fmt: skip
    assert run.code == 1, run.out + run.err
    (folder,) = (path.parent for path in tmp_path.glob("*/run.json"))
    done = call("bisect", str(folder), "--releases", "1.3,1.5,1.7", "-k", "[runtime]", "--json", "found.json")
    assert (done.code, done.err) == (1, "")
    first, *steps, last, check = [line for line in done.out.splitlines() if line]
    assert first.startswith("onnxruntime: 3 releases from 1.3 to 1.7, at most 3 runs of each of ")
    cases = json.loads(Path("found.json").read_text(encoding="utf-8"))["cases"]
    count = len(cases)
    assert count > 2
    assert {case["words"] for case in cases} == {"wrong since 1.5 (mismatch), right in 1.3"}
    assert steps == [f"cpu@1.7: {count} wrong", f"cpu@1.3: {count} right", f"cpu@1.5: {count} wrong"]
    assert last.endswith("wrong since 1.5 (mismatch), right in 1.3")
    assert check == f'  see both: epcheck run -t cpu@1.3 -t cpu@1.5 -k "{cases[0]["case"]}"'


@pytest.mark.usefixtures("environments")
def test_one_case_is_shown_release_by_release_and_right_now_is_exit_code_0(other: str) -> None:
    done = call("bisect", other, "--target", "cpu", "--releases", "1.3..1.5")
    assert (done.code, done.err) == (0, "")
    lines = [line.rstrip() for line in done.out.splitlines()]
    assert lines[0].startswith("Only releases that are installed are compared, since the package index has no release")
    assert lines[1:4] == ["onnxruntime: 3 releases from 1.3 to 1.5, at most 3 runs", "cpu@1.5: right", "cpu@1.3: right"]
    assert lines[-1] == f"{other}: never wrong: right in 1.3 and 1.5, the ends"


@pytest.mark.usefixtures("environments")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nowhere", "-t", "cpu"), "unknown case 'nowhere'"),
        ((SLICE, "-t", "reference"), "target 'reference' has no releases to compare"),
        ((SLICE, "-t", "cpu", "--releases", "new"), "'new' names no releases; write for example 1.17.3..1.24.4"),
        ((SLICE, "-t", "cpu", "--releases", "2.0.."), "the package index has no release of onnxruntime"),
        ((SLICE, "-t", "cpu", "--releases", "1.4,1.8"), "no release of onnxruntime could be tried; target 'cpu@1.8'"),
    ],
)
def test_what_cannot_be_bisected_is_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    assert refused("bisect", *arguments).startswith(sentence)


@pytest.mark.usefixtures("environments")
def test_a_planted_slow_down_is_found_in_the_release_that_has_it(tmp_path: Path) -> None:
    node = "ConvTranspose-11/float32/up_28_batch_1"
    done = call("bisect", "--speed", node, "--target", "cpu", "--releases", "1.3,1.5,1.7", "--max-slowdown", "2",
                "--seconds", "20", "--json", str(tmp_path / "found.json"))  # fmt: skip
    assert (done.code, done.err) == (1, "")
    assert f'see both: epcheck speed -t cpu@1.3 -t cpu@1.5 -k "{node}"' in done.out
    (case,) = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["cases"]
    assert case["words"] == "wrong since 1.5 (slower), right in 1.3"
    assert {name: trial["status"] for name, trial in case["trials"].items()} == {
        "1.3": "pass", "1.5": "slower", "1.7": "slower",
    }  # fmt: skip
    assert case["trials"]["1.5"]["message"].startswith("slower by ")
    assert case["trials"]["1.3"] == {"status": "pass", "message": "the release that the others are compared with"}


def test_speed_is_bisected_of_nodes_that_are_timed() -> None:
    assert refused("bisect", "--speed", "nowhere", "-t", "cpu").startswith("no node is left to time of nowhere")
