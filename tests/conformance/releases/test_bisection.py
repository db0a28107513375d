"""Several cases bisected together, over made-up releases."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from epcheck.conformance.records import terms
from epcheck.conformance.releases.bisection import Bisection, bisect
from epcheck.conformance.releases.error import ReleaseError, UnusableReleaseError
from epcheck.conformance.releases.search import (
    ALWAYS_WRONG,
    FIRST_RIGHT,
    FIRST_WRONG,
    NEVER_WRONG,
    Conclusion,
    Trial,
    most_trials,
)
from epcheck.conformance.releases.wording import sentence


class MadeUpReleases:
    """Releases 1.0, 1.1, ...: which cases are wrong in which, and which cannot be installed."""

    def __init__(self, count: int, wrong_from: dict[str, int], uninstallable: Sequence[int] = ()) -> None:
        self.names = [f"1.{number}" for number in range(count)]
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self._wrong_from, self._uninstallable = wrong_from, uninstallable

    def run(self, release: str, case_ids: Sequence[str]) -> dict[str, Trial]:
        number = self.names.index(release)
        if number in self._uninstallable:
            raise UnusableReleaseError(f"onnxruntime {release} cannot be installed")
        self.asked.append((release, tuple(case_ids)))
        return {
            case_id: Trial(terms.MISMATCH if number >= self._wrong_from[case_id] else terms.PASS)
            for case_id in case_ids
        }

    def bisected(self) -> Bisection:
        return bisect(list(self._wrong_from), self.names, self.run)


def test_cases_that_ask_for_the_same_release_share_its_start() -> None:
    releases = MadeUpReleases(9, {"a": 5, "b": 5, "c": 99})
    found = releases.bisected()
    assert releases.asked == [
        ("1.8", ("a", "b", "c")), ("1.0", ("a", "b", "c")), ("1.4", ("a", "b")), ("1.6", ("a", "b")),
        ("1.5", ("a", "b")),
    ]  # fmt: skip
    conclusions = {history.case_id: history.conclusion for history in found.cases}
    assert conclusions == {
        "a": Conclusion(FIRST_WRONG, 4, 5), "b": Conclusion(FIRST_WRONG, 4, 5), "c": Conclusion(NEVER_WRONG, 0, 8),
    }  # fmt: skip
    assert list(found.cases[0].trials) == ["1.0", "1.4", "1.5", "1.6", "1.8"]


@pytest.mark.parametrize("seed", range(20))
def test_each_of_many_cases_needs_no_more_trials_than_alone(seed: int) -> None:
    draw = random.Random(seed)
    count = draw.randrange(2, 61)
    planted = {f"case {number}": draw.randrange(1, count) for number in range(30)}
    missing = draw.sample(range(count), count // 4)
    found = MadeUpReleases(count, planted, missing).bisected()
    assert set(found.left_out) <= {f"1.{number}" for number in missing}
    usable = [index for index in range(count) if index not in missing]
    for history in found.cases:
        right = [index for index in usable if index < planted[history.case_id]]
        wrong = [index for index in usable if index >= planted[history.case_id]]
        assert len(history.trials) <= most_trials(count)
        expected = (FIRST_WRONG, right[-1], wrong[0]) if right and wrong else None
        conclusion = history.conclusion
        if expected:
            assert (conclusion.kind, conclusion.before, conclusion.since) == expected
        else:
            assert conclusion.kind == (ALWAYS_WRONG if wrong else NEVER_WRONG)


def test_a_release_that_cannot_be_installed_is_asked_for_once_and_said() -> None:
    releases = MadeUpReleases(9, {"a": 5, "b": 3}, uninstallable=[4, 8])
    found = releases.bisected()
    assert found.left_out == {
        "1.8": "onnxruntime 1.8 cannot be installed", "1.4": "onnxruntime 1.4 cannot be installed",
    }  # fmt: skip
    assert [step.release for step in found.steps].count("1.4") == 1
    first, second = found.cases
    assert sentence(first, found.releases) == (
        "wrong since 1.5 (mismatch), right in 1.3; or since 1.4 already, which could not be judged"
    )
    assert sentence(second, found.releases) == "wrong since 1.3 (mismatch), right in 1.2"


def test_another_error_ends_the_search() -> None:
    def fail(_release: str, _case_ids: Sequence[str]) -> dict[str, Trial]:
        raise ReleaseError("the disk is full")

    with pytest.raises(ReleaseError, match="the disk is full"):
        bisect(["a"], ["1.0", "1.1"], fail)


@pytest.mark.parametrize(
    ("statuses", "words"),
    [
        ("pass mismatch", "wrong since 1.1 (mismatch), right in 1.0"),
        ("crash pass", "right since 1.1, wrong in 1.0 (crash)"),
        ("unplaced mismatch", "wrong since 1.1 (mismatch), the first that runs it; 1.0 does not"),
        ("unplaced pass", "right since 1.1, the first that runs it; 1.0 does not"),
        ("pass unplaced", "not run since 1.1 (unplaced), right in 1.0"),
        ("refused crash", "always wrong: in 1.0 (refused) and 1.1 (crash), the ends"),
        ("refused", "always wrong: in 1.0 (refused)"),
        ("pass pass", "never wrong: right in 1.0 and 1.1, the ends"),
        ("unplaced unplaced", "never run: neither end can run it, 1.0 (unplaced) and 1.1 (unplaced)"),
        ("unplaced", "never run: 1.0 (unplaced)"),
        (
            "pass flaky",
            "wrong since 1.1 (flaky), right in 1.0; unsteady in 1.1: where it is right, that may be chance",
        ),
    ],
)
def test_what_was_found_is_said_in_words(statuses: str, words: str) -> None:
    releases = {f"1.{number}": Trial(status) for number, status in enumerate(statuses.split())}
    found = bisect(["a"], list(releases), lambda release, _case_ids: {"a": releases[release]})
    assert sentence(found.cases[0], found.releases) == words


def test_the_direction_is_found_from_the_ends() -> None:
    found = bisect(
        ["a"], list("0123456"), lambda release, _ids: {"a": Trial(terms.REFUSED if int(release) < 2 else terms.PASS)}
    )
    assert found.cases[0].conclusion == Conclusion(FIRST_RIGHT, 1, 2)
