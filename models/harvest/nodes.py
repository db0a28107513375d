"""One node of a model as a harvested node, or why it is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import onnx
from onnx import AttributeProto

from epcheck.generators import registry, schema
from epcheck.generators.fuzzing import oracle
from epcheck.generators.fuzzing.oracle import Open
from epcheck.generators.harvested.harvested_node import MOST_ELEMENTS, HarvestedInput, HarvestedNode, digest
from epcheck.generators.node import qualified_name
from epcheck.generators.operator import Operator, random_source
from epcheck.generators.serialization.node_proto import read_node
from epcheck.generators.sources.harvested import case_of
from epcheck.generators.truth import Refusal
from epcheck.models.graph import flops
from epcheck.models.graph.values import bodies
from epcheck.models.graph.wiring import Wiring
from epcheck.models.harvest.values import KnownValue
from epcheck.models.wrong_nodes.node_check import definition_of, is_random

MOST_OPERATIONS = 3e8
"""Multiplications and additions of a node, at most: the oracle takes a third of a second for them."""

PLAIN = frozenset(
    getattr(AttributeProto, name) for name in ("FLOAT", "INT", "STRING", "TENSOR", "FLOATS", "INTS", "STRINGS")
)
"""The types of attributes that a node of the suite can have."""

Known = Mapping[str, KnownValue | None]


@dataclass(frozen=True)
class NotHarvested:
    """A node of a model that makes no case. node: its name, or the value that it writes. why: in words."""

    model: str
    node: str
    operator: str
    why: str


def harvest_node(model: str, wiring: Wiring, index: int, known: Known) -> HarvestedNode | NotHarvested:
    """A node of the main graph. model: the name of its file."""
    proto = wiring.model.graph.node[index]
    found = _node(model, wiring, index, known)
    return found if isinstance(found, HarvestedNode) else not_harvested(model, proto, found)


def not_harvested(model: str, proto: onnx.NodeProto, why: str) -> NotHarvested:
    """The node, and why it makes no case."""
    name = proto.name or next(filter(None, proto.output), "")
    return NotHarvested(model, name, qualified_name(proto.op_type, proto.domain), why)


def why_not_judged(node: HarvestedNode) -> str:
    """Why the oracle cannot judge the case of a node, in words; empty where it can."""
    operator = registry.operator_of(node.operator)
    made = node.node(random_source(case_of(node, operator).id))
    truth = oracle.judge_real(operator, made)
    if isinstance(truth, Open):
        return truth.reason
    return f"it must be refused: {truth.reason}" if isinstance(truth, Refusal) else ""


def _node(model: str, wiring: Wiring, index: int, known: Known) -> HarvestedNode | str:
    """The node, or why it is none."""
    proto = wiring.model.graph.node[index]
    if proto.op_type == "Constant" and not proto.domain:
        return "it is a constant"
    if any(bodies(proto)):
        return "its attributes are graphs"
    if any(attribute.type not in PLAIN for attribute in proto.attribute):
        return "an attribute is neither numbers nor text nor a tensor"
    definition = definition_of(wiring, proto)
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    operator = registry.all_operators().get(qualified_name(proto.op_type, domain))
    if definition is None or operator is None:
        return "the suite does not have the operator"
    if is_random(wiring, index):
        return "it draws random numbers"
    names = [name for name in proto.input if name]
    if wiring.fixed.issuperset(names):
        return "it depends on constants alone, so that a session computes it beforehand"
    if any(known.get(name) is None for name in names):
        return "an input is no tensor of numbers, or its value is not known"
    if reason := _too_large(proto, known):
        return reason
    shell = read_node(proto, definition, [0] * len(names))
    inputs = tuple(
        None if operand is None else _input(operand.name, name, wiring, known)
        for operand, name in zip(shell.inputs, proto.input, strict=True)
    )
    dtypes = _dtypes(operator, proto, definition, known)
    if isinstance(dtypes, str):
        return dtypes
    version = definition.since_version
    return HarvestedNode(
        operator.name, operator.domain, version, dtypes, inputs, shell.outputs, shell.attributes, {model: 1}
    )


def _input(formal: str, name: str, wiring: Wiring, known: Known) -> HarvestedInput:
    value = known[name]
    assert value is not None
    return HarvestedInput(formal, value.dtype, value.shape, value.values, name in wiring.fixed)


def _too_large(proto: onnx.NodeProto, known: Known) -> str:
    """Why the node would take the oracle too long, in words; empty where it would not."""
    values = [known.get(name) for name in (*proto.input, *proto.output)]
    shapes = [None if value is None else value.shape for value in values]
    elements = max((prod(shape) for shape in shapes if shape is not None), default=0)
    if elements > MOST_ELEMENTS:
        return f"it has {elements:,} elements in one tensor; {MOST_ELEMENTS:,} are the most"
    operations = flops.of(proto, shapes[: len(proto.input)], shapes[len(proto.input) :]) or 0.0
    if operations > MOST_OPERATIONS:
        return f"it takes {operations:.1e} operations; the oracle does {MOST_OPERATIONS:.0e} of a harvested node"
    return ""


def _dtypes(
    operator: Operator[Any], proto: onnx.NodeProto, definition: onnx.defs.OpSchema, known: Known
) -> tuple[str, ...] | str:
    """The dtypes of the constraints that the operator varies; where the node has none of that type, the first of the
    operator. A sentence where these are no dtypes that the schema allows."""
    signature = schema.signature(operator.name, definition.since_version, operator.domain)
    kinds = (
        *zip(signature.outputs_of(len(proto.output)), proto.output, strict=True),
        *zip(signature.inputs_of(len(proto.input)), proto.input, strict=True),
    )
    types = {kind: value.dtype for kind, name in kinds if name and (value := known.get(name)) is not None}
    allowed = list(operator.dtypes(definition.since_version))
    if allowed and len(allowed[0]) != len(operator.varied):
        return _find_quantized_dtypes(operator, proto, known, allowed)
    dtypes = tuple(
        types.get(kind) or first for kind, first in zip(operator.varied, allowed[0], strict=True)
    ) if allowed else ()  # fmt: skip
    if dtypes not in allowed:
        return f"the suite has no {operator.key} of {'-'.join(dtypes)}"
    return dtypes


def _find_quantized_dtypes(
    operator: Operator[Any], proto: onnx.NodeProto, known: Known, allowed: list[tuple[str, ...]]
) -> tuple[str, ...] | str:
    """Of operators that vary more dtypes than constraints: what is quantised and its result; of QLinearMatMul both
    factors, the product and the scales."""
    inputs, outputs = proto.input, proto.output
    names = (inputs[0], outputs[0]) if len(allowed[0]) == 2 else (inputs[0], inputs[3], outputs[0], inputs[1])
    values = [known.get(name) for name in names]
    dtypes = tuple(value.dtype for value in values if value is not None)
    if dtypes not in allowed:
        return f"the suite has no {operator.key} of {'-'.join(dtypes)}"
    return dtypes


def deduplicate_nodes(nodes: Iterable[HarvestedNode]) -> list[HarvestedNode]:
    """Nodes that compute alike as one, in the order of the first of each."""
    found: dict[str, HarvestedNode] = {}
    for node in nodes:
        name = digest(node)
        found[name] = found[name].join(node) if name in found else node
    return list(found.values())


def reasons(left_out: Iterable[NotHarvested]) -> list[tuple[str, int]]:
    """The reasons, and how many nodes each is of, the most frequent first."""
    return Counter(each.why for each in left_out).most_common()
