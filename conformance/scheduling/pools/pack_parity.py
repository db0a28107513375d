"""Whether a provider answers cases that share a session as it answers them alone: a sample, measured on the provider.

A provider that compiles subgraphs may take a node among others that it declines alone, and the reverse: on OpenVINO 106
of 1,916 verdicts changed. So cases share sessions only on a provider of which that is known (`PACKS_AGREE`), or whose
sample agrees. Each case of the sample runs alone; then those that pass run together, and each of the others beside some
that pass. A session of several that fails says nothing, since its cases run alone after it.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.outcome import Outcome
from epcheck.conformance.scheduling.parity import Difference, Parity
from epcheck.conformance.scheduling.pools.pool import Pool
from epcheck.conformance.scheduling.pools.supervisor import Job
from epcheck.conformance.scheduling.pools.turn import turn
from epcheck.conformance.targets.target import PACKS_AGREE, Target
from epcheck.conformance.workers.client import TargetDown
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import Event
from epcheck.generators import suite

VERSION, DTYPE = 13, "float32"
"""Whose thin cases are the sample: about 160 of 75 operators, which agree in their opset."""

PACK = 32
"""Cases of the sample in a session at most."""

PACKMATES = 3
"""Cases that pass beside one that does not."""

WITHIN_S = 120.0
"""Seconds that it may take; where it takes longer, nothing is known."""


def sample() -> list[PreparedCase]:
    """The cases: small, always the same, of one opset."""
    cases = (
        case
        for case in suite.cases(thin=True)
        if case.since_version == VERSION and case.dtype.partition("-")[0] == DTYPE and not case.domain
    )
    prepared = [case for case in map(prepared_case.prepare, cases) if isinstance(case, PreparedCase)]
    shells = [case.shell for case in prepared]
    shell = max(set(shells), key=shells.count)
    return [case for case in prepared if case.graph and case.shell == shell and not case.must_be_refused]


def is_known(target: Target) -> bool:
    """Whether packs of the target's provider need no measuring: tests of each release show that they agree."""
    return target.provider is None or (target.provider in PACKS_AGREE and not target.is_plugin)


def measure(target: Target, cases: Sequence[PreparedCase], idle_workers: IdleWorkers) -> Parity | None:
    """Run the sample alone and packed; None where it took too long, where the worker does not start, or where
    nothing passes alone."""
    deadline = time.monotonic() + WITHIN_S
    try:
        alone = _statuses(target, [(case, b"") for case in cases], idle_workers, deadline)
        passing = [case for case in cases if alone[case.case.id] == terms.PASS]
        if not passing:
            return None
        packed = _statuses(target, list(_groups(cases, passing)), idle_workers, deadline)
    except (TimeoutError, TargetDown):
        return None
    return Parity(
        len(cases),
        [Difference(name, alone[name], status) for name, status in sorted(packed.items()) if status != alone[name]],
    )


def in_words(target: Target, parity: Parity) -> str:
    """Why cases do not share sessions at once, in one sentence; empty where they may."""
    if not parity.differences:
        return ""
    passing = [found for found in parity.differences if found.packed == terms.PASS]
    first = (passing or parity.differences)[0]
    finding = f"; {len(passing)} of these pass only in a pack, which is a finding" if passing else ""
    return (
        f"{target.name}: each case runs in a separate session until it passes in one, because "
        f"{len(parity.differences)} of {parity.cases} cases of a sample end otherwise in a pack than alone{finding}, "
        f"for example {first.case_id}: {first.alone} alone, {first.packed} in a pack"
    )


def _groups(cases: Sequence[PreparedCase], passing: Sequence[PreparedCase]) -> Iterator[tuple[PreparedCase, bytes]]:
    """Each case that passes with others that do; each of the others with PACKMATES of them, which run again for it."""
    names = {case.case.id for case in passing}
    for place, case in enumerate(passing):
        yield case, b"passing %d %s" % (place // PACK, case.emptiness)
    others = [case for case in cases if case.case.id not in names]
    for place, case in enumerate(others):
        group = b"beside %d" % place
        yield case, group
        for step in range(PACKMATES):
            yield passing[(place * PACKMATES + step) % len(passing)], group


def _statuses(
    target: Target, cases: Sequence[tuple[PreparedCase, bytes]], idle_workers: IdleWorkers, deadline: float
) -> Mapping[str, str]:
    """Case id -> its status, of those whose session was what was asked for: alone, or of several.

    cases: each with the group that shares its session; empty for one alone. Raises TimeoutError, TargetDown.
    """
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    found: dict[str, str] = {}
    waiting = len(cases)
    pool = Pool(target, events, idle_workers, 1, PACK)

    def take_outcome(case: PreparedCase, group: bytes, outcome: Outcome) -> None:
        nonlocal waiting
        waiting -= 1
        status = opinion(case, target, outcome).status
        if bool(group) == (outcome.shared > 1) and found.get(case.case.id, terms.PASS) == terms.PASS:
            found[case.case.id] = status

    try:
        for case, group in cases:
            pool.submit(Job(case, partial(take_outcome, case, group), group))
        while waiting:
            if time.monotonic() > deadline:
                raise TimeoutError
            turn(pool, events)
    finally:
        pool.kill()
    return found
