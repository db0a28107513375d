"""Outputs against the truth: exact, in ULP, in signs of zero, one quantisation step, a selection; and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping

from epcheck.conformance.comparison import undefined, zero_signs
from epcheck.conformance.comparison.bounds import is_surely_right, rule
from epcheck.conformance.comparison.selection import selection_differences
from epcheck.conformance.comparison.wrong_elements import find_wrong_elements, form_difference, has_wrong_elements
from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.opinion import Difference
from epcheck.generators.array import Array
from epcheck.generators.truth import Output, Outputs, Selection, Ulp


def differences(
    truth: Outputs | Selection, got: Mapping[str, Array], known: Accuracy | None = None
) -> tuple[Difference, ...]:
    """What is wrong with the outputs of a node; empty when nothing is.

    known: what `accuracy.measure_accuracy` says of them, where it was asked before.
    """
    if isinstance(truth, Selection):
        return selection_differences(truth, got)
    worst = math.inf if known is None else known.max_ulp
    found = (_output_difference(output, got.get(output.name), worst) for output in truth.outputs)
    return tuple(difference for difference in found if difference is not None)


def are_right(truth: Outputs | Selection, got: Mapping[str, Array]) -> bool:
    """Whether `differences` finds none; of those that there are nothing is gathered, which takes longest."""
    if isinstance(truth, Selection):
        return not selection_differences(truth, got)
    return all(_is_right(output, got.get(output.name)) for output in truth.outputs)


def _is_right(expected: Output, got: Array | None) -> bool:
    if got is None or form_difference(expected.name, expected.value, got) is not None:
        return False
    if expected.undefined is not None:
        return undefined.difference(expected, expected.undefined, got) is None
    if is_surely_right(expected, got) and zero_signs.are_right(expected, got):
        return True
    return not has_wrong_elements(expected, got)


def _output_difference(expected: Output, got: Array | None, worst: float) -> Difference | None:
    """What is wrong with one output; None when nothing is. worst: no element is further from the truth, in ULP."""
    form = form_difference(expected.name, expected.value, got)
    if form is not None or got is None:
        return form
    if expected.undefined is not None:
        return undefined.difference(expected, expected.undefined, got)
    near = (isinstance(expected.bound, Ulp) and worst <= expected.bound.bound) or is_surely_right(expected, got)
    if near and zero_signs.are_right(expected, got):
        return None
    wrong = find_wrong_elements(expected, got)
    if wrong is None:
        return None
    far = [f"each {rule(expected.bound, wrong.max_abs)}"] if wrong.far else []
    signs = [zero_signs.rule(expected)] if wrong.far < wrong.wrong else []
    return wrong.difference("; ".join(far + signs))
