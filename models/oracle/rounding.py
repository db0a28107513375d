"""How sensitive a model is: its oracle once more, with every value off by a random rounding error.

Every result of a node that its dtype cannot hold exactly is changed by up to one rounding unit of that dtype: Monte
Carlo arithmetic, D. S. Parker, UCLA CSD-970002 (1997). In a sum of n products a runtime rounds every product and every
partial sum. The partial sums of random terms grow as the root of their number, so that all these roundings together are
what sqrt(n / 2) rounding units in each operand are; so much its operands are changed. What such a run differs from the
truth by, any honest implementation may differ by as well. Values that are exact stay so: moved data, whole numbers,
weights elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.graph.attributes import read_integer
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.values import Type

UNITS = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""The largest relative error of one rounding."""

DIGITS = {"float64": 26, "float32": 23, "float16": 10, "bfloat16": 7}
"""Stored digits of the significand. Every float64 has those of its dtype, as the oracle computes in it: the half of
them tells whole numbers and float32 data from results that were rounded."""

QUANTISED = ("QuantizeLinear", "DynamicQuantizeLinear", "QLinear", "QGemm")
"""Beginnings of the names of operators whose first result is rounded to a step."""

ACCURACY_LEVELS = {2: UNITS["float16"], 3: UNITS["bfloat16"]}
"""`accuracy_level` of MatMulNBits -> a rounding of A: it may be computed in that dtype, by level 4 in int8 with the
blocks of B (docs/ContribOperators.md of onnxruntime)."""

INT8_LEVEL, LEVELS_INT8 = 4, 127
"""The `accuracy_level` of int8, and its steps from 0 to the largest element of a block."""

STORED = 52
"""Stored digits of a float64's significand."""

PRODUCTS = frozenset(("Attention", "Conv", "ConvTranspose", "Einsum", "FusedMatMul", "GRU", "Gemm", "LSTM", "MatMul",
                      "MultiHeadAttention", "RNN", "STFT", "DFT"))  # fmt: skip
"""Operators that sum products."""


MOVED = 0.01
"""Share of the results of a quantisation that move by a step where nodes round once: those that lie between two."""


class RandomRounding:
    """A disturbance of the oracle. types: value of the main graph -> its type; values of bodies have the coarsest of
    them. seed: of the random numbers. once: whether each result is rounded once, and no partial sum; MOVED of the
    quantised values then move by a step."""

    def __init__(self, types: Mapping[str, Type], seed: int, once: bool = False) -> None:
        floating = {name: type_.dtype for name, type_ in types.items() if type_.dtype in UNITS}
        self._dtypes = floating
        self._coarsest = max(floating.values(), key=UNITS.__getitem__, default="float32")
        self._rng = np.random.default_rng(seed)
        self._once = once

    def operands(self, node: onnx.NodeProto, inputs: Sequence[Feed]) -> Sequence[Feed]:
        """The operands of a sum of products, each off by a rounding."""
        if node.op_type == "MatMulNBits" and isinstance(inputs[0], np.ndarray):
            return [self._coarsen(node, inputs[0]), *inputs[1:]]
        if node.op_type not in PRODUCTS or self._once:
            return inputs
        unit = UNITS[self._dtype(node)] * math.sqrt(_terms(node, inputs) / 2 + 1)
        return [
            self._off(value, unit) if isinstance(value, np.ndarray) and _is_wide(value) else value for value in inputs
        ]

    def results(self, node: onnx.NodeProto, values: Sequence[Feed]) -> Sequence[Feed]:
        """The results, off by a rounding where they are not exact."""
        dtype = self._dtype(node)
        found = [self._round_value(value, dtype) for value in values]
        if self._once and node.op_type.startswith(QUANTISED):
            return [self._move_steps(found[0]), *found[1:]]
        return found

    def _coarsen(self, node: onnx.NodeProto, value: Array) -> Array:
        """A of MatMulNBits, off by a rounding to what its `accuracy_level` permits."""
        if unit := ACCURACY_LEVELS.get(read_integer(node, "accuracy_level")):
            return self._off(value, unit)
        if not permits_int8(node) or not value.size:
            return value
        starts = np.arange(0, value.shape[-1], max(read_integer(node, "block_size"), 1))
        largest = np.maximum.reduceat(np.abs(value), starts, axis=-1)
        steps = np.repeat(largest, np.diff(np.append(starts, value.shape[-1])), axis=-1) / LEVELS_INT8
        return np.asarray(value + steps * (self._rng.random(value.shape) - 0.5))

    def _move_steps(self, value: Feed) -> Feed:
        """A tensor of 8 bits in which MOVED of the elements are a step away."""
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu" or value.dtype.itemsize > 1:
            return value
        limits = np.iinfo(value.dtype)
        steps = (self._rng.random(value.shape) < MOVED) * self._rng.choice((-1, 1), value.shape)
        return np.asarray(np.clip(value.astype(np.int64) + steps, limits.min, limits.max), value.dtype)

    def _dtype(self, node: onnx.NodeProto) -> str:
        return next((self._dtypes[name] for name in node.output if name in self._dtypes), self._coarsest)

    def _round_value(self, value: Feed, dtype: str) -> Feed:
        if isinstance(value, list):
            return [self._round_value(element, dtype) for element in value]
        if value is None or not _is_wide(value):
            return value
        found = self._off(value, UNITS[dtype])
        np.copyto(found, value, where=_is_exact(value, DIGITS[dtype]))
        return found

    def _off(self, value: Array, unit: float) -> Array:
        factor: Array = np.asarray(self._rng.random(value.shape))
        factor *= 2 * unit
        factor += 1 - unit
        factor *= value
        return factor


def permits_int8(node: onnx.NodeProto) -> bool:
    """Whether a runtime may round an operand of the node to int8."""
    return node.op_type == "MatMulNBits" and read_integer(node, "accuracy_level") == INT8_LEVEL


def _terms(node: onnx.NodeProto, inputs: Sequence[Feed]) -> int:
    """How many products a sum of the node has: those of a filter, of a row, or of a row of both weights of a recurrent
    layer."""
    shapes = [value.shape for value in inputs if isinstance(value, np.ndarray)]
    if len(shapes) < 2 or not shapes[1]:
        return 1
    if node.op_type == "Conv":
        return math.prod(shapes[1][1:])
    if node.op_type == "ConvTranspose":
        return math.prod((shapes[1][0], *shapes[1][2:]))
    if node.op_type in ("LSTM", "GRU", "RNN"):
        return sum(shape[-1] for shape in shapes[1:3])
    return max(shapes[0][-1:] or (1,))


def _is_wide(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float64


def _is_exact(value: Array, digits: int) -> Array:
    """Whether a significand of so many stored digits holds each element: the digits behind them are 0."""
    behind = np.uint64((1 << (STORED - digits)) - 1)
    return np.asarray(np.bitwise_and(value.view(np.uint64), behind) == 0)
