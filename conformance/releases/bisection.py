"""Cases bisected over releases together: a release that several cases ask for is installed and started once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from epcheck.conformance.releases.error import UnusableReleaseError
from epcheck.conformance.releases.search import Conclusion, Trial, conclude, next_release

Try = Callable[[str, Sequence[str]], Mapping[str, Trial]]
"""Takes a release and case ids, and returns case id -> trial for each of them. Raises UnusableReleaseError."""


@dataclass(frozen=True)
class Step:
    """One release as it was tried. trials: case id -> trial; empty where the release is left out, and then `left_out`
    says why."""

    release: str
    trials: Mapping[str, Trial]
    left_out: str = ""


@dataclass(frozen=True)
class CaseHistory:
    """One case over the releases. trials: release -> trial, the oldest first."""

    case_id: str
    trials: Mapping[str, Trial]
    conclusion: Conclusion


@dataclass(frozen=True)
class Bisection:
    """What the search found. steps: in the order in which the releases were tried."""

    releases: tuple[str, ...]
    steps: tuple[Step, ...]
    cases: tuple[CaseHistory, ...]

    @property
    def left_out(self) -> dict[str, str]:
        """Release that could not be tried -> why."""
        return {step.release: step.left_out for step in self.steps if step.left_out}


def bisect(
    case_ids: Sequence[str], releases: Sequence[str], try_release: Try, report: Callable[[Step], None] | None = None
) -> Bisection:
    """Find for each case the release in which what it does changes. releases: the oldest first. report: takes each step
    when it is over.

    Each case is tried at most `most_trials(len(releases))` times, see `search`. Raises what `try_release` raises but
    UnusableReleaseError, after which the search goes on without that release.
    """
    tried: dict[str, dict[int, Trial]] = {case_id: {} for case_id in case_ids}
    left_out: set[int] = set()
    steps: list[Step] = []
    count = len(releases)
    while True:
        wanted = {case_id: next_release(count, of_case, left_out) for case_id, of_case in tried.items()}
        index = _most_wanted(index for index in wanted.values() if index is not None)
        if index is None:
            break
        asking = [case_id for case_id, release in wanted.items() if release == index]
        try:
            step = Step(releases[index], try_release(releases[index], asking))
            for case_id in asking:
                tried[case_id][index] = step.trials[case_id]
        except UnusableReleaseError as error:
            step = Step(releases[index], {}, str(error))
            left_out.add(index)
        steps.append(step)
        if report:
            report(step)
    histories = (
        CaseHistory(
            case_id,
            {releases[index]: of_case[index] for index in sorted(of_case)},
            conclude(count, of_case, left_out),
        )
        for case_id, of_case in tried.items()
    )
    return Bisection(tuple(releases), tuple(steps), tuple(histories))


def _most_wanted(indices: Iterable[int]) -> int | None:
    """The release that most cases ask for; of several the newest."""
    counts = Counter(indices)
    return max(counts, key=lambda index: (counts[index], index), default=None)
