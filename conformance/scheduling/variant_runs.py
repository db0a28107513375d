"""The other ways of running a case, after its ordinary way is settled: one candidate, as a state machine of its own.

Every variant runs once, in a session of its own. One whose result is another is confirmed: it and the ordinary way each
run in a process in which nothing ran before. It differs if both repeat what they gave. A use of sessions, whose threads
take another course each time, differs as soon as two of its runs do, in whatever way, of REPEATS and one. Where the
ordinary way, alone, gives another result than in the session that it shared, that is a difference of packing, and the
variants are compared with what it gives alone. What another target is to compile, it compiles first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from epcheck.conformance.judging import repeats, variants
from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.outcome import DONE, Outcome, bits
from epcheck.conformance.records.record import VariantResult
from epcheck.conformance.targets.target import Target
from epcheck.conformance.targets.variants import Axis, Variants, compile_for, is_use
from epcheck.conformance.workers.program.backends.declined import DECLINED
from epcheck.conformance.workers.program.protocol import CONTEXT, CONTEXT_BYTES

REPEATS = 4
"""How often a use of sessions that differed once is run again at most."""


class Way(msgspec.Struct, frozen=True):
    """What a way of running gave: the opinion, and the bits of its outputs, empty without any."""

    opinion: Opinion
    answer: str


def name_bits(prepared: PreparedCase, outcome: Outcome) -> str:
    """The bits of an answer; a pack leaves out the outputs that are the expected ones."""
    return prepared.expected_bits if outcome.exact else bits(outcome.outputs) if outcome.outputs else ""


def read_compiled(compiler: Target, outcome: Outcome) -> tuple[bytes, str]:
    """The EPContext model that a target compiled; or why there is none, in words."""
    content = outcome.outputs.get(CONTEXT)
    if outcome.kind != DONE or content is None or not content.nbytes:
        return b"", f"{compiler.base} compiles nothing of it: {outcome.message.removeprefix(DECLINED) or outcome.kind}"
    if content.nbytes > CONTEXT_BYTES:
        return b"", f"what {compiler.base} compiles has {content.nbytes:,} bytes; {CONTEXT_BYTES:,} are read"
    return content.tobytes(), ""


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
        self._unconfirmed: dict[str, tuple[Target, list[Outcome]]] = {}
        self._results: dict[str, VariantResult] = {}

    @property
    def is_done(self) -> bool:
        """Whether every variant has its result."""
        return all(target.variant in self._results for target in self._variants.targets)

    def begin(self) -> list[tuple[Target, bool]]:
        """Run every variant that applies; reruns first, before a worker may keep anything of the case's own feeds."""
        runs = []
        for target in self._variants.targets:
            if why := variants.why_not(self._prepared, target, self._ordinary.opinion):
                self._results[target.variant] = VariantResult(target.variant, terms.NOT_RUN, why)
            else:
                is_compiled = target.compiler is None or bool(target.compiled)
                runs.append((target if is_compiled else compile_for(target), False))
        return sorted(runs, key=lambda run: not run[0].variant.startswith(f"{Axis.RERUNS}="))

    def handle(self, target: Target, outcome: Outcome) -> list[tuple[Target, bool]]:
        """Take an outcome."""
        if target.compiles_for:
            return self._load(target, outcome)
        if not target.variant:
            judged = opinion(self._prepared, target, outcome)
            self._alone = Way(judged, self._bits(outcome))
            return self._confirm()
        if target.variant in self._unconfirmed:
            self._unconfirmed[target.variant][1].append(outcome)
            return self._repeat(target) or self._confirm()
        result = self._compare_outcome(target, self._ordinary, outcome)
        if result.state != terms.DIFFERS:
            self._results[target.variant] = result
            return []
        runs = [(target, True)] if self._first else [(target, True), (self._candidate, True)]
        self._first[target.variant] = outcome
        self._unconfirmed[target.variant] = target, []
        return runs

    def _load(self, compiler: Target, outcome: Outcome) -> list[tuple[Target, bool]]:
        """Run the variant that loads what was compiled."""
        compiled, why = read_compiled(compiler, outcome)
        if why:
            self._results[compiler.variant] = VariantResult(compiler.variant, terms.NOT_RUN, why)
            return []
        (target,) = (each for each in self._variants.targets if each.variant == compiler.variant)
        return [(replace(target, compiled=compiled), False)]

    def results(self) -> tuple[VariantResult, ...]:
        """One for each variant, in their order, and one for each axis that the candidate has none of."""
        skipped = [VariantResult(axis, terms.NOT_RUN, why) for axis, why in self._variants.skipped.items()]
        own = [self._results[target.variant] for target in self._variants.targets]
        return *own, *self._of_packing(), *skipped

    def _confirm(self) -> list[tuple[Target, bool]]:
        """Conclude what has been repeated, as soon as the ordinary way has run alone."""
        if self._alone is None:
            return []
        for name, (target, further) in tuple(self._unconfirmed.items()):
            if further and not self._repeat(target):
                del self._unconfirmed[name]
                confirm = self._count_others if is_use(name) else self._confirm_result
                self._results[name] = confirm(target, [self._first[name], *further], self._alone)
        return []

    def _repeat(self, target: Target) -> list[tuple[Target, bool]]:
        """One more run of a use that has differed once alone so far."""
        _, further = self._unconfirmed[target.variant]
        is_open = is_use(target.variant) and len(further) < REPEATS
        if not is_open or any(self._differs(target, outcome) for outcome in further):
            return []
        return [(target, True)]

    def _differs(self, target: Target, outcome: Outcome) -> bool:
        return self._compare_outcome(target, self._ordinary, outcome).state == terms.DIFFERS

    def _count_others(self, target: Target, outcomes: Sequence[Outcome], alone: Way) -> VariantResult:
        """The result of a use that differed once: how many of its runs differ, and what the last that does gives."""
        results = [self._compare_outcome(target, alone, outcome) for outcome in outcomes]
        others = [result for result in results if result.state == terms.DIFFERS]
        count = f"in {len(others)} of {len(outcomes)} runs"
        if len(others) < 2:
            return VariantResult(target.variant, terms.UNSTEADY, count, others[0].opinion if others else None)
        judged = others[-1].opinion
        assert judged is not None
        judged = replace(judged, attempts=len(outcomes))
        return replace(others[-1], reason=f"{others[-1].reason} ({count})", opinion=judged)

    def _confirm_result(self, target: Target, outcomes: Sequence[Outcome], alone: Way) -> VariantResult:
        """The result of a variant that differed once. outcomes: of two runs. alone: what the ordinary way gives
        alone."""
        first, second = outcomes
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
        return name_bits(self._prepared, outcome)

    def _of_packing(self) -> tuple[VariantResult, ...]:
        """The difference between the ordinary way in the session that it shared, and alone, where there is one."""
        alone, ordinary = self._alone, self._ordinary
        if alone is None or ordinary.opinion.shared == 1:
            return ()
        same = alone.opinion.status == ordinary.opinion.status and alone.answer == ordinary.answer
        words = f"gives {ordinary.opinion.status} where others share its session, and {alone.opinion.status} alone"
        return () if same else (VariantResult(variants.SHARED, terms.DIFFERS, words, alone.opinion),)
