"""Models that somebody made to harm whoever reads them: each field of a model set to each hostile value, and models
that ask for more than there is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
from google.protobuf.descriptor import FieldDescriptor
from onnx import StringStringEntryProto, TensorProto, helper

from tests.fuzzing.hostile_models import BYTES, FLOATS, INTEGERS, MODELS, STRINGS

HEADER = '<ir_version: 8, opset_import: ["" : 17]> g '
GREEDY = (
    "(float[4] x) => (float[N] y) <int64[1] s = {{{0}}}> {{ y = ConstantOfShape (s) }}",
    "(float[4] x) => (float[N] y) <int64[1] s = {{{0}}}> {{ y = Tile (x, s) }}",
    "(float[1] x) => (float[N] y) <int64[1] s = {{{0}}}> {{ y = Expand (x, s) }}",
    "(float[4] x) => (float[N] y) <int64[2] s = {{0, {0}}}> {{ y = Pad (x, s) }}",
    "(float[4] x) => (int64[N] y) <int64 a = {{0}}, int64 b = {{{0}}}, int64 d = {{1}}> {{ y = Range (a, b, d) }}",
    "(int64[2] x) => (float[N] y) <int64 n = {{{0}}}, float[2] v = {{0, 1}}> {{ y = OneHot (x, n, v) }}",
    "(float[1, 1, 4, 4] x) => (float[A, B, C, D] y) <int64[4] s = {{1, 1, {0}, {0}}}> {{ y = Resize (x, , , s) }}",
    "(float[4] x) => (float[N] y) <int64[2] s = {{{0}, -1}}> {{ y = Reshape (x, s) }}",
    "(float[4] x) => (float[N] y) <int64[1] s = {{{0}}}> {{ y = Gather (x, s) }}",
    "(float[4] x) => (float[N] v, int64[N] i) <int64[1] s = {{{0}}}> {{ v, i = TopK (x, s) }}",
    "(float[N] x) => (float[N] y) {{ y = EyeLike <k = {0}> (x) }}",
    "(float[4] x) => (float[N] y) {{ y = RandomNormal <shape = [{0}]> () }}",
    "(float[4] x, bool c) => (float[4] y) <int64 n = {{{0}}}> {{ y = Loop (n, c, x) <body = b (int64 i, bool k, "
    "float[4] v) => (bool o, float[4] w) {{ o = Identity (k)  w = Neg (v) }}> }}",
    "(float[{0}] x) => (float[{0}] y) {{ y = Relu (x) }}",
    "(float[1, 1, 4] x) => (float[A, B, C] y) {{ y = MaxPool <kernel_shape = [{0}], pads = [{0}, {0}]> (x) }}",
    "(float[4] x) => (float[N] y) {{ y = HannWindow (s) }}",
)
"""Texts of onnx.parser; {0} is a size."""

SIZES = (0, 1, 3, 2**20, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -1, -(2**31), -(2**62))
EXTERNAL = ("../outside/secret", "/etc/passwd", "/dev/zero", "link", "hard", "", ".", "missing", "a\0b", "x" * 5000,
            "sub/../../outside/secret", "\\\\host\\share", "file:///etc/passwd", "pipe")  # fmt: skip
PLACES = (("0", "12"), ("-1", "12"), (str(2**62), "12"), ("0", str(2**62)), ("x", "y"), ("0", "-5"), ("", ""))


def crafted(count: int, folder: Path) -> Iterator[tuple[str, bytes]]:
    """(name, bytes), as many as asked for at most. folder: where they will lie; what external data refers to is made
    there."""
    folder.mkdir(parents=True, exist_ok=True)
    greedy, external, nested = list(_greedy()), list(_external(folder)), list(_nested())
    fields = [(name, data) for data, name in {data: name for name, data in _fields()}.items()]
    chosen = [*greedy, *external, *nested]
    left = max(0, count - len(chosen))
    chosen += [fields[at * len(fields) // left] for at in range(left)] if left else []
    yield from chosen[:count]


def _greedy() -> Iterator[tuple[str, bytes]]:
    for number, text in enumerate(GREEDY):
        for size in SIZES:
            try:
                model = onnx.parser.parse_model(HEADER + text.format(size))
            except onnx.parser.ParseError:
                continue
            yield f"greedy {number}, {size}", model.SerializeToString()


def _external(folder: Path) -> Iterator[tuple[str, bytes]]:
    outside = folder.parent / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "secret").write_bytes(b"secret bytes of somebody else")
    for name, make in (("link", "symlink_to"), ("hard", "hardlink_to")):
        if not (folder / name).exists():
            getattr(folder / name, make)(outside / "secret")
    for location in EXTERNAL:
        for offset, length in PLACES:
            model = _copy(0)
            tensor = model.graph.initializer[0]
            tensor.Clear()
            tensor.name, tensor.data_type, tensor.data_location = "w", TensorProto.FLOAT, TensorProto.EXTERNAL
            tensor.dims.append(3)
            for key, value in (("location", location), ("offset", offset), ("length", length)):
                tensor.external_data.append(StringStringEntryProto(key=key, value=value))
            yield f"external {location[:20]!r}, {offset}, {length}", model.SerializeToString()


def _nested() -> Iterator[tuple[str, bytes]]:
    """Graphs in graphs, functions that call functions twice, chains of nodes, many inputs."""
    for depth in (3, 20, 32, 34, 200, 5000):
        yield f"graphs {depth} deep", _deep(depth)
    for depth in (10, 30, 60, 500):
        model = _copy(2)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
        del model.functions[:]
        names = ["Twice", *(f"F{number}" for number in range(depth))]
        for name, called in pairwise(names):
            nodes = [helper.make_node(called, ["a"], ["m"], domain="own"),
                     helper.make_node(called, ["m"], ["b"], domain="own")]  # fmt: skip
            model.functions.append(helper.make_function("own", name, ["a"], ["b"], nodes, opsets))
        leaf = [helper.make_node("Neg", ["a"], ["b"])]
        model.functions.append(helper.make_function("own", names[-1], ["a"], ["b"], leaf, opsets))
        yield f"2 ** {depth} calls", model.SerializeToString()
    for count in (1000, 20_000):
        nodes = [helper.make_node("Neg", [f"v{at}"], [f"v{at + 1}"]) for at in range(count)]
        graph = helper.make_graph(nodes, "g", [_value("v0")], [_value(f"v{count}")])
        model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
        yield f"{count} nodes in a row", model.SerializeToString()
    for data in (b"", b"\0", b"\xff" * 1000, b"\x08" * 100_000, b"\x3a\xff\xff\xff\xff\x0f", b"\n" * 5000):
        yield f"bytes {data[:4]!r}", data


def _deep(depth: int) -> bytes:
    """A model whose graph is so many graphs deep, by hand: protobuf itself refuses more than 100 messages in one."""
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["z"])], "g", [], [_value("z")]).SerializeToString()
    for _ in range(depth - 1):
        attributes = b"".join(
            _field(5, _field(1, name) + b"\xa0\x01\x05" + _field(6, graph if name == b"then_branch" else b""))
            for name in (b"then_branch", b"else_branch")
        )
        node = _field(1, b"c") + _field(2, b"z") + _field(4, b"If") + attributes
        graph = _field(1, node) + _field(2, b"g") + _field(12, _value("z").SerializeToString())
    inputs = (_value("x"), helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    graph += b"".join(_field(11, value.SerializeToString()) for value in inputs)
    return b"\x08\x08" + _field(7, graph) + _field(8, helper.make_opsetid("", 17).SerializeToString())


def _field(number: int, content: bytes) -> bytes:
    """A field of protobuf that has a length."""
    size, length = len(content), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def _fields() -> Iterator[tuple[str, bytes]]:
    """Each field of each message of the models, set to each hostile value of its type, or cleared."""
    for number, original in enumerate(MODELS):
        for path, field in _leaves(original, ()):
            for value in _values(field):
                model = onnx.ModelProto()
                model.CopyFrom(original)
                message: Any = model
                for name, at in path:
                    message = getattr(message, name) if at is None else getattr(message, name)[at]
                if value is None:
                    message.ClearField(field.name)
                elif field.is_repeated:
                    getattr(message, field.name).append(value)
                else:
                    setattr(message, field.name, value)
                words = ".".join(name for name, _ in path)
                yield f"model {number}, {words}.{field.name} = {str(value)[:20]!r}", model.SerializeToString()


def _leaves(message: Any, path: tuple[tuple[str, int | None], ...]) -> Iterator[tuple[Any, FieldDescriptor]]:
    """(path of the message, field) of each field that holds no message."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is None:
            yield path, field
        elif field.is_repeated:
            for at, inner in enumerate(getattr(message, field.name)):
                yield from _leaves(inner, (*path, (field.name, at)))
        elif message.HasField(field.name):
            yield from _leaves(getattr(message, field.name), (*path, (field.name, None)))


def _values(field: FieldDescriptor) -> tuple[Any, ...]:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            return (None, *(STRINGS if field.type == FieldDescriptor.TYPE_STRING else BYTES))
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            return (None, *FLOATS)
        case FieldDescriptor.CPPTYPE_ENUM:
            return (None, *(value.number for value in field.enum_type.values))
        case FieldDescriptor.CPPTYPE_INT32:
            return (None, *(number for number in INTEGERS if abs(number) < 2**31))
        case FieldDescriptor.CPPTYPE_UINT64:
            return (None, *(number for number in INTEGERS if number >= 0))
    return (None, *INTEGERS)


def _copy(index: int) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(MODELS[index])
    return model


def _value(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])
