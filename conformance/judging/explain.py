"""Blame one level deeper: a failure of DirectML's provider beside what DirectML does when it is called directly.

The provider turns a node into a DirectML operator, and may do that wrong; or DirectML, or the driver below it, computes
wrong. The suite knows which operator the provider should call: called without the provider, it clears one of the two.
"""

from __future__ import annotations

import re

from epcheck.conformance.records import record
from epcheck.conformance.records.record import Direct, Opinion

EXPLAINED = (
    record.MISMATCH, record.REFUSED, record.CRASH, record.TIMEOUT, record.FLAKY, record.ORDER_DEPENDENT,
)  # fmt: skip
"""Statuses of a candidate that call for an explanation. What was not placed was not computed."""


REFUSES = re.compile(r"80070057 E_INVALIDARG|887A0004 DXGI_ERROR_UNSUPPORTED")
"""How DirectML words that it does not take a description; all else that goes wrong is a fault."""


def explained(candidate: Opinion, direct: Opinion, same_bits: bool) -> Direct:
    """Who is to blame for a candidate's failure. same_bits: both gave outputs, and those are equal to the last bit."""
    if direct.status == record.UNPLACED:
        return Direct(record.NOT_CALLED, direct)
    if direct.status == record.PASS:
        return Direct(record.LOWERING, direct)
    if direct.status == record.REFUSED and REFUSES.search(direct.message):
        return Direct(record.UNSUPPORTED, direct)
    return Direct(record.BELOW if same_bits or alike(candidate, direct) else record.DIFFERENTLY, direct)


def alike(candidate: Opinion, direct: Opinion) -> bool:
    """Whether two failures are one: the same status, and of wrong answers the same elements wrong in the same way."""
    if candidate.status != direct.status:
        return False
    if candidate.status != record.MISMATCH:
        return True
    return [(d.output, d.wrong, d.first) for d in candidate.differences] == [
        (d.output, d.wrong, d.first) for d in direct.differences
    ]


def words(direct: Direct) -> str:
    """The explanation as the verdict's words go on."""
    name, message = direct.opinion.target, direct.opinion.message
    match direct.blame:
        case record.LOWERING:
            return f"{name} is right, so the provider's lowering is to blame"
        case record.BELOW:
            return f"{name} fails alike, so DirectML or the driver is to blame: {message}"
        case record.UNSUPPORTED:
            return f"{name} does not take such an operator, so the provider should not call it: {message}"
        case record.DIFFERENTLY:
            return f"{name} fails too, but otherwise ({direct.opinion.status}): {message}"
    return f"{name} does not tell: {message}"
