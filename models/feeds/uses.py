"""The nodes that use a graph input, also behind nodes that only move it, in bodies and in local functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx

MOVES = frozenset({
    "Cast", "Concat", "Dropout", "Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice", "Split",
    "Squeeze", "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators whose first input comes out again, moved at most (Concat's every input; Cast's in another type)."""

MOST_STEPS = 20_000
"""Uses that are followed for one input at most."""

Body = onnx.GraphProto | onnx.FunctionProto


@dataclass(frozen=True)
class Use:
    """A node that reads the value. index: of its input. path: the operators that moved the value on the way to it.

    names: a name inside a local function or a Loop's body -> what it is called in the main graph.
    """

    node: onnx.NodeProto
    index: int
    path: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    def input(self, index: int) -> str:
        """An input of the node by its name in the main graph, as far as it has one; empty where there is none."""
        name = self.node.input[index] if index < len(self.node.input) else ""
        return self.names.get(name, name)


@dataclass(frozen=True)
class _Place:
    """A body that the value reaches, and its name there."""

    body: Body
    value: str
    path: tuple[str, ...]
    names: Mapping[str, str]


class Uses:
    """The readers of every value of one model."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._functions = {(f.domain, f.name, f.overload): f for f in model.functions}
        self._readers: dict[int, dict[str, list[tuple[onnx.NodeProto, int]]]] = {}
        self._main = model.graph

    def of(self, name: str) -> Iterator[Use]:
        """Every use of a value of the main graph, the nodes that move it among them, nearest first."""
        pending = [_Place(self._main, name, (), {})]
        seen = {(id(self._main), name)}
        steps = 0
        for place in pending:  # which grows on the way
            for node, index in self._read_in(place.body).get(place.value, ()):
                steps += 1
                if steps > MOST_STEPS:
                    return
                use = Use(node, index, place.path, place.names)
                yield use
                for onward in self._onward(place.body, use):
                    if (id(onward.body), onward.value) not in seen:
                        seen.add((id(onward.body), onward.value))
                        pending.append(onward)

    def _onward(self, body: Body, use: Use) -> Iterator[_Place]:
        """The bodies and names that the value has behind the node."""
        node, index, path = use.node, use.index, (*use.path, use.node.op_type)
        function = self._functions.get((node.domain, node.op_type, node.overload))
        if function is not None:
            if index < len(function.input):
                yield _Place(function, function.input[index], path, _outer_names(use, function.input))
        elif node.domain in ("", "ai.onnx"):
            if node.op_type in MOVES and (index == 0 or node.op_type == "Concat"):
                yield from (_Place(body, output, path, use.names) for output in node.output[:1])
            if node.op_type in ("Loop", "Scan") and not (node.op_type == "Loop" and index == 0):
                for inner in (attribute.g for attribute in node.attribute if attribute.name == "body"):
                    formals = [value.name for value in inner.input]
                    names = {**use.names, **(_outer_names(use, formals) if node.op_type == "Loop" else {})}
                    yield from (_Place(inner, formal, path, names) for formal in formals[index : index + 1])

    def _read_in(self, body: Body) -> dict[str, list[tuple[onnx.NodeProto, int]]]:
        """Value -> its readers in a graph and in the graphs in its attributes, which see the outer names."""
        if id(body) not in self._readers:
            found: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
            pending: list[Body] = [body]
            for graph in pending:
                for node in graph.node:
                    for index, value in enumerate(node.input):
                        if value:
                            found.setdefault(value, []).append((node, index))
                    pending += [inner for attribute in node.attribute for inner in _graphs(attribute)]
            self._readers[id(body)] = found
        return self._readers[id(body)]


def _graphs(attribute: onnx.AttributeProto) -> Iterator[onnx.GraphProto]:
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def _outer_names(use: Use, formals: Sequence[str]) -> dict[str, str]:
    """Name of an input in a body or function -> its name outside."""
    return {formal: use.input(index) for index, formal in enumerate(formals[: len(use.node.input)])}
