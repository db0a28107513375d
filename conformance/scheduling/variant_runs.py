"""The other ways of running a case, after its ordinary way is settled: one candidate, as a state machine of its own.

Every variant runs once, in a session of its own. One whose result is another is confirmed: it and the ordinary way each
run in a process in which nothing ran before. It differs if both repeat what they gave. Where the ordinary way, alone,
gives another result than in the session that it shared, that is a difference of packing, and the variants are compared
with what it gives alone.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from epcheck.conformance.judging import repeats, variants
from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.outcome import Outcome, bits
from epcheck.conformance.records.record import VariantResult
from epcheck.conformance.targets.target import Target
from epcheck.conformance.targets.variants import Variants


class Way(msgspec.Struct, frozen=True):
    """What a way of running gave: the opinion, and the bits of its outputs, empty without any."""

    opinion: Opinion
    answer: str


class VariantRuns:
    """The runs of one case in the variants of one candidate. `begin` and `handle` say what is run next: targets, and
    whether each runs in a process of its own."""

    __slots__ = ("_alone", "_candidate", "_first", "_ordinary", "_prepared", "_results", "_unconfirmed", "_variants")

    def __init__(self, prepared: PreparedCase, candidate: Target, of: Variants, ordinary: Way) -> None:
        """of: the candidate's variants. ordinary: what its ordinary way gave."""
        self._prepared = prepared
        self._candidate = candidate
        self._variants = of
        self._ordinary = ordinary
        self._alone: Way | None = None
        self._first: dict[str, Outcome] = {}
        self._unconfirmed: dict[str, tuple[Target, Outcome | None]] = {}
        self._results: dict[str, VariantResult] = {}

    @property
    def is_done(self) -> bool:
        """Whether every variant has its result."""
        return all(target.variant in self._results for target in self._variants.targets)

    def begin(self) -> list[tuple[Target, bool]]:
        """Run every variant that applies."""
        runs = []
        for target in self._variants.targets:
            if why := variants.why_not(self._prepared, target, self._ordinary.opinion):
                self._results[target.variant] = VariantResult(target.variant, terms.NOT_RUN, why)
            else:
                runs.append((target, False))
        return runs

    def handle(self, target: Target, outcome: Outcome) -> list[tuple[Target, bool]]:
        """Take an outcome."""
        if not target.variant:
            judged = opinion(self._prepared, target, outcome)
            self._alone = Way(judged, self._bits(outcome))
            return self._confirm()
        if target.variant in self._unconfirmed:
            self._unconfirmed[target.variant] = target, outcome
            return self._confirm()
        result = self._compare_outcome(target, self._ordinary, outcome)
        if result.state != terms.DIFFERS:
            self._results[target.variant] = result
            return []
        runs = [(target, True)] if self._first else [(target, True), (self._candidate, True)]
        self._first[target.variant] = outcome
        self._unconfirmed[target.variant] = target, None
        return runs

    def results(self) -> tuple[VariantResult, ...]:
        """One for each variant, in their order, and one for each axis that the candidate has none of."""
        skipped = [VariantResult(axis, terms.NOT_RUN, why) for axis, why in self._variants.skipped.items()]
        own = [self._results[target.variant] for target in self._variants.targets]
        return *own, *self._of_packing(), *skipped

    def _confirm(self) -> list[tuple[Target, bool]]:
        """Conclude what has been repeated, as soon as the ordinary way has run alone."""
        if self._alone is None:
            return []
        for name, (target, second) in tuple(self._unconfirmed.items()):
            if second is not None:
                del self._unconfirmed[name]
                self._results[name] = self._confirm_result(target, self._first[name], second, self._alone)
        return []

    def _confirm_result(self, target: Target, first: Outcome, second: Outcome, alone: Way) -> VariantResult:
        """The result of a variant that differed once. alone: what the ordinary way gives alone."""
        result = self._compare_outcome(target, alone, second)
        if repeats.confirms(self._prepared, first, second):
            judged = result.opinion
            return result if judged is None else replace(result, opinion=replace(judged, attempts=2))
        opinions = [variants.judge(self._prepared, target, outcome) for outcome in (first, second)]
        statuses = f"{opinions[0].status}, alone {opinions[1].status}"
        return VariantResult(
            target.variant, terms.UNSTEADY, f"the result changes between runs ({statuses})", opinions[1]
        )

    def _compare_outcome(self, target: Target, ordinary: Way, outcome: Outcome) -> VariantResult:
        judged = variants.judge(self._prepared, target, outcome)
        return variants.compare(target, ordinary.opinion, ordinary.answer, outcome, judged, self._bits(outcome))

    def _bits(self, outcome: Outcome) -> str:
        """The bits of an answer; a pack leaves out the outputs that are the expected ones."""
        return self._prepared.expected_bits if outcome.exact else bits(outcome.outputs) if outcome.outputs else ""

    def _of_packing(self) -> tuple[VariantResult, ...]:
        """The difference between the ordinary way in the session that it shared, and alone, where there is one."""
        alone, ordinary = self._alone, self._ordinary
        if alone is None or ordinary.opinion.shared == 1:
            return ()
        same = alone.opinion.status == ordinary.opinion.status and alone.answer == ordinary.answer
        words = f"gives {ordinary.opinion.status} where others share its session, and {alone.opinion.status} alone"
        return () if same else (VariantResult(variants.SHARED, terms.DIFFERS, words, alone.opinion),)
