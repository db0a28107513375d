"""Making a fault small: as long as a smaller node fails in the same way, it takes the place of the larger one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from epcheck.conformance.fuzzing.rounds import Rounds
from epcheck.conformance.fuzzing.symptom import Symptom, symptom
from epcheck.conformance.records import terms
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import FAILURE
from epcheck.generators.fuzzing import drawing, reduction
from epcheck.generators.fuzzing.drawing import Drawn
from epcheck.generators.fuzzing.drawn_case import case_of

AT_ONCE, AT_ONCE_ALONE = 24, 4
"""Smaller nodes that are tried together; and where each may end its process."""

ROUNDS = 80
"""Rounds after which a fault is small enough."""

ALONE = frozenset({terms.CRASH, terms.TIMEOUT, terms.FLAKY, terms.ORDER_DEPENDENT})
"""Statuses whose confirmation takes processes of their own."""


Failing = list[tuple[Drawn, Record]]


@dataclass(frozen=True)
class Shrunk:
    """The smallest node that was found, and its record. rounds: how many it took."""

    drawn: Drawn
    record: Record
    rounds: int


def shrink(rounds: Rounds, drawn: Drawn, record: Record, until: float, keep: Callable[[Failing], Failing]) -> Shrunk:
    """The smallest node that fails as this one does. until: on the monotonic clock, when to stop. keep: those among
    smaller nodes with this failure that may take its place. Raises TargetDown."""
    wanted = symptom(record)
    taken, tried = 0, {case_of(drawn).id}
    together = AT_ONCE_ALONE if record.status in ALONE else AT_ONCE
    while taken < ROUNDS and time.monotonic() < until:
        candidates = _candidates(drawn, tried)
        better = None
        while better is None and (batch := list(islice(candidates, together))):
            taken += 1
            failing = keep(_fail_alike(rounds, batch, wanted))
            better = min(failing, key=lambda pair: reduction.measure(pair[0].node), default=None)
            if taken >= ROUNDS or time.monotonic() >= until:
                break
        if better is None:
            break
        drawn, record = better
    return Shrunk(drawn, record, taken)


def _candidates(drawn: Drawn, tried: set[str]) -> Iterator[Drawn]:
    """Smaller nodes that the oracle can judge and that were not tried."""
    for node in reduction.smaller(drawn.node):
        smaller = drawing.replace_node(drawn, node)
        if smaller is not None and (case_id := case_of(smaller).id) not in tried:
            tried.add(case_id)
            yield smaller


def _fail_alike(rounds: Rounds, batch: list[Drawn], wanted: Symptom) -> Failing:
    return [
        (drawn, record)
        for drawn, record in rounds.judge_drawn(batch, case_of)
        if record.reading == FAILURE and symptom(record) == wanted
    ]
