"""Blame one level deeper: a failure of DirectML's provider beside what DirectML does when it is called directly.

The provider turns a node into a DirectML operator, and may do that wrong; or DirectML, or the driver below it, computes
wrong. The suite knows which operator the provider should call: called without the provider, it clears one of the two.
"""

from __future__ import annotations

import re

from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import Direct

EXPLAINED = (
    terms.MISMATCH, terms.REFUSED, terms.CRASH, terms.TIMEOUT, terms.FLAKY, terms.ORDER_DEPENDENT,
)  # fmt: skip
"""Statuses of a candidate that call for an explanation. What was not placed was not computed."""


REFUSES = re.compile(r"80070057 E_INVALIDARG|887A0004 DXGI_ERROR_UNSUPPORTED")
"""How DirectML words that it does not take a description; all else that goes wrong is a fault."""


def find_blame(candidate: Opinion, direct: Opinion, same_bits: bool) -> Direct:
    """Who is to blame for a candidate's failure. same_bits: both gave outputs, and those are equal to the last bit."""
    if direct.status == terms.UNPLACED:
        return Direct(terms.NOT_CALLED, direct)
    if direct.status == terms.PASS:
        return Direct(terms.LOWERING, direct)
    if direct.status == terms.REFUSED and REFUSES.search(direct.message):
        return Direct(terms.UNSUPPORTED, direct)
    return Direct(terms.BELOW if same_bits or alike(candidate, direct) else terms.DIFFERENTLY, direct)


def alike(candidate: Opinion, direct: Opinion) -> bool:
    """Whether two failures are one: the same status, and of wrong answers the same elements wrong in the same way."""
    if candidate.status != direct.status:
        return False
    if candidate.status != terms.MISMATCH:
        return True
    return [(d.output, d.wrong, d.first) for d in candidate.differences] == [
        (d.output, d.wrong, d.first) for d in direct.differences
    ]


def words(direct: Direct) -> str:
    """The explanation as the verdict's words go on."""
    name, message = direct.opinion.target, direct.opinion.message
    match direct.blame:
        case terms.LOWERING:
            return f"{name} is right, so the provider's lowering is to blame"
        case terms.BELOW:
            return f"{name} fails the same way, so DirectML or the driver is to blame: {message}"
        case terms.UNSUPPORTED:
            return f"{name} does not take such an operator, so the provider should not call it: {message}"
        case terms.DIFFERENTLY:
            return f"{name} fails differently ({direct.opinion.status}): {message}"
    return f"{name} gives no explanation: {message}"
