"""What a run does, as a value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

from epcheck.conformance.records.record import Record
from epcheck.conformance.targets.target import Target
from epcheck.conformance.targets.variants import Variants
from epcheck.generators.case import Case

Sink = Callable[[Record], None]
"""Takes each record of a run as soon as it is final, in no particular order."""

Facts = Mapping[str, Mapping[str, str]]
"""Target name -> what its worker reports of itself: the fingerprint."""


AWAITED = 0.9
"""The share of the cases that come first which somebody waits for: those that are expected to stop a worker, and those
that fail in ways that nobody expects, need processes of their own."""


@dataclass(frozen=True)
class Plan:
    """What a run does.

    reference: a further oracle, run on every case; None leaves it out. done: (candidate, case id) pairs that an
    interrupted run has recorded already. jobs: workers of each target at most; None for each target's own number.
    pack: whether cases may share sessions; the verdicts are the same without. below: candidate name -> the target that
    calls DirectML directly, which is asked about every failure of that candidate. variants: candidate name -> the other
    ways in which each case runs on it. used: axis of use or variant -> the ids of the cases whose sessions are used so;
    all cases where it lacks one, and without it. first: how many of the cases come first and are waited for:
    once all of these are prepared, none of them waits in a pack for cases that come after them; and until AWAITED of
    them are recorded, no processes are started for one case each while there is anything else to do.
    """

    cases: Sequence[Case]
    candidates: tuple[Target, ...]
    baseline: Target | None = None
    reference: Target | None = None
    done: Collection[tuple[str, str]] = frozenset()
    jobs: int | None = None
    pack: bool = True
    below: Mapping[str, Target] = field(default_factory=dict)
    variants: Mapping[str, Variants] = field(default_factory=dict)
    first: int = 0
    used: Mapping[str, Collection[str]] | None = None

    def find_variants(self, candidate: Target, case_id: str) -> Variants | None:
        """The other ways in which a case runs on a candidate; None for none."""
        of = self.variants.get(candidate.name)
        if of is not None and self.used is not None:
            of = of.leave_out([axis for axis, used in self.used.items() if case_id not in used])
        return of if of is not None and (of.targets or of.skipped) else None

    @cached_property
    def oracles(self) -> tuple[Target, ...]:
        """Baseline and reference, as far as there are any."""
        return tuple(target for target in (self.baseline, self.reference) if target is not None)

    @cached_property
    def pure_oracles(self) -> frozenset[str]:
        """The names of the oracles that are not candidates, too: nobody reports on them, so they need not run anew."""
        return frozenset(t.name for t in self.oracles) - {t.name for t in self.candidates}

    @cached_property
    def _asked_of_new_cases(self) -> Mapping[str, Target]:
        return {target.name: target for target in (*self.candidates, *self.oracles)}

    def map_asked_targets(self, candidates: tuple[Target, ...]) -> Mapping[str, Target]:
        """Name -> target of all that run a case which these candidates have not recorded."""
        if candidates is self.candidates:
            return self._asked_of_new_cases
        return {target.name: target for target in (*candidates, *self.oracles)}

    @property
    def targets(self) -> tuple[Target, ...]:
        """All that take part."""
        return *self.candidates, *self.oracles, *self.below.values(), *self._compilers

    @cached_property
    def _compilers(self) -> tuple[Target, ...]:
        """The targets that do nothing but compile what candidates load."""
        known = {target.name for target in (*self.candidates, *self.oracles, *self.below.values())}
        wanted = (target.compiler for of in self.variants.values() for target in of.targets if not target.compiled)
        return tuple({each.name: each for each in wanted if each and each.name not in known}.values())

    def narrow_to(self, facts: Facts) -> Self:
        """The plan with those expectations of its targets that apply where their workers report these facts."""

        def of(target: Target) -> Target:
            return target.narrow(facts.get(target.name, {}))

        return replace(
            self,
            candidates=tuple(map(of, self.candidates)),
            baseline=of(self.baseline) if self.baseline else None,
            reference=of(self.reference) if self.reference else None,
            below={name: of(target) for name, target in self.below.items()},
        )

    def remaining(self, case: Case) -> tuple[Target, ...]:
        """The candidates that have not recorded the case."""
        if not self.done:
            return self.candidates
        return tuple(t for t in self.candidates if (t.name, case.id) not in self.done)
