"""A model's own functions in place of their calls, whose nodes are named as the model calls them.

onnx's inliner gives a node the name that it has in the function and a number. Here it has the names of the calls that
lead to it, `block0/mm`, and words that say which function it is in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import onnx
from onnx import checker, inliner

from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.generators.error import EpcheckError

WORDS = "epcheck.words"
"""The key of a node's metadata that has the node in words."""

_FAILED = "failed: "
"""Before the words of an assertion in onnx's inliner; ahead of it stands where that is in its source."""


class InliningError(EpcheckError, ValueError):
    """The functions of a model cannot be put in place of their calls; the message says why."""


def inline_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without functions of its own, each node with its place in the model's words; the model itself where it
    has none.

    onnx's inliner is native code that trusts its input: a call with more inputs than the function has, and two
    functions of one name, raise errors of several kinds. Raises InliningError.
    """
    if not model.functions:
        return model
    try:
        flat = inliner.inline_local_functions(model)
    except (checker.ValidationError, RuntimeError, ValueError, TypeError) as error:
        why = " ".join(str(error).split()).rpartition(_FAILED)[2].rstrip(".")
        raise InliningError(f"its functions cannot be put in place of their calls: {why}") from None
    _name_nodes(flat.graph, model)
    return flat


@dataclass(frozen=True)
class _Origin:
    """A node before inlining. calls: names of the calls that lead to it. function: that it is in, empty for the main
    graph; number: the index in the main graph of the node, or of the first call."""

    node: onnx.NodeProto
    calls: tuple[str, ...]
    function: str
    number: int

    @property
    def words(self) -> str:
        """The node in a sentence."""
        called = describe_node(self.node)
        if not self.function:
            return f"node {self.number} {called}"
        return f"node {called} of function {self.function}, called by node {self.number} `{'/'.join(self.calls)}`"


def describe_node(node: onnx.NodeProto) -> str:
    """`` `Conv_17` (Conv)``, or what it makes where it has no name."""
    made = next(filter(None, node.output), "")
    return f"{f'`{node.name}`' if node.name else f'that makes `{made}`'} ({node.op_type})"


_Functions = Mapping[tuple[str, str, str], onnx.FunctionProto]


def _name_nodes(graph: onnx.GraphProto, model: onnx.ModelProto) -> None:
    """Name the nodes of the inlined main graph; they keep the inliner's names where they are not those of the model one
    by one."""
    functions = {(each.domain, each.name, each.overload): each for each in model.functions}
    origins = list(islice(_expand(model.graph.node, functions), len(graph.node) + 1))
    if [origin.node.op_type for origin in origins] != [node.op_type for node in graph.node]:
        return
    for origin, node in zip(origins, graph.node, strict=True):
        if origin.function:
            node.name = "/".join((*origin.calls, origin.node.name or origin.node.op_type))
        entry = node.metadata_props.add()
        entry.key, entry.value = WORDS, origin.words


def _expand(
    nodes: Iterable[onnx.NodeProto],
    functions: _Functions,
    calls: tuple[str, ...] = (),
    function: str = "",
    number: int = -1,
) -> Iterator[_Origin]:
    """The nodes in the order of the inliner: those of a function in place of its call."""
    for at, node in enumerate(nodes):
        first = at if number < 0 else number
        callee = functions.get((node.domain, node.op_type, node.overload))
        if callee is None:
            yield _Origin(node, calls, function, first)
        else:
            inner = (*calls, node.name or node.op_type)
            yield from _expand(callee.node, functions, inner, f"{callee.domain}::{callee.name}", first)


def inline_file(path: Path, model: onnx.ModelProto) -> onnx.ModelProto:
    """The same of the model of a file. Raises ModelFileError."""
    try:
        return inline_functions(model)
    except InliningError as error:
        raise ModelFileError(f"'{path}' is not a valid ONNX model: {error}") from None
