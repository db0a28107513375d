"""The error that an output of a whole model may have, from the precision of its arithmetic and its depth.

Every node rounds, and a sum of n terms rounds n times. Rounding errors of different nodes are nearly independent, so
that they grow with the square root of their number: N. J. Higham and T. Mary, A new approach to probabilistic
rounding error analysis, SIAM J. Sci. Comput. 41 (2019). A quantised model differs by steps, where a value lies on a
rounding boundary; the power of that is at most the noise of the quantisation itself: W. R. Bennett, Spectra of
quantized signals, Bell System Technical Journal 27 (1948).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import onnx

from epcheck.models.graph import flops, values
from epcheck.models.graph.attributes import read_integer
from epcheck.models.graph.flops import Shape
from epcheck.models.graph.values import UNKNOWN, Type
from epcheck.models.oracle.rounding import UNITS, permits_int8


class ThresholdSource(StrEnum):
    """Where a threshold comes from; the values are the texts that documents show, and no decision reads them."""

    HIGHAM_MARY = "Higham and Mary 2019: rounding errors grow with the square root of their count"
    BENNETT = "Bennett 1948: no more power than the noise of the quantisation itself"
    EXACT = "integer results of integer inputs are exact"
    TIES = "an index or a comparison can flip between nearly equal numbers"
    NOISE = "16 times the distance of the baseline, or of a run in which each node rounds once, from the truth"
    YOURS = "as requested"


HEADROOM = 4.0
"""Factor by which a network may amplify the sum of its rounding errors: its condition, which no bound knows. The
value is ours; DirectML stays below half of the threshold on nine models of the zoo."""

STEPS = 2
"""Quantisation steps by which an 8-bit output may differ."""

LOADING_DB = 12.0
"""Decibels between the full scale of a quantiser and the power of what it quantises: a signal whose peak is 4 times its
root mean square."""

SHARES = ("Sigmoid", "HardSigmoid")
"""Operators whose results lie between 0 and 1."""

SHARE_UNITS = 8
"""Rounding units, of 1 and not of the result, up to which such a result may be away: runtimes compute it so."""

AGREEMENT = 0.99
"""The least share of equal elements of an integer or boolean output that depends on floating-point values."""

QUANTISED = (
    "QuantizeLinear",
    "DynamicQuantize",
    "QLinear",
    "QGemm",
    "QAttention",
    "MatMulInteger",
    "ConvInteger",
)
SUMS = {"MatMul": (0, -1), "Gemm": (0, -1), "FusedMatMul": (0, -1), "Softmax": (0, -1), "LayerNormalization": (0, -1)}
"""Operator -> (input, axis) whose size is the number of terms of its sums."""

PRODUCTS = ("Einsum", "Attention", "MultiHeadAttention", "GroupQueryAttention")
"""Operators whose arithmetic, two operations for a term, says how many terms their sums have."""


@dataclass(frozen=True)
class Threshold:
    """relative: the largest `Metrics.relative`. absolute: the `Metrics.max_abs` up to which an output is right whatever
    its relative error. snr_db: the least signal to noise in decibels. agreement: the least share of equal elements,
    None for floating point. Those that do not count are None. steps: quantisation steps by which an integer output may
    differ. depth: nodes on the longest path to the output. source: of the threshold. is_coarse: whether float16,
    bfloat16 or a quantisation is on the way, so that it allows more than a fault is worth."""

    relative: float = 0.0
    absolute: float | None = None
    snr_db: float | None = None
    agreement: float | None = None
    steps: int = 0
    depth: int = 0
    source: ThresholdSource = ThresholdSource.EXACT
    is_coarse: bool = False

    @property
    def chosen(self) -> bool:
        """Whether it is the user's."""
        return self.source is ThresholdSource.YOURS


@dataclass(frozen=True)
class Override:
    """Values that replace those of every threshold; None leaves the value of the threshold."""

    relative: float | None = None
    absolute: float | None = None
    snr_db: float | None = None
    agreement: float | None = None

    def apply(self, threshold: Threshold) -> Threshold:
        """The threshold with these values. An output that is compared by agreement takes over the agreement alone.
        `absolute` alone is the whole tolerance: the relative one is then 0, as in `numpy.allclose(..., rtol=0)`."""
        changes: dict[str, Any] = {name: value for name, value in vars(self).items() if value is not None}
        if threshold.agreement is not None:
            changes = {name: value for name, value in changes.items() if name == "agreement"}
        else:
            changes.pop("agreement", None)
            if changes:
                changes = {"relative": 0.0, **changes} if "absolute" in changes else {"absolute": None, **changes}
        return replace(threshold, **changes, source=ThresholdSource.YOURS) if changes else threshold


@dataclass(frozen=True)
class _Path:
    """The most nodes, roundings and quantising nodes on any path to a value, and the coarsest unit of a rounding.
    is_share: whether a Sigmoid made the value, and what came behind it only moved it."""

    depth: int = 0
    roundings: int = 0
    unit: float = 0.0
    quantised: int = 0
    is_share: bool = False


def of_outputs(inferred: onnx.ModelProto) -> dict[str, Threshold]:
    """Graph output -> threshold. inferred: a model with inferred types."""
    types = values.of_graph(inferred.graph)
    paths = _paths(inferred.graph.node, types, {})
    outputs = (value.name for value in inferred.graph.output)
    return {name: _threshold(paths.get(name, _Path()), types.get(name, UNKNOWN)) for name in outputs}


def _paths(nodes: Iterable[onnx.NodeProto], types: Mapping[str, Type], outer: Mapping[str, _Path]) -> dict[str, _Path]:
    """Value -> the path to it, of the values of a graph and of those around it. outer: of the values around it."""
    paths = dict(outer)
    for node in nodes:
        before = [paths.get(name, _Path(unit=_unit(types.get(name, UNKNOWN)))) for name in node.input if name]
        path = _through(node, before, types, paths)
        paths.update((name, path) for name in node.output if name)
    return paths


def _through(node: onnx.NodeProto, before: list[_Path], types: Mapping[str, Type], paths: Mapping[str, _Path]) -> _Path:
    made = [_unit(types.get(name, UNKNOWN)) for name in node.output if name]
    quantises = node.op_type.startswith(QUANTISED) or permits_int8(node)
    longest = _Path(
        depth=max((path.depth for path in before), default=0),
        roundings=max((path.roundings for path in before), default=0),
        unit=max((*(path.unit for path in before), *made), default=0.0),
        quantised=max((path.quantised for path in before), default=0),
    )
    inside = [_inside(body, types, paths, longest) for _, body in values.bodies(node)]
    if not inside:
        return replace(
            longest, depth=longest.depth + 1, roundings=longest.roundings + _terms(node, types),
            quantised=longest.quantised + quantises,
            is_share=node.op_type in SHARES or (node.op_type in flops.MOVES and any(path.is_share for path in before)),
        )  # fmt: skip
    each = max(path.roundings for path in inside) - longest.roundings
    return _Path(
        depth=max(path.depth for path in inside) + 1,
        roundings=longest.roundings + max(each, 1) * _turns(node, types),
        unit=max(path.unit for path in inside),
        quantised=max(path.quantised for path in inside),
    )


def _inside(body: onnx.GraphProto, types: Mapping[str, Type], paths: Mapping[str, _Path], start: _Path) -> _Path:
    """The longest path to an output of a body, whose own inputs come by the path `start`."""
    known = {**types, **values.of_graph(body)}
    found = _paths(body.node, known, {**paths, **{value.name: start for value in body.input}})
    ends = [start, *(found[value.name] for value in body.output if value.name in found)]
    return _Path(
        depth=max(path.depth for path in ends),
        roundings=max(path.roundings for path in ends),
        unit=max((*(path.unit for path in ends), *(_unit(known.get(value.name, UNKNOWN)) for value in body.output))),
        quantised=max(path.quantised for path in ends),
    )


def _turns(node: onnx.NodeProto, types: Mapping[str, Type]) -> int:
    """How often a body runs: the sizes of what Loop collects and Scan reads say it, as far as they are known."""
    if node.op_type == "Loop":
        collected = [types.get(name, UNKNOWN).shape or () for name in node.output[max(len(node.input) - 2, 0) :]]
        return max((shape[0] or 1 for shape in collected if shape), default=1)
    if node.op_type == "Scan":
        count = next((attribute.i for attribute in node.attribute if attribute.name == "num_scan_inputs"), 1)
        read = [types.get(name, UNKNOWN).shape or () for name in node.input[-count:]]
        return max((shape[0] or 1 for shape in read if shape), default=1)
    return 1


def _unit(kind: Type) -> float:
    return UNITS.get(_element(kind), 0.0)


def _element(kind: Type) -> str:
    """The dtype of the tensors in a value: float32 of `float32`, of `seq(float32)` and of `seq(map(int64,float32))`."""
    return re.split(r"[(,]", kind.dtype.rstrip(")"))[-1]


def _terms(node: onnx.NodeProto, types: Mapping[str, Type]) -> int:
    """How many times a node rounds for one element of its output."""
    shapes = [types.get(name, UNKNOWN).shape for name in node.input]
    if "Conv" in node.op_type and len(node.input) > 1:
        return _product((shapes[3 if node.op_type.startswith("QLinear") else 1] or ())[1:])
    if node.op_type == "MatMul" and shapes[0] is None and len(shapes[1] or ()) > 1:
        return (shapes[1] or ())[-2] or 1  # behind an operator that ONNX does not know, its weight says it
    if node.op_type in SUMS or node.op_type.startswith(("Reduce", "Global")):
        at, axis = SUMS.get(node.op_type, (0, -1))
        shape = shapes[at] or ()
        return _product(shape) // max(_product(shape[:2]), 1) if node.op_type.startswith("Global") else (
            _product(shape[axis:]) if shape else 1)  # fmt: skip
    if node.op_type == "MatMulNBits":
        return max(1, read_integer(node, "K"))
    if node.op_type in ("LSTM", "GRU", "RNN") and len(node.input) > 2:
        return ((shapes[0] or (1,))[0] or 1) * ((shapes[2] or (1,))[-1] or 1)
    if node.op_type in ("DFT", "STFT"):
        return _count_fourier_terms(node, shapes, types)
    if node.op_type in PRODUCTS:
        made = [types.get(name, UNKNOWN).shape for name in node.output]
        operations = flops.of(node, shapes, made)
        return max(1, round((operations or 0) / 2 / max(_product(made[0] or ()), 1)))
    return 1


def _count_fourier_terms(node: onnx.NodeProto, shapes: list[Shape], types: Mapping[str, Type]) -> int:
    """The terms of a Fourier transform, where each element is a sum over the frame: of the window's length, or of the
    largest size of the signal [batch, samples ..., 1 or 2]; from its result [..., n // 2 + 1, 2] where a size is not
    known."""
    if node.op_type == "STFT" and len(shapes) > 2 and shapes[2]:
        return shapes[2][0] or 1
    made = types.get(node.output[0], UNKNOWN).shape or ()
    if node.op_type == "STFT":
        return 2 * (made[-2] or 1) if len(made) > 1 else 1
    return max((size or 1 for size in (*(shapes[0] or ())[1:-1], *made[1:-1])), default=1)


def _product(sizes: tuple[int | None, ...]) -> int:
    return math.prod(size or 1 for size in sizes)


def _threshold(path: _Path, kind: Type) -> Threshold:
    dtype = _element(kind)
    is_float = dtype in UNITS
    absolute = SHARE_UNITS * max(path.unit, UNITS[dtype]) if path.is_share and is_float else None
    if path.quantised and (is_float or dtype in ("int8", "uint8")):
        snr = 6.02 * 8 + 1.76 - LOADING_DB - 10 * math.log10(path.quantised)
        relative = 1.0 if is_float else 0.0
        steps = 0 if is_float else STEPS
        return Threshold(relative, absolute, snr_db=snr, steps=steps, depth=path.depth, source=ThresholdSource.BENNETT,
                         is_coarse=True)  # fmt: skip
    if is_float:
        unit = max(path.unit, UNITS[dtype])
        relative = HEADROOM * unit * math.sqrt(path.roundings + 1)
        return Threshold(relative, absolute, depth=path.depth, source=ThresholdSource.HIGHAM_MARY,
                         is_coarse=unit >= UNITS["float16"])  # fmt: skip
    if path.unit or path.quantised:
        return Threshold(agreement=AGREEMENT, depth=path.depth, source=ThresholdSource.TIES)
    return Threshold(agreement=1.0, depth=path.depth)
