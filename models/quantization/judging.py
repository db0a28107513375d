"""Whether a quantiser's scale suits the true values."""

from __future__ import annotations

from epcheck.models.accuracy.metrics import portion
from epcheck.models.graph.wiring import Wiring
from epcheck.models.quantization.fault import FaultyQuantizer, QuantizerFault
from epcheck.models.quantization.float_model import Pair
from epcheck.models.quantization.observed import Observed, bits_lost, suggest_parameters

BITS, BITS_MADE_UP = 2.0, 3.0
"""Bits that a scale has to lose against that of the values themselves: calibration by percentiles or entropy loses one
on purpose. Made-up feeds may be smaller or larger than those that it was made with."""

MADE_UP = 2.0
"""The factor by which made-up feeds may make values larger than the feeds that a scale was made with."""

BOUNDED = {"Sigmoid": (0.0, 1.0), "HardSigmoid": (0.0, 1.0), "Softmax": (0.0, 1.0), "Tanh": (-1.0, 1.0),
           "Erf": (-1.0, 1.0), "Softsign": (-1.0, 1.0)}  # fmt: skip
"""Operator -> the range of its results, for which a quantiser may be made whatever the values are."""

MOVING = ("Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Slice", "Split", "Concat", "Gather")
"""Operators whose results are elements of their first input, as far as `BOUNDED` is concerned."""

NEAR = 0.1
"""Relative distance from a bound."""


def can_be_judged(pair: Pair) -> bool:
    """Whether its levels are integers of at most 16 bits, of one scale or one for each slice."""
    each = pair.quantizer
    if each.dtype is None or each.dtype.itemsize > 2 or each.blocked:
        return False
    return not each.per_axis or (each.sizes is not None and -len(each.sizes) <= each.axis < len(each.sizes))


def fault(pair: Pair, seen: Observed, wiring: Wiring, are_feeds_generated: bool) -> FaultyQuantizer | None:
    """What is wrong with the scale of a pair; None where it suits."""
    lost = bits_lost(pair, seen)
    if lost < (BITS_MADE_UP if are_feeds_generated else BITS):
        return None
    better = suggest_parameters(pair, seen)
    each = pair.quantizer
    low, high = (float((each.scale * (end - each.zero)).ravel()[0]) for end in each.ends)
    held, reached = f"[{low:.4g}, {high:.4g}]", f"[{seen.least:.4g}, {seen.most:.4g}]"
    advice = f"a scale of {better.scale:.4g} with zero point {better.zero_point} holds them"
    if seen.clipped > seen.noise / 2:
        if are_feeds_generated and better.scale < MADE_UP * each.scale.max():
            return None
        share = seen.saturated / seen.elements
        words = f"saturates: {portion(share)} of the values are beyond {held}, they are in {reached}; {advice}"
        kind = QuantizerFault.SATURATES
    elif is_by_definition(pair, wiring, low, high):
        return None
    else:
        words = f"wastes its range: it is {held}, the values are in {reached}; {advice}, with {lost:.1f} bits more"
        kind = QuantizerFault.WASTES
    return FaultyQuantizer(each.node, kind, words, better.scale, better.zero_point)


def is_by_definition(pair: Pair, wiring: Wiring, low: float, high: float) -> bool:
    """Whether the range is that of the operator in front of it."""
    name = pair.quantizer.source
    while name in wiring.producer:
        node = wiring.model.graph.node[wiring.producer[name]]
        if node.op_type in BOUNDED:
            least, most = BOUNDED[node.op_type]
            return low <= least + NEAR and high <= most * (1 + NEAR)
        if node.op_type not in MOVING or not node.input:
            return False
        name = node.input[0]
    return False
