"""Sizes that a traced export has fixed in its Reshape nodes."""

from __future__ import annotations

import onnx
import pytest

from epcheck.models.feeds import reshape_sizes
from epcheck.models.feeds.dims import of_inputs
from epcheck.models.feeds.trials import Feeding, trials


def traced(asked: str, inputs: str = "float[batch, length, 4] x") -> onnx.ModelProto:
    """A module of two heads, whose length or batch is in the shape of its Reshape."""
    text = f"""<ir_version: 9, opset_import: ["": 17]> g ({inputs}) => (float[a, b, c] z) {{
        shape = Constant <value_ints = [{asked}]> ()
        y = Transpose <perm = [1, 0, 2]> (x)
        z = Reshape (y, shape)
    }}"""
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("9, 2, 2", {"length": 9}), ("0, 3, 4", {"batch": 3}), ("8, 2, 2", {}), ("0, -1, 2", {}), ("9, 5, 2", {})],
)
def test_a_size_in_the_shape_of_a_reshape_is_found(asked: str, expected: dict[str, int]) -> None:
    model = traced(asked)
    assert of_inputs(model) == {"batch": 1, "length": 8}
    assert reshape_sizes.find(model) == expected


def test_two_sizes_are_found_one_after_the_other() -> None:
    text = """<ir_version: 9, opset_import: ["": 17]> g
    (float[n, 4] x, float[m, 4] y) => (float[9, 2, 2] p, float[7, 2, 2] q) {
        nine = Constant <value_ints = [9, 2, 2]> ()
        seven = Constant <value_ints = [7, 2, 2]> ()
        p = Reshape (x, nine)
        q = Reshape (y, seven)
    }"""
    assert reshape_sizes.find(onnx.parser.parse_model(text)) == {"n": 9, "m": 7}


def test_chosen_sizes_and_inputs_without_a_shape_stay() -> None:
    assert reshape_sizes.find(traced("9, 2, 2"), {"length"}) == {}
    assert reshape_sizes.find(traced("9, 2, 2", "float x, float[n] unread")) == {}


def test_trials_have_the_size_that_the_graph_takes() -> None:
    found = list(trials(traced("9, 2, 2"), Feeding()))
    assert [trial.shapes["x"] for trial in found] == [(1, 9, 4), (2, 9, 4)]
    assert found[0].name == "seed 0, length=9"
    assert found[0].arguments == ("--seed", "0", "--dim", "length=9")
    chosen = list(trials(traced("9, 2, 2"), Feeding(seeds=(0,), dims={"length": (5,)})))
    assert [trial.shapes["x"] for trial in chosen] == [(1, 5, 4)]
