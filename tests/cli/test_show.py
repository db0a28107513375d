"""`epcheck show`: one case, what a run recorded of it, and what a target makes of it now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from epcheck import api, reports
from epcheck.api.suite import shown_case
from epcheck.generators import suite
from tests.command_line import Done, call, refused
from tests.conformance.small_cases import HERE

CASE = "Slice-13/float32/axes_omitted_steps[initializer]"
TARGET = "python:turning_backend:answer"
RUN = ("run", "-t", TARGET, "--op", "Slice", "-k", "Slice-13/float32/axes_omitted_steps", "--no-reference")
SHOWS = f'epcheck show "{CASE}" --target "{TARGET}"'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "turning_backend.py").write_bytes((HERE / "turning_backend.py").read_bytes())
    (tmp_path / "mood").write_text("wrong")
    monkeypatch.chdir(tmp_path)


def claimed_by_cpu() -> str:
    """The claims of the CPU provider are those of one release, which onnxruntime-directml does not have."""
    return ", claimed" if onnxruntime.__version__.startswith("1.32.") else ""


def parts(done: Done) -> dict[str, list[str]]:
    """Heading -> the lines below it."""
    found: dict[str, list[str]] = {}
    for line in done.out.splitlines():
        if line and not line.startswith(" "):
            found[line] = []
        elif line:
            found[list(found)[-1]].append(line.strip())
    return found


@pytest.mark.parametrize("columns", [80, 120])
def test_a_case_is_shown_with_its_model_feeds_truth_and_claims(columns: int) -> None:
    done = call("show", CASE, columns=columns)
    assert (done.code, done.err) == (0, "")
    found = parts(done)
    assert list(found) == [
        CASE, "Model, opset ai.onnx 13", "Feeds", "Expected: the true result", "Claims", "Reproduce",
    ]  # fmt: skip
    model = [line.split(maxsplit=3) for line in found["Model, opset ai.onnx 13"]]
    assert found["Model, opset ai.onnx 13"][0] == "Slice(data, starts, ends, , steps) → output"
    assert [row[:3] for row in model[1:]] == [
        ["input", "data", "float32"], ["initializer", "starts", "int64"], ["initializer", "ends", "int64"],
        ["initializer", "steps", "int64"],
    ]  # fmt: skip
    assert found["Model, opset ai.onnx 13"][2].split() == ["initializer", "starts", "int64", "[2]", "3,", "0"]
    built = suite.case_by_id(CASE).build()
    (feed,), expected = built.feeds.values(), built.truth.outputs[0].value  # type: ignore[union-attr]
    assert found["Feeds"][0].split()[:5] == ["data", "float32", "[4,", "5]", f"{feed[0, 0]!s},"]
    assert found["Expected: the true result"][0].split()[:5] == [
        "output",
        "float32",
        "[2,",
        "3]",
        f"{expected[0, 0]!s},",
    ]
    assert found["Expected: the true result"][-1] == "output: each element must match exactly"
    assert found["Claims"][0] == "DmlExecutionProvider: claimed"
    assert "OpenVINOExecutionProvider: no kernel for Slice-13" in found["Claims"]
    assert found["Reproduce"] == [f'epcheck repro "{CASE}" --out repro']


def test_a_bound_in_ulp_names_its_source_and_its_floor() -> None:
    found = parts(call("show", "Relu-6/float32/ordinary[symbolic]"))
    assert found["Model, opset ai.onnx 7"][1].split() == ["input", "X", "float32", "[X_0,", "X_1]"]
    assert found["Expected: the true result"][-1] == (
        "Y: each element must be within 0 ULP (a comparison and a selection do not round), or within 1.18e-38 of the "
        "true value"
    )


def test_a_case_that_must_be_refused_has_no_truth() -> None:
    found = parts(call("show", "Reshape-5/float32/refused_two_minus_1[initializer]"))
    assert found["Expected: a refusal: a dimension must not be below -1, and at most one may be -1"] == []


def test_a_node_is_shown_with_its_attributes() -> None:
    tensor = numpy_helper.from_array(np.float32([1.5, 2.5]), "value")
    graph = helper.make_graph([helper.make_node("Relu", ["a"], ["b"])], "body", [], [])
    attributes = {"axis": 1, "alpha": 0.1, "mode": "linear", "pads": [0, 1], "body": graph, "value": tensor}
    shown = shown_case._node(helper.make_node("X", ["a", ""], ["b"], domain="my", **attributes))
    assert (shown.op_type, shown.domain, shown.inputs, shown.outputs) == ("X", "my", ("a", ""), ("b",))
    assert shown.attributes == {
        "alpha": "0.1", "axis": "1", "body": "a graph of 1 nodes: Relu", "mode": "linear", "pads": "[0, 1]",
        "value": "float32[2] 1.5, 2.5",
    }  # fmt: skip


@pytest.fixture
def recorded() -> Path:
    assert call(*RUN).code == 1
    return reports.latest(Path("epcheck-runs"))


def test_what_the_newest_run_recorded_is_shown(recorded: Path) -> None:
    found = parts(call("show", CASE))
    assert found[f"Run {recorded}"] == [
        f"{TARGET}: failure (mismatch, blame: candidate)",
        f"{TARGET}: output: 6 of 6 elements are wrong; each must match exactly; cpu is right",
        "first wrong: output[0, 0]: expected -12.318596, got 11.318596, 2.47854e+07 ULP away",
        "cpu, the baseline: pass",
        "oracle DML_SLICE1_OPERATOR_DESC: agrees",
    ]
    assert found["Reproduce"] == [SHOWS]


def test_a_run_is_named_by_its_folder_or_its_id_and_the_newest_may_lack_the_case(recorded: Path) -> None:
    recorded = recorded.rename(recorded.with_name("20200101-000000-abcd"))  # two of one second have no order
    assert call("run", "-t", "cpu", "--op", "Relu", "--limit", "1").code == 0
    assert reports.latest(Path("epcheck-runs")) != recorded
    assert not any(line.startswith("Run ") for line in parts(call("show", CASE)))
    for run in (str(recorded), recorded.name):
        assert f"Run {recorded}" in parts(call("show", CASE, "--run", run))
    assert refused("show", "Relu-6/float32/ordinary[symbolic]", "--run", recorded.name) == (
        f"run {recorded} has no record of 'Relu-6/float32/ordinary[symbolic]'; leave out --run to see the case alone"
    )
    assert refused("show", CASE, "--run", f"{recorded.name}0").startswith(
        f"no run '{recorded.name}0' here or in epcheck-runs. Did you mean {recorded.name}"
    )
    assert refused("show", CASE, "--run", "turning_backend.py").endswith("Name the folder of a run.")


def test_it_runs_the_case_on_a_target_now() -> None:
    wrong = call("show", CASE, "--target", TARGET)
    assert (wrong.code, parts(wrong)["Now"][0]) == (1, f"{TARGET}: failure (mismatch, blame: candidate)")
    assert parts(wrong)["Reproduce"] == [SHOWS]
    Path("mood").write_text("good")
    good = call("show", CASE, "--target", TARGET, "--baseline", "none")
    assert (good.code, parts(good)["Now"][0]) == (0, f"{TARGET}: ok (pass)")
    on_cpu = call("show", CASE, "--target", "cpu")
    assert parts(on_cpu)["Now"][0] == f"cpu: ok (pass{claimed_by_cpu()})"


def test_the_document_has_the_same(recorded: Path) -> None:
    done = call("show", CASE, "--target", "cpu", "--json")
    found: Any = json.loads(done.out)
    assert (done.code, found["schema"], found["run"]) == (0, 1, str(recorded))
    assert list(found) == ["schema", "case", "run", "records", "now", "repro"]
    case = found["case"]
    assert (case["case_id"], case["opsets"], case["expects"]) == (CASE, {"ai.onnx": 13}, "the true result")
    assert case["initializers"][0] == {"name": "starts", "dtype": "int64", "shape": ["2"], "elements": "3, 0"}
    assert case["truth"][0]["bound"] == "must match exactly"
    (record,) = found["records"]
    assert (record["status"], record["blame"], record["reading"]) == ("mismatch", "candidate", "failure")
    assert record["candidate"]["differences"][0]["first"][0]["at"] == [0, 0]
    assert (found["now"]["candidate"]["target"], found["now"]["status"]) == ("cpu", "pass")


def test_what_cannot_be_shown_is_one_sentence() -> None:
    assert refused("show", "Slice-13/float32/axes_omitted").startswith(
        "unknown case 'Slice-13/float32/axes_omitted'. Did you mean Slice-13/float32/axes_omitted[initializer], "
    )
    assert refused("show", CASE, "--target", "python:nothing:f").startswith(
        "target 'python:nothing:f': its worker does not start: "
    )
    assert refused("show", CASE, "--target", "cpuu").startswith("unknown target 'cpuu'. Did you mean cpu?")


def test_a_harvested_case_is_shown_and_run() -> None:
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"])], "g",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3])],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3])],
        ),
        ir_version=8,  # of onnxruntime-directml 1.24
        opset_imports=[helper.make_opsetid("", 17)],
    )  # fmt: skip
    onnx.save(model, "model.onnx")
    assert call("harvest", "model.onnx", "--out", "harvested").code == 0
    (case_id,) = call("list", "--source", "harvested").out.split()
    done = call("show", case_id, "--source", "harvested", "--target", "cpu")
    assert (done.code, parts(done)["Now"][0]) == (0, f"cpu: ok (pass{claimed_by_cpu()})")
    assert parts(done)["Reproduce"] == [f'epcheck repro "{case_id}" --source "harvested" --out repro']


def test_the_call_is_the_same() -> None:
    shown = api.show(api.ShowOptions(CASE, target="cpu", baseline="none"))
    assert shown.case.nodes[0].op_type == "Slice"
    assert shown.now is not None
    assert (shown.run, shown.records, shown.now.status, shown.conforms) == (None, (), "pass", True)
