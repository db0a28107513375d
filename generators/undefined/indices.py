"""Indices that the page forbids or does not order, lengths beyond the data, positions that are no numbers, and
reductions of nothing that have no identity."""

from __future__ import annotations

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.undefined.undefined_sample import Answer, Samples, UndefinedSample

TWICE = "one element is written twice without a reduction: the page leaves open which update stays"
UNPOOLED = "an index of MaxUnpool beyond its output, or twice the same: the page defines none"
LENGTH = "a length beyond the time steps: the page says that lengths lie between 0 and the number of steps"
NOWHERE = "a position that is NaN, infinite or beyond all integers: the page computes an element's index of it"
BATCH = "a region of a batch that the data does not have"
POSITION = "a position beyond the cosines that are given"
NO_IDENTITY = "an extremum, an index or a mean of no elements"

FLOATS = ("float32", "float16")
STRANGE = (np.nan, np.inf, -np.inf, 1e30, -1e30, 3e9, -3e9, 65504.0)


def samples() -> Samples:
    """In a stable order."""
    yield from _scattered()
    yield from _unpooled()
    yield from _lengths()
    yield from _positions()
    yield from _empty()


def _ramp(shape: tuple[int, ...], dtype: str, start: float = 1.0) -> Array:
    """Values that no other operand of the node has, none of them 0."""
    return (start + np.arange(int(np.prod(shape)))).reshape(shape).astype(dtype)


def _scattered() -> Samples:
    for dtype in (*FLOATS, "int32"):
        data, updates = _ramp((3, 4), dtype), _ramp((2, 4), dtype, 51)
        indices = np.array([[0, 1, 2, 0], [0, 2, 2, 1]], np.int64)
        right, bad = data.copy(), np.zeros(data.shape, bool)
        for column in range(4):
            for row in range(2):
                right[indices[row, column], column] = updates[row, column]
            same = indices[0, column] == indices[1, column]
            bad[indices[0, column], column] = same
        for operator in ("ScatterElements", "Scatter"):
            yield UndefinedSample(
                operator, "index_twice", dtype, TWICE, (data, indices, updates), (Answer(right, bad, moved=True),)
            )
        rows = np.array([[1], [1]], np.int64)
        right, bad = data.copy(), np.zeros(data.shape, bool)
        right[1], bad[1] = updates[1], True
        yield UndefinedSample(
            "ScatterND", "index_twice", dtype, TWICE, (data, rows, updates), (Answer(right, bad, moved=True),)
        )


def _unpooled() -> Samples:
    for dtype in FLOATS:
        x = _ramp((1, 1, 2, 2), dtype)
        for name, index, places in (
            ("index_twice", (5, 5, 7, 0), (5,)),
            ("index_beyond_the_output", (5, 16, 7, 0), ()),
            ("index_far_beyond_the_output", (5, 2**40, 7, 0), ()),
            ("index_below_0", (5, -1, 7, 0), ()),
        ):
            right, bad = np.zeros((1, 1, 4, 4), dtype), np.zeros(16, bool)
            for place, value in zip(index, x.reshape(-1), strict=True):
                if 0 <= place < 16:
                    right.reshape(-1)[place] = value
            bad[list(places)] = True
            answer = Answer(right, bad.reshape(right.shape), moved=True)
            inputs = (x, np.array(index, np.int64).reshape(x.shape))
            yield UndefinedSample(
                "MaxUnpool",
                name,
                dtype,
                UNPOOLED,
                inputs,
                (answer,),
                {"kernel_shape": (2, 2), "strides": (2, 2)},
            )


def _lengths() -> Samples:
    data = _ramp((3, 2), "float32")
    for name, lengths in (
        ("length_beyond_the_steps", (5, 2)),
        ("length_below_0", (-1, 2)),
        ("length_2_to_40", (2**40, 2)),
    ):
        right = data.copy()
        right[:2, 1] = data[1::-1, 1]
        bad = np.array([[True, False]] * 3)
        yield UndefinedSample(
            "ReverseSequence",
            name,
            "float32",
            LENGTH,
            (data, np.array(lengths, np.int64)),
            (Answer(right, bad, moved=True),),
        )
    for operator, gates, outputs in (("RNN", 1, 2), ("GRU", 3, 2), ("LSTM", 4, 3)):
        x, w, r = (np.full(shape, 0.25, np.float32) for shape in ((2, 1, 3), (1, gates * 2, 3), (1, gates * 2, 2)))
        answers = [Answer(np.zeros((2, 1, 1, 2), np.float32))] + [Answer(np.zeros((1, 1, 2), np.float32))] * (
            outputs - 1
        )
        for name, length in (("length_beyond_the_steps", 5), ("length_below_0", -1)):
            inputs = (x, w, r, None, np.array([length], np.int32))
            yield UndefinedSample(operator, name, "float32", LENGTH, inputs, tuple(answers), {"hidden_size": 2})


def _positions() -> Samples:
    for dtype in FLOATS:
        with np.errstate(over="ignore"):
            strange = np.array(STRANGE).astype(dtype)
        image = _ramp((1, 1, 3, 3), dtype)
        grid = np.zeros((1, 2, 4, 2), dtype)
        grid[..., 0] = strange.reshape(1, 2, 4)
        nowhere = Answer(np.zeros((1, 1, 2, 4), dtype))
        for mode in ("zeros", "border", "reflection"):
            yield UndefinedSample(
                "GridSample",
                f"position_nowhere_{mode}",
                f"{dtype}-{dtype}",
                NOWHERE,
                (image, grid),
                (nowhere,),
                {"padding_mode": mode},
            )
        yield from _regions(dtype, image)
        offset = np.zeros((1, 8, 2, 2), dtype)
        offset.reshape(-1)[:8] = strange
        yield UndefinedSample(
            "DeformConv",
            "offset_nowhere",
            dtype,
            NOWHERE,
            (image, np.ones((1, 1, 2, 2), dtype), offset),
            (Answer(np.zeros((1, 1, 2, 2), dtype)),),
        )
        x, cache = _ramp((1, 1, 2, 4), dtype), np.ones((3, 2), dtype)
        for name, position in (
            ("position_beyond_the_cosines", 3),
            ("position_far_beyond", 2**40),
            ("position_below_0", -1),
        ):
            positions = np.array([[0, position]], np.int64)
            for operator, inputs in (
                ("com.microsoft::RotaryEmbedding", (x, positions, cache, cache)),
                ("RotaryEmbedding", (x, cache, cache, positions)),
            ):
                answer = Answer(np.zeros(x.shape, dtype))
                yield UndefinedSample(operator, name, dtype, POSITION, inputs, (answer,))


def _regions(dtype: str, image: Array) -> Samples:
    """A number of samples that the page computes of an infinite region comes last: some never end."""
    ordinary = np.array([[0, 0, 2, 2]] * 4, dtype)
    pooled, first = Answer(np.zeros((4, 1, 1, 1), dtype)), np.zeros(4, np.int64)
    batches = np.array([0, 1, -1, 2**40], np.int64)
    yield UndefinedSample("RoiAlign", "batch_beyond_the_data", dtype, BATCH, (image, ordinary, batches), (pooled,))
    with np.errstate(over="ignore"):
        strange = np.array(STRANGE[:4]).astype(dtype)
    nan, infinite = ordinary.copy(), ordinary.copy()
    nan[:, 0], infinite[:, 0] = np.nan, strange
    yield UndefinedSample("RoiAlign", "region_nan", dtype, NOWHERE, (image, nan, first), (pooled,))
    two = {"sampling_ratio": 2}
    yield UndefinedSample(
        "RoiAlign", "region_infinite_two_samples", dtype, NOWHERE, (image, infinite, first), (pooled,), two
    )
    if dtype == "float32":
        yield UndefinedSample("RoiAlign", "region_infinite", dtype, NOWHERE, (image, infinite, first), (pooled,))


def _empty() -> Samples:
    data, axes = np.zeros((2, 0, 3), np.float32), np.array([1], np.int64)
    kept = (2, 1, 3)
    yield UndefinedSample(
        "ReduceMean", "of_nothing", "float32", NO_IDENTITY, (data, axes), (Answer(np.zeros(kept, np.float32)),)
    )
    for operator, dtype in (("ReduceMax", "float32"), ("ReduceMin", "float32")):
        answer = Answer(np.zeros(kept, dtype))
        yield UndefinedSample(
            operator, "of_nothing", dtype, NO_IDENTITY, (data.astype(dtype),), (answer,), {"axes": (1,)}, version=13
        )
    for operator in ("ArgMax", "ArgMin"):
        yield UndefinedSample(
            operator, "of_nothing", "float32", NO_IDENTITY, (data,), (Answer(np.zeros(kept, np.int64)),), {"axis": 1}
        )
