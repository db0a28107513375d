"""Causes of two runs: which are new, which moved, which are gone."""

from epcheck.reports.cause_changes import GONE, MOVED, NEW, STILL_THERE, CauseChange, compare_causes, describe_causes

ALL = ("a", "b", "c", "d", "e")


def test_a_cause_is_new_still_there_or_gone() -> None:
    before = {"a": "last element", "b": "crash"}
    after = {"a": "last element", "c": "last element", "d": "sign"}
    assert compare_causes(before, after, ALL) == (
        CauseChange(NEW, "sign", 1),
        CauseChange(GONE, "crash", 1),
        CauseChange(STILL_THERE, "last element", 2),
    )


def test_a_cause_that_took_the_cases_of_one_that_is_gone_has_moved() -> None:
    changes = compare_causes({"a": "step < 0", "b": "step < 0"}, {"a": "step < -1", "c": "step < -1"}, ALL)
    assert changes == (CauseChange(MOVED, "step < -1", 2, was="step < 0"),)


def test_a_cause_that_is_still_there_has_not_moved_to_another() -> None:
    changes = compare_causes({"a": "old", "b": "old"}, {"a": "new", "b": "old"}, ALL)
    assert changes == (CauseChange(NEW, "new", 1), CauseChange(STILL_THERE, "old", 1))


def test_a_cause_whose_cases_did_not_run_is_not_gone() -> None:
    assert compare_causes({"a": "crash"}, {}, ran=("b",)) == ()
    assert compare_causes({"a": "crash"}, {}, ran=("a",)) == (CauseChange(GONE, "crash", 1),)


def test_cases_without_a_cause_are_of_none() -> None:
    assert compare_causes({"a": ""}, {"a": "sign", "b": ""}, ALL) == (CauseChange(NEW, "sign", 1),)


def test_the_changes_are_counted_in_words() -> None:
    changes = compare_causes({"a": "x", "b": "y"}, {"a": "x", "c": "z", "d": "w"}, ALL)
    assert describe_causes(changes) == "causes: 2 new, 1 gone, 1 still there"
    assert describe_causes(()) == ""
