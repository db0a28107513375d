"""Rewrite rules of optimisers and providers, as graphs in ONNX's text: where a rule applies, and where it does not.

A rule has preconditions. A graph that breaks one of them by a little (another axis, another constant, a second reader)
looks like one that the rule applies to, and must not be rewritten. What is peculiar to a rule is declared with it; what
holds for every rule follows from its graph: an inner value leaves the graph or has a second reader, constants are
inputs of the run, or are read by another node as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
from onnx import helper, numpy_helper

from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.graphs.graph_sample import FLOAT32, GraphSample, Samples
from epcheck.generators.graphs.node_graph import OPSET
from epcheck.generators.graphs.sketch import Sketch

APPLIES, BROKEN = "rule", "broken"
"""Kinds of graphs: the rule applies; a precondition of it does not hold."""

ALGEBRA = "the algebra of the operators"
"""The source of a rule that nobody publishes."""

FLOAT = "float32"
"""What `float` of the text is read as; it stands for the dtype of the graph."""

CALL = re.compile(r"\(([^()]*)\)")
THE_LAST = re.compile(r"\b_\b")
CONSTANT = re.compile(r"(?:(\w+) )?(-?\d[\d.e-]*|-?Infinity|NaN|\[.*\])")
"""In the text of nodes: their inputs, what the node before made, and numbers, maybe with a dtype."""

EQUAL_SIZES = "equal_sizes"
"""What the names of graphs end with whose dimensions have one size: a wrong rewrite then gives the right shape."""

SIZES_FILE = Path(__file__).with_name("rules") / f"{EQUAL_SIZES}.txt"
"""A line for each graph that has such a copy: its name, and the size."""

Replacements = Mapping[str, Sequence[str]]
"""Name of a graph -> texts in pairs: in the rule's graph, the second of each is in place of the first."""


@dataclass(frozen=True)
class Tensor:
    """What enters a graph. values: None for drawn ones. parameter: it is an initializer."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    values: tuple[float, ...] | None
    parameter: bool


@dataclass(frozen=True)
class TextNode:
    """A node as the text has it. inputs: '' for an omitted one."""

    operator: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class TextGraph:
    """A graph as the text has it."""

    tensors: tuple[Tensor, ...]
    nodes: tuple[TextNode, ...]
    outputs: tuple[str, ...]

    @property
    def inner(self) -> tuple[str, ...]:
        """The values that nodes make and that do not leave the graph."""
        return tuple(name for node in self.nodes for name in node.outputs if name and name not in self.outputs)


@dataclass(frozen=True)
class RewriteRule:
    """name: of its graphs. source: of the rule: a file below onnxruntime/core of github.com/microsoft/onnxruntime;
    after `openvino:` one below src/common/transformations/src/transformations of github.com/openvinotoolkit/openvino.

    graph: in ONNX's text, where the rule applies. Element type `float` is the graph's dtype. Of tensors without values
    the numbers are drawn: inputs from [-2, 2), initializers from [-1, 1), names that begin with `p` from [0.5, 1.5),
    8-bit integers from their whole range, other integers from -9 to 9.
    broken: of one precondition each that does not hold. applies: other graphs to which the rule applies.
    values: name of a tensor -> its numbers, repeated until it is full. special: values between nodes may be infinite,
    no number, or large. in_general: the preconditions of every rule are broken as well. dtypes, opset, elsewhere: as in
    GraphSample. also: further dtypes of `graph` alone.
    """

    name: str
    source: str
    graph: str
    broken: Replacements = field(default_factory=dict)
    applies: Replacements = field(default_factory=dict)
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    dtypes: tuple[str, ...] = FLOAT32
    also: tuple[str, ...] = ()
    special: bool = False
    in_general: bool = True
    opset: int = OPSET
    elsewhere: tuple[str, ...] = ()

    def samples(self) -> Samples:
        """Its graphs: where it applies, then where a precondition is broken."""
        declared = [(name, kind, self.read(texts)) for name, kind, texts in self.list_texts()]
        (_, _, graph), *others = declared
        applied = self.make_sample(APPLIES, self.name, graph)
        yield replace(applied, dtypes=(*applied.dtypes, *self.also))
        for name, kind, changed in others:
            yield self.make_sample(kind, name, changed)
        for name, changed in break_in_general(graph) if self.in_general else ():
            yield self.make_sample(BROKEN, f"{self.name}_{name}", changed)
        for name, kind, changed in declared:
            if size := read_equal_sizes().get(name):
                yield self.make_sample(kind, f"{name}_{EQUAL_SIZES}", make_sizes_equal(changed, size))

    def list_texts(self) -> Iterator[tuple[str, str, Sequence[str]]]:
        """(name, kind, texts in pairs) of each graph that is declared."""
        yield self.name, APPLIES, ()
        yield from ((f"{self.name}_{name}", APPLIES, texts) for name, texts in self.applies.items())
        yield from ((f"{self.name}_{name}", BROKEN, texts) for name, texts in self.broken.items())

    def read(self, texts: Sequence[str] = ()) -> TextGraph:
        """The graph, with texts in place of others, in pairs. Raises ValueError for a text that is not in it once."""
        text = self.graph
        for old, new in zip(texts[::2], texts[1::2], strict=True):
            if text.count(old) != 1:
                raise ValueError(f"the graph of {self.name} has '{old}' {text.count(old)} times and not once")
            text = text.replace(old, new)
        return read_graph(text, self.values)

    def make_sample(self, kind: str, name: str, graph: TextGraph) -> GraphSample:
        """A fixed graph of the suite."""
        last = graph.nodes[-1]
        return GraphSample(
            kind, name, partial(write_graph, graph), self.dtypes, self.elsewhere, self.opset, self.special,
            (last.operator, last.domain),
        )  # fmt: skip


def chain(name: str, source: str, entering: str, *calls: str, weights: str = "", **options: Any) -> RewriteRule:
    """A rule about nodes with one output each, `a`, `b` and so on up to `y`, of which each reads the one before as `_`.

    entering: the inputs of the graph; the first is what the first node reads as `_`. weights: drawn initializers.
    """
    made = [*"abcdefghijkl"[: len(calls) - 1], "y"]
    read = [re.split(r", (?=\w+\W)", entering)[0].split()[-1], *made]
    calls = tuple(THE_LAST.sub(value, call) for value, call in zip(read, calls, strict=False))
    nodes = " ".join(map("{} = {}".format, made, calls))
    return RewriteRule(name, source, f"({entering}) => (y) <{weights}> {{ {nodes} }}", **options)


def read_graph(text: str, values: Mapping[str, Sequence[float]]) -> TextGraph:
    """The graph of ONNX's text without a name. Among the inputs of a node there may be numbers, for an initializer that
    is a scalar, or `[2, -1]`, for one of more dimensions: float where one has a point, int64 where none has, or of the
    dtype before it. What no node reads is left out. values: as in RewriteRule."""
    head, brace, body = text.partition("{")
    constants: list[Tensor] = []
    proto = onnx.parser.parse_graph(
        f"graph {head}{brace}{CALL.sub(lambda call: _name_constants(call, constants), body)}"
    )
    entering = [(info, False) for info in proto.input] + [(info, True) for info in proto.value_info]
    tensors = [
        Tensor(info.name, _dtype(info.type.tensor_type.elem_type), _shape(info), None, parameter)
        for info, parameter in entering
    ]
    nodes, outputs = tuple(map(_node, proto.node)), tuple(output.name for output in proto.output)
    read = {name for node in nodes for name in node.inputs}
    filled = [replace(t, values=tuple(values[t.name])) if t.name in values else t for t in tensors if t.name in read]
    return TextGraph((*filled, *constants), nodes, outputs)


def _name_constants(call: re.Match[str], constants: list[Tensor]) -> str:
    """The inputs of a node with names in place of numbers, which become `constants`."""
    inputs = []
    for read in _read_inputs(call[1]):
        if isinstance(read, str):
            inputs.append(read)
        else:
            inputs.append(f"c{len(constants)}")
            constants.append(replace(read, name=inputs[-1]))
    return f"({', '.join(inputs)})"


@cache
def _read_inputs(text: str) -> tuple[str | Tensor, ...]:
    """The inputs of a node: names, and numbers as constants without a name. The graphs of a rule share most nodes."""
    return tuple(map(_read_input, _split_inputs(text)))


def _read_input(text: str) -> str | Tensor:
    found = CONSTANT.fullmatch(text)
    if found is None:
        return text
    array = np.asarray(json.loads(found[2]))
    dtype = found[1] or (FLOAT if array.dtype.kind == "f" else "int64")
    return Tensor("", dtype, array.shape, tuple(array.ravel().tolist()), True)


def _split_inputs(text: str) -> list[str]:
    """At each comma that is not within brackets."""
    inputs: list[str] = []
    for part in text.split(","):
        if inputs and inputs[-1].count("[") > inputs[-1].count("]"):
            inputs[-1] += f",{part}"
        else:
            inputs.append(part.strip())
    return inputs


def _shape(info: onnx.ValueInfoProto) -> tuple[int, ...]:
    return tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim)


def _dtype(element_type: int) -> str:
    return schema.dtype_name(helper.tensor_dtype_to_np_dtype(element_type))


def _node(proto: onnx.NodeProto) -> TextNode:
    attributes = {each.name: helper.get_attribute_value(each) for each in proto.attribute}
    plain = {name: value.decode() if isinstance(value, bytes) else _array(value) for name, value in attributes.items()}
    return TextNode(proto.op_type, proto.domain, tuple(proto.input), tuple(proto.output), plain)


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


@cache
def read_equal_sizes() -> Mapping[str, int]:
    """Name of a graph -> the size of all dimensions in its copy."""
    lines = map(str.split, SIZES_FILE.read_text(encoding="utf-8").splitlines())
    return {name: int(size) for name, size in lines}


def make_sizes_equal(graph: TextGraph, size: int) -> TextGraph:
    """The graph where each dimension above 1 has this size, also in constants that are shapes: lists of sizes that the
    graph has, of 1, 0 and -1."""
    sizes = {dim for tensor in graph.tensors if tensor.values is None for dim in tensor.shape} - {0, 1}

    def change(tensor: Tensor) -> Tensor:
        if tensor.values is None:
            return replace(tensor, shape=tuple(size if dim > 1 else dim for dim in tensor.shape))
        is_shape = tensor.dtype == "int64" and len(tensor.shape) == 1 and len(tensor.values) > 1
        if not is_shape or not sizes & {*tensor.values} or {*tensor.values} - sizes - {1, 0, -1}:
            return tensor
        return replace(tensor, values=tuple(size if value > 1 else value for value in tensor.values))

    return replace(graph, tensors=tuple(map(change, graph.tensors)))


def break_in_general(graph: TextGraph) -> Iterator[tuple[str, TextGraph]]:
    """What is broken -> a graph, for the preconditions that every rewrite rule has. Of the values between nodes the
    first is read twice, and the last leaves the graph."""
    first, last = graph.inner[0], graph.inner[-1]
    again = TextNode("Flatten", "", (first,), (f"{first}_read",), {"axis": 0})
    yield f"{first}_read_twice", _read_also(graph, [again])
    yield f"{last}_leaves", replace(graph, outputs=(*graph.outputs, last))
    if constants := [tensor for tensor in graph.tensors if tensor.parameter]:
        fed = tuple(replace(tensor, parameter=False) for tensor in graph.tensors)
        yield "constants_are_inputs", replace(graph, tensors=fed)
    if numbers := [tensor.name for tensor in constants if tensor.dtype == FLOAT and tensor.values is None]:
        factor = Tensor("p_factor", FLOAT, (), None, False)
        readers = [TextNode("Mul", "", (name, factor.name), (f"{name}_read",), {}) for name in numbers]
        yield "weights_read_twice", _read_also(replace(graph, tensors=(*graph.tensors, factor)), readers)


def _read_also(graph: TextGraph, readers: Sequence[TextNode]) -> TextGraph:
    """The graph with these nodes before its last, and with what they make as outputs."""
    *others, last = graph.nodes
    made = [name for node in readers for name in node.outputs]
    return replace(graph, nodes=(*others, *readers, last), outputs=(*graph.outputs, *made))


def write_graph(graph: TextGraph, sketch: Sketch) -> None:
    """Put the graph into a sketch."""
    named: dict[str, str | None] = {"": None}
    made: dict[str, str] = {}
    for tensor in graph.tensors:
        give = sketch.constant if tensor.parameter else sketch.feed
        named[tensor.name] = give(_fill(tensor, sketch), "" if tensor.dtype == FLOAT else tensor.dtype)
    for node in graph.nodes:
        inputs = [named[name] for name in node.inputs]
        first = sketch.node(node.operator, *inputs, outputs=len(node.outputs), domain=node.domain, **node.attributes)
        made |= {name: f"{first[:-1]}{number}" for number, name in enumerate(node.outputs)}
        named |= made
    sketch.leave(*(made[name] for name in graph.outputs))


def _fill(tensor: Tensor, sketch: Sketch) -> Array:
    """The numbers of a tensor."""
    if tensor.values is not None:
        return np.resize(np.asarray(tensor.values), tensor.shape)
    if tensor.name.startswith("p"):
        return sketch.draw(tensor.shape, 0.5, 1.5)
    dtype = np.dtype(tensor.dtype)
    if dtype.kind == "f":
        return sketch.draw(tensor.shape, *((-1.0, 1.0) if tensor.parameter else (-2.0, 2.0)))
    if dtype.kind == "b":
        return sketch.rng.random(tensor.shape) < 0.5
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.itemsize == 1 else (-9, 9)
    return sketch.rng.integers(low, high, tensor.shape, endpoint=True)
