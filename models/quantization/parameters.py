"""Faults of quantisers that need no feeds: of scales, zero points and axes, of pairs, of biases.

Sources: the pages QuantizeLinear and DequantizeLinear of ONNX (x_zero_point has the shape of x_scale and the type of
the quantised side; int32 has no zero point; axis of per-axis quantisation); QLinearConv, whose bias is quantised with
scale = x_scale * w_scale and zero point 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.graph.wiring import Wiring
from epcheck.models.quantization.fault import FaultyQuantizer, QuantizerFault
from epcheck.models.quantization.quantizers import Quantizer

SAME = 1e-3
"""Relative difference up to which two scales are the same: they are products and quotients in float32."""

PER_AXIS = 13
"""The opset from which on QuantizeLinear and DequantizeLinear take a vector of scales."""

BIASED = ("Conv", "ConvTranspose", "Gemm")
"""Operators whose third input is a bias."""


def faults(wiring: Wiring, found: Sequence[Quantizer]) -> Iterator[FaultyQuantizer]:
    """The faults that the quantisers show by themselves, at most one of each."""
    made = {each.result: each for each in found}
    opset = next((each.version for each in wiring.model.opset_import if each.domain in ("", "ai.onnx")), 1)
    for each in found:
        fault = next(_check_own_parameters(each, wiring, opset), None) or _pair(each, made)
        if fault is not None:
            yield fault
    yield from _biases(wiring.model.graph.node, made)


def _check_own_parameters(each: Quantizer, wiring: Wiring, opset: int) -> Iterator[FaultyQuantizer]:
    bad = ~np.isfinite(each.scale) | (each.scale <= 0)
    if bad.any() and not _is_empty(each, bad, wiring):
        value = each.scale[bad].ravel()[0]
        many = f"{np.count_nonzero(bad)} of its {each.scale.size} scales are" if each.scale.size > 1 else "its scale is"
        yield FaultyQuantizer(each.node, QuantizerFault.SCALE, f"{many} {value:g}, which is no positive number")
    yield from _zero_point(each)
    if each.per_axis and opset < PER_AXIS and each.node.domain != "com.microsoft":
        words = f"it has {each.scale.size} scales, which there are from opset {PER_AXIS} on; the model has {opset}"
        yield FaultyQuantizer(each.node, QuantizerFault.AXIS, words)
    elif each.per_axis and each.sizes is not None:
        yield from _axis(each, each.sizes)


def _is_empty(each: Quantizer, bad: Array, wiring: Wiring) -> bool:
    """Whether scales of 0 are those of slices of a constant that are 0 anyway."""
    levels = wiring.constant(each.source) if each.source in wiring.constants else None
    if levels is None or not each.per_axis or each.sizes is None or (each.scale[bad] != 0).any():
        return False
    if not -levels.ndim <= each.axis < levels.ndim or levels.shape[each.axis] != each.scale.size:
        return False
    empty = levels.astype(np.float64) == each.along(each.zero, levels.ndim)
    return bool(np.moveaxis(empty, each.axis, 0)[bad].all())


def _zero_point(each: Quantizer) -> Iterator[FaultyQuantizer]:
    zero = each.zero_point
    if zero is None:
        return
    words = ""
    if each.dtype is not None and zero.dtype != each.dtype:
        words = f"its zero point is {zero.dtype.name}, and what it {_verb(each)} is {each.dtype.name}"
    elif zero.shape != each.scale.shape and max(zero.size, each.scale.size) > 1:
        words = f"its zero point has the shape {list(zero.shape)}, and its scale {list(each.scale.shape)}"
    elif each.dtype == np.int32 and zero.any():
        words = f"its zero point is {zero.ravel()[0]}, and int32 has none but 0"
    if words:
        yield FaultyQuantizer(each.node, QuantizerFault.ZERO_POINT, words)


def _verb(each: Quantizer) -> str:
    return "makes" if each.quantizes else "reads"


def _axis(each: Quantizer, sizes: Sequence[int | None]) -> Iterator[FaultyQuantizer]:
    if not -len(sizes) <= each.axis < len(sizes):
        words = f"its axis is {each.axis}, and what it reads has {len(sizes)} dimensions"
        yield FaultyQuantizer(each.node, QuantizerFault.AXIS, words)
    elif sizes[each.axis] not in (None, each.scale.size):
        words = (
            f"it has {each.scale.size} scales, and axis {each.axis} of what it reads has {sizes[each.axis]} elements"
        )
        yield FaultyQuantizer(each.node, QuantizerFault.AXIS, words)


def _pair(each: Quantizer, made: Mapping[str, Quantizer]) -> FaultyQuantizer | None:
    """A DequantizeLinear that does not read with what was written."""
    first = made.get(each.source)
    if each.quantizes or first is None or not first.quantizes or not (first.scale > 0).all():
        return None
    if not _same(first.scale, each.scale):
        words = f"its scale is {_number(each)}, and {first.node} quantises with {_number(first)}"
    elif not _same_zero(first, each):
        words = f"its zero point is {_zero(each)}, and {first.node} quantises with {_zero(first)}"
    else:
        return None
    return FaultyQuantizer(each.node, QuantizerFault.PAIR, words)


def _same(first: Array, second: Array) -> bool:
    if first.size != second.size:
        return min(first.size, second.size) == 1 and bool(np.allclose(first.ravel(), second.ravel(), SAME, 0))
    return bool(np.allclose(first.ravel(), second.ravel(), SAME, 0, equal_nan=True))


def _same_zero(first: Quantizer, second: Quantizer) -> bool:
    return bool(np.array_equal(np.unique(first.zero), np.unique(second.zero)))


def _number(each: Quantizer) -> str:
    return f"{each.scale.ravel()[0]:.4g}{' and others' if each.scale.size > 1 else ''}"


def _zero(each: Quantizer) -> str:
    return f"{each.zero.ravel()[0]:g}"


def _biases(nodes: Sequence[onnx.NodeProto], made: Mapping[str, Quantizer]) -> Iterator[FaultyQuantizer]:
    for node in nodes:
        if node.op_type not in BIASED or node.domain not in ("", "ai.onnx") or len(node.input) < 3:
            continue
        read = [made.get(name) for name in node.input[:3]]
        x, w, bias = read
        if x is None or w is None or bias is None or bias.quantizes or bias.dtype != np.int32 or x.scale.size > 1:
            continue
        expected = x.scale.ravel()[0] * w.scale.ravel()
        if expected.size not in (1, bias.scale.size) and bias.scale.size != 1:
            continue
        off = ~(np.abs(bias.scale.ravel() - expected) <= SAME * np.abs(expected))
        if not np.isfinite(expected).all() or (expected <= 0).all():
            continue  # that of input or weight is at fault
        if off.any():
            at = int(np.argmax(off))
            got, product = np.broadcast_arrays(bias.scale.ravel(), expected)
            words = (f"its scale is {got[at]:.4g}, and those of input and weight of {node.op_type} '{node.name}' have "
                     f"the product {product[at]:.4g}, with which fused kernels read the bias")  # fmt: skip
            yield FaultyQuantizer(bias.node, QuantizerFault.BIAS, words)
