"""`epcheck speed`: what is selected, what fails, and what is written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from epcheck import api, reports
from epcheck.api.suite.speed import Size, SpeedOptions, SpeedResult, describe, select_nodes
from epcheck.conformance.records.speed import (
    CREATE,
    UNDECIDED,
)
from epcheck.conformance.targets.specification import resolve
from tests.command_line import call, refused
from tests.models import small_models
from tests.reports.speed_reports import REPORT, compared

HERE = Path(__file__).parents[1] / "conformance" / "speed"


def test_what_fails() -> None:
    assert [each.case for each, _ in REPORT.too_slow] == ["Relu-14/float32/slow"]
    assert [each.case for each, _ in REPORT.open] == ["Relu-14/float32/open"]
    within = replace(REPORT, max_slowdown=1.3)
    free = replace(REPORT, max_slowdown=None, comparisons=REPORT.comparisons[:3])
    conforming = {
        name: tuple(SpeedResult(report, Path(), strict).conforms for strict in (False, True))
        for name, report in {"limit": REPORT, "within": within, "free": free}.items()
    }
    assert conforming == {"limit": (False, False), "within": (True, False), "free": (True, True)}
    creations = replace(REPORT, judged=(CREATE,))
    assert len(creations.too_slow) == 3
    assert replace(free, comparisons=(compared("x", 0.9, 1.0, 1.2, UNDECIDED),)).open != []


def test_the_headline_counts() -> None:
    assert REPORT.headline == (
        "'cpu@1.21.0' beside 'cpu@1.20.0', run of 4 nodes: 2 slower, 1 equivalent, 1 not compared; "
        "1 slower by more than 1.1 ×"
    )
    assert REPORT.comparisons[0].phases[1].words == "slower by 1.18 × (1.15 to 1.21)"


def test_the_document_is_text_that_can_be_compared() -> None:
    document = json.loads(describe(REPORT))
    assert document["schema"] == 1
    assert document["comparisons"][0]["phases"][1] == {
        "phase": "run", "a_s": 0.001, "b_s": 0.00118, "ratio": 1.18, "low": 1.15, "high": 1.21, "verdict": "slower",
    }  # fmt: skip
    assert '\n   "case": "Relu-14/float32/slow",\n' in describe(REPORT)


def test_the_page_has_every_ratio_and_escapes_what_targets_say(tmp_path: Path) -> None:
    reports.write_speed_page(tmp_path / "page.html", REPORT)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "slower by 1.18 × (1.15 to 1.21), too slow" in page
    assert page.index("float32/slow") < page.index("float32/open") < page.index("float32/same")
    assert "does not take it: &lt;script&gt;" in page
    assert "creation" in page


def test_nodes_are_selected() -> None:
    small = select_nodes(SpeedOptions(operators=("MatMul",), size=Size.SMALL), [resolve("cpu")])
    assert {(node.operator, node.dtype, node.size) for node in small} == {("MatMul", "float32", "small")}
    half = select_nodes(SpeedOptions(operators=("MatMul",), dtypes=("float16",), size=Size.LARGE), [resolve("cpu")])
    assert {node.dtype for node in half} == {"float16"}
    signs = select_nodes(SpeedOptions(operators=("Sign",), size=Size.SMALL), [resolve("cpu")])
    assert [node.dtype for node in signs] == ["int64", "float32"]
    assert [node.id for node in select_nodes(SpeedOptions(patterns=("GRU*one_step",)))] == [
        "GRU-14/float32/one_step", "GRU-14/float16/one_step",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "--target is given 0 times; write --target A --target B"),
        (("-t", "cpu"), "--target is given 1 time; write --target A --target B, and the same one twice"),
        (("-t", "cpu", "-t", "cup"), "unknown target 'cup'. Did you mean cpu?"),
        (("-t", "cpu", "-t", "reference"), "target 'reference' cannot be timed: it makes no session"),
        (("-t", "cpu", "-t", "cpu", "--op", "Rel"), "unknown operator 'Rel'. Did you mean Relu?"),
        (("-t", "cpu", "-t", "cpu", "--op", "Einsum"), "no shape of Einsum is timed; harvest a model that has it"),
        (("-t", "cpu", "-t", "cpu", "--dtype", "int4"), "no node is timed in 'int4'; there are float16, float32"),
        (("-t", "cpu", "-t", "cpu", "-k", "xyz"), "no node is left to time of xyz, --size auto"),
        (("-t", "cpu", "-t", "cpu", "--source", "nowhere"), "'nowhere' has no cases.jsonl"),
        (("-t", "cpu", "-t", "cpu", "--max-slowdown", "0.9"), "--max-slowdown: input should be greater than or equal"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    assert refused("speed", *arguments).startswith(sentence)


@pytest.mark.slow
def test_a_planted_slow_down_fails_and_is_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    root = tmp_path / "speed"
    done = call("speed", "-t", "python:timed_backends:takes_1", "-t", "python:timed_backends:takes_1_5", "-k",
                "Relu-14/float32", "--size", "small", "--max-slowdown", "1.1", "--seconds", "120", "--root", str(root),
                "--json", str(tmp_path / "copy.json"))  # fmt: skip
    assert (done.code, done.err) == (1, "")
    assert "too slow: Relu-14/float32/256_ki: slower by 1." in done.out
    (folder,) = root.iterdir()
    assert {path.name for path in folder.iterdir()} == {"speed.json", "speed.html"}
    document = json.loads((folder / "speed.json").read_text(encoding="utf-8"))
    assert json.loads((tmp_path / "copy.json").read_text(encoding="utf-8")) == document
    (found,) = document["comparisons"]
    run = next(phase for phase in found["phases"] if phase["phase"] == "run")
    assert run["low"] > 1.3
    assert document["facts"]["B"]["function"] == "timed_backends:takes_1_5"


@pytest.mark.slow
def test_nodes_of_a_model_are_timed(tmp_path: Path) -> None:
    onnx.save(small_models.layers(1), tmp_path / "model.onnx")
    harvested = api.harvest(api.HarvestOptions((tmp_path / "model.onnx",), out=tmp_path / "harvested"))
    options = SpeedOptions(("cpu", "cpu"), source=harvested.folder, seconds=6.0, root=tmp_path / "speed")
    found = api.compare_speed(options).report.comparisons
    assert len(found) == harvested.cases
    assert [each.trouble for each in found] == [""] * len(found)
    assert all("/harvest_" in each.case for each in found)
