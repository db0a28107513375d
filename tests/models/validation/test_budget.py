"""A validation that runs out of its budget, or is interrupted: what is known is written, and `resume` goes on."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import onnx
import psutil
import pytest

from epcheck import api
from epcheck.api.models.examining.examination import ExaminationError
from epcheck.api.models.validate import ValidationInterrupted
from epcheck.api.models.validation_state import StateError
from epcheck.api.progress import Silent
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.target import Target, TargetError
from epcheck.models.execution.model_outcome import RUN
from epcheck.models.gate.limits import GateLimits, find_missing_steps
from epcheck.models.validation.phases import ADVICE, JUDGING, NODES, SEARCH, SPEED
from epcheck.models.validation.validation import RIGHT, UNJUDGED, WRONG, Validation
from tests.models.small_models import layers
from tests.models.wrong_backends import HANGING

HERE = Path(__file__).parents[1]


def callable_target(name: str) -> Target:
    return Target(name, (sys.executable,), (f"python:wrong_backends:{name}", "--path", str(HERE)))


DOUBLES, HANGS, HANGS_IN_PARTS = map(callable_target, ("doubles_relu", "hangs_at_relu", "hangs_in_parts"))
INSPECTING = "inspecting the file"


class Interrupting(Silent):
    """Interrupts a call when so many models are being inspected. words_so_far: the steps of all models."""

    def __init__(self, at_model: int) -> None:
        self.words_so_far: list[str] = []
        self._at_model = at_model

    @contextmanager
    def working(self) -> Iterator[Callable[[str], None]]:
        yield self._say

    def _say(self, words: str) -> None:
        self.words_so_far.append(words)
        if self.words_so_far.count(INSPECTING) == self._at_model:
            raise KeyboardInterrupt


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(layers(5), path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    for number in (1, 2, 3):
        onnx.save(layers(number), tmp_path / "models" / f"{number}.onnx")
    return tmp_path / "models"


def test_nodes_that_are_known_are_named_where_the_search_is_cut(model: Path, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("page.html", "found.json", "junit.xml", "found.sarif")}
    began = time.monotonic()
    gate = api.validate(api.ValidateOptions(
        (model,), (HANGS_IN_PARTS,), "cpu", seeds=(0,), budget=8, html=files["page.html"], json=files["found.json"],
        junit=files["junit.xml"], sarif=files["found.sarif"],
    ))  # fmt: skip
    assert time.monotonic() - began < 16
    found = gate.validation
    assert (found.status, gate.result, found.left_out) == (WRONG, "fails", (SEARCH,))
    assert found.stopped == "the budget of 8 s is spent"
    assert [node.index for culprit in found.culprits for node in culprit.nodes] == [2, 6, 10, 14, 18]
    sentence = "(`n2`, `n6`, `n10` and 2 more); the budget of 8 s is spent; left out: searching for the wrong node"
    assert found.headline.endswith(sentence)
    assert sentence in files["page.html"].read_text("utf-8")
    document = json.loads(files["found.json"].read_text("utf-8"))
    assert (document["left_out"], document["stopped"]) == ([SEARCH], found.stopped)
    failure = ElementTree.parse(files["junit.xml"]).getroot()[0][0].find("failure")
    assert failure is not None
    assert sentence in str(failure.get("message"))
    assert "left-out" in [each["ruleId"] for each in json.loads(files["found.sarif"].read_text())["runs"][0]["results"]]


def test_a_model_of_which_nothing_is_known_is_not_judged(model: Path) -> None:
    gate = api.validate(api.ValidateOptions((model,), (HANGS,), "cpu", seeds=(0,), budget=2))
    assert (gate.validation.status, gate.result) == (UNJUDGED, "cannot tell")
    assert gate.validation.left_out == (
        "running on hangs_at_relu", "running on cpu", "computing the truth", JUDGING, NODES, SEARCH,
    )  # fmt: skip
    assert gate.validation.headline.startswith(
        "model.onnx: cannot decide whether it is right on hangs_at_relu: the budget of 2 s is spent; left out: running"
    )
    assert gate.validation.headline.endswith("; continue with --resume, or with a larger --budget")


def test_an_interrupted_call_writes_what_is_known_and_goes_on_where_it_was(folder: Path, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("page.html", "all.json", "junit.xml")}
    options = api.ValidateOptions((folder,), (DOUBLES,), "cpu", seeds=(0,), html=files["page.html"],
                                  json=files["all.json"], junit=files["junit.xml"])  # fmt: skip
    with pytest.raises(ValidationInterrupted) as interrupted:
        api.validate(options, progress=Interrupting(2))
    gate = interrupted.value.gate
    assert [(each.name, each.status, each.result) for each in gate.checked] == [
        ("1.onnx", "wrong", "fails"), ("2.onnx", "left out", "cannot tell"), ("3.onnx", "left out", "cannot tell"),
    ]  # fmt: skip
    assert gate.headline == "3 models on 1 target: 0 pass, 1 fail, 2 undecided; interrupted: 2 not finished"
    document = json.loads(files["all.json"].read_text("utf-8"))
    assert [(each["finished"], each["words"]) for each in document["results"][1:]] == [
        (False, "not validated: interrupted"), (False, "not validated: interrupted"),
    ]  # fmt: skip
    suite = ElementTree.parse(files["junit.xml"]).getroot()[0]
    assert [each.tag for case in suite for each in case] == ["failure", "error", "error"]
    state = tmp_path / "page.html.state.json"
    assert state.is_file()

    progress = Interrupting(100)
    done = api.validate(replace(options, resume=True), progress=progress)
    assert progress.words_so_far.count(INSPECTING) == 2
    assert done.checked[0].validation == replace(gate.checked[0].validation, stopped="").plain  # type: ignore[union-attr, type-var]
    assert [(each.status, each.is_finished) for each in done.checked] == [("wrong", True)] * 3
    assert not state.exists()
    with pytest.raises(StateError, match="is not there: no validation to continue"):
        api.validate(replace(options, resume=True))


@pytest.fixture
def state(folder: Path, tmp_path: Path) -> tuple[api.ValidateOptions, Path]:
    """A call that was interrupted after its first model, and the file that it left."""
    path = tmp_path / "kept.json"
    options = api.ValidateOptions((folder,), (DOUBLES,), "cpu", seeds=(0,), culprit=False, state=path)
    with pytest.raises(ValidationInterrupted):
        api.validate(options, progress=Interrupting(2))
    return replace(options, resume=True), path


def test_a_state_that_does_not_belong_to_the_call_is_refused_in_a_sentence(
    state: tuple[api.ValidateOptions, Path], folder: Path
) -> None:
    options, path = state
    kept = json.loads(path.read_text())
    with pytest.raises(StateError, match=r"the feeds of '1.onnx' on 'doubles_relu' are not those of the validation"):
        api.validate(replace(options, seeds=(1,)))
    for change, sentence in (
        ({"schema": 2}, "has schema 2, and this epcheck reads 1"),
        ({"releases": {**kept["releases"], "onnx": "1.0"}}, "package: onnx was 1.0 and is "),
        ({"more": 1}, "is no state of a validation"),
        ({"models": [{**kept["models"][0], "validation": {**kept["models"][0]["validation"], "status": "right"}}]},
         "is no state of a validation"),
        ({"models": [{**kept["models"][0], "name": ["1.onnx"]}]}, "is no state of a validation"),
    ):  # fmt: skip
        path.write_text(json.dumps({**kept, **change}))
        with pytest.raises(StateError, match=sentence):
            api.validate(options)
    facts = {**kept["models"][0]["validation"]["facts"], "doubles_relu": {"numpy": "1.0"}}
    other = {**kept["models"][0], "validation": {**kept["models"][0]["validation"], "facts": facts}}
    path.write_text(json.dumps({**kept, "models": [other]}))
    with pytest.raises(StateError, match=r"target 'doubles_relu': .* was not there and is"):
        api.validate(options)
    path.write_text("[" * 100_000)
    with pytest.raises(StateError, match="is no state of a validation"):
        api.validate(options)
    path.write_text(json.dumps(kept))
    onnx.save(layers(4), folder / "1.onnx")
    with pytest.raises(StateError, match=r"the model or the feeds of '1.onnx'"):
        api.validate(options)


def test_what_a_state_says_of_paths_and_arguments_is_not_used(state: tuple[api.ValidateOptions, Path]) -> None:
    options, path = state
    kept = json.loads(path.read_text())
    validation = kept["models"][0]["validation"]
    validation.update(path="/elsewhere", configuration="no", reduce_args=[*validation["reduce_args"], "--out", "/etc"])
    path.write_text(json.dumps(kept))
    found = api.validate(options).checked[0].validation
    assert found is not None
    assert (found.path, found.configuration) == (options.models[0].absolute() / "1.onnx", "")
    assert found.reduce_args == ("--target", "doubles_relu", "--baseline", "cpu", "--seed", "0")


def test_a_finished_step_of_an_unfinished_model_is_not_repeated(model: Path, tmp_path: Path) -> None:
    class InterruptingSearch(Interrupting):
        def _say(self, words: str) -> None:
            self.words_so_far.append(words)
            if words == self._word:
                raise KeyboardInterrupt

        _word = "trying changes that place nodes"

    options = api.ValidateOptions((model,), ("cpu",), "reference", seeds=(0,), reference=model, state=tmp_path / "kept")
    stopping = InterruptingSearch(0)
    stopping._word = "judging the nodes"
    with pytest.raises(ValidationInterrupted) as interrupted:
        api.validate(options, progress=stopping)
    found = interrupted.value.gate.validation
    assert (found.status, found.left_out) == (RIGHT, (NODES, SEARCH, ADVICE, "trying changes of refused nodes"))
    progress = Interrupting(100)
    done = api.validate(replace(options, resume=True), progress=progress).validation
    compared = ["comparing with the reference" in each.words_so_far for each in (stopping, progress)]
    assert compared == [True, False]
    assert done.reference == found.reference
    assert (done.left_out, done.nodes_judged) == (
        (), "all 20 nodes were judged alone, on the oracle's values: none beyond the bound",
    )  # fmt: skip


def test_what_is_known_survives_the_end_of_the_process_that_examines(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where it takes too much memory in its oracle."""
    whole = api.validate(api.ValidateOptions((model,), ("cpu",), "cpu", seeds=(0,))).validation
    kept = replace(whole, left_out=("computing the truth", JUDGING, NODES), verdicts=())
    module = importlib.import_module("epcheck.api.models.validate")

    def ends(known: Validation) -> Callable[..., Validation]:
        def end(*arguments: Any) -> Validation:
            arguments[6](known)
            raise ExaminationError("model.onnx: cannot be examined: it takes more than 4,096 MiB of memory")

        return end

    options = api.ValidateOptions((model,), ("cpu",), "cpu", seeds=(0,), json=tmp_path / "found.json")
    monkeypatch.setattr(module, "examine", ends(kept))
    gate = api.validate(options)
    assert (gate.result, gate.validation.status) == ("cannot tell", UNJUDGED)
    assert json.loads((tmp_path / "found.json").read_text("utf-8"))["headline"].startswith(
        "model.onnx: cannot decide whether it is right on CPUExecutionProvider: model.onnx: cannot be examined: it "
        "takes more than 4,096 MiB of memory; left out: computing the truth, judging, judging the nodes; "
    )
    monkeypatch.setattr(module, "examine", ends(replace(kept, steps=())))
    with pytest.raises(ExaminationError):  # nothing has run
        api.validate(options)


def test_what_is_left_out_decides_only_where_a_limit_asks_for_it(model: Path) -> None:
    found = api.validate(api.ValidateOptions((model,), ("cpu",), "cpu", seeds=(0,))).validation
    cut = replace(found, left_out=(NODES, SPEED, ADVICE), stopped="the budget of 9 s is spent")
    assert (cut.status, find_missing_steps(cut, GateLimits())) == (RIGHT, ())
    assert find_missing_steps(cut, GateLimits(strict_nodes=True, latency=2.0)) == (NODES, SPEED)
    early = replace(cut, left_out=("running on cpu without optimisation",), verdicts=())
    assert (early.status, find_missing_steps(early, GateLimits())) == (UNJUDGED, early.left_out)
    (step, *_) = found.steps
    failed = replace(early, steps=(replace(step, stage=RUN, during="the run", message="no"),))
    assert failed.status == UNJUDGED  # the baseline might fail on these feeds as well


def test_a_budget_of_the_configuration_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "epcheck.toml"
    path.write_text("[validate]\nbudget = 0.5\n")
    with pytest.raises(TargetError, match=r"'budget' is 0.5; write a number of seconds, at least 1"):
        load_config(path)
    path.write_text("[validate]\nbudget = 60\n")
    assert load_config(path)["validate"] == {"budget": 60}


def is_hanging(pid: int) -> bool:
    """Whether a worker of the process has begun to hang."""
    names = []
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            names.append(child.name())
    return HANGING in names


@pytest.mark.skipif(sys.platform != "linux", reason="a worker that hangs is seen by its name")
def test_a_terminated_command_writes_what_is_known_and_ends_with_130(model: Path, tmp_path: Path) -> None:
    program = [sys.executable, "-c", "from epcheck.cli.start import main; main()"]
    command = [*program, "validate", str(model), "--seed", "0", "--json", "found.json", "--junit", "junit.xml",
               "--target", "python:wrong_backends:hangs_in_parts"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(2):  # what is known is on its way when it is first seen
        while not is_hanging(process.pid):
            assert process.poll() is None, process.communicate()
            time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.decode().endswith("epcheck: interrupted\n")
    document = json.loads((tmp_path / "found.json").read_text("utf-8"))
    assert (document["stopped"], document["status"]) == ("interrupted", "wrong")
    assert [node["name"] for node in document["culprit"]["nodes"]] == ["n2", "n6", "n10", "n14", "n18"]
    assert "<failure" in (tmp_path / "junit.xml").read_text("utf-8")
    assert (tmp_path / "model.onnx.validation.html").is_file()
    assert "Continue with --resume: " in out.decode()
