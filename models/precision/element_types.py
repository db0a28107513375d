"""The element type of every value of a model, and which inputs and outputs of a node may have another one.

Both follow from the schemas: of `onnx.defs`, and of ONNX Runtime for its own operators. ONNX's shape inference alone
knows no value behind an operator of another domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import TensorProto

from epcheck.generators import schema
from epcheck.models.graph import values
from epcheck.models.graph.wiring import Wiring

TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype")
"""Attributes that are the element type of an output."""

NAMES: Mapping[int, str] = {TensorProto.FLOAT: "tensor(float)", TensorProto.FLOAT16: "tensor(float16)"}
"""Element type -> as a type constraint has it."""


@dataclass(frozen=True)
class Places:
    """The inputs and outputs of a node that take part in a change of type, by position. attribute: the one that is the
    type of the outputs, or holds their value; empty where they follow the inputs."""

    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    attribute: str = ""

    @property
    def any(self) -> bool:
        """Whether there is any."""
        return bool(self.inputs or self.outputs)


def element_types(wiring: Wiring) -> dict[str, int]:
    """Value of the main graph -> TensorProto.DataType, of tensors whose type is known."""
    graph = wiring.model.graph
    found = {tensor.name: tensor.data_type for tensor in graph.initializer}
    found.update((sparse.values.name, sparse.values.data_type) for sparse in graph.sparse_initializer)
    for name, kind in wiring.types.items():
        if kind.HasField("tensor_type") and kind.tensor_type.elem_type:
            found.setdefault(name, kind.tensor_type.elem_type)
    opsets = {entry.domain: entry.version for entry in wiring.model.opset_import}
    for node in graph.node:
        for name, element_type in _infer_output_types(node, opsets, found):
            found.setdefault(name, element_type)
    return found


def _infer_output_types(
    node: onnx.NodeProto, opsets: Mapping[str, int], known: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    """Outputs that have the type of an input, or that of no choice."""
    signature = signature_of(node, opsets)
    if signature is None:
        return
    taken = {kind: known[name] for name, kind in zip(node.input, signature.inputs_of(len(node.input)), strict=False)
             if name in known}  # fmt: skip
    fixed = {text: number for number, text in NAMES.items()}
    for name, kind in zip(node.output, signature.outputs_of(len(node.output)), strict=False):
        if name and (kind in taken or kind in fixed):
            yield name, taken.get(kind) or fixed[kind]


def signature_of(node: onnx.NodeProto, opsets: Mapping[str, int]) -> schema.Signature | None:
    """The signature of a node's revision of its operator; None where nobody knows it."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    if not schema.knows(node.op_type, domain):
        return None
    versions = [v for v in schema.since_versions(node.op_type, domain) if v <= opsets.get(domain, 1)]
    return schema.signature(node.op_type, versions[-1], domain) if versions else None


def places(node: onnx.NodeProto, opsets: Mapping[str, int], known: Mapping[str, int], old: int, new: int) -> Places:
    """The inputs and outputs of a node of type `old` that its operator takes in type `new` as well. None of a node that
    holds graphs, or that nobody knows."""
    signature = signature_of(node, opsets)
    if signature is None or any(values.bodies(node)):
        return Places()
    domain = "" if node.domain == "ai.onnx" else node.domain
    since = max(v for v in schema.since_versions(node.op_type, domain) if v <= opsets.get(domain, 1))
    allowed = _allowing(schema.schema(node.op_type, since, domain), new)
    inputs, kinds = _of_type(node.input, signature.inputs_of(len(node.input)), known, old, allowed)
    outputs, made = _of_type(node.output, signature.outputs_of(len(node.output)), known, old, allowed)
    if set(made) <= set(kinds):
        return Places(inputs, outputs)
    attribute = _type_attribute(node)
    if attribute:
        return Places(inputs, outputs, attribute)
    return Places(inputs, tuple(at for at, kind in zip(outputs, made, strict=True) if kind in kinds))


def _allowing(definition: onnx.defs.OpSchema, new: int) -> frozenset[str]:
    """The type constraints that allow a type."""
    return frozenset(c.type_param_str for c in definition.type_constraints if NAMES[new] in c.allowed_type_strs)


def _of_type(
    names: Sequence[str], kinds: Sequence[str], known: Mapping[str, int], old: int, allowed: frozenset[str]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    found = [(at, kind) for at, (name, kind) in enumerate(zip(names, kinds, strict=False))
             if name and known.get(name) == old and kind in allowed]  # fmt: skip
    return tuple(at for at, _ in found), tuple(kind for _, kind in found)


def _type_attribute(node: onnx.NodeProto) -> str:
    """The attribute that says of which type the outputs are, or holds their value."""
    names = {attribute.name for attribute in node.attribute}
    chosen = (
        *TYPE_ATTRIBUTES,
        *(("value", "value_float", "value_floats") if node.op_type.startswith("Constant") else ()),
    )
    return next((name for name in chosen if name in names), "")
