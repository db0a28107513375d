"""A target, `python:benchmarks.fault_injection.wrong_node:run`, one of whose nodes is wrong as the environment says.

The fault is part of the arithmetic: wherever the node turns up, in the whole model, in a part of it, alone, it is
wrong in the same way. It is known by its operator and the first value that it makes, whatever it receives.
ONNX Runtime's CPU provider computes everything else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper

FAULT = "EPCHECK_WRONG_NODE"
"""Environment variable: operator, first output and fault, with a line feed between them; of several faults, one after
the other."""

Make = Callable[[str, str], list[NodeProto]]
"""(the right value, the wrong one) -> nodes that make the second of the first."""

Fault = Callable[[onnx.ModelProto, NodeProto], None]
"""Changes the node in its model."""


def run(model: bytes, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of the model with the fault of the environment."""
    return with_fault(os.environ[FAULT], model, feeds)


def with_fault(description: str, model: bytes, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of the model with the fault that is told as in the environment."""
    import onnxruntime

    lines = iter(description.split("\n"))
    proto = onnx.load_model_from_string(model)
    for op_type, output, fault in zip(lines, lines, lines, strict=True):
        for node in list(proto.graph.node):
            if node.op_type == op_type and node.output[0] == output:
                FAULTS[fault](proto, node)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    content = proto.SerializeToString()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = [output_info.name for output_info in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def _afterwards(make: Make) -> Fault:
    """The fault that makes a wrong value of the right one."""

    def apply(model: onnx.ModelProto, node: NodeProto) -> None:
        wrong = node.output[0]
        right = f"{wrong}/right"
        node.output[0] = right
        place = list(model.graph.node).index(node)
        nodes = list(model.graph.node)
        nodes[place + 1 : place + 1] = make(right, wrong)
        model.graph.ClearField("node")
        model.graph.node.extend(nodes)

    return apply


def _rounded(element: int) -> Make:
    """Through a dtype with fewer digits and back."""

    def make(right: str, wrong: str) -> list[NodeProto]:
        fewer = f"{right}/fewer"
        return [
            helper.make_node("Cast", [right], [fewer], to=element),
            helper.make_node("Cast", [fewer], [wrong], to=TensorProto.FLOAT),
        ]

    return make


def _with_number(op_type: str, number: float) -> Make:
    def make(right: str, wrong: str) -> list[NodeProto]:
        plain, like = f"{right}/plain", f"{right}/like"
        return [
            helper.make_node("Constant", [], [plain], value_float=number),
            helper.make_node("CastLike", [plain, right], [like]),
            helper.make_node(op_type, [right, like], [wrong]),
        ]

    return make


def _range(right: str, name: str, start: int, end: int, step: int = 1) -> Iterator[NodeProto]:
    """Of the last axis."""
    for part, value in (("start", start), ("end", end), ("axis", -1), ("step", step)):
        yield helper.make_node("Constant", [], [f"{name}/{part}"], value_ints=[value])
    inputs = [right, *(f"{name}/{part}" for part in ("start", "end", "axis", "step"))]
    yield helper.make_node("Slice", inputs, [name])


END = np.iinfo(np.int64).max


def _shifted(right: str, wrong: str) -> list[NodeProto]:
    """Each element one place on, along the last axis."""
    last, others = f"{right}/last", f"{right}/others"
    return [
        *_range(right, last, -1, END),
        *_range(right, others, 0, -1),
        helper.make_node("Concat", [last, others], [wrong], axis=-1),
    ]


def _reversed(right: str, wrong: str) -> list[NodeProto]:
    """The last axis from its end to its start."""
    return list(_range(right, wrong, -1, -END, -1))


def _one_short(right: str, wrong: str) -> list[NodeProto]:
    """A loop that ends one too early: the last element of each row repeats the one before."""
    others, before = f"{right}/others", f"{right}/before"
    return [
        *_range(right, others, 0, -1),
        *_range(right, before, -2, -1),
        helper.make_node("Concat", [others, before], [wrong], axis=-1),
    ]


def _not_a_number(right: str, wrong: str) -> list[NodeProto]:
    """NaN at the end of each row."""
    others, last, zero, nan = (f"{right}/{part}" for part in ("others", "last", "zero", "nan"))
    return [
        *_range(right, others, 0, -1),
        *_range(right, last, -1, END),
        helper.make_node("Sub", [last, last], [zero]),
        helper.make_node("Div", [zero, zero], [nan]),
        helper.make_node("Concat", [others, nan], [wrong], axis=-1),
    ]


def _transposed(right: str, wrong: str) -> list[NodeProto]:
    """In column-major order: the elements of the last two axes, as if these were the other way round."""
    names = ("shape", "front", "rows", "columns", "turned", "flat")
    shape, front, rows, columns, turned, flat = (f"{right}/{part}" for part in names)
    stacked, three = f"{right}/stacked", f"{right}/three"
    return [
        helper.make_node("Shape", [right], [shape]),
        helper.make_node("Constant", [], [front], value_ints=[-1]),
        helper.make_node("Shape", [right], [rows], start=-2, end=-1),
        helper.make_node("Shape", [right], [columns], start=-1),
        helper.make_node("Concat", [front, rows, columns], [flat], axis=0),
        helper.make_node("Reshape", [right, flat], [stacked]),
        helper.make_node("Transpose", [stacked], [turned], perm=[0, 2, 1]),
        helper.make_node("Identity", [turned], [three]),
        helper.make_node("Reshape", [three, shape], [wrong]),
    ]


def _attribute(
    name: str, change: Callable[[Any], Any], default: Any = None
) -> Callable[[onnx.ModelProto, NodeProto], None]:
    """An attribute read wrongly."""

    def apply(_model: onnx.ModelProto, node: NodeProto) -> None:
        value = default
        for attribute in list(node.attribute):
            if attribute.name == name:
                value = helper.get_attribute_value(attribute)
                node.attribute.remove(attribute)
        node.attribute.append(helper.make_attribute(name, change(value)))

    return apply


def _without_input(index: int) -> Fault:
    def apply(_model: onnx.ModelProto, node: NodeProto) -> None:
        node.input[index] = ""

    return apply


def _swapped(_model: onnx.ModelProto, node: NodeProto) -> None:
    node.input[0], node.input[1] = node.input[1], node.input[0]


def _halves_swapped(values: Any) -> list[int]:
    half = len(values) // 2
    return [*values[half:], *values[:half]]


FAULTS: Mapping[str, Fault] = {
    "rounded to float16": _afterwards(_rounded(TensorProto.FLOAT16)),
    "rounded to bfloat16": _afterwards(_rounded(TensorProto.BFLOAT16)),
    "1 % too large": _afterwards(_with_number("Mul", 1.01)),
    "one too many": _afterwards(_with_number("Add", 1.0)),
    "saturates at 0.5": _afterwards(_with_number("Min", 0.5)),
    "shifted by one": _afterwards(_shifted),
    "reversed": _afterwards(_reversed),
    "ends one short": _afterwards(_one_short),
    "NaN at the end": _afterwards(_not_a_number),
    "transposed": _afterwards(_transposed),
    "epsilon of 0.1": _attribute("epsilon", lambda _: 0.1),
    "axis one before": _attribute("axis", lambda axis: axis - 1, -1),
    "pads at the wrong end": _attribute("pads", _halves_swapped),
    "alpha ignored": _attribute("alpha", lambda _: 1.0),
    "asymmetric coordinates": _attribute("coordinate_transformation_mode", lambda _: "asymmetric"),
    "smallest first": _attribute("largest", lambda _: 0),
    "backwards": _attribute("direction", lambda _: "reverse"),
    "bias ignored": _without_input(2),
    "zero point ignored": _without_input(2),
    "operands swapped": _swapped,
}
"""What can be wrong with a node; `wrong_nodes.applicable` says with which."""
