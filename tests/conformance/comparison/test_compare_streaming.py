"""Large outputs: block by block the same is said as of the whole, in bounded memory; and the distance in ULP."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from epcheck.conformance.comparison import blocks, bounds, compare
from epcheck.conformance.comparison.exact import same
from epcheck.conformance.comparison.ulp import UlpDistance, ulp_distance, ulp_error
from epcheck.conformance.comparison.wrong_elements import FIRST
from epcheck.conformance.records.opinion import Difference, Mismatch
from epcheck.generators.array import Array
from epcheck.generators.citation import source_text, statement
from epcheck.generators.truth import Bound, Exact, OneStep, Output, Outputs, Selection, Ulp

NAN, INF = np.nan, np.inf
A_TEST = (statement("a test"),)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)]
ALL_FLOATS = [*FLOATS, BFLOAT16]
BLOCK = 32
SHAPES = [(), (1,), (BLOCK - 1,), (BLOCK,), (BLOCK + 1,), (2 * BLOCK,), (5 * BLOCK + 3,), (7, 5, 3), (3, 100), (100, 3)]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", BLOCK)


# The whole, computed plainly


def plainly(output: Output, got: Array) -> Difference | None:
    """What `differences` says of one output, with whole arrays and without a shortcut."""
    truth, bound = output.value, output.bound
    exact = truth if output.exact is None else output.exact
    with np.errstate(invalid="ignore", over="ignore"):
        if isinstance(bound, Exact):
            wrong = ~same(truth, got)
        elif isinstance(bound, Ulp):
            near = np.abs(got.astype(np.float64) - exact) <= bound.floor
            wrong = (ulp_error(exact, got) > bound.bound) & ~near
        else:
            wrong = np.abs(got.astype(np.int64) - truth.astype(np.int64)) > bound.allowed
        gaps = [
            abs(float(g) - float(t)) if truth.dtype.kind == "f" else abs(int(g) - int(t))
            for g, t in zip(got[wrong], truth[wrong], strict=True)
        ]
    if not wrong.any():
        return None
    ulp = ulp_error(exact, got) if truth.dtype.kind == "f" else None
    places = [tuple(int(i) for i in at) for at in np.argwhere(wrong)]
    return Difference(
        output.name,
        truth.dtype.name,
        truth.shape,
        f"{len(places)} of {truth.size} elements {'is' if truth.size == 1 else 'are'} wrong; each {rule(bound, gaps)}",
        len(places),
        truth.size,
        None if ulp is None else finite(float(ulp[wrong].max())),
        None if any(math.isnan(gap) for gap in gaps) else finite(float(max(gaps))),
        tuple(
            Mismatch(
                at,
                str(truth[at]) + ("" if str(truth[at]) == str(exact[at]) else f" (exactly {exact[at]!s})"),
                str(got[at]),
                None if ulp is None else finite(float(ulp[at])),
            )
            for at in places[:FIRST]
        ),
        heat(wrong),
    )


def rule(bound: Bound, gaps: list[float]) -> str:
    if isinstance(bound, Exact):
        return "must match exactly"
    if isinstance(bound, Ulp):
        return f"must be within {bound.bound:g} ULP ({source_text(bound.citations)})"
    near = "; it is off by one quantisation step, and not a rounding tie" if set(gaps) == {1} else ""
    return f"must be the exactly rounded value{near}"


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def heat(wrong: Array) -> tuple[tuple[int, ...], ...]:
    if wrong.size < 2:
        return ()
    grid = wrong.reshape(-1, wrong.shape[-1]) if wrong.ndim > 1 else wrong.reshape(1, -1)
    bands = [
        [slice(i * n // cells, (i + 1) * n // cells) for i in range(cells)]
        for n, cells in ((n, min(n, most)) for n, most in zip(grid.shape, (16, 48), strict=True))
    ]
    return tuple(tuple(math.ceil(9 * grid[r, c].sum() / grid[r, c].size) for c in bands[1]) for r in bands[0])


# Data


def floats(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Ordinary numbers, any bits, and what stands at the edges of the dtype."""
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    tiny, least, top = (float(v) for v in (info.tiny, info.smallest_subnormal, info.max))
    edges = [0.0, -0.0, NAN, INF, -INF, 1.0, -1.0, 4.0, tiny, -tiny, tiny - least, least, -least, top, -top]
    count = math.prod(shape)
    with np.errstate(over="ignore", invalid="ignore"):
        ordinary = rng.standard_normal(count).astype(dtype)
        edgy = rng.choice(np.array(edges), count).astype(dtype)
    bits = rng.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype)
    kinds = rng.integers(0, 8, count)
    chosen: Array = np.where(kinds == 0, edgy, np.where(kinds == 1, bits, ordinary)).astype(dtype).reshape(shape)
    return chosen


def nearby(x: Array, rng: np.random.Generator, share: float, steps: int) -> Array:
    """A share of the elements moved by a few representable values; sometimes with another sign or another value."""
    bits = x.reshape(-1).view(f"i{x.itemsize}").copy()
    moved = np.flatnonzero(rng.random(bits.size) < share)
    bits[moved] += rng.integers(-steps, steps + 1, moved.size).astype(bits.dtype)
    y = bits.view(x.dtype)
    flipped = moved[rng.random(moved.size) < 0.1]
    y[flipped] = -y[flipped]
    replaced = moved[rng.random(moved.size) < 0.05]
    y[replaced] = floats(replaced.shape, x.dtype, rng)
    return y.reshape(x.shape)


def off_by_some(x: Array, rng: np.random.Generator, share: float) -> Array:
    """A share of the integers (or bools) made others, at most 2 away."""
    moved = rng.random(x.shape) < share
    if x.dtype == np.bool_:
        return x ^ moved
    return np.where(moved, x + rng.integers(0, 3, x.shape).astype(x.dtype), x).astype(x.dtype)


def outputs(dtype: np.dtype[Any], rng: np.random.Generator) -> Iterator[tuple[Output, Array]]:
    """Outputs of every shape and bound that the dtype can have, each with what might have come instead."""
    for shape, share in itertools.product(SHAPES, (0.0, 0.02, 0.4, 1.0)):
        if dtype.kind != "f":
            low, high = (0, 1) if dtype == np.bool_ else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
            value = np.asarray(rng.integers(low, high, shape, np.uint8 if low == high - 1 else dtype, endpoint=True))
            value = value.astype(dtype)
            yield Output("y", value), off_by_some(value, rng, share)
            if dtype.itemsize == 1 and dtype != np.bool_:
                bound = OneStep(np.asarray(rng.random(shape) < 0.5))
                yield Output("y", value, bound, value + 0.25), off_by_some(value, rng, share)
            continue
        value = floats(shape, dtype, rng)
        yield Output("y", value), nearby(value, rng, share, 1)
        for bound in (Ulp(0.0, A_TEST), Ulp(1.0, A_TEST), Ulp(2.0, A_TEST), Ulp(9.0, A_TEST, floor=1e-5)):
            yield Output("y", value, bound), nearby(value, rng, share, 4)
        with np.errstate(over="ignore", invalid="ignore"):
            exact = np.asarray(value * (1 + rng.uniform(-0.9, 0.9, shape) * np.finfo(dtype).eps), np.float64)
            rounded = np.asarray(exact.astype(dtype))
        for bound in (Ulp(0.3, A_TEST), Ulp(0.7, A_TEST), Ulp(2.0, A_TEST, floor=1e-5)):
            yield Output("y", rounded, bound, exact), nearby(rounded, rng, share, 3)


# Blocks


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["float16", "float32", "float64", "int8", "uint8", "int64", "uint64", "bool"])
def test_block_by_block_the_same_is_said_as_of_the_whole(name: str) -> None:
    rng = np.random.default_rng(1)
    found = 0
    for output, got in outputs(np.dtype(name), rng):
        expected = plainly(output, got)
        assert compare.differences(Outputs((output,)), {"y": got}) == (() if expected is None else (expected,))
        assert compare.are_right(Outputs((output,)), {"y": got}) == (expected is None)
        found += expected is not None
    assert found > 10


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("layout", [np.asfortranarray, lambda x: np.repeat(x, 2, -1)[..., ::2], lambda x: x[::-1]])
def test_layouts_differ_in_nothing(layout: Callable[[Array], Array]) -> None:
    rng = np.random.default_rng(2)
    x = floats((17, 23), np.dtype(np.float32), rng)
    y = nearby(x, rng, 0.1, 3)
    expected, actual = layout(x), layout(y)
    assert not expected.flags.c_contiguous
    contiguous = np.ascontiguousarray(expected), np.ascontiguousarray(actual)
    assert ulp_distance(expected, actual) == ulp_distance(*contiguous)
    for bound in (Exact(), Ulp(1.0, A_TEST)):
        (found,) = compare.differences(Outputs((Output("y", expected, bound),)), {"y": actual})
        assert found == plainly(Output("y", contiguous[0], bound), contiguous[1])


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("at", [0, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK])
def test_one_wrong_element_is_found_wherever_it_stands(at: int) -> None:
    x = np.arange(3 * BLOCK + 1, dtype=np.float32)
    y = x.copy()
    y[at] += 0.5
    (found,) = compare.differences(Outputs((Output("y", x),)), {"y": y})
    assert (found.wrong, found.max_abs, [wrong.at for wrong in found.first]) == (1, 0.5, [(at,)])
    assert [cell for cell, share in enumerate(found.heat[0]) if share] == [((at + 1) * 48 - 1) // x.size]


@pytest.mark.usefixtures("small_blocks")
def test_a_selection_in_blocks() -> None:
    data = np.arange(4 * BLOCK, dtype=np.float32)[np.newaxis]
    last = 3 * BLOCK + 5
    order = np.arange(last)[np.newaxis]
    near, far = (data[:, :last].copy(), order.copy()), (data[:, 1 : last + 1].copy(), order + 1)
    truth = Selection(data, 1, (far, near), True, ("chosen", "places"))
    assert compare.differences(truth, {"chosen": near[0].copy(), "places": near[1].copy()}) == ()
    values, indices = near[0].copy(), near[1].copy()
    values[0, [3, BLOCK + 1, last - 1]] += 0.5
    indices[0, BLOCK + 2] += 1
    chosen, places = compare.differences(truth, {"chosen": values, "places": indices})
    assert (chosen.output, chosen.wrong, [wrong.at[1] for wrong in chosen.first]) == (
        "chosen", 3, [3, BLOCK + 1, last - 1],
    )  # fmt: skip
    assert (places.output, places.wrong, places.first[0].at) == ("places", 1, (0, BLOCK + 2))
    assert chosen.reason == f"3 of {last} elements are wrong; a value differs from the element at its index"


def test_a_wrong_index_counts_as_much_as_a_wrong_value() -> None:
    data = np.float32([[1, 2, 3, 4, 5]])
    values = np.float32([[3, 2, 1]])
    one_value_off, two_indices_off = (np.float32([[9, 2, 1]]), np.array([[2, 1, 0]])), (values, np.array([[2, 0, 1]]))
    truth = Selection(data, 1, (two_indices_off, one_value_off), True, ("v", "i"))
    found = compare.differences(truth, {"v": values, "i": np.array([[2, 1, 0]])})
    assert [(difference.output, difference.wrong) for difference in found] == [("v", 1)]


def test_the_truth_itself_may_be_beyond_its_bound() -> None:
    """It was rounded; equal bits are no proof then."""
    exact = np.array([1.0 + 0.4 * 2.0**-23])
    output = Output("y", np.float32([1.0]), Ulp(0.3, A_TEST), exact)
    (found,) = compare.differences(Outputs((output,)), {"y": np.float32([1.0])})
    assert found.max_ulp == pytest.approx(0.4)


def test_two_steps_past_a_power_of_two_are_three_ulp_of_the_number_before_it() -> None:
    below = np.nextafter(np.float32([4]), np.float32(0))
    above = np.nextafter(np.float32([4]), np.float32(5))
    assert ulp_distance(below, above).max == 2.0
    (found,) = compare.differences(Outputs((Output("y", below, Ulp(2.0, A_TEST)),)), {"y": above})
    assert found.max_ulp == 3.0
    assert compare.differences(Outputs((Output("y", below, Ulp(3.0, A_TEST)),)), {"y": above}) == ()


def test_steps_over_several_binades_are_more_ulp_than_twice_their_number() -> None:
    start, eight = np.float16([1]), np.float16([8])
    assert ulp_distance(start, eight).max == 3 * 2**10
    (found,) = compare.differences(Outputs((Output("y", start, Ulp(6 * 2**10 + 100, A_TEST)),)), {"y": eight})
    assert found.max_ulp == 7 * 2**10


def test_an_exact_truth_needs_no_float64_where_the_steps_settle_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(bounds, "ulp_error")
    x = np.float32([[1, NAN, -0.0], [INF, 1e-40, 7]])
    y = (x.view(np.int32) + np.int32([[3, 1, 0], [0, -5, -4]])).view(np.float32)
    assert compare.differences(Outputs((Output("y", x, Ulp(9.0, A_TEST)),)), {"y": y}) == ()


def test_empty_outputs_are_right_within_any_bound() -> None:
    empty = np.empty((3, 0, 2), np.float32)
    for bound, exact in itertools.product((Exact(), Ulp(0.1, A_TEST), Ulp(2.0, A_TEST)), (None, empty.astype("f8"))):
        assert compare.differences(Outputs((Output("y", empty, bound, exact),)), {"y": empty.copy()}) == ()


def test_steps_that_settle_a_bound_are_within_it() -> None:
    rng = np.random.default_rng(3)
    for dtype in FLOATS:
        x = floats((4000,), dtype, rng)
        y = nearby(x, rng, 1.0, 40)
        errors = ulp_error(x, y)
        for a, b, error in zip(x, y, errors, strict=True):
            steps = ulp_distance(a.reshape(1), b.reshape(1)).max
            if steps <= 2 ** np.finfo(dtype).nmant:
                assert error <= max(0, 2 * steps - 1)


def test_signalling_nan_is_any_nan() -> None:
    signalling = np.array([0x7F800001, 0x3F800000], np.uint32).view(np.float32)
    truth = np.float32([NAN, 1.0])
    assert ulp_distance(truth, signalling).max == 0.0
    for bound in (Exact(), Ulp(0.0, A_TEST), Ulp(1.0, A_TEST)):
        assert compare.differences(Outputs((Output("y", truth, bound),)), {"y": signalling}) == ()
        (found,) = compare.differences(Outputs((Output("y", np.float32([1.0, 1.0]), bound),)), {"y": signalling})
        assert found.wrong == 1


def test_bfloat16_is_a_floating_dtype() -> None:
    x, y = (np.array(v, BFLOAT16) for v in ([NAN, 0.0, 4.0, INF], [-NAN, -0.0, 3.984375, INF]))
    (found,) = compare.differences(Outputs((Output("y", x),)), {"y": y})
    assert [(wrong.at, wrong.ulp) for wrong in found.first] == [((1,), 0.0), ((2,), 0.5)]
    assert compare.differences(Outputs((Output("y", x, Ulp(0.5, A_TEST)),)), {"y": y}) == ()
    (found,) = compare.differences(Outputs((Output("y", x, Ulp(0.25, A_TEST)),)), {"y": y})
    assert (found.wrong, found.max_ulp, found.max_abs) == (1, 0.5, 2.0**-6)


# Memory


def peak(call: Callable[[], object]) -> int:
    """Bytes that a call has allocated at its peak."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


MANY = 10**7
A_FEW_BLOCKS = 24 * blocks.BLOCK * 8
assert A_FEW_BLOCKS < MANY  # bytes: less than a mask of the output


@pytest.mark.slow
@pytest.mark.parametrize("bound", [Exact(), Ulp(2.0, A_TEST), Ulp(0.7, A_TEST)], ids=["exact", "ulp", "rounded"])
def test_memory_does_not_grow_with_floating_outputs(bound: Bound) -> None:
    x = np.linspace(1, 2, MANY, dtype=np.float32)
    y = x.copy()
    y[::1000] += np.float32(1e-5)
    exact = x.astype(np.float64) if bound == Ulp(0.7, A_TEST) else None
    truth = Outputs((Output("y", x, bound, exact),))
    assert peak(lambda: compare.differences(truth, {"y": x.copy()[:]})) - x.nbytes < A_FEW_BLOCKS
    assert peak(lambda: compare.differences(truth, {"y": y})) < A_FEW_BLOCKS


def test_memory_does_not_grow_with_quantised_outputs() -> None:
    x = np.arange(MANY).astype(np.uint8)
    y = x.copy()
    y[::1000] += 1
    truth = Outputs((Output("y", x, OneStep(np.zeros(MANY, bool))),))
    assert peak(lambda: compare.differences(truth, {"y": y})) < A_FEW_BLOCKS


def test_memory_does_not_grow_with_selections() -> None:
    values, indices = np.linspace(1, 2, MANY, dtype=np.float32), np.arange(MANY)
    truth = Selection(values, 0, ((values, indices),), True, ("v", "i"))
    got = {"v": values.copy(), "i": indices.copy()}
    assert peak(lambda: compare.differences(truth, got)) < A_FEW_BLOCKS


def test_memory_of_the_distance_does_not_grow() -> None:
    x = np.linspace(1, 2, MANY, dtype=np.float32)
    y = x[::-1].copy()
    assert peak(lambda: ulp_distance(x, y)) < A_FEW_BLOCKS
    assert peak(lambda: ulp_distance(x[::-2], y[::2])) < A_FEW_BLOCKS


# The distance


def apart(start: float, end: float, dtype: np.dtype[Any]) -> float:
    return ulp_distance(np.array([start], dtype), np.array([end], dtype)).max


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BFLOAT16], ids=str)
def test_the_distance_is_the_number_of_steps_along_all_numbers_of_the_dtype(dtype: np.dtype[Any]) -> None:
    """Every number there is, in order of its value; where each stands is counted and not computed."""
    with np.errstate(invalid="ignore"):
        every = np.arange(2**16, dtype=np.uint32).astype(np.uint16).view(dtype).astype(np.float64)
    line = np.unique(every[np.isfinite(every)])
    assert line.size == np.isfinite(every).sum() - 1  # both zeros are one
    rng = np.random.default_rng(4)
    start, end = rng.integers(0, line.size, (2, 20000))
    for pair in zip(np.split(start, 100), np.split(end, 100), strict=True):
        found = ulp_distance(*(line[i].astype(dtype) for i in pair))
        steps = np.abs(pair[0] - pair[1])
        assert (found.max, found.at) == (steps.max(), (steps.argmax(),))
        assert found.mean == pytest.approx(steps.mean())
    for i in (0, 1, line.size // 2, line.size - 2):
        assert apart(line[i], line[i + 1], dtype) == 1.0


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("start", [0.0, -0.0, 1.0, 2.0, -4.0, 1e-5, -3.0, "tiny", "-tiny", "least", "-least", "top"])
@pytest.mark.parametrize("towards", [-INF, INF])
def test_each_next_number_is_one_more_away(dtype: np.dtype[Any], start: float | str, towards: float) -> None:
    info = np.finfo(dtype)
    edges = {"tiny": info.tiny, "-tiny": -info.tiny, "least": info.smallest_subnormal, "top": info.max}
    edges["-least"] = -edges["least"]
    first = at = np.array([edges[start] if isinstance(start, str) else start], dtype)
    for steps in range(1, 6):
        with np.errstate(over="ignore"):
            at = np.nextafter(at, dtype.type(towards))
        distance = steps if np.isfinite(at[0]) else INF
        assert (ulp_distance(first, at).max, ulp_distance(at, first).max) == (distance, distance)


@pytest.mark.parametrize("dtype", ALL_FLOATS, ids=str)
def test_distances_across_binades_and_across_zero(dtype: np.dtype[Any]) -> None:
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    binade, least, tiny, top = 2.0**info.nmant, float(info.smallest_subnormal), float(info.tiny), float(info.max)
    below_one = 1 - info.minexp  # binades of numbers between the least normal one and 1, and that of the denormals
    assert apart(1.0, 2.0, dtype) == binade
    assert apart(1.0, 8.0, dtype) == 3 * binade
    assert apart(0.0, tiny, dtype) == binade
    assert apart(-least, least, dtype) == 2.0
    assert apart(tiny, -tiny, dtype) == 2 * binade
    assert apart(-1.0, 1.0, dtype) == 2 * below_one * binade
    assert apart(-top, top, dtype) == float(2 * int(np.array(top, dtype).view(f"u{dtype.itemsize}")))


@pytest.mark.parametrize("dtype", ALL_FLOATS, ids=str)
@pytest.mark.parametrize(
    ("start", "end", "distance"),
    [
        (0.0, -0.0, 0.0),
        (NAN, NAN, 0.0),
        (-NAN, NAN, 0.0),
        (INF, INF, 0.0),
        (-INF, -INF, 0.0),
        (INF, -INF, INF),
        (INF, "top", INF),
        (-INF, 1.0, INF),
        (NAN, 1.0, INF),
        (NAN, -0.0, INF),
        (NAN, INF, INF),
        (-NAN, INF, INF),
    ],
)
def test_zeros_infinities_and_nan_are_apart_as_in_ulp_error(
    dtype: np.dtype[Any], start: float, end: float | str, distance: float
) -> None:
    top = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
    y = top if isinstance(end, str) else end
    assert (apart(start, y, dtype), apart(y, start, dtype)) == (distance, distance)
    assert ulp_error(np.array([start]), np.array([y], dtype))[0] == distance


@pytest.mark.parametrize("dtype", ALL_FLOATS, ids=str)
def test_within_a_binade_the_distance_is_the_error_in_ulp(dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(5)
    x, y = (rng.uniform(1, 1.99, 5000).astype(dtype) for _ in range(2))
    errors = ulp_error(x.astype(np.float64), y)
    found = ulp_distance(x, y)
    assert (found.max, found.differing) == (errors.max(), np.count_nonzero(errors))
    assert found.mean == pytest.approx(errors.mean())


@pytest.mark.usefixtures("small_blocks")
def test_what_a_distance_sums_up_over_blocks() -> None:
    x = np.ones((5, 2 * BLOCK), np.float32)
    y = x.copy()
    y[0, 1] += np.float32(2.0**-23)
    y[1, BLOCK + 3] += np.float32(6 * 2.0**-23)
    y[4, 7] += np.float32(6 * 2.0**-23)
    assert ulp_distance(x, y) == UlpDistance(10 * BLOCK, 3, 6.0, 13 / (10 * BLOCK), (1, BLOCK + 3))
    y[3, 3], y[2, 2] = NAN, INF
    assert ulp_distance(x, y) == UlpDistance(10 * BLOCK, 5, INF, INF, (2, 2))


def test_nothing_differs_in_equal_and_in_empty_arrays() -> None:
    x = np.float32([[1, NAN], [-0.0, INF]])
    assert ulp_distance(x, x.copy()) == UlpDistance(4, 0, 0.0, 0.0, None)
    empty = np.empty((3, 0), np.float16)
    assert ulp_distance(empty, empty) == UlpDistance(0, 0, 0.0, 0.0, None)
    assert ulp_distance(np.array(1.0), np.array(2.0)) == UlpDistance(1, 1, 2.0**52, 2.0**52, ())


def test_the_mean_does_not_overflow() -> None:
    for dtype in ALL_FLOATS:
        top = ml_dtypes.finfo(dtype).max  # type: ignore[no-untyped-call]
        x = np.full(100_000, top, dtype)
        found = ulp_distance(x, -x)
        assert found.mean == pytest.approx(found.max, rel=1e-12)


def test_either_byte_order_and_unaligned_memory() -> None:
    x, y = np.float32([1, -2, 3]), np.float32([1, -2, 3.0000005])
    assert ulp_distance(x.astype(">f4"), y.astype(">f4")) == ulp_distance(x, y)
    unaligned = np.frombuffer(b"\0" + y.tobytes(), np.uint8)[1:].view(np.float32)
    assert not unaligned.flags.aligned
    assert ulp_distance(x, unaligned) == ulp_distance(x, y)


def test_what_has_no_distance() -> None:
    start = np.ones(3, np.float32)
    with pytest.raises(TypeError, match="ULP between float32 and float64 are not defined"):
        ulp_distance(start, np.ones(3))
    with pytest.raises(TypeError, match="floating-point numbers of 16, 32 or 64 bits, not for int32"):
        ulp_distance(np.ones(3, np.int32), np.ones(3, np.int32))
    with pytest.raises(ValueError, match=r"the shape is \[1, 3\], must be \[3\]"):
        ulp_distance(start, start[np.newaxis])
