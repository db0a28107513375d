"""Nodes that a provider declines, written in another way that gives the same values: by attributes, by inputs. Each
rewrite takes a lone node and gives a change, or None where it is not for that node.

The definitions of the operators are those of the ONNX standard; what is declined is in `support`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from epcheck.models.placement.change import Change, LoneNode

RECURRENT = ("RNN", "GRU", "LSTM")

SLICE_BY_INPUTS = 10
"""The opset from which on Slice has starts, ends and axes as inputs."""

BATCH_FIRST = (1, 0, 2)
"""Permutation of [batch, time, features] and of a state [batch, directions, hidden] to layout 0, and back."""

Y_BATCH_FIRST = (2, 0, 1, 3)
"""Permutation of the output [time, directions, batch, hidden] to layout 1."""


def rewrites(alone: LoneNode) -> Iterator[Change]:
    """Every rewrite that is for this node."""
    for rewrite in _REWRITES:
        change = rewrite(alone)
        if change is not None:
            yield change


def _without_unread_outputs(alone: LoneNode) -> Change | None:
    wanted = {output.name for output in alone.model.graph.output}
    unread = [name for name in alone.node.output if name and name not in wanted]
    if not unread or len(unread) == len(alone.node.output):
        return None
    changed = alone.copy()
    kept = [name if name in wanted else "" for name in alone.node.output]
    while not kept[-1]:
        kept.pop()
    changed.graph.node[alone.at].ClearField("output")
    changed.graph.node[alone.at].output.extend(kept)
    names = ", ".join(f"'{name}'" for name in unread)
    return Change(f"leave out the output {names}, which nothing reads", changed)


def _layout_zero(alone: LoneNode) -> Change | None:
    if alone.node.op_type not in RECURRENT or not _attribute(alone.node, "layout", 0):
        return None
    states = dict.fromkeys((0, 5, 6) if alone.node.op_type == "LSTM" else (0, 5), BATCH_FIRST)
    outputs = {0: Y_BATCH_FIRST, 1: BATCH_FIRST, 2: BATCH_FIRST}
    changed = _add_transposes(alone, states, outputs)
    _set(changed.graph.node[_at(changed, alone)], "layout", None)
    return Change("set layout to 0 and put a Transpose around it for X, the initial states and the outputs", changed)


def _storage_order_zero(alone: LoneNode) -> Change | None:
    node = alone.node
    if (
        node.op_type != "MaxPool"
        or not _attribute(node, "storage_order", 0)
        or len(list(filter(None, node.output))) > 1
    ):
        return None
    return _with_attribute(alone, "storage_order", 0, "it orders the output Indices alone, which nothing reads")


def _resize_attributes(alone: LoneNode) -> Change | None:
    node = alone.node
    if node.op_type != "Resize":
        return None
    crops = _attribute(node, "coordinate_transformation_mode", b"half_pixel") == b"tf_crop_and_resize"
    if _attribute(node, "extrapolation_value", 0.0) and not crops:
        return _with_attribute(alone, "extrapolation_value", None, "it counts with tf_crop_and_resize alone")
    if _attribute(node, "exclude_outside", 0) and _attribute(node, "mode", b"nearest") != b"cubic":
        return _with_attribute(alone, "exclude_outside", None, "it changes the weights of mode=cubic alone")
    return None


def _reshape_without_allowzero(alone: LoneNode) -> Change | None:
    if alone.node.op_type != "Reshape" or not _attribute(alone.node, "allowzero", 0):
        return None
    shape = _constant(alone, 1)
    if shape is not None and (shape == 0).any():
        return None
    return _with_attribute(alone, "allowzero", None, "it counts for a shape with a 0 alone")


def _pads_without_negative(alone: LoneNode) -> Change | None:
    """Pad of an opset before 11, by an attribute."""
    pads: Sequence[int] = _attribute(alone.node, "pads", ())
    if alone.node.op_type != "Pad" or not any(pad < 0 for pad in pads):
        return None
    rank = len(pads) // 2
    changed = alone.copy()
    node = changed.graph.node[alone.at]
    end = np.iinfo(np.int32).max
    where: dict[str, Any] = {
        "starts": [max(0, -pad) for pad in pads[:rank]],
        "ends": [min(pad, 0) or end for pad in pads[rank:]],
        "axes": list(range(rank)),
    }
    cropped, name = f"{node.input[0]}_cropped", f"{node.name}_crop"
    if alone.opset < SLICE_BY_INPUTS:
        crop = helper.make_node("Slice", [node.input[0]], [cropped], name, **where)
    else:
        inputs = [f"{name}_{key}" for key in where]
        crop = helper.make_node("Slice", [node.input[0], *inputs], [cropped], name)
        values = (np.array(value, np.int64) for value in where.values())
        changed.graph.initializer.extend(map(numpy_helper.from_array, values, inputs))
    node.input[0] = cropped
    _set(node, "pads", [max(pad, 0) for pad in pads])
    _insert(changed, alone.at, [crop])
    return Change("write the negative pads as a Slice before it", changed)


def _zero_points(alone: LoneNode) -> Change | None:
    node = alone.node
    if node.op_type not in ("QLinearSigmoid", "QLinearLeakyRelu"):
        return None
    kind = next((v.type.tensor_type.elem_type for v in alone.model.graph.input if v.name == node.input[0]), 0)
    if not kind or (len(node.input) >= 5 and all(node.input)):
        return None
    changed = alone.copy()
    node = changed.graph.node[alone.at]
    node.input.extend([""] * (5 - len(node.input)))
    for at in (2, 4):
        if not node.input[at]:
            node.input[at] = f"{node.name}_zero_point_{at}"
            zero = helper.make_tensor(node.input[at], kind, [], [0])
            changed.graph.initializer.append(zero)
    return Change("give it its zero points, which are 0 where they are left out", changed)


_REWRITES: tuple[Callable[[LoneNode], Change | None], ...] = (
    _without_unread_outputs,
    _layout_zero,
    _storage_order_zero,
    _resize_attributes,
    _reshape_without_allowzero,
    _pads_without_negative,
    _zero_points,
)


def _with_attribute(alone: LoneNode, name: str, value: Any, why: str) -> Change:
    """value: None leaves it out."""
    changed = alone.copy()
    _set(changed.graph.node[alone.at], name, value)
    return Change(f"{f'leave out {name}' if value is None else f'set {name} to {value}'}: {why}", changed)


def _add_transposes(
    alone: LoneNode, inputs: Mapping[int, tuple[int, ...]], outputs: Mapping[int, tuple[int, ...]]
) -> onnx.ModelProto:
    """The model with a Transpose at these inputs and outputs of the node."""
    changed = alone.copy()
    node = changed.graph.node[alone.at]
    before, after = [], []
    for at, permutation in inputs.items():
        if at < len(node.input) and node.input[at]:
            name = node.input[at]
            node.input[at] = f"{name}_transposed"
            before.append(_node("Transpose", [name], node.input[at], node, perm=permutation))
    for at, permutation in outputs.items():
        if at < len(node.output) and node.output[at]:
            name = node.output[at]
            node.output[at] = f"{name}_transposed"
            after.append(_node("Transpose", [node.output[at]], name, node, perm=permutation))
    _insert(changed, alone.at + 1, after)
    _insert(changed, alone.at, before)
    return changed


def _node(operator: str, inputs: Sequence[str], output: str, near: onnx.NodeProto, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, [output], f"{near.name}_{operator}_{output}", **attributes)


def _insert(model: onnx.ModelProto, at: int, nodes: Sequence[onnx.NodeProto]) -> None:
    every = [*model.graph.node[:at], *nodes, *model.graph.node[at:]]
    model.graph.ClearField("node")
    model.graph.node.extend(every)


def _at(model: onnx.ModelProto, alone: LoneNode) -> int:
    return next(at for at, node in enumerate(model.graph.node) if node.name == alone.node.name)


def _attribute(node: onnx.NodeProto, name: str, otherwise: Any) -> Any:
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), otherwise)


def _set(node: onnx.NodeProto, name: str, value: Any) -> None:
    """Set an attribute, or remove it where the value is None."""
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    if value is not None:
        kept.append(helper.make_attribute(name, value))
    node.ClearField("attribute")
    node.attribute.extend(kept)


def _constant(alone: LoneNode, at: int) -> Any:
    """The value of an input, a constant or what was received; None where it is not known."""
    name = alone.node.input[at] if at < len(alone.node.input) else ""
    value = alone.feeds.get(name)
    if isinstance(value, np.ndarray):
        return value
    return next((numpy_helper.to_array(t) for t in alone.model.graph.initializer if t.name == name), None)
