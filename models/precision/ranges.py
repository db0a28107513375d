"""What a floating-point type makes of true values: which of them it cannot hold, and which keep few digits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.graph.feed import Feed, tensors

LARGEST, HALF_STEP = 65504.0, 16.0
"""The largest number of float16, and half the distance to the next that its format would have: from LARGEST +
HALF_STEP on a value is rounded to infinity (IEEE 754-2019, 4.3.1)."""

LEAST_NORMAL, LEAST = 2.0**-14, 2.0**-24
"""The smallest number of float16 with all its 11 digits, and the smallest of all; half of that is rounded to 0."""

KEPT_BYTES = 1 << 28
"""True inner values that are kept at most; of others only the range is known."""


@dataclass(frozen=True)
class Range:
    """Of true values, zeros and what is not finite left out. largest, smallest: magnitudes; 0 without any. overflow,
    underflow, subnormal: shares of all elements: beyond float16, rounded to 0 by it, and with fewer than its 11 binary
    digits."""

    elements: int = 0
    largest: float = 0.0
    smallest: float = 0.0
    overflow: float = 0.0
    underflow: float = 0.0
    subnormal: float = 0.0


def range_of(value: Feed) -> Range:
    """The range of a tensor, or of the tensors of a sequence."""
    return join_ranges(_of_tensor(tensor) for tensor in tensors(value) if tensor.dtype.kind == "f")


def _of_tensor(value: Array) -> Range:
    size = np.abs(value[np.isfinite(value) & (value != 0)]).astype(np.float64, copy=False)
    if not size.size:
        return Range(value.size)
    counts = (
        np.count_nonzero(size >= LARGEST + HALF_STEP),
        np.count_nonzero(size <= LEAST / 2),
        np.count_nonzero((size < LEAST_NORMAL) & (size > LEAST / 2)),
    )
    return Range(value.size, float(size.max()), float(size.min()), *(count / value.size for count in counts))


def join_ranges(ranges: Iterable[Range]) -> Range:
    """The range of several values together."""
    found = [each for each in ranges if each.elements]
    if len(found) < 2:
        return found[0] if found else Range()
    count = sum(each.elements for each in found)
    shares = (sum(getattr(each, name) * each.elements for each in found) / count
              for name in ("overflow", "underflow", "subnormal"))  # fmt: skip
    smallest = min((each.smallest for each in found if each.smallest), default=0.0)
    return Range(count, max(each.largest for each in found), smallest, *shares)


class Recorder:
    """A disturbance of the oracle that changes nothing: it keeps what each node makes. values: name -> true value,
    floating point as float64, up to KEPT_BYTES. ranges: of all of them."""

    def __init__(self) -> None:
        self.values: dict[str, Feed] = {}
        self.ranges: dict[str, Range] = {}
        self._room = KEPT_BYTES

    def operands(self, node: onnx.NodeProto, inputs: Sequence[Feed]) -> Sequence[Feed]:  # noqa: ARG002
        return inputs

    def results(self, node: onnx.NodeProto, values: Sequence[Feed]) -> Sequence[Feed]:
        self.add(dict(zip(node.output, values, strict=False)))
        return values

    def add(self, values: Mapping[str, Feed]) -> None:
        """Keep values by name."""
        for name, value in values.items():
            if not name or value is None:
                continue
            self.ranges[name] = join_ranges((self.ranges.get(name, Range()), range_of(value)))
            size = sum(tensor.nbytes for tensor in tensors(value))
            if size <= self._room:
                self._room -= size
                self.values[name] = value


def digits(error: float) -> float:
    """Decimal digits that are right where a value has this relative error; at most the 3.3 of float16."""
    return min(11 * math.log10(2), -math.log10(error)) if error > 0 else 11 * math.log10(2)
