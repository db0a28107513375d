"""Predict from a provider's claims where each node of a model runs, and why.

The rules, in the order in which ONNX Runtime applies them: a kernel of exactly the node's since_version
(core/framework/kernel_registry.cc), its type constraints, the provider's support query, the device's data types
(DmlExecutionProvider's ExecutionProvider.cpp); then core/framework/fallback_cpu_capability.cc moves nodes
that compute shapes back to the CPU.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import onnx
from onnx import defs

from epcheck.generators import schema
from epcheck.generators.claims import Claims
from epcheck.generators.node import qualified_name
from epcheck.generators.schema import OLDEST_OPSET
from epcheck.models.graph.values import UNKNOWN, Type, bodies, infer_types, of_graph
from epcheck.models.placement.support import why_declined

SMALL_INITIALIZER = 100
"""Elements of an initializer that may follow a node to the CPU (fallback_cpu_capability.cc)."""

STAYS_OFF_CPU = frozenset(
    ("float16", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float4e2m1")
)
"""A node that reads one of these dtypes is never moved back to the CPU (the same source)."""

CPU_OUTPUTS = frozenset(("Shape", "Size", "SequenceLength"))
"""Operators whose kernels leave their output in the CPU's memory."""

MAX_RANK = 8
"""Dimensions of a DirectML tensor (DML_TENSOR_DIMENSION_COUNT_MAX1)."""

VERSION, OPERATOR, DTYPE, DECLINED, SHAPES, DOMAIN = "version", "operator", "dtype", "declined", "shapes", "domain"


@dataclass(frozen=True)
class Node:
    """A node where it stands: scope: the names of the nodes whose bodies it is in, and of the attributes, `''` in the
    main graph. since_version: 0 where no schema is known. inputs, outputs: types, in its order."""

    proto: onnx.NodeProto
    index: int
    scope: str
    since_version: int
    inputs: tuple[Type, ...]
    outputs: tuple[Type, ...]

    @property
    def name(self) -> str:
        """Its name, or the operator and the index where it has none."""
        return self.proto.name or f"{self.proto.op_type}_{self.index}"

    @property
    def operator(self) -> str:
        """`Conv-11`, or `com.microsoft::Gelu-1`."""
        name = qualified_name(self.proto.op_type, self.proto.domain)
        return f"{name}-{self.since_version}" if self.since_version else name


@dataclass(frozen=True)
class Prediction:
    """taken: whether the provider takes the node. kind, reason, suggestion: why it does not, and what to do about it;
    or a remark on a node that it takes."""

    taken: bool
    kind: str = ""
    reason: str = ""
    suggestion: str = ""


@dataclass(frozen=True)
class Scope:
    """One graph of a model: the main one, or a body. Its nodes are those but Constant, which a runtime makes
    initializers. inputs: what is fed. constants: initializer -> number of elements."""

    nodes: tuple[Node, ...]
    inputs: frozenset[str]
    constants: Mapping[str, int]
    types: Mapping[str, Type]


def scopes(model: onnx.ModelProto, fed: Collection[str]) -> Iterator[Scope]:
    """The graphs of a model whose types are inferred, the main one first. fed: its inputs that are no initializers."""
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    pending: deque[tuple[onnx.GraphProto, str, Mapping[str, Type]]] = deque([(model.graph, "", {})])
    while pending:
        graph, where, around = pending.popleft()
        types = {**around, **of_graph(graph)}
        nodes = tuple(
            _node(proto, index, where, opsets, types)
            for index, proto in enumerate(graph.node)
            if proto.op_type != "Constant" or proto.domain
        )
        inputs = frozenset(value.name for value in graph.input) if where else frozenset(fed)
        yield Scope(nodes, inputs, _constants(graph, types), types)
        for node in nodes:
            pending.extend((body, f"{where}{node.name}.{name}/", types) for name, body in bodies(node.proto))


def main_scope(model: onnx.ModelProto) -> Scope:
    """The main graph of a model, with inferred types."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return next(
        scopes(infer_types(model, {}), [value.name for value in model.graph.input if value.name not in weights])
    )


def predict(scope: Scope, claims: Claims) -> tuple[Prediction, ...]:
    """Where the claims put each node of a graph."""
    found = [_by_claims(node, claims) for node in scope.nodes]
    for at in list(_back_to_cpu(scope, found, claims)):
        found[at] = Prediction(
            False,
            SHAPES,
            "ONNX Runtime prefers the CPU: it computes a shape, from values that are in the CPU's memory",
            "no action needed: this is cheap, and with static shapes the nodes are folded away",
        )
    return tuple(found)


def _by_claims(node: Node, claims: Claims) -> Prediction:
    proto = node.proto
    domain, operator, key = proto.domain, proto.op_type, (proto.domain, proto.op_type, node.since_version)
    if domain not in {d for d, _, _ in claims.operators}:
        return Prediction(False, DOMAIN, f"the provider has no kernels of the domain '{domain}'",
                          "express it with ONNX operators, or as a function of them")  # fmt: skip
    if key not in claims.operators:
        return _no_kernel(node, claims.versions(domain, operator))
    types = constraint_types(node)
    if why := claims.why_not(domain, operator, node.since_version, types):
        offered = {c: ", ".join(sorted(d)) for c, d in claims.operators[key].items() if types.get(c) not in {None, *d}}
        constraint, dtypes = next(iter(offered.items()))
        return Prediction(False, DTYPE, f"{why}: its kernel takes {dtypes}",
                          f"cast {constraint} to one of these before it, or export the model in one")  # fmt: skip
    kernel = claims.kernels[key]
    if why := why_declined(kernel.query, proto, node.inputs):
        return Prediction(False, DECLINED, f"the provider declines it because {why}", f"its rule: {kernel.rule}")
    if any(t.shape is not None and len(t.shape) > MAX_RANK for t in (*node.inputs, *node.outputs)):
        return Prediction(True, "rank", f"a tensor of more than {MAX_RANK} dimensions: the provider takes the node and "
                          "then refuses the session",
                          "export it with fewer: a Reshape from more is refused, too")  # fmt: skip
    if kernel.runs_on_cpu:
        return Prediction(True, "cpu kernel", "the provider takes it, but runs it with the CPU's kernel")
    return Prediction(True)


def _no_kernel(node: Node, versions: Sequence[int]) -> Prediction:
    operator, domain = node.proto.op_type, node.proto.domain
    wanted = f"{operator}-{node.since_version}" if node.since_version else operator
    usable = [(version, last_opset(operator, domain, version)) for version in versions]
    usable = [(version, opset) for version, opset in usable if opset and version < node.since_version]
    if usable and not domain:
        version, opset = usable[-1]
        return Prediction(False, VERSION, f"no kernel for {wanted}, although there is one for {operator}-{version}",
                          f"re-export with opset {opset}")  # fmt: skip
    if versions:
        listed = ", ".join(map(str, versions))
        return Prediction(False, VERSION, f"no kernel for {wanted}; there are those for versions {listed}",
                          "re-export with an opset that has one of these versions")  # fmt: skip
    made = _is_function(operator, node.since_version, domain)
    return Prediction(False, OPERATOR, f"the provider has no kernel for {operator} in any version",
                      "export it as the simpler operators that ONNX defines it by" if made
                      else "replace it by other operators, or accept the copies around it")  # fmt: skip


@cache
def last_opset(operator: str, domain: str, since_version: int) -> int:
    """The newest opset that resolves the operator to this version; 0 where none does, or the version is the newest."""
    try:
        known = schema.since_versions(operator, domain)
    except KeyError:
        return 0
    later = [version for version in known if version > since_version]
    return max(later[0] - 1, OLDEST_OPSET) if since_version in known and later else 0


@cache
def _is_function(operator: str, since_version: int, domain: str) -> bool:
    try:
        definition = defs.get_schema(operator, since_version, domain)
    except defs.SchemaError:
        return False
    return bool(definition.has_function or definition.has_context_dependent_function)  # type: ignore[attr-defined]


def constraint_types(node: Node) -> dict[str, str]:
    """Type constraint -> dtype, of those inputs and outputs whose type is known."""
    proto = node.proto
    try:
        signature = schema.signature(proto.op_type, node.since_version, proto.domain)
    except KeyError:
        return {}
    formals = (*signature.inputs_of(len(proto.input)), *signature.outputs_of(len(proto.output)))
    actual = (*node.inputs[: len(proto.input)], *node.outputs)
    pairs = zip(formals, actual, strict=False)
    return {formal: t.dtype for formal, t in pairs if formal in signature.constraints and t.dtype}


def _back_to_cpu(scope: Scope, found: Sequence[Prediction], claims: Claims) -> Iterator[int]:
    """Nodes with a kernel that read nothing but what is in the CPU's memory, constants that are small, and graph
    inputs, beginning with those that read what CPU_OUTPUTS make."""
    readers: dict[str, list[int]] = {}
    on_cpu: set[str] = set()
    for at, (node, predicted) in enumerate(zip(scope.nodes, found, strict=True)):
        for name in filter(None, node.proto.input):
            readers.setdefault(name, []).append(at)
        if predicted.taken and node.proto.op_type in CPU_OUTPUTS:
            on_cpu.update(node.proto.output)
    candidates = {at for name in on_cpu for at in readers.get(name, ())}
    for at, node in enumerate(scope.nodes):  # in topological order, as a model has its nodes
        if at not in candidates:
            continue
        back = not found[at].taken
        if not back and _reads_cpu_alone(node, scope, on_cpu, claims):
            back = True
            yield at
        if back:
            on_cpu.update(filter(None, node.proto.output))
            candidates |= {reader for name in node.proto.output for reader in readers.get(name, ())}


def _reads_cpu_alone(node: Node, scope: Scope, on_cpu: set[str], claims: Claims) -> bool:
    kernel = claims.kernels[node.proto.domain, node.proto.op_type, node.since_version]
    for at, name in enumerate(node.proto.input):
        if not name:
            continue
        if scope.types.get(name, UNKNOWN).dtype in STAYS_OFF_CPU:
            return False
        if name in scope.inputs or scope.constants.get(name, math.inf) <= SMALL_INITIALIZER:
            continue
        if name not in on_cpu or at in kernel.cpu_inputs:
            return False
    return True


def _constants(graph: onnx.GraphProto, types: Mapping[str, Type]) -> dict[str, int]:
    found = {tensor.name: math.prod(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        shape = types.get(node.output[0], UNKNOWN).shape if node.op_type == "Constant" and node.output else None
        if shape is not None and None not in shape:
            found[node.output[0]] = math.prod(size for size in shape if size is not None)
    return found


def _node(proto: onnx.NodeProto, index: int, scope: str, opsets: Mapping[str, int], types: Mapping[str, Type]) -> Node:
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    version = opsets.get(domain, opsets.get("ai.onnx", 0) if not domain else 0)
    return Node(
        proto,
        index,
        scope,
        since_version(proto.op_type, version, domain),
        tuple(types.get(name, UNKNOWN) for name in proto.input),
        tuple(types.get(name, UNKNOWN) for name in proto.output),
    )


@cache
def since_version(operator: str, opset: int, domain: str = "") -> int:
    """The version of the operator that an opset resolves to; 0 for an unknown operator."""
    try:
        return max((v for v in schema.since_versions(operator, domain) if v <= opset), default=0)
    except KeyError:
        return 0
