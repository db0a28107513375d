"""The wrong elements of an output, gathered from block to block, and what is said of them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from epcheck.conformance.comparison import blocks, zero_signs
from epcheck.conformance.comparison.bounds import allowance, breaks, is_surely_right
from epcheck.conformance.comparison.heat_map import HeatMap
from epcheck.conformance.comparison.ulp import is_floating, ulp_error
from epcheck.conformance.records.opinion import Difference, Mismatch
from epcheck.generators.array import Array
from epcheck.generators.truth import Output

FIRST = 8
"""How many wrong elements a difference lists."""

_NONE = np.zeros((), np.bool_)


def find_wrong_elements(expected: Output, got: Array) -> WrongElements | None:
    """The elements of an output that break its bound, and zeros of a wrong sign; None when there are none."""
    found = None
    for start, wrong, far, (values, actual, exactly) in _read_wrong_blocks(expected, got):
        found = found or WrongElements(expected.name, expected.value)
        found.add(start, wrong, values, actual, exactly)
        found.far += int(np.count_nonzero(far))
    return found


def has_wrong_elements(expected: Output, got: Array) -> bool:
    """Whether `find_wrong_elements` finds any: the first block with one is the last that is read."""
    return any(True for _ in _read_wrong_blocks(expected, got))


def _read_wrong_blocks(expected: Output, got: Array) -> Iterator[tuple[int, Array, Array, tuple[Array, Array, Array]]]:
    """Of each block with wrong elements: its start, which elements are wrong and which of these break the bound, and
    its part of the truth, of the output and of the exact truth."""
    truth, bound = expected.value, expected.bound
    exact = truth if expected.exact is None else expected.exact
    arrays = (truth, got, exact, allowance(bound), zero_signs.find_defined_signs(expected))
    for start, (values, actual, exactly, allowed, signed) in blocks.read(*arrays):
        block = Output(expected.name, values, bound, None if expected.exact is None else exactly)
        far = _NONE if is_surely_right(block, actual) else breaks(bound, values, actual, exactly, allowed)
        wrong = far if expected.zeros is None else far | zero_signs.wrong(values, actual, signed)
        if wrong.any():
            yield start, wrong, far, (values, actual, exactly)


class WrongElements:
    """The wrong elements of one output, gathered from block to block. far: how many of them break the bound."""

    def __init__(self, name: str, expected: Array) -> None:
        self.name, self.dtype, self.shape, self.size = name, expected.dtype, expected.shape, expected.size
        self.wrong = self.far = 0
        self.max_ulp = self.max_abs = 0.0
        self.first: list[Mismatch] = []
        self.heat = HeatMap(expected.shape)

    def add(self, start: int, wrong: Array, expected: Array, got: Array, exact: Array) -> None:
        """A block of the output, arrays [n], its first element at the flat index `start`. wrong: bool, one at least."""
        at = np.flatnonzero(wrong)
        expected, got, exact = expected[at], got[at], exact[at]
        ulp = ulp_error(exact, got) if is_floating(self.dtype) else None
        if ulp is not None:
            self.max_ulp = max(self.max_ulp, float(ulp.max()))
        for i in range(min(at.size, FIRST - len(self.first))):
            self.first.append(
                Mismatch(
                    blocks.index(start + int(at[i]), self.shape),
                    _text(expected[i], exact[i]),
                    _text(got[i]),
                    None if ulp is None else _finite(float(ulp[i])),
                )
            )
        self.wrong += at.size
        self.max_abs = float(np.maximum(self.max_abs, _largest_gap(expected, got)))  # NaN stays NaN
        self.heat.add(start + at)

    def difference(self, reason: str) -> Difference:
        """What a record keeps of them. reason: the rule that they break, in words."""
        are = "is" if self.size == 1 else "are"
        return Difference(
            self.name,
            self.dtype.name,
            self.shape,
            f"{self.wrong} of {self.size} elements {are} wrong; {reason}",
            self.wrong,
            self.size,
            _finite(self.max_ulp) if is_floating(self.dtype) else None,
            _finite(self.max_abs),
            tuple(self.first),
            self.heat.shares(),
        )


def form_difference(name: str, expected: Array, got: Array | None) -> Difference | None:
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
