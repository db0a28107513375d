"""Which known names an unknown one is probably meant to be."""

from __future__ import annotations

from epcheck.generators.nearest import ask_if_meant, find_nearest


def test_the_nearest_come_first_and_three_at_most() -> None:
    assert find_nearest("Slize", ["Relu", "Resize", "Slice", "Size", "Split", "Slices"]) == ("Size", "Slice", "Slices")
    assert find_nearest("Conv", ["Relu"]) == ()


def test_the_case_of_letters_is_passed_over() -> None:
    assert find_nearest("SLICE", ["Slices", "Slice"]) == ("Slice",)


def test_the_question_names_them() -> None:
    assert ask_if_meant(()) == ""
    assert ask_if_meant(("run",)) == "Did you mean run?"
    assert ask_if_meant(("a", "b", "c")) == "Did you mean a, b or c?"
