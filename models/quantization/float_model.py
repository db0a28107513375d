"""A quantised model in floating point: QuantizeLinear and the DequantizeLinear that read it are left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from epcheck.models.graph.wiring import Wiring
from epcheck.models.quantization.quantizers import Quantizer

CLIPS = (1.0, 6.0)
"""Upper bounds of the Clip nodes that networks have: of HardSigmoid and Relu6."""

SUFFIX = "_suggested"
"""Of the names of scales and zero points that replace those of a model."""


@dataclass(frozen=True)
class Pair:
    """A QuantizeLinear that DequantizeLinear nodes alone read. readers: their indices."""

    quantizer: Quantizer
    readers: tuple[int, ...]

    @property
    def clip(self) -> tuple[float, float] | None:
        """The range of the Relu or Clip that it stands for as well: its own range begins at 0, and ends at 1 or 6, or
        anywhere. Quantisers leave these operators out in front of it. None where it stands for none."""
        each = self.quantizer
        if each.dtype is None or each.zero_point is None or not (each.zero == each.ends[0]).all():
            return None
        high = each.scale * (each.ends[1] - each.ends[0])
        bound = next((bound for bound in CLIPS if (np.abs(high - bound) <= each.scale).all()), np.inf)
        return 0.0, bound


@dataclass(frozen=True)
class Suggested:
    """A scale and a zero point in place of those of a pair."""

    scale: float
    zero_point: int


def pairs(wiring: Wiring, found: Sequence[Quantizer]) -> tuple[Pair, ...]:
    """The pairs of a model, in its order. One whose output something else reads as well is none."""
    outputs = set(wiring.outputs)
    return tuple(
        Pair(each, readers)
        for each in found
        if each.quantizes and each.result not in outputs and (readers := tuple(_readers(wiring, each.result)))
        and all(wiring.model.graph.node[at].op_type == "DequantizeLinear" for at in readers)
    )  # fmt: skip


def _readers(wiring: Wiring, name: str) -> Iterator[int]:
    return (at for at in range(wiring.nodes) if name in wiring.reads[at])


def without(
    model: onnx.ModelProto,
    found: Sequence[Pair],
    keep: Collection[int] = (),
    suggested: Mapping[int, Suggested] | None = None,
) -> onnx.ModelProto:
    """The model without its pairs, but for those whose QuantizeLinear has its index in `keep`. A Relu stays where a
    pair stands for one. suggested: index of a kept QuantizeLinear -> what replaces its scale and zero point."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    nodes = changed.graph.node
    gone = set()
    for pair in found:
        at = pair.quantizer.node.index
        if at in keep:
            if suggested and at in suggested:
                _replace(changed, pair, suggested[at])
            continue
        gone.add(at)
        for reader in pair.readers:
            nodes[reader].CopyFrom(_instead(changed, pair, nodes[reader]))
    left = [node for at, node in enumerate(nodes) if at not in gone]
    del nodes[:]
    nodes.extend(left)
    return changed


def _instead(model: onnx.ModelProto, pair: Pair, node: onnx.NodeProto) -> onnx.NodeProto:
    """What makes the values of a DequantizeLinear without quantisation. A bound is an initializer of the model."""
    source, result = pair.quantizer.source, node.output[0]
    if pair.clip is None:
        return helper.make_node("Identity", [source], [result], node.name)
    if np.isinf(pair.clip[1]):
        return helper.make_node("Relu", [source], [result], node.name)
    names = []
    kind = _element_type(model, model.graph.node[pair.quantizer.node.index].input[1])
    for bound in pair.clip:
        names.append(f"{result}_{bound:g}{SUFFIX}")
        value = np.array(bound, helper.tensor_dtype_to_np_dtype(kind))
        model.graph.initializer.append(numpy_helper.from_array(value, names[-1]))
    return helper.make_node("Clip", [source, *names], [result], node.name)


def _element_type(model: onnx.ModelProto, name: str) -> int:
    """Of a scale that is an initializer; float32 where a node makes it."""
    return next((int(each.data_type) for each in model.graph.initializer if each.name == name), onnx.TensorProto.FLOAT)


def _replace(model: onnx.ModelProto, pair: Pair, values: Suggested) -> None:
    """Give the nodes of a pair a scale and a zero point of their own."""
    first = model.graph.node[pair.quantizer.node.index]
    scale = np.array(values.scale, helper.tensor_dtype_to_np_dtype(_element_type(model, first.input[1])))
    zero = np.array(values.zero_point).astype(pair.quantizer.dtype or np.uint8)
    names = [f"{first.output[0]}_{part}{SUFFIX}" for part in ("scale", "zero_point")]
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name)
                                   for value, name in zip((scale, zero), names, strict=True))  # fmt: skip
    for at in (pair.quantizer.node.index, *pair.readers):
        del model.graph.node[at].input[1:]
        model.graph.node[at].input.extend(names)
