"""The facts of a case as records have them: inputs, outputs, attributes, the DirectML operator it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from epcheck.conformance.preparation.data_words import compare_data, compare_with_numbers, describe_data
from epcheck.conformance.records import strict_json, typed_json
from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.case_facts import REFUSAL, CaseFacts, DirectML
from epcheck.conformance.records.repro_command import repro_command
from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.directml import FeatureLevel, OperatorDesc
from epcheck.generators.node import Node, Operand
from epcheck.generators.schema import dtype_name
from epcheck.generators.truth import Outputs, Refusal, Selection

DIRECTML_LEVEL = FeatureLevel.DML_FEATURE_LEVEL_6_4
"""What DirectML 1.15, the last redistributable, supports; descriptions are validated at it."""

PREVIEW = 12
"""Elements of an input that a record shows."""


def of(built: BuiltCase, rounded: Accuracy | None = None) -> CaseFacts:
    """The facts of a case. rounded: how far its correctly rounded outputs are from the truth.

    They are made as text, with the names and in the order of the fields of `CaseFacts`: few of them are looked at.
    """
    case = built.case
    fields = {
        "case_id": case.id,
        "operator": case.operator,
        "domain": case.domain,
        "since_version": case.since_version,
        "opset": built.opset,
        "dtype": case.dtype,
        "sample": case.sample,
        "binding": case.binding,
        "types": built.types,
    }
    last = {"expects": _describe_expected(built), "repro": repro_command(case.id, folder=case.folder)}
    attributes = strict_json.dumps(built.node.attributes)
    values = strict_json.dumps_without_floats(_values(built))
    directml = "null" if built.lowering is None else _directml(built.lowering.description)
    text = (
        f'{strict_json.dumps_without_floats(fields)[:-1]},"attributes":{attributes},"values":{values},'
        f'"directml":{directml},{strict_json.dumps_without_floats(last)[1:]}'
    )
    if rounded is not None:
        text = f'{text[:-1]},"rounded":{strict_json.dumps(vars(rounded))}}}'
    defaults = _defaults(built.node)
    if defaults:
        text = f'{text[:-1]},"defaults":{strict_json.dumps(defaults)}}}'
    if beside := _beside(built.node):
        text = f'{text[:-1]},"beside":{strict_json.dumps_without_floats(beside)}}}'
    if pairs := _pairs(built.node, defaults):
        text = f'{text[:-1]},"pairs":{strict_json.dumps_without_floats(pairs)}}}'
    if nodes := _nodes(built.node):
        text = f'{text[:-1]},"nodes":{strict_json.dumps(nodes)}}}'
    return CaseFacts.from_text(case.id, text)


def _nodes(node: Node) -> list[Mapping[str, Any]]:
    """As `records.case_facts.NodeFacts`, of each node of a graph."""
    return [_node(each.node, each.outputs) for each in node.surroundings.evaluated] if node.surroundings else []


def _node(node: Node, outputs: Sequence[Operand]) -> Mapping[str, Any]:
    inputs = [operand for operand in node.inputs if operand is not None]
    values = [_value(o.name, o.value, "initializer" if o.parameter else "input") for o in inputs]
    described = {
        "operator": node.op_type,
        "domain": node.domain,
        "since_version": node.since_version,
        "types": graph.type_bindings(node),
        "attributes": node.attributes,
        "values": values + [_value(o.name, o.value, "output") for o in outputs],
    }
    defaults = _defaults(node)
    return {**described, "defaults": defaults} if defaults else described


def _describe_expected(built: BuiltCase) -> str:
    match built.truth:
        case Refusal(reason):
            return f"{REFUSAL}: {reason}"
        case Outputs(undefined=why) if why:
            return f"{REFUSAL}, or a result that is right where it is defined: {why}"
    return "the true result"


def _defaults(node: Node) -> dict[str, Any]:
    """Attribute -> the value that the operator's schema gives where the node has none."""
    defaults = schema.default_attributes(node.op_type, node.since_version, node.domain)
    return {name: value for name, value in defaults.items() if name not in node.attributes}


def _beside(node: Node) -> list[str]:
    """The op_types of the nodes around the node under test, each once."""
    around = node.surroundings
    return sorted({other.op_type for other in (*around.before, *around.after)}) if around else []


def _pairs(node: Node, defaults: Mapping[str, Any]) -> tuple[str, ...]:
    """What `compare_data` says of the first two inputs, and `compare_with_numbers` of the first one and the numbers
    beside it: attributes, and inputs of one element; nothing of a graph of several nodes."""
    if node.surroundings or not node.inputs or node.inputs[0] is None:
        return ()
    first, *others = [operand for operand in node.inputs if operand is not None]
    second = others[0].value if node.inputs[1:] and node.inputs[1] is not None and not others[0].parameter else None
    words = () if second is None or first.parameter else compare_data(first.value, second)
    attributes = {**defaults, **node.attributes}
    numbers = {name: value for name, value in attributes.items() if isinstance(value, float)}
    numbers |= {o.name: o.value.item() for o in others if o.value.size == 1 and o.value.dtype.kind in "fiu"}
    with np.errstate(all="ignore"):
        return *words, *compare_with_numbers(first.value, numbers)


def of_unbuilt(case: Case) -> CaseFacts:
    """What is known of a case whose generator failed."""
    return CaseFacts(
        case_id=case.id,
        operator=case.operator,
        domain=case.domain,
        since_version=case.since_version,
        opset=0,
        dtype=case.dtype,
        sample=case.sample,
        binding=case.binding,
        types={},
        attributes={},
        values=(),
        directml=None,
        expects="nothing: its generator failed",
        repro=repro_command(case.id, folder=case.folder),
    )


@lru_cache(maxsize=1024)
def _directml(desc: OperatorDesc) -> str:
    """What a record shows of a description, as the text of `DirectML`; the bindings of a sample share theirs."""
    violations = tuple(f"{v.constraint}: {v.message}" for v in desc.validate(DIRECTML_LEVEL))
    shown = DirectML(desc.NAME, desc.as_dict(), violations)
    return strict_json.dumps(typed_json.to_json(shown))


def _values(built: BuiltCase) -> list[Mapping[str, Any]]:
    """The node's inputs as the model has them, then its outputs as the truth has them."""
    values = [_value(o.name, o.value, _where(built, o.name)) for o in built.node.inputs if o is not None]
    match built.truth:
        case Outputs(outputs):
            return values + [_value(output.name, output.value, "output") for output in outputs]
        case Selection(accepted=accepted):
            return values + [
                _value(name, value, "output") for name, value in zip(built.node.results, accepted[0], strict=True)
            ]
        case _:
            types = graph.output_types(built.node, built.types)
            results = built.node.results
            return values + [{"name": name, "dtype": types[name], "shape": [], "where": "output"} for name in results]


def _value(name: str, value: Array, where: str) -> Mapping[str, Any]:
    """As `records.case_facts.Value`."""
    described: dict[str, Any] = {"name": name, "dtype": dtype_name(value.dtype), "shape": value.shape, "where": where}
    if shown := preview(value):
        described["preview"] = shown
    is_readable = value.dtype.kind in "iu" and value.size <= PREVIEW and value.ndim < 2  # its preview tells as much
    if not is_readable and (data := describe_data(value)):
        described["data"] = data
    return described


def _where(built: BuiltCase, name: str) -> str:
    return "input" if name in built.feeds else "initializer"


def preview(value: Array) -> str:
    """The first elements as text; the number of those left out."""
    flat: Any = np.ravel(value)[:PREVIEW]
    if value.dtype.kind != "f" or value.dtype == np.float64:  # whose numbers Python writes as numpy does, but faster
        flat = flat.tolist()
    more = value.size - len(flat)
    return ", ".join(map(str, flat)) + (f", … {more} more" if more > 0 else "")
