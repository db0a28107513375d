"""The oracle of a whole model: every floating-point value is computed in float64 and never rounded to a narrower type.

    evaluation = oracle.evaluate(model, feeds)
    evaluation.values["logits"]       # float64

Weights, feeds and constants are widened, which is exact: weights in other files when their first reader runs, large
ones a block at a time (`large_weights`). What is not in use is on disk (`value_store`), so that a model may be larger
than the memory. Nodes that quantise do so as the standard says, on values
that were not rounded before. A model that is too large, draws random numbers or has an unknown node is refused with a
sentence that names the node.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnx

from epcheck.conformance.test_data import model_file
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.generators.array import Array
from epcheck.generators.node import qualified_name
from epcheck.models.graph import feed, flops, skeleton
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.inlining import InliningError, inline_functions
from epcheck.models.graph.skeleton import Shape
from epcheck.models.oracle import control_flow, large_weights
from epcheck.models.oracle import node as oracle_node
from epcheck.models.oracle.node import Computed, OracleError, widen_value
from epcheck.models.oracle.value_store import ValueStore

__all__ = ["MAX_OPERATIONS", "Disturbance", "Evaluation", "OracleError", "OracleTooLargeError", "evaluate"]

MAX_OPERATIONS = 100_000_000_000
"""Multiplications and additions of the largest model: products of matrices take about a second for each 5 * 10^9, and
convolutions for each 10^9."""

ADVICE = "smaller sizes (--dim) take fewer"
"""What a sentence about too many operations ends with."""


class Disturbance(Protocol):
    """Changes the values of an evaluation on their way. operands: what a node receives, None for what is omitted;
    results: what it made."""

    def operands(self, node: onnx.NodeProto, inputs: Sequence[Feed]) -> Sequence[Feed]: ...
    def results(self, node: onnx.NodeProto, values: Sequence[Feed]) -> Sequence[Feed]: ...


class OracleTooLargeError(OracleError):
    """The model computes more, or takes longer, than the oracle is allowed to."""


@dataclass(frozen=True)
class Evaluation:
    """The true values of a model.

    values: wanted name -> value, floating point as float64; what is on disk is read when it is asked for. judges:
    operator -> who computed it: `epcheck.generators` (the suite's oracles), `onnx.reference`, or `epcheck.models`
    (constants, control flow, arithmetic). operations: multiplications and additions that it took, estimated. skipped:
    output of a node of the main graph that nobody computes -> why, in a sentence; the values that depend on it are
    missing unless it has a substitute.
    """

    values: Mapping[str, Feed]
    judges: Mapping[str, str]
    operations: int
    skipped: Mapping[str, str] = field(default_factory=dict)


def evaluate(
    model: onnx.ModelProto,
    feeds: Mapping[str, Feed],
    outputs: Sequence[str] = (),
    max_operations: int = MAX_OPERATIONS,
    max_seconds: float = math.inf,
    disturbance: Disturbance | None = None,
    substitutes: Mapping[str, Feed] | None = None,
    folder: Path | None = None,
) -> Evaluation:
    """The values of the outputs, or of any values of the main graph.

    outputs: names; those of the graph's outputs unless they are named. Local functions are inlined first, so that
    values inside them cannot be asked for. max_operations: checked against an estimate before anything is computed, and
    then against what was really done. disturbance: changes each node's values, so that what comes out is no longer the
    truth. substitutes: compute the model in parts: a node that nobody computes is skipped, and these values, by name,
    take the place of its outputs. folder: of the model, where its external data is; None where all weights are in it.
    Raises OracleError, OracleTooLargeError among them.
    """
    estimated = _estimate(model, feed.shapes(feeds))
    if estimated > max_operations:
        raise OracleTooLargeError(
            f"the model takes {estimated:.1e} operations; the oracle does {max_operations:.1e}; {ADVICE}"
        )
    until = time.monotonic() + max_seconds
    try:
        flat = inline_functions(model)
    except InliningError as error:
        raise OracleError(str(error)) from None
    opsets = {entry.domain: entry.version for entry in flat.opset_import}
    work = _Work(opsets, max_operations, until, disturbance, substitutes, folder)
    wanted = tuple(outputs) or tuple(value.name for value in flat.graph.output)
    inputs = {name: widen_value(value) for name, value in feeds.items()}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        store = ValueStore()
        work.run(flat.graph, inputs, store, wanted)
    return Evaluation(store, work.judges, work.operations, work.skipped)


def _estimate(model: onnx.ModelProto, shapes: Mapping[str, Shape]) -> float:
    """Operations of the main graph's nodes whose shapes can be inferred, bodies not counted: a lower bound."""
    known = skeleton.infer_shapes(skeleton.without_weights(model, shapes))
    counts = (
        flops.of(node, [known.get(name) for name in node.input], [known.get(name) for name in node.output])
        for node in model.graph.node
    )
    return sum(count or 0.0 for count in counts)


class _Work:
    """One evaluation in progress: operations so far, and the judge of each operator."""

    def __init__(
        self,
        opsets: Mapping[str, int],
        max_operations: int,
        until: float,
        disturbance: Disturbance | None,
        substitutes: Mapping[str, Feed] | None,
        folder: Path | None,
    ) -> None:
        """until: by the monotonic clock, in seconds."""
        self.skipped: dict[str, str] = {}
        self._unknown: set[str] = set()
        self._substitutes = substitutes
        self.judges: dict[str, str] = {}
        self.operations = 0
        self._opsets, self._max_operations, self._until = dict(opsets), max_operations, until
        self._disturbance, self._folder = disturbance, folder

    def run(
        self,
        graph: onnx.GraphProto,
        inputs: Mapping[str, Feed],
        own: MutableMapping[str, Any],
        wanted: Sequence[str],
        outer: Mapping[str, Any] | None = None,
    ) -> None:
        """Compute the wanted values of a graph. own: takes them, and no others in the end. outer: what the graph sees
        of those around it. Both have weights that nobody has read yet as TensorProto."""
        scope = own if outer is None else ChainMap(own, outer)  # type: ignore[arg-type]  # which is not written
        weights = {tensor.name: tensor for tensor in graph.initializer}
        own.update({**weights, **inputs})
        left = Counter(name for node in graph.node for name in _read(node))
        for node in graph.node:
            in_parts = outer is None and self._substitutes is not None
            values = self._values_in_parts(node, scope) if in_parts else self._values(node, scope)
            own.update((name, value) for name, value in zip(node.output, values, strict=False) if name)
            for name in _read(node):  # free what no later node reads
                left[name] -= 1
                if not left[name] and name not in wanted and name in own:
                    del own[name]
        for name in wanted:
            if name not in scope:
                raise OracleError(f"the graph '{graph.name}' has no value '{name}'")
            if name in weights or name not in own:
                own[name] = widen_value(self._load(name, scope))
        for name in [name for name in own if name not in wanted or (name in self._unknown and outer is None)]:
            del own[name]

    def _values_in_parts(self, node: onnx.NodeProto, scope: MutableMapping[str, Any]) -> tuple[Feed, ...]:
        """The outputs of a node of the main graph; of one that nobody computes its substitutes, else None, and their
        names are unknown."""
        assert self._substitutes is not None
        names = [name for name in node.output if name]
        if self._unknown.isdisjoint(_read(node)):
            try:
                return self._values(node, scope)
            except OracleTooLargeError:
                raise
            except OracleError as error:
                self.skipped.update(dict.fromkeys(names, str(error)))
                names = [name for name in names if name not in self._substitutes]
        self._unknown.update(names)
        return tuple(None if name in self._unknown else widen_value(self._substitutes[name]) if name else None
                     for name in node.output)  # fmt: skip

    def _values(self, node: onnx.NodeProto, scope: MutableMapping[str, Any]) -> tuple[Feed, ...]:
        if time.monotonic() > self._until:
            raise OracleTooLargeError(f"time limit reached at {oracle_node.describe_node(node)}")
        try:
            inputs = [self._load(name, scope) if name else None for name in node.input]
        except KeyError as error:
            raise OracleError(f"{oracle_node.describe_node(node)} reads {error}, which no node writes") from None
        if any(attribute.HasField("g") for attribute in node.attribute):
            for name in filter(scope.__contains__, _read(node)):
                self._load(name, scope)  # once, and not in each iteration

            def run(body: onnx.GraphProto, inner: Mapping[str, Feed]) -> tuple[Feed, ...]:
                names, own = [value.name for value in body.output], dict[str, Any]()
                self.run(body, inner, own, names, scope)
                return tuple(own[name] for name in names)

            try:
                received = [widen_value(value) for value in inputs]
                values, judge = control_flow.evaluate(node, received, run), oracle_node.OWN
            except (LookupError, TypeError, ValueError, ArithmeticError) as error:
                if isinstance(error, OracleError):
                    raise
                raise OracleError(f"{oracle_node.describe_node(node)} breaks the standard: {error}") from None
        else:
            computed = large_weights.evaluate(node, inputs, self._compute)
            values, judge = computed.values, computed.judge
            self._spend(node, inputs, values)
            if self._disturbance is not None:
                values = tuple(self._disturbance.results(node, values))
        self.judges[qualified_name(node.op_type, node.domain)] = judge
        return values

    def _compute(self, node: onnx.NodeProto, inputs: Sequence[Feed]) -> Computed:
        """The outputs of a node, or of a part of it, on widened inputs."""
        if time.monotonic() > self._until:
            raise OracleTooLargeError(f"time limit reached at {oracle_node.describe_node(node)}")
        if self._disturbance is not None:
            inputs = list(self._disturbance.operands(node, inputs))
        return oracle_node.evaluate(node, inputs, self._opsets)

    def _load(self, name: str, scope: MutableMapping[str, Any]) -> Feed:
        """A value; a weight in float64, but a large one as it is stored, and that is not kept. Raises KeyError."""
        value: Feed | onnx.TensorProto = scope[name]
        if not isinstance(value, onnx.TensorProto):
            return value
        array = self._array(value)
        if large_weights.is_large(array):
            return array
        scope[name] = widened = widen_value(array)
        return widened

    def _array(self, tensor: onnx.TensorProto) -> Array:
        if tensor.data_location == onnx.TensorProto.EXTERNAL and self._folder is None:
            raise OracleError(f"the data of '{tensor.name}' is in another file; name its folder")
        try:
            return model_file.array_of(tensor, self._folder or Path())
        except ModelFileError as error:
            raise OracleError(str(error)) from None

    def _spend(self, node: onnx.NodeProto, inputs: Sequence[Feed], values: Sequence[Feed]) -> None:
        self.operations += int(flops.of(node, [_shape(v) for v in inputs], [_shape(v) for v in values]) or 0)
        if self.operations > self._max_operations:
            name, limit = oracle_node.describe_node(node), f"{self._max_operations:.1e}"
            raise OracleTooLargeError(f"{name} exceeds the {limit} operations that the oracle does; {ADVICE}")


def _read(node: onnx.NodeProto) -> Iterator[str]:
    """The values that a node reads, those in the graphs of its attributes among them, each once for each reader."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _read(inner)
            yield from (value.name for value in graph.output)


def _shape(value: Feed) -> Shape:
    return value.shape if isinstance(value, np.ndarray) else ()
