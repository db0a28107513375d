"""MRotaryEmbedding, of which onnx has no node test: layouts of the page, and RotaryEmbedding where it is the same."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators import registry, suite
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operators.attention import multimodal_rotary
from epcheck.generators.truth import Outputs, Refusal


@pytest.mark.parametrize(
    ("layout", "sections", "streams"),
    [
        (0, (4, 2, 2), [0, 0, 0, 0, 1, 1, 2, 2]),
        (1, (4, 2, 2), [0, 1, 2, 0, 1, 2, 0, 0]),
        (1, (3, 3, 3), [0, 1, 2] * 3),
        (1, (6, 1, 1), [0, 1, 2, 0, 0, 0, 0, 0]),
    ],
)
def test_streams_are_chunks_or_alternate(layout: int, sections: tuple[int, ...], streams: list[int]) -> None:
    assert multimodal_rotary.assign_streams(sections, layout).tolist() == streams


def test_an_element_is_turned_by_the_position_of_its_stream() -> None:
    """A head of (1, 2, 3, 0, 0, 0): the pairs are turned by 0, 90 and 180 degrees."""
    cache = {"cos_cache": np.array([1, 0, -1]), "sin_cache": np.array([0, 1, 0])}
    operands = (
        Operand("input", np.array([[[[1, 2, 3, 0, 0, 0]]]], np.float32)),
        Operand("position_ids", np.array([[[0]], [[1]], [[2]]])),
        *(Operand(name, np.repeat(column[:, None], 3, 1).astype(np.float32)) for name, column in cache.items()),
    )
    attributes: dict[str, Attribute] = {"mrope_section": (1, 1, 1)}
    node = Node("MRotaryEmbedding", "com.microsoft", 1, operands, ("output",), attributes)
    truth = multimodal_rotary.truth(node)
    assert isinstance(truth, Outputs)
    assert truth.outputs[0].value.ravel().tolist() == [1, 0, -3, 0, 2, 0]
    refused = Node("MRotaryEmbedding", "com.microsoft", 1, operands, ("output",), {"mrope_section": (1, 1)})
    assert isinstance(multimodal_rotary.truth(refused), Refusal)


def test_for_text_it_is_rotary_embedding() -> None:
    built = suite.case_by_id("com.microsoft::MRotaryEmbedding-1/float32/rank_4_layout_1_text[runtime]").build()
    operands = list(built.node.inputs)
    operands[1] = Operand("position_ids", built.node.array("position_ids")[0])
    plain = Node("RotaryEmbedding", "com.microsoft", 1, tuple(operands), ("output",), {})
    expected = registry.all_operators()["com.microsoft::RotaryEmbedding"].truth(plain)
    assert isinstance(expected, Outputs)
    assert isinstance(built.truth, Outputs)
    assert np.array_equal(built.truth.outputs[0].value, expected.outputs[0].value)
