"""Nodes as JSON: what is written is what is read, to the last bit."""

from __future__ import annotations

import json

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.fuzzing.drawing import Source
from epcheck.generators.fuzzing.node_digest import digest
from epcheck.generators.node import Node, Operand
from epcheck.generators.serialization import node_json
from epcheck.generators.serialization.node_json import DocumentError, SerializedNode


def node(array: np.ndarray, **attributes: object) -> SerializedNode:
    return SerializedNode(
        Node("Relu", "", 14, (Operand("X", array), None), ("Y", ""), attributes),  # type: ignore[arg-type]
        ("float32",),
        "runtime",
    )


def test_a_line_says_what_the_node_is() -> None:
    line = node_json.encode(node(np.array([1.5, np.nan, -np.inf], np.float32), axis=1))
    assert "\n" not in line
    assert json.loads(line) == {
        "op_type": "Relu", "domain": "", "since_version": 14, "dtypes": ["float32"], "binding": "runtime",
        "inputs": [
            {"name": "X", "dtype": "float32", "shape": [3], "values": [1.5, "nan", "-inf"], "parameter": False}, None,
        ],
        "outputs": ["Y", ""], "attributes": {"axis": {"int": 1}},
    }  # fmt: skip


@pytest.mark.parametrize(
    "attributes",
    [
        {"axis": -1, "alpha": 0.5, "mode": "linear"},
        {"pads": (0, 1), "scales": (0.5, float("inf")), "activations": ("Tanh", "Relu"), "empty": ()},
        {"value": np.array([[2**53 + 1]], np.int64)},
    ],
)
def test_attributes_keep_their_kinds(attributes: dict[str, object]) -> None:
    found = node_json.decode(node_json.encode(node(np.zeros(1, np.float32), **attributes))).node.attributes
    assert {name: type(value) for name, value in found.items()} == {n: type(v) for n, v in attributes.items()}
    assert str(found) == str(attributes)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float64"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 2), (40, 40)])
def test_values_come_back_to_the_last_bit(dtype: str, shape: tuple[int, ...]) -> None:
    value = np.random.default_rng(1).integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8)
    array = value.view(dtype).reshape(shape) if dtype != "bool" else (value > 99).reshape(shape)
    (found, _) = node_json.decode(node_json.encode(node(array))).node.inputs
    assert found is not None
    assert (found.value.dtype, found.value.shape) == (array.dtype, shape)
    assert found.value.tobytes() == array.tobytes() or np.isnan(array.astype(float)).any()


def test_drawn_nodes_with_surroundings_come_back() -> None:
    operators = [
        registry.operator_of(key) for key in ("SequenceAt", "If", "Cast", "QuantizeLinear", "com.microsoft::Gelu")
    ]
    drawn = Source(operators, seed=1).draw(40)
    assert sum(each.node.surroundings is not None for each in drawn) >= 5
    for each in drawn:
        again = node_json.decode(node_json.encode(each.serialized))
        assert (digest(again.node), again.dtypes, again.binding) == (digest(each.node), each.dtypes, each.binding)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "JSONDecodeError"),
        ("[]", "not a node"),
        ('{"op_type": "Relu"}', "KeyError"),
        (node_json.encode(node(np.zeros(2, np.float32))).replace('"shape": [2]', '"shape": [3]'), "reshape"),
        (
            node_json.encode(node(np.zeros(2, np.float32))).replace('"float32", "shape"', '"float31", "shape"'),
            "float31",
        ),
    ],
)
def test_a_line_that_is_no_node_is_one_sentence(line: str, words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        node_json.decode(line)
