"""Outputs against the truth: exact, in ULP, one quantisation step, or a selection; differences in words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from epcheck.conformance.record import Difference, Mismatch
from epcheck.generators.case import Array, Exact, OneStep, Output, Outputs, Selection, Ulp

FIRST = 8
"""How many wrong elements a difference lists."""

HEAT_ROWS, HEAT_COLUMNS = 16, 48


def differences(truth: Outputs | Selection, got: Mapping[str, Array]) -> tuple[Difference, ...]:
    """What is wrong with the outputs of a node; empty when nothing is."""
    if isinstance(truth, Selection):
        return _selection(truth, got)
    return tuple(d for output in truth.outputs if (d := _output(output, got.get(output.name))) is not None)


def same(expected: Array, got: Array) -> Array:
    """Element by element: same value and same sign of zero; any NaN equals any NaN."""
    if expected.dtype.kind != "f":
        equal: Array = expected == got
        return equal
    signs_equal = np.signbit(expected) == np.signbit(got)
    matched: Array = ((expected == got) & signs_equal) | (np.isnan(expected) & np.isnan(got))
    return matched


def ulp_error(exact: Array, got: Array) -> Array:
    """float64: |got - exact| in units in the last place of got's dtype at the exact value; shapes are equal.

    0 for equal infinities and for two NaN, inf where only one is NaN or infinite. `exact` is the truth in float64.
    """
    if got.dtype.kind != "f":
        raise TypeError(f"ULP are defined for floating-point outputs, not for {got.dtype}")
    info = np.finfo(got.dtype)
    truth, value = exact.astype(np.float64), got.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = truth.astype(got.dtype)
        magnitude = np.clip(np.abs(rounded.astype(np.float64)), info.tiny, info.max)
        unit = np.ldexp(1.0, np.frexp(magnitude)[1] - 1 - info.nmant)
        error = np.abs(value - truth) / unit
    equal_infinities = (value == rounded) & np.isinf(value)
    equal = (value == truth) | equal_infinities | (np.isnan(truth) & np.isnan(value))
    result: Array = np.where(equal, 0.0, np.where(np.isnan(error), np.inf, error))
    return result


def _output(expected: Output, got: Array | None) -> Difference | None:
    form = _form(expected.name, expected.value, got)
    if form is not None or got is None:
        return form
    truth = expected.value
    bound = expected.bound
    if isinstance(bound, Exact):
        wrong, why = ~same(truth, got), "must equal the truth exactly"
    elif isinstance(bound, Ulp):
        exact = truth if expected.exact is None else expected.exact
        beyond = ulp_error(exact, got) > bound.bound
        with np.errstate(invalid="ignore", over="ignore"):
            wrong = beyond & ~(np.abs(got.astype(np.float64) - exact) <= bound.floor)
        why = f"must be within {bound.bound:g} ULP of the truth ({bound.source})"
    else:
        assert isinstance(bound, OneStep)
        step = np.abs(got.astype(np.int64) - truth.astype(np.int64))
        wrong = step > bound.allowed
        near = "; it lies on no rounding boundary within float32 error" if (step[wrong] == 1).all() else ""
        why = f"must be the exactly rounded value{near}"
    if not wrong.any():
        return None
    return _difference(expected.name, truth, got, wrong, f"{_share(wrong)} wrong; each {why}", expected.exact)


def _form(name: str, expected: Array, got: Array | None) -> Difference | None:
    """A difference in presence, dtype or shape, which makes values incomparable."""
    if got is None:
        reason = "the output is missing"
    elif got.dtype != expected.dtype:
        reason = f"the dtype is {got.dtype.name}, must be {expected.dtype.name}"
    elif got.shape != expected.shape:
        reason = f"the shape is {list(got.shape)}, must be {list(expected.shape)}"
    else:
        return None
    return Difference(name, expected.dtype.name, expected.shape, reason, expected.size, expected.size)


def _selection(truth: Selection, got: Mapping[str, Array]) -> tuple[Difference, ...]:
    preferred_values, preferred_indices = truth.accepted[0]
    forms = (
        _form("Values", preferred_values, got.get("Values")),
        _form("Indices", preferred_indices, got.get("Indices")),
    )
    if any(forms):
        return tuple(form for form in forms if form is not None)
    values, indices = got["Values"], got["Indices"]
    if not truth.ordered:
        values, indices = _by_index(values, indices, truth.axis)
    best: tuple[Array, Array, Array, Array] | None = None
    for accepted_values, accepted_indices in truth.accepted:
        if not truth.ordered:
            accepted_values, accepted_indices = _by_index(accepted_values, accepted_indices, truth.axis)
        wrong_values, wrong_indices = ~same(accepted_values, values), accepted_indices != indices
        if not (wrong_values.any() or wrong_indices.any()):
            return ()
        if best is None or (wrong_values | wrong_indices).sum() < (best[2] | best[3]).sum():
            best = accepted_values, accepted_indices, wrong_values, wrong_indices
    assert best is not None
    accepted_values, accepted_indices, wrong_values, wrong_indices = best
    reason = _why_not_selected(truth, values, indices, accepted_values, accepted_indices)
    return tuple(
        _difference(name, expected, actual, wrong, f"{_share(wrong)} wrong; {reason}")
        for name, expected, actual, wrong in (
            ("Values", accepted_values, values, wrong_values),
            ("Indices", accepted_indices, indices, wrong_indices),
        )
        if wrong.any()
    )


def _by_index(values: Array, indices: Array, axis: int) -> tuple[Array, Array]:
    order = np.argsort(indices, axis=axis, kind="stable")
    return np.take_along_axis(values, order, axis), np.take_along_axis(indices, order, axis)


def _why_not_selected(
    truth: Selection, values: Array, indices: Array, right_values: Array, right_indices: Array
) -> str:
    axis, length = truth.axis, truth.data.shape[truth.axis]
    if ((indices < 0) | (indices >= length)).any():
        return f"an index lies outside the axis of length {length}"
    if not same(np.take_along_axis(truth.data, indices, axis), values).all():
        return "a value is not the element at its index"
    if (np.diff(np.sort(indices, axis=axis), axis=axis) == 0).any():
        return "an index is selected twice"
    if same(right_values, values).all():
        return "equal values must come with the lower index first"
    if (np.sort(indices, axis=axis) == np.sort(right_indices, axis=axis)).all():
        return "the right elements are in the wrong order"
    return "the wrong elements are selected"


def _share(wrong: Array) -> str:
    return f"{int(wrong.sum())} of {wrong.size} elements {'is' if wrong.size == 1 else 'are'}"


def _difference(
    name: str, expected: Array, got: Array, wrong: Array, reason: str, exact: Array | None = None
) -> Difference:
    floating = expected.dtype.kind == "f"
    truth = expected if exact is None else exact
    ulp = ulp_error(truth, got) if floating else None
    first = tuple(
        Mismatch(
            tuple(int(i) for i in at),
            _text(expected[tuple(at)], None if exact is None else exact[tuple(at)]),
            _text(got[tuple(at)]),
            None if ulp is None else _finite(float(ulp[tuple(at)])),
        )
        for at in np.argwhere(wrong)[:FIRST]
    )
    wide = np.float64 if floating else np.object_  # Python's integers, since 64 bits exceed float64
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(got[wrong].astype(wide) - expected[wrong].astype(wide)).astype(np.float64)
    return Difference(
        name,
        expected.dtype.name,
        expected.shape,
        reason,
        int(wrong.sum()),
        wrong.size,
        None if ulp is None else _finite(float(ulp[wrong].max())),
        _finite(float(gap.max())) if not np.isnan(gap).any() else None,
        first,
        heat(wrong),
    )


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _text(value: object, exact: object | None = None) -> str:
    text = str(value)
    return text if exact is None or str(exact) == text else f"{text} (exactly {exact})"


def heat(wrong: Array) -> tuple[tuple[int, ...], ...]:
    """The share of wrong elements, 0 to 9, over the output as rows x last axis squeezed to HEAT_ROWS x HEAT_COLUMNS."""
    if wrong.size < 2:
        return ()
    grid = wrong.reshape(-1, wrong.shape[-1]) if wrong.ndim > 1 else wrong.reshape(1, -1)
    rows, columns = (min(n, most) for n, most in zip(grid.shape, (HEAT_ROWS, HEAT_COLUMNS), strict=True))
    row_edges, column_edges = (
        np.arange(n) * size // n for n, size in ((rows, grid.shape[0]), (columns, grid.shape[1]))
    )
    sums = np.add.reduceat(np.add.reduceat(grid.astype(np.int64), row_edges, 0), column_edges, 1)
    counts = np.add.reduceat(np.add.reduceat(np.ones_like(grid, np.int64), row_edges, 0), column_edges, 1)
    return tuple(tuple(int(cell) for cell in row) for row in -(-sums * 9 // counts))
