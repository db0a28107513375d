"""One case in words: its model, its feeds, and what is right, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from epcheck.conformance.comparison.bounds import rule
from epcheck.conformance.preparation.case_facts import preview
from epcheck.conformance.test_data.repro import true_outputs
from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.claims import PROVIDERS, claims_of
from epcheck.generators.truth import Exact, Output, Outputs, Refusal, Selection, Ulp


@dataclass(frozen=True)
class ShownTensor:
    """A value. shape: as it is declared, for example `N` for a symbolic dimension. elements: the first of them."""

    name: str
    dtype: str
    shape: tuple[str, ...]
    elements: str = ""


@dataclass(frozen=True)
class ShownNode:
    """A node; an omitted input or output has an empty name. attributes: name -> value as text."""

    op_type: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, str]


@dataclass(frozen=True)
class ShownClaim:
    """What a provider's claim table says of the operator, version and dtypes. why_not: what it does not claim; empty
    where it claims the case."""

    provider: str
    why_not: str


@dataclass(frozen=True)
class ShownOutput:
    """A true output. bound: what each element must fulfil."""

    tensor: ShownTensor
    bound: str


@dataclass(frozen=True)
class ShownCase:
    """opsets: domain -> version. inputs: of the model, as it declares them. feeds: their values. expects: what must
    come of it. truth: empty where the node must be refused. claims: of the providers whose tables epcheck ships."""

    case_id: str
    opsets: Mapping[str, int]
    nodes: tuple[ShownNode, ...]
    inputs: tuple[ShownTensor, ...]
    initializers: tuple[ShownTensor, ...]
    feeds: tuple[ShownTensor, ...]
    expects: str
    truth: tuple[ShownOutput, ...]
    claims: tuple[ShownClaim, ...]


def describe(built: BuiltCase) -> ShownCase:
    """The case in words."""
    model = onnx.load_from_string(built.model)
    case, graph = built.case, model.graph
    weights = {tensor.name for tensor in graph.initializer}
    key = (case.domain, case.operator, case.since_version, built.types)
    tables = ((provider, claims_of(provider)) for provider in PROVIDERS)
    return ShownCase(
        case_id=case.id,
        opsets={entry.domain or "ai.onnx": entry.version for entry in model.opset_import},
        nodes=tuple(map(_node, graph.node)),
        inputs=tuple(_describe_declaration(value) for value in graph.input if value.name not in weights),
        initializers=tuple(_tensor(tensor.name, numpy_helper.to_array(tensor)) for tensor in graph.initializer),
        feeds=tuple(_tensor(name, value) for name, value in built.feeds.items()),
        expects=_expects(built),
        truth=tuple(_truth(built)),
        claims=tuple(ShownClaim(name, table.why_not(*key) or "") for name, table in tables if table is not None),
    )


def _node(node: onnx.NodeProto) -> ShownNode:
    attributes = {each.name: _attribute(helper.get_attribute_value(each)) for each in node.attribute}
    return ShownNode(node.op_type, node.domain, tuple(node.input), tuple(node.output), attributes)


def _attribute(value: Any) -> str:
    match value:
        case bytes():
            return value.decode(errors="backslashreplace")
        case float():
            return str(np.float32(value))
        case onnx.TensorProto():
            array = numpy_helper.to_array(value)
            return f"{schema.dtype_name(array.dtype)}{list(array.shape)} {preview(array)}"
        case onnx.GraphProto():
            return f"a graph of {len(value.node)} nodes: {', '.join(node.op_type for node in value.node)}"
        case str() | int():
            return str(value)
        case Iterable():
            return f"[{', '.join(map(_attribute, value))}]"
    return type(value).__name__


def _describe_declaration(value: onnx.ValueInfoProto) -> ShownTensor:
    tensor = value.type.tensor_type
    try:
        dtype = schema.dtype_name(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    except KeyError:
        dtype = str(value.type.WhichOneof("value"))
    dims = tuple(
        dim.dim_param or (str(dim.dim_value) if dim.HasField("dim_value") else "?") for dim in tensor.shape.dim
    )
    return ShownTensor(value.name, dtype, dims)


def _tensor(name: str, value: Array) -> ShownTensor:
    return ShownTensor(name, schema.dtype_name(value.dtype), tuple(map(str, value.shape)), preview(value))


def _expects(built: BuiltCase) -> str:
    match built.truth:
        case Refusal(reason):
            return f"a refusal: {reason}"
        case Outputs(undefined=why) if why:
            return f"the true result where it is defined, or a refusal: {why}"
        case Selection(axis=axis, accepted=accepted, ordered=ordered):
            order = "in this order" if ordered else "in any order"
            others = f", or another of {len(accepted)} selections" if len(accepted) > 1 else ""
            return f"the elements that are selected along axis {axis}, {order}{others}"
    return "the true result"


def _truth(built: BuiltCase) -> Iterator[ShownOutput]:
    outputs = {output.name: output for output in built.truth.outputs} if isinstance(built.truth, Outputs) else {}
    for name, value in true_outputs(built).items():
        yield ShownOutput(_tensor(name, value), _bound(outputs.get(name) or Output(name, value)))


def _bound(output: Output) -> str:
    """What each element must fulfil, in words."""
    words = rule(output.bound, 0)
    if isinstance(output.bound, Ulp) and np.any(np.asarray(output.bound.floor) > 0):
        words += f", or within {np.max(output.bound.floor):.3g} of the true value"
    if not isinstance(output.bound, Exact) and output.zeros is not None:
        words += f"; the sign of a zero is that of the truth ({output.zeros.source})"
    if output.undefined is not None:
        words += f"; {int(np.sum(output.undefined.where))} of {output.value.size} elements are undefined"
    return words
