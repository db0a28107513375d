"""A quantised model with better scales, zero points and biases, where what is wrong says which.

The corrected quantiser keeps what the model means in floating point: a range is made for the values that it receives, a
DequantizeLinear reads with what was written, and a bias has the levels that its value has at the scale with which fused
kernels read it. Weights that saturate are lost: the float values are not in the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from epcheck.generators.array import Array
from epcheck.models.graph.wiring import wire
from epcheck.models.quantization import float_model, parameters
from epcheck.models.quantization.fault import FaultyQuantizer, QuantizerFault
from epcheck.models.quantization.float_model import Pair, Suggested
from epcheck.models.quantization.quantizers import Quantizer, quantizers

CORRECTED = "_corrected"
"""Of the names of initializers that take the place of others."""

BIAS_INPUT = 2
"""The place of the bias among the inputs of Conv, ConvTranspose and Gemm."""


def correct(
    model: onnx.ModelProto, faults: Sequence[FaultyQuantizer], folder: Path | None = None
) -> tuple[onnx.ModelProto, dict[int, str]]:
    """The model with its faulty quantisers corrected, and node index -> what was done, of those that could be. folder:
    where the model's external data is; None where it has none."""
    wiring = wire(model, folder=folder)
    found = {each.node.index: each for each in quantizers(wiring)}
    pairs = float_model.pairs(wiring, tuple(found.values()))
    suggested = {
        fault.node.index: Suggested(fault.scale, fault.zero_point or 0)
        for fault in faults
        if fault.scale is not None
        and fault.scale > 0
        and any(p.quantizer.node.index == fault.node.index for p in pairs)
    }
    changed = float_model.without(model, pairs, [pair.quantizer.node.index for pair in pairs], suggested)
    done = {
        at: f"its range is that of its values: scale {each.scale:.4g}, zero point {each.zero_point}"
        for at, each in suggested.items()
    }
    for fault in faults:
        at = fault.node.index
        if at in done or at not in found:
            continue
        match fault.fault:
            case QuantizerFault.PAIR | QuantizerFault.SCALE:
                done.update(_take_parameters_of_partner(changed, at, found, pairs))
            case QuantizerFault.ZERO_POINT:
                done.update(_write_zero_point(changed, found[at]))
            case QuantizerFault.AXIS:
                done.update(_choose_axis(changed, found[at], folder))
    done.update(_requantize_biases(changed, folder))
    return changed, done


def _take_parameters_of_partner(
    model: onnx.ModelProto, at: int, found: Mapping[int, Quantizer], pairs: Sequence[Pair]
) -> Iterator[tuple[int, str]]:
    """Give a DequantizeLinear the scale and zero point of the QuantizeLinear that it reads, and a QuantizeLinear
    without a usable scale those of its reader."""
    pair = next((pair for pair in pairs if at in (pair.quantizer.node.index, *pair.readers)), None)
    if pair is None:
        return
    others = (pair.quantizer.node.index,) if at in pair.readers else pair.readers
    partner = next((found[other] for other in others if other in found and _is_usable(found[other].scale)), None)
    if partner is not None:
        node = model.graph.node[at]
        del node.input[1:]
        node.input.extend(model.graph.node[partner.node.index].input[1:])
        yield at, f"it has the scale and zero point of {partner.node}"


def _is_usable(scale: Array) -> bool:
    return bool((np.isfinite(scale) & (scale > 0)).all())


def _write_zero_point(model: onnx.ModelProto, each: Quantizer) -> Iterator[tuple[int, str]]:
    """Write a zero point that is one number in the type and shape that it has to have."""
    if each.dtype is None or each.zero_point is None or np.unique(each.zero).size != 1:
        return
    number = int(each.zero.ravel()[0])
    if each.ends[0] <= number <= each.ends[1] and (each.dtype != np.int32 or not number):
        node = model.graph.node[each.node.index]
        node.input[2] = _add(model, f"{node.input[2]}{CORRECTED}", np.full(each.scale.shape, number, each.dtype))
        yield each.node.index, f"its zero point is {number} in {each.dtype.name}, of the shape of its scale"


def _choose_axis(model: onnx.ModelProto, each: Quantizer, folder: Path | None) -> Iterator[tuple[int, str]]:
    """Set the axis of a constant to the one along which every slice reaches the end of the range."""
    wiring = wire(model, folder=folder)
    levels = wiring.constant(each.source) if each.source in wiring.constants else None
    if levels is None or each.blocked:
        return
    axes = [axis for axis in range(levels.ndim) if levels.shape[axis] == each.scale.size]
    if axes:
        largest = np.abs(levels.astype(np.float64))
        axis = max(axes, key=lambda axis: np.moveaxis(largest, axis, 0).reshape(each.scale.size, -1).max(1).min())
        if axis != each.axis:
            _set_axis(model.graph.node[each.node.index], axis)
            yield each.node.index, f"its axis is {axis}"


def _requantize_biases(model: onnx.ModelProto, folder: Path | None) -> Iterator[tuple[int, str]]:
    """Give each bias of int32 the scale with which fused kernels read it, which may be another now, and the levels that
    its values have there."""
    wiring = wire(model, folder=folder)
    found = {each.node.index: each for each in quantizers(wiring)}
    made = {each.result: each for each in found.values()}
    for fault in parameters.faults(wiring, tuple(found.values())):
        if fault.fault is not QuantizerFault.BIAS:
            continue
        bias = found[fault.node.index]
        levels = wiring.constant(bias.source) if bias.source in wiring.constants else None
        reader = next(node for node in model.graph.node if bias.result in node.input[BIAS_INPUT:])
        scale = made[reader.input[0]].scale.ravel()[0] * made[reader.input[1]].scale.ravel()
        if levels is None or not _is_usable(scale):
            continue
        value = (levels.astype(np.float64) - bias.zero) * bias.scale
        limits = np.iinfo(np.int32)
        node = model.graph.node[bias.node.index]
        kept = np.clip(np.rint(value / scale), limits.min, limits.max).astype(np.int32)
        node.input[0] = _add(model, f"{bias.source}{CORRECTED}", kept)
        written = np.asarray(scale if scale.size > 1 else scale[0], np.float32)
        node.input[1] = _add(model, f"{node.input[1]}{CORRECTED}", written)
        del node.input[2:]
        if scale.size > 1:
            _set_axis(node, 0)
        words = f"its scale is the product of those of input and weight, {scale[0]:.4g}; its values stay"
        yield bias.node.index, words


def _set_axis(node: onnx.NodeProto, axis: int) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name != "axis"]
    del node.attribute[:]
    node.attribute.extend([*kept, onnx.helper.make_attribute("axis", axis)])


def _add(model: onnx.ModelProto, name: str, value: Array) -> str:
    taken = {tensor.name for tensor in model.graph.initializer}
    while name in taken:
        name += "_"
    model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return name
