"""What is wrong with the quantisers of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from epcheck.models.quantization.fault import FaultyQuantizer
from epcheck.models.quantization.float_model import Pair
from epcheck.models.quantization.observed import Observed, bits_lost
from epcheck.models.wrong_nodes.culprit import GraphNode

NAMED_NODES = 3
"""Nodes that a sentence names at most."""


@dataclass(frozen=True)
class MeasuredQuantizer:
    """A QuantizeLinear on true values. low, high: its range, of the first slice where each has a scale. least, most: of
    the values, 0 within. saturated: share of them beyond its range. bits_lost: against the scale of the values."""

    node: GraphNode
    low: float
    high: float
    least: float
    most: float
    saturated: float
    bits_lost: float

    @classmethod
    def of(cls, pair: Pair, seen: Observed) -> Self:
        """From what was observed."""
        each = pair.quantizer
        low, high = (float((each.scale * (end - each.zero)).ravel()[0]) for end in each.ends)
        share = seen.saturated / max(seen.elements, 1)
        return cls(each.node, low, high, seen.least, seen.most, share, bits_lost(pair, seen))


@dataclass(frozen=True)
class Quantization:
    """quantizers: number of QuantizeLinear and DequantizeLinear nodes with a constant scale. found: all that is wrong,
    in the order of the graph. measured: each QuantizeLinear that was judged. error: of the quantised model on the
    target against its values in floating point: root mean square over root mean square, the worst output; None where it
    gives none, and `failure` says why. obstacle: why no values are known."""

    quantizers: int
    found: tuple[FaultyQuantizer, ...]
    measured: tuple[MeasuredQuantizer, ...]
    error: float | None
    failure: str = ""
    obstacle: str = ""

    @property
    def faults(self) -> tuple[FaultyQuantizer, ...]:
        """What matters for the outputs, or may."""
        return tuple(each for each in self.found if each.matters)

    @property
    def harmless(self) -> tuple[FaultyQuantizer, ...]:
        """What does not, on these feeds."""
        return tuple(each for each in self.found if not each.matters)

    @property
    def words(self) -> str:
        """What is at fault, or how near the outputs are to those in floating point, in a part of a sentence."""
        if not self.faults:
            near = "" if self.error is None else f", {self.error:.2g} of its size from it in floating point"
            return f"none of its {self.quantizers} quantisers is at fault{near}"
        nodes = {each.node.index: f"{each.node} {each.words}" for each in self.faults}
        named = "; ".join(list(nodes.values())[:NAMED_NODES])
        more = f"; and {len(nodes) - NAMED_NODES} more" if len(nodes) > NAMED_NODES else ""
        verb = "are" if len(nodes) > 1 else "is"
        return f"{len(nodes)} of its {self.quantizers} quantisers {verb} at fault: {named}{more}"
