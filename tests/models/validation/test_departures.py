"""A model beside the one that it was made from: nodes that depart are named, and right conversions are silent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from typer.testing import CliRunner

from epcheck.api import ValidateOptions, validate
from epcheck.cli.main import app
from epcheck.models.feeds.trials import Trial
from epcheck.models.validation import page
from epcheck.models.validation.departures import Comparison, compare_with_reference
from epcheck.models.validation.validation import RIGHT, WRONG
from tests.models.small_models import floats, model

RNG = np.random.default_rng(3)
X = RNG.standard_normal((2, 8, 12, 12)).astype(np.float32)


def convolutions() -> onnx.ModelProto:
    """(Conv, Add, Relu) three times; node i is `n{i}`."""
    nodes, weights, value = [], {}, "x"
    for layer in range(3):
        weights[f"w{layer}"] = (RNG.standard_normal((8, 8, 3, 3)) / 8.5).astype(np.float32)
        weights[f"b{layer}"] = RNG.standard_normal((1, 8, 1, 1)).astype(np.float32)
        names = [f"{part}{layer}" for part in ("conv", "sum", "relu")]
        nodes += [
            helper.make_node("Conv", [value, f"w{layer}"], names[:1], name=f"n{3 * layer}", pads=[1, 1, 1, 1]),
            helper.make_node("Add", [names[0], f"b{layer}"], names[1:2], name=f"n{3 * layer + 1}"),
            helper.make_node("Relu", names[1:2], names[2:], name=f"n{3 * layer + 2}"),
        ]
        value = names[2]
    return model(nodes, [floats("x", 2, 8, 12, 12)], [value], weights)


REFERENCE = convolutions()


def half(change: Callable[[str, Any], Any] = lambda _name, value: value) -> onnx.ModelProto:
    """The reference in float16. change: of a weight."""
    found = onnx.ModelProto.FromString(REFERENCE.SerializeToString())
    for tensor in found.graph.initializer:
        value = change(tensor.name, numpy_helper.to_array(tensor))
        tensor.CopyFrom(numpy_helper.from_array(value.astype(np.float16), tensor.name))
    for end in (*found.graph.input, *found.graph.output):
        end.type.tensor_type.elem_type = TensorProto.FLOAT16
    return found


def compared(found: onnx.ModelProto, folder: Path, inputs: dict[str, Any] | None = None) -> Comparison:
    onnx.save(REFERENCE, folder / "reference.onnx")
    trial = Trial("t", inputs or {"x": X}, ())
    return compare_with_reference(found, trial, folder / "reference.onnx")


def test_a_right_conversion_to_float16_is_silent(tmp_path: Path) -> None:
    found = compared(half(), tmp_path, {"x": X.astype(np.float16)})
    assert found.departures == ()
    assert found.words == "9 values of 9 nodes were compared with those of the reference 'reference.onnx'"


@pytest.mark.parametrize(("weight", "by", "node"), [("w1", 1.02, 3), ("b0", 0.95, 1), ("w2", 0, 6)])
def test_a_weight_that_the_exporter_changed_is_named_with_its_value_on_both_sides(
    tmp_path: Path, weight: str, by: float, node: int
) -> None:
    wrong = half(lambda name, value: value * by if name == weight else value)
    (departure,) = compared(wrong, tmp_path, {"x": X.astype(np.float16)}).departures
    assert departure.node.startswith(f"node {node} `n{node}`")
    assert departure.value == departure.reference_value
    assert departure.mine != departure.its
    assert departure.words.startswith(f"{departure.node} departs from the reference: '{departure.value}[")


def test_renamed_values_are_found_by_the_names_of_their_nodes_and_outputs_by_their_place(tmp_path: Path) -> None:
    other = onnx.ModelProto.FromString(REFERENCE.SerializeToString())
    for node in other.graph.node:
        names = [[name if name[0] in "wbx" else f"v_{name}" for name in each] for each in (node.input, node.output)]
        del node.input[:], node.output[:]
        node.input.extend(names[0])
        node.output.extend(names[1])
    other.graph.output[0].name = "v_relu2"
    node = other.graph.node[4]
    node.op_type = "Sub"
    found = compared(other, tmp_path)
    assert [(each.node, each.reference_value) for each in found.departures] == [("node 5 `n5` (Relu)", "relu1")]
    assert found.departures[0].before == ("node 4 `n4` (Sub)",)


def test_models_with_other_inputs_are_not_compared(tmp_path: Path) -> None:
    two = model([helper.make_node("Add", ["p", "q"], ["y"])], [floats("p", 2), floats("q", 2)], ["y"])
    found = compared(two, tmp_path, {"p": np.ones(2, np.float32), "q": np.ones(2, np.float32)})
    assert found.words == "nothing was compared with the reference: it has 1 inputs (x), and the model 2"


def test_what_float16_cannot_hold_may_be_clipped_where_it_does_not_matter(tmp_path: Path) -> None:
    """A mask of -1e9 becomes -65504 or -10000, which Softmax makes 0, too; a bias becomes another number."""
    for mask, behind, departing in (
        (-1e9, "Softmax", []),
        (-1e9, "Relu", []),
        (1e9, "Relu", ["y"]),
        (-2e4, "Softmax", ["m"]),
    ):
        graphs = []
        for dtype, stored in ((np.float32, mask), (np.float16, -1e4 if mask < 0 else 65504)):
            nodes = [helper.make_node("Add", ["x", "mask"], ["m"]), helper.make_node(behind, ["m"], ["y"])]
            made = model(nodes, [floats("x", 2, 4)], ["y"], {"mask": np.array([0, 0, stored, 0], dtype)})
            for end in (*made.graph.input, *made.graph.output):
                end.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            graphs.append(made)
        onnx.save(graphs[0], tmp_path / "reference.onnx")
        trial = Trial("t", {"x": X[0, 0, :2, :4].astype(np.float16)}, ())
        found = compare_with_reference(graphs[1], trial, tmp_path / "reference.onnx")
        assert [departure.value for departure in found.departures] == departing


def quantise(folder: Path, form: QuantFormat, per_channel: bool = False) -> onnx.ModelProto:
    onnx.save(REFERENCE, folder / "float.onnx")

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = [X]

        def get_next(self) -> dict[str, Any] | None:
            return {"x": self.left.pop()} if self.left else None

    quantize_static(folder / "float.onnx", folder / "int8.onnx", Reader(), quant_format=form, per_channel=per_channel,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)  # fmt: skip
    return onnx.load(folder / "int8.onnx")


def test_a_quantised_model_is_silent_and_a_wrong_scale_is_named(tmp_path: Path) -> None:
    quantised = quantise(tmp_path, QuantFormat.QOperator)
    assert compared(quantised, tmp_path).departures == ()
    for by in (1.5, 1.1, 1.02):
        wrong = onnx.ModelProto.FromString(quantised.SerializeToString())
        change(wrong, "w1_scale", lambda scale, by=by: scale * np.float32(by))
        (departure,) = compared(wrong, tmp_path).departures
        assert departure.node.startswith("node 3 `n3_quant` (QLinearConv)")
        assert departure.error == pytest.approx(127 * (1 - 1 / by), abs=0.6)
        assert departure.words.endswith(
            f"in the reference ('w1'); {departure.error:.3g} steps of its scale, where 2 are allowed"
        )


def change(made: onnx.ModelProto, name: str, by: Callable[[Any], Any]) -> None:
    (tensor,) = (each for each in made.graph.initializer if each.name == name)
    tensor.CopyFrom(numpy_helper.from_array(by(numpy_helper.to_array(tensor)), name))


def test_the_weight_and_the_value_that_are_quantised_wrongly_are_named(tmp_path: Path) -> None:
    quantised = quantise(tmp_path, QuantFormat.QDQ, per_channel=True)
    assert compared(quantised, tmp_path).departures == ()
    weight = next(numpy_helper.to_array(each) for each in REFERENCE.graph.initializer if each.name == "w1")
    wrong = onnx.ModelProto.FromString(quantised.SerializeToString())
    along_inputs = (np.abs(weight).max((0, 2, 3)) / 127).astype(np.float32)
    change(wrong, "w1_scale", lambda _: along_inputs)
    change(wrong, "w1_quantized", lambda _: np.rint(weight / along_inputs[:, None, None]).astype(np.int8))
    (departure,) = compared(wrong, tmp_path).departures
    assert (departure.value, departure.reference_value) == ("w1_DequantizeLinear_Output", "w1")
    assert departure.in_steps
    # The range of relu1 begins below 0, so that the Relu that the quantiser left out is lost.
    wrong = onnx.ModelProto.FromString(quantised.SerializeToString())
    change(wrong, "relu1_zero_point", lambda _: np.array(20, np.uint8))
    departure = compared(wrong, tmp_path).departures[0]
    assert departure.value == "relu1_DequantizeLinear_Output"
    assert departure.before == ("node 18 `relu1_QuantizeLinear` (QuantizeLinear)",)


def test_the_headline_says_that_the_model_departs_and_not_the_target(tmp_path: Path) -> None:
    wrong = half(lambda name, value: value * 1.02 if name == "w1" else value)
    onnx.save(wrong, tmp_path / "half.onnx")
    onnx.save(half(), tmp_path / "right.onnx")
    onnx.save(REFERENCE, tmp_path / "float.onnx")
    options = ValidateOptions((tmp_path / "half.onnx",), ("cpu",), reference=tmp_path / "float.onnx")
    found = validate(options).validation
    assert (found.status, found.is_model_at_fault) == (WRONG, True)
    assert found.headline == (
        "half.onnx runs on CPUExecutionProvider as the model says, but the model departs from 'float.onnx' first at "
        "node 3 `n3` (Conv)"
    )
    assert found.departures[0].words[1:40] in page.render(found)
    arguments = ["validate", str(tmp_path / "half.onnx"), "-t", "cpu", "--reference", str(tmp_path / "float.onnx")]
    done = CliRunner().invoke(app, [*arguments, "--json", str(tmp_path / "all.json")])
    assert done.exit_code == 1
    assert "departs from the reference: 'conv1[" in done.output.replace("\n", " ")
    written = json.loads((tmp_path / "all.json").read_text("utf-8"))
    assert written["reference"]["departures"][0]["node"] == "node 3 `n3` (Conv)"
    right = ValidateOptions((tmp_path / "right.onnx",), ("cpu",), reference=tmp_path / "float.onnx")
    assert validate(right).validation.status == RIGHT
