"""Messages put together of parts are byte for byte what protobuf writes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from epcheck.generators import graph, suite
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.serialization import wire
from epcheck.generators.serialization.tensor import tensor

OPERATORS = ("Slice", "Cast", "Conv", "If", "Loop", "SequenceAt", "Gelu", "QLinearConv", "com.microsoft::MatMulNBits")


@pytest.mark.parametrize(
    ("number", "written"), [(0, b"\x00"), (1, b"\x01"), (127, b"\x7f"), (128, b"\x80\x01"), (150, b"\x96\x01")]
)
def test_a_number_is_written_in_sevens_of_bits(number: int, written: bytes) -> None:
    """150 is the example of protobuf's own page."""
    assert wire.varint(number) == written


@pytest.mark.parametrize("length", [0, 1, 127, 128, 300, 20_000])
def test_a_field_is_read_as_it_was_written(length: int) -> None:
    content = bytes(index % 251 for index in range(length))
    written = wire.field(7, content)
    assert list(wire.fields(written + wire.field(1, b"ab"))) == [(7, written, content), (1, b"\x0a\x02ab", b"ab")]
    model = onnx.ModelProto(doc_string="x" * length)
    assert model.SerializeToString() == wire.field(6, b"x" * length)


def test_every_way_to_write_a_field_is_passed_over() -> None:
    made = onnx.AttributeProto(name="a", f=1.5, i=-1, t=onnx.TensorProto(dims=(3,)), type=onnx.AttributeProto.FLOAT)
    found = list(wire.fields(made.SerializeToString(deterministic=True) + b"\x31" + bytes(8)))
    assert [number for number, _, _ in found] == [1, 2, 3, 5, 20, 6]
    assert b"".join(whole for _, whole, _ in found[:-1]) == made.SerializeToString(deterministic=True)
    assert [content for _, _, content in found] == [b"a", b"", b"", b"\x08\x03", b"", b""]


@pytest.mark.parametrize("message", [b"\x0a", b"\x0a\x05abc", b"\x08\x80", b"\x0b", b"\x35\x00", b"\xff"])
def test_what_is_no_message_is_refused(message: bytes) -> None:
    with pytest.raises((IndexError, ValueError)):
        list(wire.fields(message))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int64).reshape(2, 3),
        np.arange(6, dtype=np.float16).reshape(2, 3).T,
        np.array(2.5),
        np.empty((0, 3), np.uint8),
        np.array([True, False]),
        np.array([1.5, 2], ml_dtypes.bfloat16),
        np.array([1, 2, 3], ml_dtypes.int4),
        np.array(["a", "b"], object),
        np.array([1 + 2j], np.complex64),
    ],
    ids=lambda array: str(array.dtype),
)
def test_a_tensor_is_that_of_onnx(array: Any) -> None:
    assert tensor(array, "x") == numpy_helper.from_array(array, "x").SerializeToString(deterministic=True)


def test_a_model_is_what_protobuf_writes() -> None:
    cases = [case for case in suite.cases(OPERATORS, thin=True) if not case.sample.startswith("graph_")]
    assert len(cases) > 100
    for case in cases:
        written = case.build().model
        assert onnx.ModelProto.FromString(written).SerializeToString(deterministic=True) == written, case.id


def test_a_node_is_not_that_of_attributes_which_are_only_equal() -> None:
    values: tuple[Attribute, ...] = (0, 0.0, -0.0, (0,), (0.0,), (), "0", np.zeros(1), np.ones(1))
    models = [_model({"a": value}) for value in values]
    assert len(set(models)) == len(values)
    assert [onnx.ModelProto.FromString(model).graph.node[0].attribute[0].type for model in models[:3]] == [
        onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT, onnx.AttributeProto.FLOAT
    ]  # fmt: skip
    assert models == [_model({"a": value}) for value in values]


def _model(attributes: dict[str, Attribute]) -> bytes:
    node = Node("Relu", "", 14, (Operand("X", np.zeros(2, np.float32)),), ("Y",), attributes)
    return graph.model(node, graph.RUNTIME, {"T": "float32"}, (1,))
