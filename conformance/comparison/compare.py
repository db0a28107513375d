"""Outputs against the truth: exact, in ULP, one quantisation step, or a selection; differences in words.

Outputs are read in blocks of BLOCK elements: what a comparison needs beside them does not grow with their size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from epcheck.conformance.records.record import ULP_EDGES, Accuracy, Difference, Mismatch, added
from epcheck.generators.array import Array
from epcheck.generators.truth import Bound, Exact, OneStep, Output, Outputs, Selection, Ulp

BLOCK = 2**15
"""Elements that are looked at together: enough to hide what a call into numpy costs, few enough for the caches."""

FIRST = 8
"""How many wrong elements a difference lists."""

HEAT_ROWS, HEAT_COLUMNS = 16, 48

_NOTHING = np.zeros((), np.bool_)
_EDGES = np.array(ULP_EDGES)


def differences(
    truth: Outputs | Selection, got: Mapping[str, Array], known: Accuracy | None = None
) -> tuple[Difference, ...]:
    """What is wrong with the outputs of a node; empty when nothing is.

    known: what `accuracy` says of them, where it was asked before.
    """
    if isinstance(truth, Selection):
        return _selection(truth, got)
    worst = math.inf if known is None else known.max_ulp
    return tuple(d for output in truth.outputs if (d := _output(output, got.get(output.name), worst)) is not None)


def same(expected: Array, got: Array) -> Array:
    """Element by element: same value and same sign of zero; any NaN equals any NaN."""
    if not _is_floating(expected.dtype):
        equal: Array = expected == got
        return equal
    signs_equal = np.signbit(expected) == np.signbit(got)
    matched: Array = ((expected == got) & signs_equal) | (np.isnan(expected) & np.isnan(got))
    return matched


def accuracy(truth: Outputs | Selection, got: Mapping[str, Array]) -> Accuracy | None:
    """How far the outputs that have a bound in ULP are from the truth; None where none has, or has the right form."""
    if isinstance(truth, Selection):
        return None
    found: Accuracy | None = None
    for output in truth.outputs:
        actual = got.get(output.name)
        if isinstance(output.bound, Ulp) and actual is not None and _form(output.name, output.value, actual) is None:
            exact = output.value if output.exact is None else output.exact
            for _, (values, exactly) in _blocks(actual, exact):
                found = added(found, _accuracy(ulp_error(exactly, values)))
    return found


def _accuracy(errors: Array) -> Accuracy:
    """errors: float64 in ULP."""
    worst = float(np.maximum.reduce(errors))
    with np.errstate(over="ignore"):  # an error of 1e300 ULP is one of infinitely many
        total = float(np.add.reduce(errors if math.isfinite(worst) else errors[np.isfinite(errors)]))
    return Accuracy(errors.size, worst, total, tuple(np.bincount(_EDGES.searchsorted(errors)).tolist()))


def ulp_error(exact: Array, got: Array) -> Array:
    """float64: |got - exact| in units in the last place of got's dtype at the exact value; shapes are equal.

    0 for equal infinities and for two NaN, inf where only one is NaN or infinite. `exact` is the truth in float64.
    """
    if not _is_floating(got.dtype):
        raise TypeError(f"ULP are defined for floating-point outputs, not for {got.dtype}")
    with np.errstate(invalid="ignore", over="ignore"):
        truth, value = exact.astype(np.float64), got.astype(np.float64)
        rounded = truth.astype(got.dtype).astype(np.float64)
        error: Array = np.abs(value - truth) / _unit(rounded, got.dtype)
    if np.isfinite(error).all():
        return error
    equal_infinities = (value == rounded) & np.isinf(value)
    equal = (value == truth) | equal_infinities | (np.isnan(truth) & np.isnan(value))
    result: Array = np.where(equal, 0.0, np.where(np.isnan(error), np.inf, error))
    return result


def _unit(values: Array, dtype: np.dtype[Any]) -> Array:
    """The unit in the last place of the dtype at each of these numbers of it, float64."""
    tiny, largest, digits = _extent(dtype)
    magnitude = np.minimum(np.maximum(np.abs(values), tiny), largest)
    unit: Array = np.ldexp(1.0, np.frexp(magnitude)[1] - digits)
    return unit


@cache
def _extent(dtype: np.dtype[Any]) -> tuple[float, float, int]:
    """The smallest normal number of a floating dtype, its largest number, and the bits of its significand."""
    info = _finfo(dtype)
    return float(info.tiny), float(info.max), int(info.nmant) + 1


@dataclass(frozen=True)
class UlpDistance:
    """How far two arrays are apart, over all their elements; see `ulp_distance`.

    elements: of either array. differing: those more than 0 apart. max, mean: in ULP, inf when any distance is infinite.
    at: index of the first element that is `max` apart, in C order; None when nothing differs.
    """

    elements: int
    differing: int
    max: float
    mean: float
    at: tuple[int, ...] | None


def ulp_distance(expected: Array, got: Array) -> UlpDistance:
    """How many steps, from one number of the dtype to the next, lead from each element of `expected` to that of `got`.

    Both have one shape and one dtype: float16, bfloat16, float32 or float64. Each step is 1 ULP, also across zero and
    across a power of two, where `ulp_error` keeps the unit of the exact value. As there, +0 and -0 are 0 apart, and so
    are any two NaN; NaN is infinitely far from all else, and an infinity from all but itself.

    Beside the arrays it takes memory for three blocks, and two more for arrays that are not contiguous.
    Raises TypeError for another dtype or for two, ValueError for two shapes.
    """
    if expected.dtype != got.dtype:
        raise TypeError(f"ULP between {expected.dtype} and {got.dtype} are not defined")
    if expected.shape != got.shape:
        raise ValueError(f"the shape is {list(got.shape)}, must be {list(expected.shape)}")
    lattice = _lattice(expected.dtype)
    work = np.empty((3, min(BLOCK, expected.size)), lattice.signed)
    differing, largest, total, where = 0, 0, 0.0, 0
    for start, (one, other) in _blocks(expected, got):
        steps = _steps(lattice, one.view(lattice.signed), other.view(lattice.signed), work[:, : one.size])
        most = int(np.maximum.reduce(steps))
        if most > largest:
            largest, where = most, start + int(steps.argmax())
        differing += int(np.count_nonzero(steps))
        fits = most * steps.size <= lattice.infinite
        total += float(np.add.reduce(steps, dtype=lattice.unsigned if fits else lattice.wide))
    infinite = largest == lattice.infinite
    return UlpDistance(
        elements=expected.size,
        differing=differing,
        max=math.inf if infinite else float(largest),
        mean=math.inf if infinite else total / max(expected.size, 1),
        at=_index(where, expected.shape) if differing else None,
    )


@dataclass(frozen=True)
class _Lattice:
    """The numbers of a floating dtype in their order: bits without the sign count the steps from zero.

    signed, unsigned: integers of its size, for bits and for distances. wide: for sums of distances. magnitude: all bits
    but the sign. infinity: the bits of +inf. infinite: stands for an infinite distance; no finite one is as large.
    """

    signed: np.dtype[Any]
    unsigned: np.dtype[Any]
    wide: np.dtype[Any]
    magnitude: int
    infinity: int
    infinite: int


@cache
def _lattice(dtype: np.dtype[Any]) -> _Lattice:
    if dtype.name not in ("float16", "bfloat16", "float32", "float64"):
        raise TypeError(f"ULP are defined for floating-point numbers of 16, 32 or 64 bits, not for {dtype}")
    signed, unsigned = np.dtype(f"i{dtype.itemsize}"), np.dtype(f"u{dtype.itemsize}")
    return _Lattice(
        signed,
        unsigned,
        wide=np.dtype(np.uint64 if dtype.itemsize < 8 else np.float64),
        magnitude=int(np.iinfo(signed).max),
        infinity=int(np.array(np.inf, dtype.newbyteorder("=")).view(signed)),
        infinite=int(np.iinfo(unsigned).max),
    )


def _steps(lattice: _Lattice, one: Array, other: Array, work: Array) -> Array:
    """Distances [n], unsigned, of two blocks [n] of bits as signed integers; they lie in work [3, n].

    A distance is the larger magnitude less the smaller one, or plus it where the signs differ.
    """
    one_magnitude, other_magnitude, larger = work
    np.bitwise_and(one, lattice.magnitude, out=one_magnitude)
    np.bitwise_and(other, lattice.magnitude, out=other_magnitude)
    np.maximum(one_magnitude, other_magnitude, out=larger)
    smaller = np.minimum(one_magnitude, other_magnitude, out=other_magnitude)
    finite = np.maximum.reduce(larger) < lattice.infinity
    minus = np.bitwise_xor(one, other, out=one_magnitude)
    if np.minimum.reduce(minus) < 0:
        np.right_shift(minus, 8 * minus.itemsize - 1, out=minus)  # -1 where the signs differ, 0 elsewhere
        np.bitwise_xor(smaller, minus, out=smaller)
        np.subtract(smaller, minus, out=smaller)
    steps: Array = np.subtract(larger, smaller, out=larger).view(lattice.unsigned)  # a sum may need the sign's bit
    if not finite:
        _settle_specials(lattice, one, other, steps)
    return steps


def _settle_specials(lattice: _Lattice, one: Array, other: Array, steps: Array) -> None:
    """Puts into `steps` what NaN and infinities are from each other and from numbers: nothing or infinitely much."""
    magnitudes = one & lattice.magnitude, other & lattice.magnitude
    special = np.flatnonzero(np.maximum(*magnitudes) >= lattice.infinity)
    both_nan = np.minimum(*magnitudes)[special] > lattice.infinity
    steps[special] = 0
    steps[special[~both_nan & (one[special] != other[special])]] = lattice.infinite


def _steps_within(bound: float, dtype: np.dtype[Any]) -> float:
    """As many steps as are sure to be within `bound` ULP of the number they start from, as `ulp_error` counts them.

    Away from zero the unit doubles, once at most on as many steps as a binade has, and not for the first: d steps are
    2 d - 1 ULP at most.
    """
    return min((bound + 1) / 2, 2.0 ** int(_finfo(dtype).nmant))


def _is_floating(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype == ml_dtypes.bfloat16


def _finfo(dtype: np.dtype[Any]) -> Any:
    """numpy's, which does not know bfloat16, or one like it."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def _blocks(*arrays: Array) -> Iterator[tuple[int, tuple[Array, ...]]]:
    """Where a block starts, as a flat index in C order, and its at most BLOCK elements of each array; one by one.

    Arrays have one shape; a scalar stands for an array full of it. Blocks are contiguous and in native byte order:
    views of arrays that are so, else of a buffer that the next block overwrites.
    """
    each: Any = [["readonly", "contig", "aligned", "nbo"]] * len(arrays)
    start = 0
    for block in np.nditer(arrays, ["external_loop", "buffered", "zerosize_ok"], each, order="C", buffersize=BLOCK):
        if block[0].size:
            yield start, block
        start += block[0].size


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, shape))


def _output(expected: Output, got: Array | None, worst: float) -> Difference | None:
    """worst: no element is further from the truth, in ULP."""
    form = _form(expected.name, expected.value, got)
    if form is not None or got is None:
        return form
    if (isinstance(expected.bound, Ulp) and worst <= expected.bound.bound) or _surely_right(expected, got):
        return None
    tally = _tally(expected, got)
    return None if tally is None else tally.difference(f"each {_rule(expected.bound, tally)}")


def _surely_right(expected: Output, got: Array) -> bool:
    """Whether the bits alone show that nothing is wrong; most outputs are the truth byte for byte."""
    bound = expected.bound
    if not isinstance(bound, Ulp):
        return _identical(expected.value, got)
    if expected.exact is not None:
        return bound.bound >= 0.5 and _identical(expected.value, got)  # the truth itself was rounded by half a ULP
    return _identical(expected.value, got) or (
        _is_floating(got.dtype) and ulp_distance(expected.value, got).max <= _steps_within(bound.bound, got.dtype)
    )


def _identical(expected: Array, got: Array) -> bool:
    if expected.size <= BLOCK:
        return expected.tobytes() == got.tobytes()
    return all(one.tobytes() == other.tobytes() for _, (one, other) in _blocks(expected, got))


def _tally(expected: Output, got: Array) -> _Tally | None:
    """The wrong elements; None when there are none."""
    truth, bound = expected.value, expected.bound
    exact = truth if expected.exact is None else expected.exact
    tally = None
    for start, (values, actual, exactly, allowed) in _blocks(truth, got, exact, _allowance(bound)):
        block = Output(expected.name, values, bound, None if expected.exact is None else exactly)
        if not _surely_right(block, actual) and (wrong := _wrong(bound, values, actual, exactly, allowed)).any():
            tally = tally or _Tally(expected.name, truth)
            tally.add(start, wrong, values, actual, exactly)
    return tally


def _allowance(bound: Bound) -> Array:
    """What a bound allows by element: steps of OneStep, the floor of ULP; a scalar holds for all."""
    match bound:
        case OneStep(allowed):
            return allowed
        case Ulp(floor=floor):
            return np.asarray(floor, np.float64)
    return _NOTHING


def _wrong(bound: Bound, expected: Array, got: Array, exact: Array, allowed: Array) -> Array:
    """Element by element, whether the bound is broken. allowed: the `_allowance`, for these elements."""
    if isinstance(bound, OneStep):
        step: Array = np.abs(got.astype(np.int64) - expected.astype(np.int64))
        return step > allowed
    if isinstance(bound, Exact):
        return ~same(expected, got)
    with np.errstate(invalid="ignore", over="ignore"):
        far = ~(np.abs(got.astype(np.float64) - exact.astype(np.float64)) <= allowed)
    return far & (ulp_error(exact, got) > bound.bound) if far.any() else far


def _rule(bound: Bound, tally: _Tally) -> str:
    if isinstance(bound, Exact):
        return "must equal the truth exactly"
    if isinstance(bound, Ulp):
        return f"must be within {bound.bound:g} ULP of the truth ({bound.source})"
    near = "; it lies on no rounding boundary within float32 error" if tally.max_abs == 1 else ""
    return f"must be the exactly rounded value{near}"


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
    """Sorting an unordered selection, and saying why one is wrong, takes memory of the outputs' size."""
    forms = [_form(name, part, got.get(name)) for name, part in zip(truth.names, truth.accepted[0], strict=True)]
    if any(forms):
        return tuple(form for form in forms if form is not None)
    values, indices = (got[name] for name in truth.names)
    if any(_identical(v, values) and _identical(i, indices) for v, i in truth.accepted):
        return ()
    accepted = truth.accepted
    if not truth.ordered:
        values, indices = _by_index(values, indices, truth.axis)
        accepted = tuple(_by_index(*pair, truth.axis) for pair in accepted)
    nearest = min(accepted, key=lambda pair: _wrong_places(pair, (values, indices)))
    tallies = [
        _tally(Output(name, part), actual)
        for name, part, actual in zip(truth.names, nearest, (values, indices), strict=True)
    ]
    if not any(tallies):
        return ()
    reason = _why_not_selected(truth, values, indices, *nearest)
    return tuple(tally.difference(reason) for tally in tallies if tally is not None)


def _wrong_places(accepted: tuple[Array, Array], got: tuple[Array, Array]) -> int:
    """The number of places where the value, the index or both are wrong."""
    return sum(
        int(np.count_nonzero(~same(right_value, value) | (right_index != index)))
        for _, (right_value, right_index, value, index) in _blocks(*accepted, *got)
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


class _Tally:
    """The wrong elements of one output, gathered from block to block."""

    def __init__(self, name: str, expected: Array) -> None:
        self.name, self.dtype, self.shape, self.size = name, expected.dtype, expected.shape, expected.size
        self.wrong = 0
        self.max_ulp = self.max_abs = 0.0
        self.first: list[Mismatch] = []
        self.heat = _Heat(expected.shape)

    def add(self, start: int, wrong: Array, expected: Array, got: Array, exact: Array) -> None:
        """A block of the output, arrays [n], its first element at the flat index `start`. wrong: bool, one at least."""
        at = np.flatnonzero(wrong)
        expected, got, exact = expected[at], got[at], exact[at]
        ulp = ulp_error(exact, got) if _is_floating(self.dtype) else None
        if ulp is not None:
            self.max_ulp = max(self.max_ulp, float(ulp.max()))
        for i in range(min(at.size, FIRST - len(self.first))):
            self.first.append(
                Mismatch(
                    _index(start + int(at[i]), self.shape),
                    _text(expected[i], exact[i]),
                    _text(got[i]),
                    None if ulp is None else _finite(float(ulp[i])),
                )
            )
        self.wrong += at.size
        self.max_abs = float(np.maximum(self.max_abs, _largest_gap(expected, got)))  # NaN stays NaN
        self.heat.add(start + at)

    def difference(self, reason: str) -> Difference:
        are = "is" if self.size == 1 else "are"
        return Difference(
            self.name,
            self.dtype.name,
            self.shape,
            f"{self.wrong} of {self.size} elements {are} wrong; {reason}",
            self.wrong,
            self.size,
            _finite(self.max_ulp) if _is_floating(self.dtype) else None,
            _finite(self.max_abs),
            tuple(self.first),
            self.heat.shares(),
        )


def _largest_gap(expected: Array, got: Array) -> float:
    """The largest absolute difference; NaN where one has no meaning."""
    if expected.dtype.kind in "biu":  # 64 bits exceed float64
        unsigned = f"u{expected.itemsize}"
        return float((np.maximum(got, expected).view(unsigned) - np.minimum(got, expected).view(unsigned)).max())
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        return float(np.abs(got.astype(wide) - expected.astype(wide)).max())


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _text(value: object, exact: object | None = None) -> str:
    text = str(value)
    return text if exact is None or str(exact) == text else f"{text} (exactly {exact})"


class _Heat:
    """The share of wrong elements, 0 to 9, over the output as rows x last axis squeezed to HEAT_ROWS x HEAT_COLUMNS."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.length = shape[-1] if shape else 1
        self.rows = _edges(math.prod(shape[:-1]), HEAT_ROWS)
        self.columns = _edges(self.length, HEAT_COLUMNS)
        self.wrong = np.zeros((len(self.rows) - 1, len(self.columns) - 1), np.int64)

    def add(self, at: Array) -> None:
        """at: flat indices of wrong elements."""
        row, column = np.divmod(at, self.length)
        cell_row = np.searchsorted(self.rows, row, "right") - 1
        cell_column = np.searchsorted(self.columns, column, "right") - 1
        cell = cell_row * self.wrong.shape[1] + cell_column
        self.wrong += np.bincount(cell, minlength=self.wrong.size).reshape(self.wrong.shape)

    def shares(self) -> tuple[tuple[int, ...], ...]:
        """Rows of cells, rounded up so that one wrong element shows; none for a single element."""
        if self.rows[-1] * self.columns[-1] < 2:
            return ()
        sizes = np.multiply.outer(self.rows[1:] - self.rows[:-1], self.columns[1:] - self.columns[:-1])
        return tuple(tuple(row) for row in (-(-self.wrong * 9 // sizes)).tolist())


def _edges(size: int, most: int) -> Array:
    """Where each of at most `most` cells of nearly one size begins; `size` at the end."""
    cells = max(1, min(size, most))
    edges: Array = np.arange(cells + 1, dtype=np.int64) * size // cells
    return edges
