"""What can be wrong with a quantiser."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from epcheck.models.wrong_nodes.culprit import GraphNode


class QuantizerFault(StrEnum):
    """What is wrong with a QuantizeLinear or DequantizeLinear."""

    SCALE = "scale"
    """The scale is no positive number."""
    ZERO_POINT = "zero point"
    """The zero point is of another type than what is quantised, or of another shape than the scale."""
    AXIS = "axis"
    """The axis is not in the tensor, has another size than the scale, or is not that along which it was quantised."""
    PAIR = "pair"
    """It dequantises with another scale or zero point than the values were quantised with."""
    BIAS = "bias scale"
    """The scale of a bias is not the product of those of input and weight."""
    SATURATES = "saturates"
    """Values beyond its range are lost."""
    WASTES = "wastes its range"
    """Few of its levels are used."""


CERTAIN = (
    QuantizerFault.SCALE,
    QuantizerFault.ZERO_POINT,
    QuantizerFault.AXIS,
    QuantizerFault.PAIR,
    QuantizerFault.BIAS,
)
"""Faults that the model shows whatever it is fed."""


@dataclass(frozen=True)
class Effect:
    """How far a quantiser takes an output from what the model gives in floating point, when it alone quantises: root
    mean square of the error over that of the output, the worst output. alone: as it is; better: with the scale that
    the values suggest."""

    alone: float
    better: float


@dataclass(frozen=True)
class FaultyQuantizer:
    """A node and what is wrong with it.

    words: as a part of a sentence, with numbers. scale, zero_point: what the values suggest, of a quantiser of one
    scale. effect: on the outputs; None where it was not measured: of constants the float values are not in the model.
    matters: False where the outputs are as near to those in floating point as with a better scale.
    """

    node: GraphNode
    fault: QuantizerFault
    words: str
    scale: float | None = None
    zero_point: int | None = None
    effect: Effect | None = None
    matters: bool = True
