"""The result for a target that was compared with an earlier run of it: as good as before, worse, or not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from epcheck.conformance.records.terms import FAILURE
from epcheck.reports.cause_changes import NEW, describe_causes
from epcheck.reports.diff.classification import APPEARED, KINDS, OTHERWISE, REGRESSION, REPAIRED, STILL, TOLERATED
from epcheck.reports.diff.difference import ComparedSummary, Difference, Group
from epcheck.reports.diff.wording import Sides, describe_differing, wording
from epcheck.reports.runs.fingerprint import describe_changes

GOOD, WORSE, FIRST, NOT_RUN = "as good as before", "worse", "first night", "not run"
SAME, DIFFERS = "no difference", "differs"
"""The results of two sides that stand side by side, in the place of GOOD and WORSE."""

DIFFERENT = (REGRESSION, REPAIRED, OTHERWISE, TOLERATED)
"""Kinds that make two sides differ."""

PLURALS = {kind: kind for kind in KINDS} | {REGRESSION: "new failures"}
"""What several cases of a kind are called."""


@dataclass(frozen=True)
class Assessment:
    """What a comparison comes to. result: GOOD, WORSE, FIRST (nothing to compare with) or NOT_RUN; of two sides SAME or
    DIFFERS. sentences: one or several, for people. difference: None where there is nothing to compare."""

    target: str
    result: str
    sentences: str
    difference: Difference | None = None

    @property
    def title(self) -> str:
        """The result in a line: `dml: worse`, `differs between DmlExecutionProvider 1.20.1 and ... 1.24.4`."""
        if self.difference and self.difference.sides and self.result in (SAME, DIFFERS):
            return f"{self.result} between {self.difference.sides.older} and {self.difference.sides.newer}"
        return f"{self.target}: {self.result}"


def assess(difference: Difference) -> Assessment:
    """Assess a comparison. A run that did not run to its end is NOT_RUN, whatever its records say."""
    newer = difference.newer
    regressions = difference.cases(REGRESSION)
    if not newer.is_whole:
        result = NOT_RUN
    elif not difference.compared:
        return Assessment(newer.target, NOT_RUN, "The runs have no case in common.", difference)
    elif difference.sides:
        return _assess_sides(difference, difference.sides)
    else:
        result = WORSE if regressions else GOOD
    sentences = [describe_unfinished(newer)] if result == NOT_RUN else []
    if regressions:
        sentences.append(_worse(difference, regressions))
    elif result == GOOD:
        sentences.append(f"No new failure in {difference.compared:,} cases.")
    mentioned_causes = [
        change for change in difference.causes if change.what != NEW or not regressions
    ]  # those are counted above
    causes = describe_causes(mentioned_causes)
    sentences += [
        f"{causes[0].upper()}{causes[1:]}." if causes else "",
        _beside(difference),
        "" if difference.same_class else _unlike(difference),
        describe_changes(difference.changed, difference.unknown),
    ]
    return Assessment(newer.target, result, " ".join(filter(None, sentences)), difference)


def _assess_sides(difference: Difference, sides: Sides) -> Assessment:
    worse = [(sides.newer, difference.of(REGRESSION)), (sides.older, difference.of(REPAIRED))]
    counted = [
        f"{_cases(groups)} in {_count(len(groups), 'group')} worse on {name}" for name, groups in worse if groups
    ]
    others = difference.cases(OTHERWISE, TOLERATED)
    counted += [f"{others:,} otherwise different"] if others else []
    both = f"between {sides.older} and {sides.newer}"
    if counted:
        sentence = f"Differs {both}: {', '.join(counted)}, of {difference.compared:,} common cases."
    else:
        sentence = f"No difference {both} in {difference.compared:,} cases."
    unlike = "" if difference.same_class else _unlike(difference)
    differing = f"{describe_differing(difference.changed)} {difference.untold}".strip()
    sentences = [sentence, _sides_beside(difference), unlike, differing]
    return Assessment(
        difference.newer.target, DIFFERS if counted else SAME, " ".join(filter(None, sentences)), difference
    )


def _sides_beside(difference: Difference) -> str:
    names = wording(difference.sides).names
    kinds = [kind for kind in KINDS if kind not in DIFFERENT and difference.cases(kind)]
    counted = [f"{difference.cases(kind):,} {names[kind]}" for kind in kinds]
    return f"Also: {', '.join(counted)}." if counted else ""


def assess_first(newer: ComparedSummary) -> Assessment:
    """Assess a target of which the store has no comparable run."""
    if not newer.is_whole:
        return Assessment(newer.target, NOT_RUN, describe_unfinished(newer))
    return Assessment(
        newer.target,
        FIRST,
        f"First night of {newer.fingerprint_class}: no earlier run to compare with. {newer.passes:,} of "
        f"{newer.recorded:,} cases pass, {_count(newer.failures, 'conformance failure')}.",
    )


def describe_unfinished(summary: ComparedSummary) -> str:
    """Why a run proves little: it did not run, or not to its end."""
    why = {"running": "the run is still going or was killed", "interrupted": "the run was interrupted"}.get(
        summary.status,
        "the run says that it is complete" if summary.status == "complete" else f"the run {summary.status}",
    )
    if not summary.recorded:
        return f"Nothing ran (0 of {summary.planned:,} cases): {why}."
    return f"Incomplete ({summary.recorded:,} of {summary.planned:,} cases): {why}."


def _worse(difference: Difference, regressions: int) -> str:
    groups = difference.of(REGRESSION)
    blamed = Counter[str]()
    for group in groups:
        blamed[group.blame or "nobody"] += len(group.case_ids)
    blame = ", ".join(f"{who} {count:,}" if len(blamed) > 1 else who for who, count in blamed.most_common())
    known = {group.cause for group in difference.of(STILL) if group.cause}
    new = [group for group in groups if group.cause not in known]
    causes = [_count(len(new), "new cause")] * bool(new)
    causes += [f"{_count(len(groups) - len(new), 'cause')} that had failures before"] * (len(new) < len(groups))
    largest = max(new or groups, key=lambda group: len(group.case_ids))
    which = "the largest: " if len(groups) > 1 else ""
    return (
        f"Worse: {_count(regressions, 'new failure')} of {' and '.join(causes)} (blame: {blame}); {which}"
        f"{largest.operator}, {largest.why.rstrip('.')}."
    )


def _beside(difference: Difference) -> str:
    """What else changed, counted."""
    counted = [
        f"{count:,} {PLURALS[kind]}" for kind in KINDS if kind != REGRESSION and (count := difference.cases(kind))
    ]
    if failing := sum(len(group.case_ids) for group in difference.of(APPEARED) if group.reading == FAILURE):
        counted = [f"{part} ({failing:,} of them fail)" if part.endswith(APPEARED) else part for part in counted]
    if drifting := sum(len(drift.case_ids) for drift in difference.accuracy):
        counted.append(f"{drifting:,} less accurate")
    return f"Also: {', '.join(counted)}." if counted else ""


def _unlike(difference: Difference) -> str:
    return f"Different kinds of runs: {difference.older.fingerprint_class}; {difference.newer.fingerprint_class}."


def _cases(groups: Sequence[Group]) -> str:
    return _count(sum(len(group.case_ids) for group in groups), "case")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
