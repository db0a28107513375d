"""The error that an output of a whole model may have, from the precision of its arithmetic and its depth.

Every node rounds, and a sum of n terms rounds n times. Rounding errors of different nodes are nearly independent, so
that they grow with the square root of their number: N. J. Higham and T. Mary, A new approach to probabilistic
rounding error analysis, SIAM J. Sci. Comput. 41 (2019). A quantised model differs by steps, where a value lies on a
rounding boundary; the power of that is at most the noise of the quantisation itself: W. R. Bennett, Spectra of
quantized signals, Bell System Technical Journal 27 (1948).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import onnx

from epcheck.models.graph import values
from epcheck.models.graph.values import UNKNOWN, Type

HIGHAM_MARY = "Higham and Mary 2019: rounding errors grow with the square root of their number"
BENNETT = "Bennett 1948: no more power than the noise of the quantisation itself"
EXACT = "integers that only integers enter are exact"
TIES = "an index or a comparison turns where two numbers are as good as equal"
YOURS = "as asked for"

HEADROOM = 4.0
"""Factor by which a network may amplify the sum of its rounding errors: its condition, which no bound knows. The
value is ours; DirectML stays below half of the threshold on nine models of the zoo."""

STEPS = 2
"""Quantisation steps by which an 8-bit output may differ."""

LOADING_DB = 12.0
"""Decibels between the full scale of a quantiser and the power of what it quantises: a signal whose peak is 4 times its
root mean square."""

UNITS = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""The largest relative error of one rounding."""

AGREEMENT = 0.99
"""The least share of equal elements of an integer or boolean output that depends on floating-point values."""

QUANTISED = (
    "QuantizeLinear",
    "DynamicQuantizeLinear",
    "QLinear",
    "QGemm",
    "QAttention",
    "MatMulInteger",
    "ConvInteger",
)
SUMS = {"MatMul": (0, -1), "Gemm": (0, -1), "FusedMatMul": (0, -1), "Softmax": (0, -1), "LayerNormalization": (0, -1)}
"""Operator -> (input, axis) whose size is the number of terms of its sums."""


@dataclass(frozen=True)
class Threshold:
    """relative: the largest `Metrics.relative`. snr_db: the least signal to noise in decibels, None where it does not
    count. agreement: the least share of equal elements, None for floating point. steps: quantisation steps by which an
    integer output may differ. depth: nodes on the longest path to the output. source: of the threshold."""

    relative: float = 0.0
    snr_db: float | None = None
    agreement: float | None = None
    steps: int = 0
    depth: int = 0
    source: str = EXACT


@dataclass(frozen=True)
class Override:
    """Values that replace those of every threshold; None leaves the value of the threshold."""

    relative: float | None = None
    snr_db: float | None = None
    agreement: float | None = None

    def apply(self, threshold: Threshold) -> Threshold:
        """The threshold with these values. An output that is compared by agreement takes over the agreement alone."""
        changes = {name: value for name, value in vars(self).items() if value is not None}
        if threshold.agreement is not None:
            changes = {name: value for name, value in changes.items() if name == "agreement"}
        return replace(threshold, **changes, source=YOURS) if changes else threshold


@dataclass(frozen=True)
class _Path:
    """The most nodes, roundings and quantising nodes on any path to a value, and the coarsest unit of a rounding."""

    depth: int = 0
    roundings: int = 0
    unit: float = 0.0
    quantised: int = 0


def of_outputs(inferred: onnx.ModelProto) -> dict[str, Threshold]:
    """Graph output -> threshold. inferred: a model with inferred types."""
    types = values.of_graph(inferred.graph)
    paths: dict[str, _Path] = {}
    for node in inferred.graph.node:
        before = [paths.get(name, _Path(unit=_unit(types.get(name, UNKNOWN)))) for name in _read(node)]
        path = _through(node, before, types)
        paths.update((name, path) for name in node.output if name)
    outputs = (value.name for value in inferred.graph.output)
    return {name: _threshold(paths.get(name, _Path()), types.get(name, UNKNOWN)) for name in outputs}


def _read(node: onnx.NodeProto) -> list[str]:
    """What a node and the bodies in it read."""
    names = [name for name in node.input if name]
    for _, body in values.bodies(node):
        for inner in body.node:
            names += _read(inner)
    return names


def _through(node: onnx.NodeProto, before: list[_Path], types: Mapping[str, Type]) -> _Path:
    made = [_unit(types.get(name, UNKNOWN)) for name in node.output if name]
    return _Path(
        depth=max((path.depth for path in before), default=0) + 1,
        roundings=max((path.roundings for path in before), default=0) + _terms(node, types),
        unit=max((*(path.unit for path in before), *made), default=0.0),
        quantised=max((path.quantised for path in before), default=0) + node.op_type.startswith(QUANTISED),
    )


def _unit(kind: Type) -> float:
    return UNITS.get(kind.dtype, 0.0)


def _terms(node: onnx.NodeProto, types: Mapping[str, Type]) -> int:
    """How many times a node rounds for one element of its output."""
    if "Conv" in node.op_type and len(node.input) > 1:
        sizes = types.get(node.input[3 if node.op_type.startswith("QLinear") else 1], UNKNOWN).shape or ()
        return _product(sizes[1:])
    if node.op_type in SUMS or node.op_type.startswith(("Reduce", "Global")):
        at, axis = SUMS.get(node.op_type, (0, -1))
        shape = types.get(node.input[at], UNKNOWN).shape or ()
        return _product(shape) // max(_product(shape[:2]), 1) if node.op_type.startswith("Global") else (
            _product(shape[axis:]) if shape else 1)  # fmt: skip
    if node.op_type in ("LSTM", "GRU", "RNN") and len(node.input) > 2:
        steps = (types.get(node.input[0], UNKNOWN).shape or (1,))[0] or 1
        weights = types.get(node.input[2], UNKNOWN).shape or (1,)
        return steps * (weights[-1] or 1)
    return 1


def _product(sizes: tuple[int | None, ...]) -> int:
    return math.prod(size or 1 for size in sizes)


def _threshold(path: _Path, kind: Type) -> Threshold:
    is_float = kind.dtype in UNITS
    if path.quantised and (is_float or kind.dtype in ("int8", "uint8")):
        snr = 6.02 * 8 + 1.76 - LOADING_DB - 10 * math.log10(path.quantised)
        relative = 1.0 if is_float else 0.0
        return Threshold(relative, snr, None, 0 if is_float else STEPS, path.depth, BENNETT)
    if is_float:
        unit = max(path.unit, UNITS[kind.dtype])
        return Threshold(HEADROOM * unit * math.sqrt(path.roundings + 1), depth=path.depth, source=HIGHAM_MARY)
    if path.unit or path.quantised:
        return Threshold(agreement=AGREEMENT, depth=path.depth, source=TIES)
    return Threshold(agreement=1.0, depth=path.depth)
