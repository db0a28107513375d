"""`epcheck harvest`: which nodes of a model make cases, what the folder has, and that the suite runs it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from epcheck import api
from epcheck.api.suite.selection import restore_options, selection
from epcheck.conformance.records.run import Run
from epcheck.generators import suite
from epcheck.generators.sources import harvested as harvested_cases
from tests.command_line import call, refused
from tests.models.small_models import floats, model

NUMBERS = np.random.default_rng(0)


def a_model() -> onnx.ModelProto:
    """x[batch, 3, 8, 8] -> Conv -> Relu -> Relu -> Reshape -> Clip; two constants are added, a node draws random
    numbers, and an If has branches."""
    weights = {
        "w": NUMBERS.standard_normal((3, 3, 3, 3)).astype(np.float32),
        "b": np.array([1, 2, 3], np.float32),
        "shape": np.array([0, -1], np.int64),
        "six": np.array(6, np.float32),
        "c": np.ones(2, np.float32),
        "true": np.array(True),
    }
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node("Neg", ["clipped"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)],
        )
        for name in ("then", "else")
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["conv"], pads=[1, 1, 1, 1], name="conv1"),
        helper.make_node("Relu", ["conv"], ["first"]),
        helper.make_node("Relu", ["first"], ["second"]),
        helper.make_node("Reshape", ["second", "shape"], ["flat"]),
        helper.make_node("Clip", ["flat", "", "six"], ["clipped"]),
        helper.make_node("Add", ["c", "c"], ["two"]),
        helper.make_node("RandomNormalLike", ["clipped"], ["noise"]),
        helper.make_node(
            "If", ["true"], ["y"], then_branch=branches["then_branch"], else_branch=branches["else_branch"]
        ),
    ]
    return model(nodes, [floats("x", "batch", 3, 8, 8)], ["y", "two", "noise"], weights)


@pytest.fixture(scope="module")
def harvested(tmp_path_factory: pytest.TempPathFactory) -> api.Harvest:
    folder = tmp_path_factory.mktemp("models")
    onnx.save(a_model(), folder / "small.onnx")
    return api.harvest(api.HarvestOptions((folder / "small.onnx",), folder / "out"))


def test_every_node_is_a_case_or_says_why_not(harvested: api.Harvest) -> None:
    (found,) = harvested.models
    assert (found.model, found.total, found.cases, found.new) == ("small.onnx", 10, 4, 4)
    assert {(each.operator, each.why) for each in found.left_out} == {
        ("Add", "it depends on constants alone, so that a session computes it beforehand"),
        ("RandomNormalLike", "the suite does not have the operator"),
        ("If", "its attributes are graphs"),
        ("Neg", "it is in the body of If, whose values no session returns"),
    }
    lines = (harvested.folder / "left_out.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["operator"] for line in lines} == {"Add", "RandomNormalLike", "If", "Neg"}


def test_nodes_that_compute_alike_are_one_case_with_what_both_read(harvested: api.Harvest) -> None:
    nodes = {node.operator: node for node in harvested_cases.read_nodes(harvested.folder)}
    assert list(nodes) == ["Clip", "Conv", "Relu", "Reshape"]
    assert nodes["Relu"].models == {"small.onnx": 2}
    (x,) = nodes["Relu"].present
    assert (x.shape, x.parameter) == ((1, 3, 8, 8), False)
    data, weights, bias = nodes["Conv"].present
    assert (data.parameter, weights.parameter, weights.shape) == (False, True, (3, 3, 3, 3))
    assert isinstance(bias.values, np.ndarray)
    assert bias.values.tolist() == [1, 2, 3]
    assert nodes["Conv"].attributes == {"pads": (1, 1, 1, 1)}
    assert [each is None for each in nodes["Clip"].inputs] == [False, True, False]


def test_the_suite_runs_them_and_writes_what_reproduces_one(harvested: api.Harvest, tmp_path: Path) -> None:
    options = api.RunOptions(
        targets=("cpu",), baseline="none", source=harvested.folder, reference=False, root=tmp_path, jobs=1, cache=False
    )
    result = api.run(options)
    assert (result.conforms, result.summary.by_status) == (True, {"pass": 4})
    case = next(suite.cases(("Conv",), source=harvested.folder))
    assert case.id.startswith("Conv-11/float32/harvest_1x3x8x8_")
    assert case.folder == str(harvested.folder)
    folder = api.repro(api.ReproOptions(case.id, out=tmp_path / "repro", source=harvested.folder))
    assert (folder / "run.py").is_file()
    assert "unknown case" in refused("repro", case.id, "--out", str(tmp_path))
    shown = call("list", "--source", str(harvested.folder))
    assert len(shown.out.splitlines()) == 4


def test_an_interrupted_run_knows_its_sources(harvested: api.Harvest) -> None:
    options = api.RunOptions(targets=("cpu",), source=(api.Source.SUITE, harvested.folder))
    stored = selection(options, ("cpu",), None)
    assert stored["source"] == ["suite", str(harvested.folder)]
    run = Run("", "", (), ("cpu",), None, {}, 0, stored, {})
    assert restore_options(run, api.RunOptions()).source == options.source
    older = Run("", "", (), ("cpu",), None, {}, 0, {**stored, "source": "onnx"}, {})
    assert suite.list_sources(restore_options(older, api.RunOptions()).source) == (api.Source.ONNX,)
    assert options.whole_suite
    assert not api.RunOptions(source=harvested.folder).whole_suite


def test_a_model_that_is_harvested_again_replaces_what_it_gave(harvested: api.Harvest, tmp_path: Path) -> None:
    out = tmp_path / "out"
    onnx.save(a_model(), tmp_path / "small.onnx")
    onnx.save(a_model(), tmp_path / "other.onnx")
    options = api.HarvestOptions((tmp_path,), out, own_process=False)
    first = api.harvest(options)
    assert [(found.model, found.cases, found.new) for found in first.models] == [
        ("other.onnx", 4, 4),
        ("small.onnx", 4, 0),
    ]
    assert [dict(node.models) for node in harvested_cases.read_nodes(out) if node.operator == "Relu"] == [
        {"other.onnx": 2, "small.onnx": 2}
    ]
    before = (out / "cases.jsonl").read_text(encoding="utf-8")
    again = api.harvest(options)
    assert (again.cases, [found.new for found in again.models]) == (4, [0, 0])
    assert sorted(map(len, before.splitlines())) == sorted(
        map(len, (out / "cases.jsonl").read_text("utf-8").splitlines())
    )
    alone = {case.id for case in suite.cases(source=harvested.folder)}
    assert {case.id for case in suite.cases(source=out)} == alone


def test_every_size_of_a_dynamic_dimension_gives_cases(tmp_path: Path) -> None:
    onnx.save(a_model(), tmp_path / "small.onnx")
    done = call("harvest", str(tmp_path / "small.onnx"), "--out", str(tmp_path / "out"), "--dim", "batch=1,3",
                "--no-own-process")  # fmt: skip
    assert done.code == 0
    assert "small.onnx: 10 nodes, 8 cases, 8 of them new" in done.out
    assert "  1 left out: its attributes are graphs" in done.out
    shapes = {node.present[0].shape for node in harvested_cases.read_nodes(tmp_path / "out") if node.operator == "Conv"}
    assert shapes == {(1, 3, 8, 8), (3, 3, 8, 8)}


def test_quantised_nodes_are_cases_of_all_their_dtypes(tmp_path: Path) -> None:
    weights = {"scale": np.array(0.5, np.float32), "zero": np.array(3, np.uint8)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    onnx.save(model(nodes, [floats("x", 2, 3)], ["y"], weights), tmp_path / "quantised.onnx")
    api.harvest(api.HarvestOptions((tmp_path / "quantised.onnx",), tmp_path / "out"))
    found = {node.operator: node.dtypes for node in harvested_cases.read_nodes(tmp_path / "out")}
    assert found == {"QuantizeLinear": ("float32", "uint8"), "DequantizeLinear": ("uint8", "float32")}


def test_what_cannot_be_harvested_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"\x00no model")
    out = str(tmp_path / "out")
    assert "is not an ONNX model" in refused("harvest", str(tmp_path / "broken.onnx"), "--out", out)
    (tmp_path / "empty").mkdir()
    assert "has no .onnx file" in refused("harvest", str(tmp_path / "empty"), "--out", out)
    wrong = a_model()
    wrong.graph.node[3].input[1] = "c"
    onnx.save(wrong, tmp_path / "wrong.onnx")
    sentence = refused("harvest", str(tmp_path / "wrong.onnx"), "--out", out, "--no-own-process")
    assert "the model does not run" in sentence
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("own_process", [True, False])
def test_a_model_that_does_not_run_does_not_stop_the_others(own_process: bool, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    onnx.save(a_model(), folder / "1.onnx")
    wrong = a_model()
    wrong.graph.node[3].input[1] = "c"
    onnx.save(wrong, folder / "2.onnx")
    (folder / "3.onnx").write_bytes(b"\x00no model")
    onnx.save(model([helper.make_node("Neg", ["x"], ["y"])], [floats("x", 2, 3)], ["y"]), folder / "4.onnx")
    found = api.harvest(api.HarvestOptions((folder,), tmp_path / "out", own_process=own_process))
    assert [(each.model, each.cases, bool(each.trouble)) for each in found.models] == [
        ("1.onnx", 4, False), ("2.onnx", 0, True), ("3.onnx", 0, True), ("4.onnx", 1, False),
    ]  # fmt: skip
    assert (found.cases, [each.model for each in found.troubled]) == (5, ["2.onnx", "3.onnx"])
    assert "the model does not run" in found.models[1].trouble
    assert "is not an ONNX model" in found.models[2].trouble


def test_the_command_names_the_models_that_gave_nothing(tmp_path: Path) -> None:
    onnx.save(model([helper.make_node("Neg", ["x"], ["y"])], [floats("x", 2, 3)], ["y"]), tmp_path / "good.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"\x00no model")
    out = str(tmp_path / "out")
    done = call("harvest", str(tmp_path), "--out", out, "--no-own-process")
    assert (done.code, done.out.splitlines()[-1]) == (1, "1 of 2 models gave nothing: bad.onnx")
    (tmp_path / "good.onnx").write_bytes(b"\x00no model")
    sentence = refused("harvest", str(tmp_path), "--out", str(tmp_path / "other"), "--no-own-process")
    assert "none of 2 models can be harvested: bad.onnx: " in sentence
    assert not (tmp_path / "other").exists()
