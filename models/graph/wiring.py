"""The data flow of a model's main graph: which node makes each value, which nodes read it, and what crosses a cut.

A node that holds graphs (If, Loop, Scan) is one node: it reads what its bodies capture from outside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from epcheck.conformance.test_data import model_file
from epcheck.generators.array import Array
from epcheck.models.graph.feedable import is_feedable
from epcheck.models.graph.values import bodies, infer_types, of_graph


@dataclass(frozen=True)
class Wiring:
    """A model's main graph, node by node in its own order, which ONNX demands to be topological.

    inputs: names of the values that are fed. constants: initializers, and what `Constant` nodes make. fixed: values
    that depend on constants alone. reads: for each node what it reads, constants as well, every name once. producer:
    value -> node. last_read: value -> the last node that reads it; the number of nodes for a graph output. folder:
    where the model's external data is; None where it has none, or nobody said.
    """

    model: onnx.ModelProto
    inputs: tuple[str, ...]
    constants: frozenset[str]
    fixed: frozenset[str]
    reads: tuple[tuple[str, ...], ...]
    producer: Mapping[str, int]
    last_read: Mapping[str, int]
    folder: Path | None = None

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.reads)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the graph's outputs."""
        return tuple(output.name for output in self.model.graph.output)

    @cached_property
    def types(self) -> dict[str, onnx.TypeProto]:
        """Value -> its type as the model declares or ONNX infers it; values without a known type are left out."""
        graph = infer_types(self.model, {}).graph
        known = {value.name: value.type for value in (*graph.value_info, *graph.input, *graph.output)}
        return {name: type_ for name, type_ in known.items() if type_.WhichOneof("value")}

    def sizes(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int | None]:
        """Value -> its bytes, for inputs of these shapes; None where they are not known."""
        return {name: type_.bytes for name, type_ in of_graph(infer_types(self.model, shapes).graph).items()}

    def constant(self, name: str) -> Array | None:
        """The value of a constant; None for one in external data without a folder, and for text of a `Constant`."""
        if name in self.producer:
            return _of_constant(self.model.graph.node[self.producer[name]])
        for tensor in self.model.graph.initializer:
            if tensor.name == name and (self.folder is not None or tensor.data_location != onnx.TensorProto.EXTERNAL):
                return model_file.array_of(tensor, self.folder or Path())
        return None

    def list_outputs(self, node: int) -> tuple[str, ...]:
        """The outputs of a node, without omitted ones."""
        return tuple(filter(None, self.model.graph.node[node].output))

    def list_received_values(self, node: int) -> tuple[str, ...]:
        """The values that a node reads, without constants."""
        return tuple(name for name in self.reads[node] if name not in self.constants)

    def can_be_output(self, value: str) -> bool:
        """Whether a session can return a value: it is a tensor of a type that numpy has, a sequence of tensors, or of
        unknown type."""
        if value not in self.types or self.is_sequence(value):
            return True
        return self.types[value].HasField("tensor_type") and is_feedable(self.types[value])

    def is_sequence(self, value: str) -> bool:
        """Whether a value is a sequence of tensors."""
        return value in self.types and self.types[value].sequence_type.elem_type.HasField("tensor_type")

    def frontier(self, cut: int) -> tuple[str, ...]:
        """The values that cross a cut: made by a node before `cut`, and read by a later node or graph outputs."""
        return tuple(
            name
            for name, node in self.producer.items()
            if node < cut <= self.last_read.get(name, -1) and name not in self.constants
        )

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """Where the graph can be cut: at 0, at its end, and behind each node but constants where a session can return
        all values that cross the cut."""
        inner = range(1, self.nodes)
        real = (cut for cut in inner if self.model.graph.node[cut - 1].op_type != "Constant")
        return (0, *(cut for cut in real if all(map(self.can_be_output, self.frontier(cut)))), self.nodes)


def wire(model: onnx.ModelProto, fed: Collection[str] = (), folder: Path | None = None) -> Wiring:
    """The wiring of a model. fed: names of the feeds; an initializer among them is an input that has a default. folder:
    where the model's external data is, for its values."""
    graph = model.graph
    stored = {tensor.name for tensor in graph.initializer} | {sparse.values.name for sparse in graph.sparse_initializer}
    inputs = tuple(value.name for value in graph.input if value.name not in stored or value.name in fed)
    constants = stored.difference(inputs)
    constants |= {name for node in graph.node if node.op_type == "Constant" and not node.domain for name in node.output}
    producer: dict[str, int] = {}
    last_read: dict[str, int] = {}
    fixed = set(constants)
    reads = []
    for index, node in enumerate(graph.node):
        names = tuple(dict.fromkeys(_reads(node)))
        reads.append(names)
        last_read.update(dict.fromkeys(names, index))
        producer.update(dict.fromkeys(filter(None, node.output), index))
        if names and fixed.issuperset(names):
            fixed.update(filter(None, node.output))
    last_read.update((output.name, len(graph.node)) for output in graph.output)
    return Wiring(model, inputs, frozenset(constants), frozenset(fixed), tuple(reads), producer, last_read, folder)


def find_captured_names(graph: onnx.GraphProto) -> Iterator[str]:
    """The names that a body reads from the graphs around it."""
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {sparse.values.name for sparse in graph.sparse_initializer}
    for node in graph.node:
        yield from (name for name in _reads(node) if name not in own)
        own.update(node.output)
    yield from (output.name for output in graph.output if output.name not in own)


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    yield from filter(None, node.input)
    for _, body in bodies(node):
        yield from find_captured_names(body)


def _of_constant(node: onnx.NodeProto) -> Array | None:
    """The output of a `Constant` node; None for text and sparse tensors, which no oracle reads."""
    for attribute in node.attribute:
        match attribute.name:
            case "value":
                return numpy_helper.to_array(attribute.t)
            case "value_float" | "value_floats":
                return np.asarray(onnx.helper.get_attribute_value(attribute), np.float32)
            case "value_int" | "value_ints":
                return np.asarray(onnx.helper.get_attribute_value(attribute), np.int64)
    return None
