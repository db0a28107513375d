"""What a quantiser makes of true values: which share is beyond its range, and how many bits its scale costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.graph.feed import Feed
from epcheck.models.quantization.float_model import Pair, Suggested


@dataclass(frozen=True)
class Observed:
    """Sums over the true values of a quantiser, of what it clips as a Relu the rest. least, most: of the values.
    saturated: elements beyond its range. power: of the values; noise: of what it makes of them, less the values;
    clipped: the part of the noise that is from saturated ones."""

    elements: int = 0
    least: float = 0.0
    most: float = 0.0
    saturated: int = 0
    power: float = 0.0
    noise: float = 0.0
    clipped: float = 0.0

    def join(self, other: Observed) -> Observed:
        """Of both together."""
        return Observed(
            self.elements + other.elements, min(self.least, other.least), max(self.most, other.most),
            self.saturated + other.saturated, self.power + other.power, self.noise + other.noise,
            self.clipped + other.clipped,
        )  # fmt: skip


def observe_value(pair: Pair, value: Array) -> Observed:
    """What the pair makes of a value, float64."""
    each = pair.quantizer
    low, high = each.ends
    true = np.clip(value, *pair.clip) if pair.clip else value
    true = np.where(np.isfinite(true), true, 0.0)
    scale, zero = each.along(each.scale, true.ndim), each.along(each.zero, true.ndim)
    levels = np.rint(true / scale) + zero
    error = (np.clip(levels, low, high) - zero) * scale - true
    beyond = (levels < low) | (levels > high)
    return Observed(
        true.size, float(true.min(initial=0.0)), float(true.max(initial=0.0)), int(np.count_nonzero(beyond)),
        float(np.sum(true**2)), float(np.sum(error**2)), float(np.sum(error[beyond] ** 2)),
    )  # fmt: skip


def suggest_parameters(pair: Pair, seen: Observed) -> Suggested:
    """A scale and a zero point whose range is that of the values, 0 within, as the quantiser's own zero point is:
    in the middle of a signed type (symmetric), at the lowest level, or anywhere."""
    low, high = pair.quantizer.ends
    if low < 0 and not pair.quantizer.zero.any():
        return Suggested(max(-seen.least, seen.most) / high, 0)
    scale = (seen.most - seen.least) / (high - low)
    return Suggested(scale, int(np.clip(round(low - seen.least / scale), low, high)) if scale else 0)


def bits_lost(pair: Pair, seen: Observed) -> float:
    """How many bits fewer than with the suggested scale are right: half the binary logarithm of the ratio of noises.
    The noise of the suggested one is that of rounding, a twelfth of its square for each value (Bennett 1948)."""
    least = seen.elements * suggest_parameters(pair, seen).scale ** 2 / 12
    return 0.5 * math.log2(seen.noise / least) if seen.noise > 0 and least > 0 else 0.0


@dataclass
class Recorder:
    """A disturbance of the oracle that changes nothing: it measures what each pair would make of the true values.

    pairs: by the value that they read. seen: index of the QuantizeLinear -> what was observed, of all evaluations.
    """

    pairs: Mapping[str, Sequence[Pair]]
    seen: dict[int, Observed] = field(default_factory=dict)

    def operands(self, node: onnx.NodeProto, inputs: Sequence[Feed]) -> Sequence[Feed]:  # noqa: ARG002
        return inputs

    def results(self, node: onnx.NodeProto, values: Sequence[Feed]) -> Sequence[Feed]:
        self.add(zip(node.output, values, strict=False))
        return values

    def add(self, values: Iterable[tuple[str, Feed]]) -> None:
        """Measure the pairs that read these values."""
        for name, value in values:
            for pair in self.pairs.get(name, ()):
                if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                    at = pair.quantizer.node.index
                    self.seen[at] = self.seen.get(at, Observed()).join(observe_value(pair, value.astype(np.float64)))
