"""Selections, as of TopK: values with their indices, of which the standard may accept several, or any order."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from epcheck.conformance.comparison import blocks
from epcheck.conformance.comparison.exact import identical, same
from epcheck.conformance.comparison.wrong_elements import find_wrong_elements, form_difference
from epcheck.conformance.records.opinion import Difference
from epcheck.generators.array import Array
from epcheck.generators.truth import Output, Selection


def selection_differences(truth: Selection, got: Mapping[str, Array]) -> tuple[Difference, ...]:
    """What is wrong with the values and indices of a selection; empty when nothing is.

    Sorting an unordered selection, and saying why it is wrong, takes memory of the size of its outputs.
    """
    parts = zip(truth.names, truth.accepted[0], strict=True)
    forms = [form for name, part in parts if (form := form_difference(name, part, got.get(name))) is not None]
    if forms:
        return tuple(forms)
    values, indices = (got[name] for name in truth.names)
    if any(identical(v, values) and identical(i, indices) for v, i in truth.accepted):
        return ()
    accepted = truth.accepted
    if not truth.ordered:
        values, indices = _by_index(values, indices, truth.axis)
        accepted = tuple(_by_index(*pair, truth.axis) for pair in accepted)
    nearest = min(accepted, key=lambda pair: _wrong_places(pair, (values, indices)))
    found = [
        find_wrong_elements(Output(name, part), actual)
        for name, part, actual in zip(truth.names, nearest, (values, indices), strict=True)
    ]
    if not any(found):
        return ()
    reason = _why_not_selected(truth, values, indices, *nearest)
    return tuple(wrong.difference(reason) for wrong in found if wrong is not None)


def _wrong_places(accepted: tuple[Array, Array], got: tuple[Array, Array]) -> int:
    """The number of places where the value, the index or both are wrong."""
    return sum(
        int(np.count_nonzero(~same(right_value, value) | (right_index != index)))
        for _, (right_value, right_index, value, index) in blocks.read(*accepted, *got)
    )


def _by_index(values: Array, indices: Array, axis: int) -> tuple[Array, Array]:
    order = np.argsort(indices, axis=axis, kind="stable")
    return np.take_along_axis(values, order, axis), np.take_along_axis(indices, order, axis)


def _why_not_selected(
    truth: Selection, values: Array, indices: Array, right_values: Array, right_indices: Array
) -> str:
    axis, length = truth.axis, truth.data.shape[truth.axis]
    if ((indices < 0) | (indices >= length)).any():
        return f"an index is outside the axis of length {length}"
    if not same(np.take_along_axis(truth.data, indices, axis), values).all():
        return "a value differs from the element at its index"
    if (np.diff(np.sort(indices, axis=axis), axis=axis) == 0).any():
        return "an index is selected twice"
    if same(right_values, values).all():
        return "equal values must come with the lower index first"
    if (np.sort(indices, axis=axis) == np.sort(right_indices, axis=axis)).all():
        return "the right elements are in the wrong order"
    return "the wrong elements are selected"
