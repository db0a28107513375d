"""Models that nobody would write: small ones with one to four accidents in their protobuf, and bytes that are none."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.parser
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import strategies as st

TEXTS = (
    '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] x) => (float[2, 3] z) <float[3] w = {1, 2, 3}> '
    "{ y = Add(x, w)  z = Relu(y) }",
    '<ir_version: 8, opset_import: ["" : 17]> g (float[N, 4] x, bool c) => (float[M, K] y) '
    "{ y = If (c) <then_branch = t () => (float[A, B] a) { a = Neg(x) }, else_branch = e () => (float[C, D] b) "
    "{ b = Abs(x) }> }",
    '<ir_version: 8, opset_import: ["" : 17, "own" : 1]> g (float[2, 2] x) => (float[2, 2] y) { y = own.Twice(x) } '
    '<opset_import: ["" : 17], domain: "own"> Twice (a) => (b) { b = Add(a, a) }',
    '<ir_version: 8, opset_import: ["" : 17]> g (float[1, 2, 5, 5] x) => (float[1, 3, 3, 3] y) '
    "<float[3, 2, 3, 3] w = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,"
    " 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52,"
    " 53}> { y = Conv <kernel_shape = [3, 3]> (x, w) }",
    '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y, int64[2] s) '
    "<int64[1] k = {2}> { v, s = TopK <axis = 0> (x, k)  y = Pad (v, p) } ",
)
MODELS = tuple(onnx.parser.parse_model(text) for text in TEXTS)
INTEGERS = (0, 1, -1, 2, 7, 2**31 - 1, -(2**31), 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
STRINGS = ("", "x", "y", "Add", "own", "\0", "a\nb", "\u202egnp", "\x1b[31m", "../../etc/passwd", "<b>", "n" * 3000)
BYTES = (b"", b"\xff\xfe", b"x", b"\0" * 12, b"Add", b"\x80" * 400)
FLOATS = (0.0, -1.0, float("nan"), float("inf"), 1e30)


@st.composite
def hostile(draw: st.DrawFn) -> bytes:
    """A serialized model after one to four accidents."""
    model = onnx.ModelProto()
    model.CopyFrom(draw(st.sampled_from(MODELS)))
    for _ in range(draw(st.integers(1, 4))):
        _accident(draw, model)
    data = model.SerializeToString()
    if draw(st.integers(0, 9)) == 0 and data:
        at = draw(st.integers(0, len(data) - 1))
        data = data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + draw(st.integers(0, 2)) :]
    return data


def _accident(draw: st.DrawFn, message: Any) -> None:
    """Go down to a message within the message, and change one of its fields."""
    while inner := _messages(message):
        if draw(st.integers(0, 4)) == 0:
            break
        message = draw(st.sampled_from(inner))
    fields = list(message.DESCRIPTOR.fields)
    field = draw(st.sampled_from(fields))
    kind = draw(st.sampled_from(("clear", "set", "set", "set", "more")))
    if kind == "clear":
        message.ClearField(field.name)
    elif field.is_repeated if hasattr(field, "is_repeated") else field.label == FieldDescriptor.LABEL_REPEATED:
        _change_many(draw, getattr(message, field.name), field, more=kind == "more")
    elif field.message_type is not None:
        getattr(message, field.name).SetInParent()
    else:
        setattr(message, field.name, _value(draw, field))


def _messages(message: Any) -> list[Any]:
    found = []
    for field, value in message.ListFields():
        if field.message_type is not None:
            found += list(value) if hasattr(value, "__len__") else [value]
    return found


def _change_many(draw: st.DrawFn, values: Any, field: Any, *, more: bool) -> None:
    if field.message_type is not None:
        if len(values) and more:
            values.add().CopyFrom(draw(st.sampled_from(list(values))))
        elif len(values):
            del values[draw(st.integers(0, len(values) - 1))]
        else:
            values.add()
    elif len(values) and not more:
        values[draw(st.integers(0, len(values) - 1))] = _value(draw, field)
    else:
        values.append(_value(draw, field))


def _value(draw: st.DrawFn, field: Any) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            return draw(st.sampled_from(STRINGS if field.type == FieldDescriptor.TYPE_STRING else BYTES))
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            return draw(st.sampled_from(FLOATS))
        case FieldDescriptor.CPPTYPE_ENUM:
            return draw(st.sampled_from([value.number for value in field.enum_type.values]))
        case FieldDescriptor.CPPTYPE_UINT64:
            return draw(st.sampled_from([number for number in INTEGERS if number >= 0]))
        case FieldDescriptor.CPPTYPE_INT32:
            return draw(st.sampled_from([number for number in INTEGERS if abs(number) < 2**31]))
    return draw(st.sampled_from(INTEGERS))
