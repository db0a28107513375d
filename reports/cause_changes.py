"""The causes of failures in one run beside those in an earlier one: new, still there, gone, or moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

NEW, MOVED, STILL_THERE, GONE = "new", "moved", "still there", "gone"
"""What became of a cause. NEW: none of its cases failed before. MOVED: some failed before, for another cause that is
not there any more: the condition or the symptom is another one. STILL_THERE: it was there before. GONE: it was, and
its cases that ran do not fail for it."""

IN_ORDER = (NEW, MOVED, GONE, STILL_THERE)


@dataclass(frozen=True)
class CauseChange:
    """A cause in two runs. what: one of IN_ORDER. cases: how many it has, in the earlier run where it is GONE. was: its
    title before, where it has MOVED."""

    what: str
    title: str
    cases: int
    was: str = ""


def compare_causes(before: Mapping[str, str], after: Mapping[str, str], ran: Container[str]) -> tuple[CauseChange, ...]:
    """The changes, in the order of IN_ORDER, the largest cause first.

    before, after: id of a failing case -> the title of its cause, empty where none is known. ran: the cases of the
    later run that gave a result. A case that only one run has is in one mapping alone.
    """
    old, new = Counter(filter(None, before.values())), Counter(filter(None, after.values()))
    came_from: dict[str, Counter[str]] = {}
    for case_id, title in after.items():
        if title and title not in old and (was := before.get(case_id, "")) and was not in new:
            came_from.setdefault(title, Counter())[was] += 1
    moved = {title: counts.most_common(1)[0][0] for title, counts in came_from.items()}
    changes = [
        CauseChange(
            STILL_THERE if title in old else MOVED if title in moved else NEW, title, cases, moved.get(title, "")
        )
        for title, cases in new.items()
    ]
    gone = Counter(title for case_id, title in before.items() if title and title not in new and case_id in ran)
    changes += [CauseChange(GONE, title, cases) for title, cases in gone.items() if title not in moved.values()]
    return tuple(sorted(changes, key=lambda change: (IN_ORDER.index(change.what), -change.cases, change.title)))


def describe_causes(changes: Sequence[CauseChange]) -> str:
    """`causes: 1 new, 2 still there`; empty where there is no cause."""
    counts = Counter(change.what for change in changes)
    return f"causes: {', '.join(f'{counts[what]:,} {what}' for what in IN_ORDER if counts[what])}" if counts else ""
