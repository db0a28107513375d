"""Nodes and graphs that `epcheck fuzz` found faults with, as cases: all values are kept, since they are small.

    Slice-13/float32/fuzz_1a2b3c4d5e6f[runtime]

A line is one of the fuzzer's databases (`serialization.node_json`, `fuzzing.graphs.graph_document`), and the id is that
of the fuzzer's reports: its digest is of all that the node is. Other people write such files, so what a line may ask
for is bounded, and the oracle judges it anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from epcheck.generators import graph as graphs
from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.fuzzing import drawing, drawn_case, oracle
from epcheck.generators.fuzzing.graphs import graph_case, graph_document
from epcheck.generators.graphs.graph_model import LEVEL
from epcheck.generators.graphs.node_graph import NodeGraph
from epcheck.generators.registry import operator_of
from epcheck.generators.serialization import node_json
from epcheck.generators.serialization.node_json import DocumentError, SerializedNode
from epcheck.generators.sources.case_source import FAULTS_FILE, HARVESTED
from epcheck.generators.truth import Open

GRAPH = '{"graph": '
"""What the line of a graph begins with."""

MOST_BYTES, MOST_LINES, MOST_LINE_BYTES = 1 << 26, 10_000, 1 << 24
"""Of a file, at most."""

MOST_STEPS = 64
"""Nodes of a graph, at most; the fuzzer makes 12."""

Found = SerializedNode | NodeGraph


def encode(found: Found) -> str:
    """The node or graph as one line of JSON."""
    return graph_document.encode(found) if isinstance(found, NodeGraph) else node_json.encode(found)


def decode(line: str) -> Found | Open:
    """The node or graph that `encode` wrote; of what the oracle cannot judge now, why. Raises DocumentError."""
    if len(line) > MOST_LINE_BYTES:
        raise DocumentError(f"the line has {len(line):,} characters; {MOST_LINE_BYTES:,} are the most")
    if line.startswith(GRAPH):
        if line.count('"key": ') > MOST_STEPS:
            raise DocumentError(f"the graph has more than {MOST_STEPS} nodes")
        return graph_document.decode(line)
    written = node_json.decode(line)
    if why := _why_no_case(written):
        return Open(why)
    drawn = drawing.judge_node(written)
    return drawn if isinstance(drawn, Open) else written


def read(path: Path) -> Iterator[Found | Open]:
    """What the lines of a file are. Raises DocumentError, which names the line, and OSError."""
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise DocumentError(f"{path}: the file has {size:,} bytes; {MOST_BYTES:,} are the most")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise DocumentError(f"{path}: not text in UTF-8: {error}") from None
    if len(lines) > MOST_LINES:
        raise DocumentError(f"{path}: the file has {len(lines):,} lines; {MOST_LINES:,} are the most")
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield decode(line)
            except DocumentError as error:
                raise DocumentError(f"{path}, line {number}: {error}; correct or delete the line") from None


def cases(folder: Path) -> Iterator[Case]:
    """A case for each line of the folder's file that the oracle can judge; none where there is no file. Raises
    DocumentError and OSError."""
    path = folder / FAULTS_FILE
    if not path.is_file():
        return
    stat = path.stat()
    for found in _read(path, stat.st_mtime_ns, stat.st_size):
        yield replace(case_of(found), folder=str(folder))


@lru_cache(maxsize=8)
def _read(path: Path, _modified_ns: int, _size: int) -> tuple[Found, ...]:
    return tuple(found for found in read(path) if not isinstance(found, Open))


def case_of(found: Found) -> Case:
    """The case, under the id that it has in reports of the fuzzer."""
    if isinstance(found, NodeGraph):
        return replace(graph_case.case_of(found), builder=partial(_build_graph, found), source=HARVESTED)
    return drawn_case.identify_node(found, partial(_build, found), HARVESTED)


def _build(found: SerializedNode, case: Case) -> BuiltCase:
    drawn = drawing.judge_node(found)
    if isinstance(drawn, Open):
        raise DocumentError(f"the oracle cannot judge it: {drawn.reason}")
    return drawn_case.case_of(drawn).builder(case)


def _build_graph(found: NodeGraph, case: Case) -> BuiltCase:
    """The graph at the level of optimisation at which it failed, and at which the fixed graphs of the suite run."""
    built = graph_case.case_of(found).builder(case)
    assert built.node.surroundings is not None
    around = replace(built.node.surroundings, level=LEVEL)
    return replace(built, node=replace(built.node, surroundings=around))


def _why_no_case(written: SerializedNode) -> str:
    """What the suite does not have or does not build, in words; empty where it does."""
    node = written.node
    try:
        operator = operator_of(written.operator)
    except KeyError:
        return f"the suite has no {written.operator}"
    if not schema.has(node.op_type, node.since_version, node.domain):
        return f"the suite has no {written.operator} of version {node.since_version}"
    if written.dtypes not in operator.dtypes(node.since_version):
        return f"the suite has no {written.operator} of {'-'.join(written.dtypes)}"
    if written.binding not in graphs.BINDINGS:
        return f"no binding: {written.binding!r}"
    arrays: list[Array] = [operand.value for operand in node.inputs if operand is not None]
    if any(size > oracle.MOST_ELEMENTS for array in arrays for size in array.shape):
        return f"an input has a dimension above {oracle.MOST_ELEMENTS:,}"
    return ""
