"""Conjunctions: what they are made of, and their truth against values by other means: plain Python, numpy, by hand."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.declaration.interaction import Arange, Literal, Random, int64s, make_input
from epcheck.generators.sources import interactions
from epcheck.generators.truth import Outputs, Refusal
from tests.generators.built_suite import cases_by_operator

ALL = {case.id: case for own in cases_by_operator(interactions).values() for case in own}


def built(operator: str, name: str, dtype: str = "float32") -> BuiltCase:
    (found,) = (
        case
        for case in ALL.values()
        if (case.operator, case.sample, case.dtype) == (operator, f"conjunction_{name}", dtype)
    )
    return found.build()


def values(operator: str, name: str, dtype: str = "float32") -> tuple[list[Array], Array]:
    """Its inputs, and the first of its true outputs."""
    case = built(operator, name, dtype)
    assert isinstance(case.truth, Outputs)
    return [each.value for each in case.node.inputs if each is not None], case.truth.outputs[0].value


@pytest.mark.parametrize(
    ("source", "dtype", "expected"),
    [
        (Arange((2, 2), 3), "float32", np.array([[3, 4], [5, 6]], np.float32)),
        (Literal([1, 2]), "int32", np.array([1, 2], np.int32)),
        (Literal(True, "bool"), "float32", np.array(True)),
        (Literal([1, 2, 3, 4], "int64", (2, 2)), "float32", np.int64([[1, 2], [3, 4]])),
        (int64s(), "float32", np.zeros(0, np.int64)),
    ],
)
def test_an_input_is_made_as_it_is_written(source: Arange | Literal, dtype: str, expected: Array) -> None:
    found = make_input(source, dtype, np.random.default_rng(0))
    assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())


def test_drawn_numbers_are_within_their_limits() -> None:
    floats = make_input(Random((99,), 0, 0.5), "float16", np.random.default_rng(0))
    whole = make_input(Random((99,), 0, 2, "uint8"), "float32", np.random.default_rng(0))
    assert (floats.dtype, floats.min() >= 0, floats.max() <= 0.5) == (np.float16, True, True)
    assert (whole.dtype, set(whole.tolist())) == (np.uint8, {0, 1, 2})


def test_each_is_a_valid_node_of_a_name_of_its_own_and_goes_to_other_processes() -> None:
    assert len(ALL) == sum(len(operator.interactions) for operator in registry.all_operators().values()) > 100
    assert [name for name, case in ALL.items() if isinstance(case.build().truth, Refusal)] == []
    assert {case.kind for case in ALL.values()} == set(interactions.KINDS) == {"conjunction"}
    case = next(iter(ALL.values()))
    assert pickle.loads(pickle.dumps(case)).id == case.id


def test_unsorted_axes_have_their_own_starts_and_steps() -> None:
    (x, *_), y = values("Slice", "three_axes_unsorted_with_steps")
    assert np.array_equal(y, x[0:6:3, :, 0:6:2])


@pytest.mark.parametrize(
    ("operator", "name", "dtype", "expected"),
    [
        ("ReduceSum", "beyond_float64", "int64", 2**53 + 1),
        ("ReduceSum", "beyond_int32", "int64", 2**32 + 3),
        ("ReduceSum", "beyond_31_bits", "uint32", 2**31 + 5),
        ("ReduceSum", "many_beyond_float64", "int64", 4097 * (2**41 + 1)),
        ("ReduceSumSquare", "beyond_float64", "int64", 94906267**2),
        ("ReduceMax", "greatest_at_the_end_of_1025", "float32", 1024),
        ("ReduceMin", "least_at_the_end_of_1025", "float32", -1024),
        ("MatMul", "product_beyond_32_bits", "int64", 2**40 + 1),
        ("MatMul", "dot_of_512_ones", "float16", 512),
        ("Einsum", "sum_beyond_float64", "int64", 2**53 + 1),
    ],
)
def test_numbers_that_only_their_own_width_holds(operator: str, name: str, dtype: str, expected: int) -> None:
    assert [int(number) for number in values(operator, name, dtype)[1].ravel()] == [expected]


def test_a_row_of_infinities_alone_has_one_for_its_extreme() -> None:
    assert values("ReduceMax", "infinite_row", "float16")[1].tolist() == [[-math.inf], [3]]
    assert values("ReduceMin", "infinite_row", "float64")[1].tolist() == [[math.inf], [1]]


def test_minus_infinity_has_no_share() -> None:
    _, y = values("Softmax", "first_vector_of_minus_infinity")
    assert np.allclose(y, [[0, 0, 0, 0, 1 / (1 + math.e), math.e / (1 + math.e)]])


def test_indices_of_less_than_the_data() -> None:
    (data, indices), y = values("GatherElements", "fewer_indices_beside_the_axis_of_rank_3")
    assert [y[at] for at in np.ndindex(y.shape)] == [data[indices[at], at[1], at[2]] for at in np.ndindex(y.shape)]


def test_a_clip_holds_with_other_activations() -> None:
    (x, w, r), y = values("RNN", "clip_and_relu")
    state = np.zeros((2, 4))
    for step, inputs in enumerate(x):
        state = np.maximum(np.clip(inputs @ w[0].T + state @ r[0].T, -0.5, 0.5), 0)
        assert np.allclose(y[step, 0], state, atol=1e-6)


def test_equal_values_come_with_the_lower_index() -> None:
    case = built("TopK", "one_of_two_greatest")
    assert case.model
    assert [output.tolist() for output in suite_answer(case)] == [[5.0], [1]]


def suite_answer(case: BuiltCase) -> tuple[Array, ...]:
    """What a Selection prefers, or the true outputs."""
    truth = case.truth
    if isinstance(truth, Outputs):
        return tuple(output.value for output in truth.outputs)
    return tuple(truth.accepted[0])  # type: ignore[union-attr]


def test_a_group_with_dilations_in_one_dimension() -> None:
    (x, w, b), y = values("Conv", "1d_group_dilation_bias")
    taps = [[x[0, g * 2 : g * 2 + 2, at : at + 5 : 2] for at in range(5)] for g in (0, 1)]
    expected = [[(taps[m // 2][at] * w[m]).sum() + b[m] for at in range(5)] for m in range(4)]
    assert np.allclose(y[0], expected, atol=1e-5)
