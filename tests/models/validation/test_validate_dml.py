"""Whole models on the real DirectML provider, each with one node in its midst that DirectML gets wrong (docs/findings):
`validate` names it, `reduce` leaves it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from epcheck.api import ReduceOptions, ReplayOptions, ValidateOptions, reduce, replay, validate
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import DML, Target
from epcheck.models.validation import page
from epcheck.models.validation.validation import FAILS, REFUSED, WRONG, Validation
from epcheck.models.wrong_nodes.culprit import Kind

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the lab is for Linux")

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return (0.3 * RNG.standard_normal(shape)).astype(np.float32)


def node(op_type: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    """Named as its output. inputs: their names, `-` for one that is left out."""
    names = ["" if name == "-" else name for name in inputs.split()]
    domain = "com.microsoft" if op_type.endswith("Attention") else ""
    return helper.make_node(op_type, names, output.split(), name=output, domain=domain, **attributes)


def saved(
    path: Path, nodes: list[onnx.NodeProto], x: list[int], outputs: dict[str, list[int]], weights: Mapping[str, Array]
) -> Path:
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def tagger(path: Path) -> Path:
    """A GRU whose `clip` DirectML ignores, between an embedding and a head."""
    nodes = [
        node("MatMul", "x w0", "embed"),
        node("Add", "embed b0", "biased"),
        node("Relu", "biased", "relu"),
        node("Transpose", "relu", "time_first", perm=[1, 0, 2]),
        node("GRU", "time_first W R B", "gru", hidden_size=6, clip=0.25),
        node("Squeeze", "gru one", "one_direction"),
        node("Transpose", "one_direction", "batch_first", perm=[1, 0, 2]),
        node("MatMul", "batch_first w1", "head"),
        node("Softmax", "head", "y", axis=-1),
    ]
    weights = {"w0": normal(8, 7), "b0": normal(7), "W": 3 * normal(1, 18, 7), "R": 3 * normal(1, 18, 6),
               "B": 3 * normal(1, 36), "w1": normal(6, 4), "one": np.array([1])}  # fmt: skip
    return saved(path, nodes, [2, 5, 8], {"y": [2, 5, 4]}, weights)


def convolutions(path: Path) -> Path:
    """Convolutions, each fused with its activation, and among them a Pad that removes rows, which DirectML does not."""
    nodes, weights, value = [], {}, "x"
    for index in range(6):
        if index == 4:
            nodes.append(node("Pad", f"{value} pads", "cropped"))
            value = "cropped"
        weights[f"w{index}"] = normal(4, 4, 3, 3)
        nodes.append(node("Conv", f"{value} w{index}", f"conv{index}", pads=[1, 1, 1, 1]))
        nodes.append(node("Relu", f"conv{index}", f"relu{index}"))
        value = f"relu{index}"
    weights["pads"] = np.array([0, 0, -1, -1, 0, 0, 0, 0])
    return saved(path, nodes, [1, 4, 8, 8], {value: [1, 4, 7, 7]}, weights)


def encoder(path: Path, attention: list[onnx.NodeProto], weights: Mapping[str, Array]) -> Path:
    """The projection is read by its activation, with which DirectML fuses it, and by the residual connection."""
    nodes = [
        node("MatMul", "x w0", "projected"),
        node("Relu", "projected", "relu"),
        node("Mul", "relu scale", "scaled"),
        *attention,
        node("Add", "attention projected", "residual"),
        node("MatMul", "residual w1", "head"),
        node("Softmax", "head", "y", axis=-1),
    ]
    shared = {"w0": normal(16, 16), "scale": normal(16), "w1": normal(16, 5)}
    return saved(path, nodes, [2, 4, 16], {"y": [2, 4, 5]}, {**shared, **weights})


def bias_for_the_whole_batch(path: Path) -> Path:
    """MultiHeadAttention with a bias of shape (1, heads, ...), which DirectML's provider claims and refuses."""
    attention = node("MultiHeadAttention", "scaled scaled scaled - - bias", "attention", num_heads=2)
    return encoder(path, [attention], {"bias": normal(1, 2, 4, 4)})


def no_zero_points(path: Path) -> Path:
    """QAttention without its optional zero points, of which DirectML's provider dies."""
    nodes = [node("QuantizeLinear", "scaled step zero", "quantized"),
             node("QAttention", "quantized qw qb step step", "attention", num_heads=2)]  # fmt: skip
    weights = {"step": np.array(0.02, np.float32), "zero": np.array(0, np.uint8), "qb": normal(48),
               "qw": RNG.integers(-60, 60, (16, 48)).astype(np.int8)}  # fmt: skip
    return encoder(path, nodes, weights)


def hidden_layer_as_output(path: Path) -> Path:
    """The value between a MatMul and its activation is an output, too; DirectML's provider fuses the two."""
    nodes = [
        node("MatMul", "x w0", "projected"),
        node("Relu", "projected", "relu"),
        node("MatMul", "relu w1", "head"),
        node("Softmax", "head", "y", axis=-1),
    ]
    outputs = {"projected": [2, 4, 16], "y": [2, 4, 5]}
    return saved(path, nodes, [2, 4, 16], outputs, {"w0": normal(16, 16), "w1": normal(16, 5)})


def reshapes_of_zeros(path: Path) -> Path:
    """24 layers, each with a Reshape of allowzero=1 and -1, which DirectML's provider does not resolve."""
    nodes, weights, value = (
        [],
        {"heads": np.array([2, 4, 4, -1], np.int64), "back": np.array([2, 4, 16], np.int64)},
        "x",
    )
    for at in range(24):
        weights[f"w{at}"] = normal(16, 16)
        nodes += [node("MatMul", f"{value} w{at}", f"m{at}"), node("Reshape", f"m{at} heads", f"r{at}", allowzero=1),
                  node("Softmax", f"r{at}", f"s{at}", axis=-1), node("Reshape", f"s{at} back", f"b{at}")]  # fmt: skip
        value = f"b{at}"
    return saved(path, nodes, [2, 4, 16], {value: [2, 4, 16]}, weights)


def named(validation: Validation) -> list[str]:
    assert validation.culprit is not None
    return [graph_node.name for graph_node in validation.culprit.nodes]


def test_a_node_that_is_wrong_on_directml_is_named_and_is_all_that_reduction_leaves(
    dml: Target, tmp_path: Path
) -> None:
    path = tagger(tmp_path / "tagger.onnx")
    found = validate(ValidateOptions((path,), (dml,), "cpu", seeds=(0,))).validation
    assert (found.status, named(found)) == (WRONG, ["gru"])
    assert found.culprit is not None
    assert found.culprit.kind == Kind.NODE
    assert found.placement is not None
    assert {placed.provider for placed in found.placement.nodes} == {DML}
    reduced = reduce(ReduceOptions(path, dml, resolve("cpu"), out=None))
    assert [graph_node.name for graph_node in reduced.nodes] == ["gru"]
    assert (reduced.status, reduced.difference) == ("mismatch", "value")


def test_a_wrong_node_among_fused_ones_is_named(dml: Target, tmp_path: Path) -> None:
    path = convolutions(tmp_path / "convolutions.onnx")
    found = validate(ValidateOptions((path,), (dml,), "cpu", seeds=(0,))).validation
    assert (found.status, named(found)) == (WRONG, ["cropped"])


def test_a_node_that_directml_refuses_is_named_with_its_words(dml: Target, tmp_path: Path) -> None:
    path = bias_for_the_whole_batch(tmp_path / "encoder.onnx")
    found = validate(ValidateOptions((path,), (dml,), "cpu", seeds=(0,))).validation
    assert (found.status, named(found)) == (REFUSED, ["attention"])
    assert found.culprit is not None
    assert found.culprit.kind == Kind.REFUSED
    assert "80070057" in found.culprit.words
    assert "node 3 `attention` (MultiHeadAttention) is refused in session creation" in page.render(found)


def test_24_nodes_that_directml_refuses_alike_are_one_finding(dml: Target, tmp_path: Path) -> None:
    path = reshapes_of_zeros(tmp_path / "reshapes.onnx")
    found = validate(ValidateOptions((path,), (dml,), "cpu", seeds=(0,))).validation
    assert (found.status, named(found)) == (REFUSED, [f"r{at}" for at in range(24)])
    assert found.culprit is not None
    assert (found.culprit.kind, found.culprit.count, found.other_culprits) == (Kind.REFUSED, 24, ())
    assert found.headline.endswith(f"does not load on {DML}: 24 nodes alike: Reshape (`r0`, `r1`, `r2` and 21 more)")
    assert found.unexplained.startswith("with the baseline's values in place of theirs the rest of the model is right")


def test_a_node_of_which_the_process_dies_is_named(dml: Target, tmp_path: Path) -> None:
    path = no_zero_points(tmp_path / "encoder.onnx")
    found = validate(ValidateOptions((path,), (dml,), "cpu", seeds=(0,))).validation
    assert (found.status, named(found)) == (FAILS, ["attention"])
    assert found.culprit is not None
    assert found.culprit.kind == Kind.CRASH
    assert found.culprit.words.startswith(
        "node 4 `attention` (QAttention) brings the process down in session creation: the worker process ended"
    )
    assert found.headline == (
        f"encoder.onnx does not load on {DML}: session creation ends the process: node 4 `attention` (QAttention)"
    )


def test_a_fusion_that_loses_an_output_is_named_with_its_level(dml: Target, tmp_path: Path) -> None:
    path = hidden_layer_as_output(tmp_path / "hidden.onnx")
    found = validate(ValidateOptions((path,), (dml,), "cpu", seeds=(0,))).validation
    assert (found.status, named(found)) == (REFUSED, ["projected", "relu"])
    assert found.culprit is not None
    assert found.culprit.kind == Kind.FUSION
    assert found.culprit.levels == {"disabled": "right", "basic": "right", "extended": "create", "all": "create"}


def test_the_folder_of_a_fusion_fails_when_it_is_replayed(dml: Target, tmp_path: Path) -> None:
    path = hidden_layer_as_output(tmp_path / "hidden.onnx")
    reduced = reduce(ReduceOptions(path, dml, resolve("cpu"), out=tmp_path / "part"))
    assert ([graph_node.name for graph_node in reduced.nodes], reduced.status) == (["projected", "relu"], "create")
    (on_dml,) = replay(ReplayOptions(tmp_path / "part", targets=("dml",), baseline="none"))
    (on_cpu,) = replay(ReplayOptions(tmp_path / "part", targets=("cpu",), baseline="none"))
    assert (on_dml.status, on_cpu.status) == ("refused", "pass")
