"""Many models on many targets: limits, results, exit codes, and what is written of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from epcheck import api
from epcheck.api.models import ci_files
from epcheck.api.models.validate import find_models, write_documents
from epcheck.cli.main import app
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.target import Target, TargetError
from epcheck.models.accuracy.thresholds import Override
from epcheck.models.execution.model_outcome import ModelOutcome, Timing
from epcheck.models.gate import page as gate_page
from epcheck.models.gate.gate import Gate
from epcheck.models.gate.junit import junit
from epcheck.models.gate.limits import GateLimits, find_broken_limits
from epcheck.models.gate.sarif import RULES, sarif
from epcheck.models.validation.speed import Speed, Speeds, speed
from epcheck.models.validation.validation import Validation
from tests.models.small_models import layers
from tests.models.written_models import model

HERE = Path(__file__).parents[1]
DOUBLES = Target("doubles", (sys.executable,), ("python:wrong_backends:doubles_relu", "--path", str(HERE)))
RANDOM = "g (float[4] x) => (float[4] y) { r = RandomUniformLike <seed=1.0> (x) z = Sub(r, r) y = Add(x, z) }"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    (folder / "more").mkdir()
    onnx.save(layers(2), folder / "a.onnx")
    onnx.save(model("g (float[2,3] x) => (float[2,3] y) { y = Neg(x) }"), folder / "more" / "b.onnx")
    (folder / "broken.onnx").write_bytes(b"no model")
    return folder


@pytest.fixture(scope="module")
def gate(models: Path) -> api.Gate:
    return api.validate(api.ValidateOptions((models,), ("cpu", DOUBLES), "cpu", seeds=(0,)))


def test_every_model_is_validated_on_every_target(gate: api.Gate) -> None:
    assert [(found.name, found.target, found.status, found.result) for found in gate.checked] == [
        ("a.onnx", "cpu", "right", "passes"), ("a.onnx", "doubles", "wrong", "fails"),
        ("broken.onnx", "cpu", "unusable", "cannot tell"), ("broken.onnx", "doubles", "unusable", "cannot tell"),
        ("more/b.onnx", "cpu", "right", "passes"), ("more/b.onnx", "doubles", "right", "passes"),
    ]  # fmt: skip
    assert gate.result == "fails"
    assert gate.headline == "3 models on 2 targets: 3 pass, 1 fail, 2 undecided"
    assert "not an ONNX model" in gate.of("broken.onnx", "cpu").words


def test_one_page_one_document_and_junit(gate: api.Gate, models: Path, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("page.html", "all.json", "junit.xml")}
    options = api.ValidateOptions((models,), html=files["page.html"], json=files["all.json"], junit=files["junit.xml"])
    write_documents(gate, options)
    text = files["page.html"].read_text("utf-8")
    assert text.count("<h2 id=") == 6
    assert "node 2 `n2` (Relu)" in text
    document = json.loads(files["all.json"].read_text("utf-8"))
    assert [entry["result"] for entry in document["results"]] == [found.result for found in gate.checked]
    assert document["results"][1]["validation"]["culprit"]["nodes"][0]["name"] == "n2"
    suites = ElementTree.parse(files["junit.xml"]).getroot()
    assert [(s.get("name"), s.get("tests"), s.get("failures"), s.get("errors")) for s in suites] == [
        ("cpu", "3", "0", "1"), ("doubles", "3", "1", "1"),
    ]  # fmt: skip
    failure = suites[1][0].find("failure")
    assert failure is not None
    assert "its outputs are wrong: 2 nodes alike: Relu (`n2`, `n6`)" in str(failure.get("message"))


def required(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


TEXT = {"type": "string", "minLength": 1}
MESSAGE = required(text=TEXT)
PLACE = required(
    physicalLocation=required(artifactLocation=required(uri={"type": "string", "format": "uri-reference"}),
                              region=required(startLine={"const": 1})),
)  # fmt: skip
RESULT = required(
    ruleId={"enum": list(RULES)}, ruleIndex={"type": "integer"}, message=MESSAGE,
    locations={"type": "array", "items": PLACE},
    level={"enum": ["none", "note", "warning", "error"]}, partialFingerprints={"type": "object"},
)  # fmt: skip
RULE = required(id=TEXT, shortDescription=MESSAGE)
SARIF = {"$schema": "http://json-schema.org/draft-07/schema#"} | required(
    version={"const": "2.1.0"},
    runs={"type": "array", "items": required(
        tool=required(driver=required(name=TEXT, version=TEXT, rules={"type": "array", "items": RULE})),
        results={"type": "array", "items": RESULT},
    )},
)  # fmt: skip
"""What the schema of SARIF 2.1.0 requires of the objects that we write, and GitHub's code scanning beyond it."""


def test_sarif_has_what_is_required_and_a_result_for_each_model_that_does_not_pass(
    gate: api.Gate, models: Path
) -> None:
    document = json.loads(sarif(gate, models))
    jsonschema.validate(document, SARIF, format_checker=jsonschema.FormatChecker())
    (run,) = document["runs"]
    found = [
        (r["ruleId"], r["level"], r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
        for r in run["results"] if r["ruleId"] != "remark"
    ]  # fmt: skip
    assert found == [
        ("wrong", "error", "a.onnx"),
        ("unusable", "error", "broken.onnx"),
        ("unusable", "error", "broken.onnx"),
    ]
    assert all(list(RULES)[r["ruleIndex"]] == r["ruleId"] for r in run["results"])
    (wrong,) = (r for r in run["results"] if r["ruleId"] == "wrong")
    assert wrong["message"]["text"].startswith("doubles: a.onnx runs on doubles, but its outputs are wrong")
    names = [place["name"] for place in wrong["locations"][0]["logicalLocations"]]
    assert names == ["n2", "n6"]
    command = wrong["properties"]["reproduce"]
    assert command.startswith("epcheck reduce ")
    assert command.endswith("a.onnx --target doubles --baseline cpu --seed 0")
    marks = [r["partialFingerprints"]["epcheck/v1"] for r in run["results"]]
    assert len(set(marks)) == len(marks)


def test_what_is_known_of_a_result_is_the_same_tomorrow(gate: api.Gate, models: Path) -> None:
    """A figure in a sentence does not make another result; a model outside of the repository has a whole address."""
    limit = gate.of("a.onnx", "cpu")
    both = [Gate((replace(limit, broken=(f"takes {times} times as long",)),), GateLimits()) for times in (3, 4)]
    first, second = (json.loads(sarif(each, models.parent / "elsewhere"))["runs"][0]["results"][0] for each in both)
    assert first["ruleId"] == "limit"
    assert first["message"] != second["message"]
    assert first["partialFingerprints"] == second["partialFingerprints"]
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == (models / "a.onnx").as_uri()


def test_nodes_that_are_not_on_the_provider_are_a_note(gate: api.Gate) -> None:
    found = gate.of("a.onnx", "cpu").validation
    assert found is not None
    assert found.placement is not None
    nodes = tuple(replace(node, real="Other") if at < 2 else node for at, node in enumerate(found.placement.nodes))
    moved = replace(found, placement=replace(found.placement, nodes=nodes))
    checked = replace(gate.of("a.onnx", "cpu"), validation=moved)
    results = json.loads(sarif(Gate((checked,), GateLimits())))["runs"][0]["results"]
    (note,) = (result for result in results if result["ruleId"] == "not-on-provider")
    assert note["level"] == "note"
    assert "on Other, not on CPUExecutionProvider" in note["message"]["text"]
    assert len(note["locations"][0]["logicalLocations"]) == 2


def test_annotations_stand_beside_the_file_and_failures_come_first(gate: api.Gate, models: Path) -> None:
    found = ci_files.annotate(gate, models)
    assert [(each.level, each.file, each.title) for each in found] == [
        ("error", "a.onnx", "a.onnx on doubles: wrong"),
        ("warning", "broken.onnx", "broken.onnx on cpu: unusable"),
        ("warning", "broken.onnx", "broken.onnx on doubles: unusable"),
    ]
    assert ci_files.annotate(gate, models / "more")[0].file == ""
    assert str(models) not in ci_files.step_summary(gate, models)


def test_the_exit_code_is_that_of_the_worst(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def code(*arguments: str) -> int:
        return CliRunner().invoke(app, ["validate", *arguments, "--seed", "0"]).exit_code

    good, bad = str(models / "a.onnx"), str(models / "broken.onnx")
    more = str(models / "more")
    assert code(good, more, "-t", "cpu") == 0
    assert code(good, bad, "-t", "cpu") == 2
    assert (tmp_path / "validation.html").is_file()
    (tmp_path / "epcheck.toml").write_text("[validate]\nrtol = 0\nlatency = 1e-9\n")
    done = CliRunner().invoke(app, ["validate", more, good, "-t", "cpu", "--seed", "0"])
    assert done.exit_code == 1
    assert "the limit is 1e-09 times" in done.output


def test_a_limit_holds_for_a_single_model_too(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "limits.toml").write_text("[validate]\nlatency = 1e-9\n")
    arguments = ["validate", str(models / "a.onnx"), "-t", "cpu", "--html", "page.html", "--config", "limits.toml"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1, done.output
    assert "the limit is 1e-09 times (epcheck.toml)" in done.output.replace("\n", " ")


@pytest.mark.parametrize(("unjudged", "result"), [("", "cannot tell"), ("fail", "fails"), ("pass", "passes")])
def test_what_nobody_can_judge_is_as_the_limits_say(unjudged: str, result: str, tmp_path: Path) -> None:
    onnx.save(model(RANDOM), tmp_path / "random.onnx")
    (tmp_path / "e.toml").write_text(f'[validate]\nunjudged = "{unjudged}"\n' if unjudged else "")
    options = api.ValidateOptions((tmp_path,), ("cpu",), "none", seeds=(0,), config=tmp_path / "e.toml")
    assert api.validate(options).result == result


def timed(median: float) -> Speed:
    outcome = ModelOutcome("done", create_s=0.1, run_s=0.2, timing=Timing((median,) * 5, (("n", "Relu", "EP", 0.5),)))
    found = speed("t", outcome, 1 << 20)
    assert found is not None
    return found


def test_each_broken_limit_is_a_sentence(gate: api.Gate) -> None:
    found = gate.of("a.onnx", "cpu").validation
    assert found is not None
    assert find_broken_limits(found, GateLimits(placed=1.0)) == ()
    assert find_broken_limits(found, GateLimits(latency=2.0)) == ("no baseline latency to compare with",)
    slow: Validation = replace(found, speeds=Speeds("seed 0", timed(0.03), timed(0.01)))
    assert find_broken_limits(slow, GateLimits(latency=3.1)) == ()
    assert find_broken_limits(slow, GateLimits(latency=2.5)) == (
        "a run on 'cpu' takes 3 times as long as on 'cpu without optimisation'; the limit is 2.5 times",
    )
    assert slow.placement is not None
    nodes = tuple(replace(node, real="Other") if at % 2 else node for at, node in enumerate(slow.placement.nodes))
    half = replace(slow, placement=replace(slow.placement, nodes=nodes))
    (sentence,) = find_broken_limits(half, GateLimits(placed=0.9))
    assert sentence.endswith("of its nodes are on CPUExecutionProvider; the limit is 90.0 %")


def test_thresholds_of_the_call_come_before_those_of_the_file() -> None:
    limits = GateLimits(rtol=0.1, snr=40)
    assert limits.override(Override(relative=0.2)) == Override(relative=0.2, snr_db=40)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[validate]\nplaced = 2", "[validate]: 'placed' is 2; it is a share, at most 1"),
        ("[validate]\nlatency = -1", "[validate]: 'latency' is -1; write a number that is not negative"),
        ("[validate]\nspeed = 1", "[validate]: unknown key 'speed'; it may have rtol, atol"),
        ("[validate]\nunjudged = true", "[validate]: 'unjudged' is True; write \"fail\" or \"pass\""),
        ("validate = 3", "[validate] must be a table"),
    ],
)  # fmt: skip
def test_a_limit_that_cannot_be_used_is_refused_in_a_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "epcheck.toml"
    path.write_text(text)
    with pytest.raises(TargetError) as refusal:
        load_config(path)
    assert sentence in str(refusal.value)


def test_models_have_names_of_their_own_and_a_folder_without_any_is_refused(models: Path, tmp_path: Path) -> None:
    names: Mapping[str, Any] = dict(find_models((models, models / "a.onnx")))
    assert list(names) == ["a.onnx", "broken.onnx", "more/b.onnx", "a.onnx (2)"]
    with pytest.raises(api.OptionError, match=r"has no \.onnx file"):
        list(find_models((tmp_path,)))


def test_each_model_of_a_folder_has_its_own_feeds(models: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    np.savez(tmp_path / "more" / "b.npz", x=np.ones((2, 3), np.float32))
    found = api.validate(api.ValidateOptions((models,), ("cpu",), feeds=tmp_path, seeds=(0,)))
    assert [check.validation.steps[0].trial for check in found.checked if check.validation] == ["seed 0", "b.npz"]


def test_a_wrong_node_beside_right_outputs_fails_where_nodes_are_strict(gate: api.Gate, tmp_path: Path) -> None:
    checked, wrong = gate.of("a.onnx", "cpu"), gate.of("a.onnx", "doubles").validation
    assert checked.validation is not None
    assert wrong is not None
    assert [[node.name for node in culprit.nodes] for culprit in wrong.wrong_nodes] == [["n2", "n6"]]
    odd = replace(checked.validation, wrong_nodes=wrong.wrong_nodes[:1])
    assert find_broken_limits(odd, GateLimits()) == ()
    assert find_broken_limits(odd, GateLimits(strict_nodes=True)) == (
        "2 nodes alike: Relu (`n2`, `n6`) are wrong beyond the bound",
    )
    assert find_broken_limits(checked.validation, GateLimits(strict_nodes=True)) == ()
    for limits, result, level, tag in ((GateLimits(), "passes", "warning", "system-out"),
                                       (GateLimits(strict_nodes=True), "fails", "error", "failure")):  # fmt: skip
        each = replace(checked, validation=odd, broken=find_broken_limits(odd, limits))
        assert (each.result, each.status, each.has_wrong_nodes) == (result, "right, wrong node", True)
        assert each.command.endswith("--strict-nodes") == (result == "fails")
        assert wrong.wrong_nodes[0].words[:20] in gate_page.render(Gate((each,), limits))
        (annotation,) = ci_files.annotate(Gate((each,), limits))
        assert annotation.level == ("error" if result == "fails" else "warning")
        assert "- a.onnx on cpu: " in ci_files.step_summary(Gate((each,), limits))
        run = json.loads(sarif(Gate((each,), limits)))["runs"][0]
        found = [(r["ruleId"], r["level"]) for r in run["results"] if r["ruleId"] != "remark"]
        assert found == [("wrong-node", level)]
        element = ElementTree.fromstring(junit(Gate((each,), limits)))[0][0].find(tag)
        assert element is not None
        assert "where: 2 nodes alike: Relu (`n2`, `n6`)\n" in str(element.text)
    (tmp_path / "epcheck.toml").write_text("[validate]\nstrict_nodes = 1\n")
    with pytest.raises(TargetError, match="'strict_nodes' is 1; write true or false"):
        load_config(tmp_path / "epcheck.toml")
