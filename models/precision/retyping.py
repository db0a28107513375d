"""A model in which some nodes compute in another floating-point type, with a Cast wherever a value passes the border.

onnxconverter-common and onnxruntime.transformers.float16 make float16 models as well. They are not used: they bring
weights that float16 cannot hold into its range, which hides what is looked for; an initializer that nodes of both
types read comes out in the wrong type (onnxconverter-common's pull request 329, open at 1.16.0); and they cannot take
single nodes of a float16 model back to float32.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from epcheck.models.graph.values import bodies
from epcheck.models.graph.wiring import Wiring, find_captured_names, wire
from epcheck.models.precision.element_types import Places, element_types, places

LEAST_IR_VERSION = 4
"""From it on an initializer is no graph input."""


@dataclass(frozen=True)
class Retyping:
    """A change of type of a model's nodes.

    model: every node has a name. Weights that are in it get the new type; those in external data stay there, and a Cast
    is put behind them. old, new: TensorProto.DataType. places: node -> what
    changes where it is chosen, of those that can be chosen.
    """

    model: onnx.ModelProto
    old: int
    new: int
    wiring: Wiring = field(repr=False)
    types: Mapping[str, int] = field(repr=False)
    places: Mapping[int, Places] = field(repr=False)

    @property
    def suffix(self) -> str:
        """What the name of a value in the new type ends with."""
        return f"_{TensorProto.DataType.Name(self.new).lower().replace('float', 'float32').replace('3216', '16')}"

    def make_retyped_name(self, value: str) -> str:
        """The name of a value in the new type."""
        name = f"{value}{self.suffix}"
        while name in self._taken:
            name += "_"
        return name

    @cached_property
    def _taken(self) -> frozenset[str]:
        return frozenset({*self.wiring.producer, *self.wiring.constants, *self.wiring.inputs})

    def retype_nodes(self, chosen: Collection[int]) -> onnx.ModelProto:
        """The model with these nodes in the new type. Graph inputs and outputs keep their types."""
        return _Application(self, frozenset(chosen)).model()


def retyping(model: onnx.ModelProto, old: int, new: int, folder: Path | None = None) -> Retyping:
    """The change of this model. folder: where its external data is; None where it has none. Nodes that hold
    graphs, and operators that do not take the new type, stay as they are."""
    wiring = wire(model, folder=folder)
    types = element_types(wiring)
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    found = {at: places(node, opsets, types, old, new) for at, node in enumerate(model.graph.node)}
    return Retyping(model, old, new, wiring, types, {at: each for at, each in found.items() if each.any})


class _Application:
    """One model that is being changed. A value that a chosen node makes has its new name; where anything reads it in
    the old type, a Cast gives it its old name."""

    def __init__(self, retyping: Retyping, chosen: frozenset[int]) -> None:
        self._retyping, self._chosen = retyping, chosen
        graph = retyping.model.graph
        self._weights = {tensor.name: tensor for tensor in graph.initializer}
        self._made_new = {graph.node[at].output[place] for at in chosen for place in retyping.places[at].outputs}
        self._read_new = {graph.node[at].input[place] for at in chosen for place in retyping.places[at].inputs}
        self._read_old = set(self._names_read_in_old())

    def model(self) -> onnx.ModelProto:
        source = self._retyping.model
        changed = onnx.ModelProto()
        changed.CopyFrom(source)
        graph = changed.graph
        for name in ("node", "initializer", "value_info"):
            graph.ClearField(name)
        graph.node.extend(self._nodes())
        for tensor in source.graph.initializer:
            if tensor.name in self._read_old or tensor.name not in self._read_new or _is_external(tensor):
                graph.initializer.add().CopyFrom(tensor)
            if tensor.name in self._read_new and not _is_external(tensor):
                graph.initializer.append(self._weight(tensor))
        self._keep_inputs(changed)
        gone = self._made_new - self._read_old
        graph.value_info.extend(info for info in source.graph.value_info if info.name not in gone)
        return changed

    def _keep_inputs(self, changed: onnx.ModelProto) -> None:
        """Weights that are graph inputs too, as old models have them, are not any more where they changed."""
        kept = [value for value in changed.graph.input if value.name not in self._weights]
        if len(kept) < len(changed.graph.input):
            del changed.graph.input[:]
            changed.graph.input.extend(kept)
            changed.ir_version = max(changed.ir_version, LEAST_IR_VERSION)

    def _nodes(self) -> Iterator[onnx.NodeProto]:
        """The nodes and the Casts, in topological order."""
        fed = [name for name in self._retyping.wiring.inputs if name in self._read_new]
        yield from (self._cast(name, self._retyping.new) for name in fed)
        graph = self._retyping.model.graph
        kept = [tensor.name for tensor in graph.initializer if _is_external(tensor)]
        for name in (*kept, *(sparse.values.name for sparse in graph.sparse_initializer)):
            if name in self._read_new:
                yield self._cast(name, self._retyping.new)
        for at, source in enumerate(self._retyping.model.graph.node):
            yield self._retype_node(at, source) if at in self._chosen else source
            for name in filter(None, source.output):
                if name in self._made_new and name in self._read_old:
                    yield self._cast(name, self._retyping.old)
                elif name in self._read_new and name not in self._made_new:
                    yield self._cast(name, self._retyping.new)

    def _cast(self, value: str, to: int) -> onnx.NodeProto:
        other = self._retyping.make_retyped_name(value)
        names = (value, other) if to == self._retyping.new else (other, value)
        return helper.make_node("Cast", [names[0]], [names[1]], name=f"Cast_{names[1]}", to=to)

    def _retype_node(self, at: int, source: onnx.NodeProto) -> onnx.NodeProto:
        found = self._retyping.places[at]
        node = onnx.NodeProto()
        node.CopyFrom(source)
        for names, changed in ((node.input, found.inputs), (node.output, found.outputs)):
            for place in changed:
                names[place] = self._retyping.make_retyped_name(names[place])
        for attribute in node.attribute:
            if attribute.name == found.attribute:
                self._change_attribute(attribute)
        return node

    def _change_attribute(self, attribute: onnx.AttributeProto) -> None:
        if attribute.name in ("value_float", "value_floats"):
            value = np.asarray(helper.get_attribute_value(attribute), np.float32)
            tensor = numpy_helper.from_array(value)
        elif attribute.name == "value":
            tensor = attribute.t
        else:
            attribute.i = self._retyping.new
            return
        changed = self._tensor(tensor)
        attribute.CopyFrom(helper.make_attribute("value", changed))

    def _weight(self, tensor: onnx.TensorProto) -> onnx.TensorProto:
        changed = self._tensor(tensor)
        changed.name = self._retyping.make_retyped_name(tensor.name)
        return changed

    def _tensor(self, tensor: onnx.TensorProto) -> onnx.TensorProto:
        dtype = helper.tensor_dtype_to_np_dtype(self._retyping.new)
        with np.errstate(over="ignore", under="ignore"):
            value = numpy_helper.to_array(tensor).astype(dtype)
        return numpy_helper.from_array(value, tensor.name)

    def _names_read_in_old(self) -> Iterator[str]:
        """The values that something reads in the old type: other nodes, bodies, whoever takes the outputs."""
        yield from self._retyping.wiring.outputs
        for at, node in enumerate(self._retyping.model.graph.node):
            changed = self._retyping.places[at].inputs if at in self._chosen else ()
            yield from (name for place, name in enumerate(node.input) if place not in changed)
            for _, body in bodies(node):
                yield from find_captured_names(body)


def _is_external(tensor: onnx.TensorProto) -> bool:
    return bool(tensor.data_location == TensorProto.EXTERNAL)
