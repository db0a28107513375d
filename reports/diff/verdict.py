"""What is to be said of a target after it was compared with how it was before."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from epcheck.conformance.records.record import FAILURE
from epcheck.reports.diff.difference import APPEARED, KINDS, REGRESSION, Difference, Half
from epcheck.reports.runs.fingerprint import in_words

GOOD, WORSE, FIRST, NOT_RUN = "as good as before", "worse", "first night", "not run"

TOLD = {kind: kind for kind in KINDS} | {REGRESSION: "new failures"}
"""What several cases of a kind are called."""


@dataclass(frozen=True)
class Verdict:
    """word: GOOD, WORSE, FIRST (nothing to compare with) or NOT_RUN. said: one or two sentences. difference: None
    where there is nothing to compare."""

    target: str
    word: str
    said: str
    difference: Difference | None = None


def of(difference: Difference) -> Verdict:
    """The verdict of a comparison. What did not run to its end is no success, whatever the rest of it says."""
    newer = difference.newer
    regressions = difference.cases(REGRESSION)
    if not newer.is_whole:
        word = NOT_RUN
    elif not difference.compared:
        return Verdict(newer.target, NOT_RUN, "The two runs have no case in common.", difference)
    else:
        word = WORSE if regressions else GOOD
    said = [unfinished(newer)] if word == NOT_RUN else []
    if regressions:
        said.append(_worse(difference, regressions))
    elif word == GOOD:
        said.append(f"As good as before: no new failure in {difference.compared:,} cases.")
    said += [_beside(difference), "" if difference.same_class else _unlike(difference), in_words(difference.changed)]
    return Verdict(newer.target, word, " ".join(filter(None, said)), difference)


def first(newer: Half) -> Verdict:
    """Of a target that the store has no comparable run of."""
    if not newer.is_whole:
        return Verdict(newer.target, NOT_RUN, unfinished(newer))
    return Verdict(
        newer.target,
        FIRST,
        f"First night of {newer.fingerprint_class}: there is nothing to compare with. {newer.passes:,} of "
        f"{newer.recorded:,} cases pass, {_count(newer.failures, 'conformance failure')}.",
    )


def unfinished(half: Half) -> str:
    """Why a side says little: it did not run, or not to its end."""
    why = {"running": "it is still running or was killed", "interrupted": "it was interrupted"}.get(
        half.status, "though it says that it is complete" if half.status == "complete" else f"it {half.status}"
    )
    if not half.recorded:
        return f"Not run: none of {half.planned:,} planned cases is recorded; {why}."
    return f"Not run to its end: {half.recorded:,} of {half.planned:,} planned cases are recorded; {why}."


def _worse(difference: Difference, regressions: int) -> str:
    groups = difference.of(REGRESSION)
    blamed = Counter[str]()
    for group in groups:
        blamed[group.blame or "nobody"] += len(group.case_ids)
    blame = ", ".join(f"{who} {count:,}" if len(blamed) > 1 else who for who, count in blamed.most_common())
    grouped = f" in {len(groups)} groups" if len(groups) > 1 else ""
    return f"Worse: {_count(regressions, 'new failure')}{grouped} (blame: {blame})."


def _beside(difference: Difference) -> str:
    """What else changed, counted."""
    told = [f"{count:,} {TOLD[kind]}" for kind in KINDS if kind != REGRESSION and (count := difference.cases(kind))]
    if failing := sum(len(group.case_ids) for group in difference.of(APPEARED) if group.reading == FAILURE):
        told = [f"{one} ({failing:,} of them fail)" if one.endswith(APPEARED) else one for one in told]
    if drifting := sum(len(one.case_ids) for one in difference.accuracy):
        told.append(f"{drifting:,} less accurate")
    return f"Besides: {', '.join(told)}." if told else ""


def _unlike(difference: Difference) -> str:
    return f"They are not alike: {difference.older.fingerprint_class}; {difference.newer.fingerprint_class}."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
