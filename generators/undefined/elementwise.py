"""Integers that are divided by zero, shifted by their width or overflow, and floats that no integer can hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.undefined.undefined_sample import Answer, Samples, UndefinedSample

SIGNED, UNSIGNED = ("int8", "int32", "int64"), ("uint8", "uint32", "uint64")

BY_ZERO = "an integer divided by 0: the page defines no result"
OVERFLOW = "the least integer divided by -1 has no result that fits the dtype"
NEGATED = "the opposite of the least integer does not fit the dtype"
SHIFTED = "a shift by the width of the dtype or more: the page defines none, and C leaves it undefined"
NEGATIVE_POWER = "an integer to a negative power is no integer, or is 1 / 0"
BEYOND = "Cast: a float out of the range of an integer, or NaN: undefined by the page's table"
NAN_LEVEL = "NaN has no quantised level: the page clamps and rounds numbers"


def samples() -> Samples:
    """In a stable order."""
    yield from _divisions()
    yield from _shifts()
    yield from _powers()
    yield from _casts()
    yield from _quantized()


def _binary(operator: str, name: str, why: str, pair: tuple[Array, Array], right: Array, bad: Array) -> UndefinedSample:
    return UndefinedSample(operator, name, pair[0].dtype.name, why, pair, (Answer(right, bad),))


def _divisions() -> Samples:
    for name in (*SIGNED, *UNSIGNED):
        dtype = np.dtype(name)
        a, b = (np.array(row, dtype) for row in ((7, 0, 9, 6, 1, 0, 8, 5), (0, 0, 3, 0, 1, 2, 0, 5)))
        bad = b == 0
        safe = np.where(bad, 1, b).astype(dtype)
        yield _binary("Div", "divisor_0", BY_ZERO, (a, b), a // safe, bad)
        yield _binary("Mod", "divisor_0", BY_ZERO, (a, b), a % safe, bad)
    for name in SIGNED:
        dtype = np.dtype(name)
        least = np.iinfo(dtype).min
        a, b = np.array([least, 6, least, 9], dtype), np.array([-1, 3, -1, -3], dtype)
        bad = a == least
        for operator, right in (("Div", [0, 2, 0, -3]), ("Mod", [0, 0, 0, 0])):
            yield _binary(operator, "least_by_minus_1", OVERFLOW, (a, b), np.array(right, dtype), bad)
        for operator, right in (("Neg", [0, -6, 0, -9]), ("Abs", [0, 6, 0, 9])):
            answer = Answer(np.array(right, dtype), bad)
            yield UndefinedSample(operator, "least_integer", name, NEGATED, (a,), (answer,))


def _shifts() -> Samples:
    for name in UNSIGNED:
        dtype = np.dtype(name)
        width = 8 * dtype.itemsize
        a = np.array([1, 3, 1, 200, 5, 7], dtype)
        b = np.array([width, 1, width + 1, 0, 2 * width, np.iinfo(dtype).max], dtype)
        bad = b >= width
        for direction, shifted in (("LEFT", np.left_shift), ("RIGHT", np.right_shift)):
            right = shifted(a, np.where(bad, 0, b).astype(dtype))
            yield UndefinedSample(
                "BitShift",
                f"by_the_width_{direction.lower()}",
                name,
                SHIFTED,
                (a, b),
                (Answer(right, bad),),
                {"direction": direction},
            )


def _powers() -> Samples:
    for name in ("int32", "int64"):
        a, b = np.array([0, 2, 3, -3], name), np.array([-1, -2, 2, -1], name)
        yield _binary("Pow", "negative_exponent", NEGATIVE_POWER, (a, b), np.array([0, 0, 9, 0], name), b < 0)


def _casts() -> Samples:
    values = (1.5, np.nan, np.inf, -np.inf, 3e38, -3e38, 100.0, -0.5)
    for name in ("int8", "uint8", "int32", "uint32", "int64", "uint64"):
        info = np.iinfo(name)
        x = np.array(values, np.float32)
        bad = ~((x >= 0 if info.min == 0 else x > -info.max) & (x < info.max)) & (x != np.float32(-0.5))
        right = np.where(bad, 0, np.trunc(x)).astype(name)
        code = _ONNX[name]
        yield UndefinedSample(
            "Cast", "beyond_the_integers", f"float32-{name}", BEYOND, (x,), (Answer(right, bad),), {"to": code}
        )


_ONNX = {"uint8": 2, "int8": 3, "int32": 6, "int64": 7, "uint32": 12, "uint64": 13}
"""Values of TensorProto.DataType."""


def _quantized() -> Samples:
    x = np.array([1.0, np.nan, -2.0, np.nan], np.float32)
    for name, zero in (("uint8", 128), ("int8", 0)):
        right = np.array([zero + 2, 0, zero - 4, 0], name)
        inputs: tuple[Any, ...] = (x, np.float32(0.5), np.array(zero, name))
        yield UndefinedSample(
            "QuantizeLinear",
            "nan",
            f"float32-{name}",
            NAN_LEVEL,
            tuple(np.asarray(i) for i in inputs),
            (Answer(right, np.isnan(x)),),
        )
    for case, bad in (("nan", np.nan), ("infinity", np.inf)):
        data = np.array([1.0, bad, -2.0], np.float32)
        answers = tuple(
            Answer(np.zeros(shape, name)) for name, shape in (("uint8", (3,)), ("float32", ()), ("uint8", ()))
        )
        yield UndefinedSample("DynamicQuantizeLinear", case, "float32", NAN_LEVEL, (data,), answers)
