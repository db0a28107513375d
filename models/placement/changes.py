"""The changes that may place a node: another version, another dtype, fixed sizes, its definition, a rewrite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, checker, defs, helper, inliner, shape_inference, version_converter

from epcheck.generators import schema
from epcheck.generators.claims import Claims
from epcheck.generators.schema import OLDEST_OPSET
from epcheck.models.graph.skeleton import with_shapes
from epcheck.models.placement import prediction
from epcheck.models.placement.change import Change, LoneNode
from epcheck.models.placement.rewrites import rewrites

INSTEAD = {
    "float64": ("float32", "float16"), "bfloat16": ("float32", "float16"), "float16": ("float32",),
    "float32": ("float16",), "int64": ("int32",), "uint64": ("int64", "int32"), "uint32": ("int64", "int32"),
    "int8": ("int32", "int16"), "uint8": ("int32", "uint32"), "int16": ("int32",), "uint16": ("int32", "uint32"),
    "bool": ("uint8", "int32"), "int32": ("int64",),
}  # fmt: skip
"""Dtype -> those that a node may compute in in its place, the best first."""

RENAMED: Mapping[tuple[str, str], tuple[int, Mapping[bytes, bytes]]] = {
    ("GridSample", "mode"): (20, {b"linear": b"bilinear", b"cubic": b"bicubic"})
}
"""(operator, attribute) -> the opset that renamed its values, and value -> what it was called before."""

FLOATS = ("float16", "bfloat16", "float32", "float64")
FIXED_INPUTS = "give its inputs fixed sizes"
DOMAIN = "epcheck.definition"
MOST_VERSIONS = 3
NOT_CONVERTED = (
    RuntimeError, ValueError, checker.ValidationError, shape_inference.InferenceError, version_converter.ConvertError,
)  # fmt: skip
"""What onnx raises of a model that it cannot convert, inline or accept."""


def changes(alone: LoneNode, claims: Claims | None) -> Iterator[Change]:
    """Every change of a node, and every two that go together, those first of which the claims say that the provider
    takes them. claims: None where there are none."""
    first = list(_single(alone, claims))
    second = [
        change.combine(more) for change in first if (on := change.on(alone)).at >= 0 for more in _together(on, claims)
    ]
    every = [*first, *second]
    if claims is None:
        yield from every
        return
    promising = [is_claimed(change, claims) for change in every]
    yield from (change for change, taken in zip(every, promising, strict=True) if taken)
    yield from (change for change, taken in zip(first, promising, strict=False) if not taken)


def is_claimed(change: Change, claims: Claims) -> bool:
    """Whether the claims have every node of the changed model but those that convert."""
    graph = prediction.main_scope(change.model)
    predicted = zip(graph.nodes, prediction.predict(graph, claims), strict=True)
    return all(found.taken or found.kind == prediction.SHAPES for node, found in predicted
               if node.name not in change.exempt)  # fmt: skip


def _single(alone: LoneNode, claims: Claims | None) -> Iterator[Change]:
    yield from rewrites(alone)
    yield from _versions(alone, claims)
    yield from _casts(alone, claims)
    yield from substitute_definition(alone)
    if (change := fix_sizes(alone)) is not None:
        yield change


def _together(alone: LoneNode, claims: Claims | None) -> Iterator[Change]:
    yield from _casts(alone, claims)
    yield from rewrites(alone)


def fix_sizes(alone: LoneNode) -> Change | None:
    """The sizes of the values that it received in place of dynamic ones; None where every size is fixed."""
    shapes = {name: value.shape for name, value in alone.feeds.items() if isinstance(value, np.ndarray)}
    changed = with_shapes(alone.model, shapes)
    return None if changed is alone.model else Change(FIXED_INPUTS, changed)


def _versions(alone: LoneNode, claims: Claims | None) -> Iterator[Change]:
    node, domain = alone.node, alone.node.domain
    if domain not in ("", "ai.onnx") or not schema.knows(node.op_type):
        return
    now = prediction.since_version(node.op_type, alone.opset)
    known = schema.since_versions(node.op_type)
    wanted = [v for v in (claims.versions("", node.op_type) if claims else known) if v != now and v in known]
    wanted.sort(key=lambda version: (version > now, abs(version - now)))
    for version in wanted[:MOST_VERSIONS]:
        opset = prediction.last_opset(node.op_type, "", version) or max(version, alone.opset)
        if (changed := rewrite_in_opset(alone, opset)) is not None:
            renamed = "".join(
                f" and its {name} is '{names[value].decode()}'"
                for (op_type, name), (first, names) in RENAMED.items()
                if op_type == node.op_type and version < first and (value := _text(node, name)) in names
            )
            words = f"export the model with opset {opset}, in which this is {node.op_type}-{version}{renamed}"
            yield Change(words, changed)


def rewrite_in_opset(alone: LoneNode, opset: int) -> onnx.ModelProto | None:
    """The lone node in another opset: converted by onnx, else unchanged where its older definition takes it so."""
    if opset < OLDEST_OPSET:
        return None
    try:
        converted = version_converter.convert_version(alone.model, opset)
        if [n.name for n in converted.graph.node if n.op_type == alone.node.op_type] == [alone.node.name]:
            _write_as_before(next(n for n in converted.graph.node if n.name == alone.node.name), opset)
            checker.check_model(converted)
            return converted
    except NOT_CONVERTED:  # it has no adapter, or does not know the model
        pass
    changed = alone.copy()
    for entry in changed.opset_import:
        if entry.domain in ("", "ai.onnx"):
            entry.version = opset
    _write_as_before(changed.graph.node[alone.at], opset)
    try:
        checker.check_model(shape_inference.infer_shapes(changed))  # the outputs of a lone node have no types
    except NOT_CONVERTED:
        return None
    return changed


def _text(node: onnx.NodeProto, name: str) -> bytes:
    return next((bytes(attribute.s) for attribute in node.attribute if attribute.name == name), b"")


def _write_as_before(node: onnx.NodeProto, opset: int) -> None:
    """Write values of attributes that have another name in an older opset as they were called there."""
    for attribute in node.attribute:
        first, names = RENAMED.get((node.op_type, attribute.name), (0, {}))
        if opset < first:
            attribute.s = names.get(bytes(attribute.s), bytes(attribute.s))


def _casts(alone: LoneNode, claims: Claims | None) -> Iterator[Change]:
    """Casts around the node, one type constraint after the other."""
    graph = prediction.main_scope(alone.model)
    placed = next((node for node in graph.nodes if node.proto.name == alone.node.name), None)
    if placed is None:
        return
    types = prediction.constraint_types(placed)
    key = (alone.node.domain, alone.node.op_type, placed.since_version)
    offered = claims.operators.get(key, {}) if claims else {}
    for constraint, dtype in types.items():
        taken = offered.get(constraint)
        if taken is not None and dtype in taken:
            continue
        allowed = schema.dtypes(alone.node.op_type, placed.since_version, constraint, alone.node.domain)
        for other in INSTEAD.get(dtype, ()):
            if other in allowed and (taken is None or other in taken):
                yield _cast(alone, placed, constraint, dtype, other)


def _cast(alone: LoneNode, placed: prediction.Node, constraint: str, dtype: str, other: str) -> Change:
    signature = schema.signature(placed.proto.op_type, placed.since_version, placed.proto.domain)
    changed = alone.copy()
    node = changed.graph.node[alone.at]
    casts: list[list[onnx.NodeProto]] = [[], []]
    to = (_element(other), _element(dtype))
    formals = (signature.inputs_of(len(node.input)), signature.outputs_of(len(node.output)))
    for side, names in enumerate((node.input, node.output)):
        for at, (name, formal) in enumerate(zip(list(names), formals[side], strict=False)):
            if not name or formal != constraint:
                continue
            names[at] = f"{name}_{other}"
            ends = (name, names[at]) if side == 0 else (names[at], name)
            casts[side].append(helper.make_node("Cast", [ends[0]], [ends[1]], f"{ends[1]}_cast", to=to[side]))
    unique = list({cast.name: cast for cast in casts[0]}.values())
    every = [*changed.graph.node[: alone.at], *unique, node, *casts[1], *changed.graph.node[alone.at + 1 :]]
    nodes = [onnx.NodeProto.FromString(each.SerializeToString()) for each in every]
    changed.graph.ClearField("node")
    changed.graph.node.extend(nodes)
    exempt = frozenset(cast.name for cast in (*unique, *casts[1]))
    return Change(f"cast {dtype} to {other} before it{' and back behind it' if casts[1] else ''}", changed, exempt,
                  other if other in FLOATS else "")  # fmt: skip


def _element(dtype: str) -> int:
    return TensorProto.BFLOAT16 if dtype == "bfloat16" else int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def substitute_definition(alone: LoneNode) -> Iterator[Change]:
    """The operators that ONNX defines it by, in its place."""
    node = alone.node
    if node.domain not in ("", "ai.onnx"):
        return
    version = prediction.since_version(node.op_type, alone.opset)
    try:
        definition = defs.get_schema(node.op_type, version, "")
    except defs.SchemaError:
        return
    body = _body(definition, alone)
    if body is None:
        return
    changed = alone.copy()
    called = changed.graph.node[alone.at]
    called.domain = DOMAIN
    present = {attribute.name for attribute in called.attribute}
    called.attribute.extend(
        attribute.default_value
        for name, attribute in definition.attributes.items()
        if name not in present and attribute.default_value.type
    )
    body.domain, body.name = DOMAIN, node.op_type
    changed.functions.append(body)
    changed.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    changed.ir_version = max(changed.ir_version, 8)
    try:
        inlined = inliner.inline_local_functions(changed)
    except NOT_CONVERTED:
        return
    kept = [entry for entry in inlined.opset_import if entry.domain != DOMAIN]
    inlined.ClearField("opset_import")
    inlined.opset_import.extend(kept)
    for at, part in enumerate(inlined.graph.node):
        part.name = part.name or f"{node.name}_{part.op_type}_{at}"
    operators = sorted({part.op_type for part in inlined.graph.node if part.op_type != "Constant"})
    if node.op_type not in operators and operators:
        yield Change(f"export it as the operators that ONNX defines it by ({', '.join(operators)})", inlined)


def _body(definition: defs.OpSchema, alone: LoneNode) -> onnx.FunctionProto | None:
    """The function that defines the node, in the newest opset that is no newer than the model's."""
    found: bytes | None = None
    for versions, get in _definitions(definition, alone):
        if usable := [version for version in versions if version <= alone.opset]:
            found = get(max(usable))
            break
    if not found:
        return None
    body: onnx.FunctionProto = onnx.FunctionProto.FromString(found)
    for entry in body.opset_import:
        if entry.domain == "":
            entry.version = alone.opset
    return body


def _definitions(definition: Any, alone: LoneNode) -> Iterator[tuple[Sequence[int], Callable[[int], bytes]]]:
    """(opsets, the definition in one of them as bytes). definition: an OpSchema, whose stubs lack all of this."""
    raw = alone.node.SerializeToString()
    types = [kind.SerializeToString() for kind in _input_types(alone)]
    yield definition.function_opset_versions, definition.get_function_with_opset_version
    yield (
        definition.context_dependent_function_opset_versions,
        lambda version: definition.get_context_dependent_function_with_opset_version(version, raw, types),
    )


def _input_types(alone: LoneNode) -> Sequence[onnx.TypeProto]:
    known = {value.name: value.type for value in alone.model.graph.input}
    for tensor in alone.model.graph.initializer:
        known[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
    return [known.get(name, onnx.TypeProto()) for name in alone.node.input]
