"""Where each node of a model runs, and why: by the session's own record, and by the claims of the provider."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx

from epcheck.conformance.targets.target import CPU
from epcheck.generators.claims import DML, Claims, claims_of
from epcheck.generators.schema import OLDEST_OPSET
from epcheck.models.graph import flops, values
from epcheck.models.graph.values import UNKNOWN, Type, bodies
from epcheck.models.graph.wiring import wire
from epcheck.models.placement import prediction
from epcheck.models.placement.change import Advice
from epcheck.models.placement.prediction import VERSION, Node, Prediction, Scope
from epcheck.models.placement.segments import FROM_EP, TO_EP, Copy, Copying, Segment, SegmentNode, segments

FOLDED = "folded"
"""Kind of a node that the session's record lacks."""

UNEXPLAINED_KIND = "unexplained"
NOT_TAKEN = "the provider did not take it"
UNEXPLAINED = "the claims say that the provider takes it, the session's record that it did not"
CAST_BY_RUNTIME = ("float16",)
CAST = (
    "no provider has it for float16, so ONNX Runtime runs it on the CPU between casts to float32; the session's record "
    "leaves such nodes out before ONNX Runtime's pull request 28268"
)
BETTER = "the session's record says that the provider takes it, although its claims do not"
EXPANDED = "no provider has a kernel for it: ONNX Runtime runs the operators that ONNX defines it by, which are there"
NO_NODE = "ONNX Runtime folded it into a constant or fused it with its neighbours before it placed nodes"


@dataclass(frozen=True)
class NodePlacement:
    """One node. index: in its graph. scope: the bodies that it is in, as a path; empty for the main graph.

    predicted: the provider by its claims, empty where there are none. real: the provider by the session's record, empty
    where the record has no such node. flops: operations, None where a shape is not known. advice: what
    would place it, where that was looked for.
    """

    index: int
    name: str
    operator: str
    scope: str
    inputs: str
    outputs: str
    predicted: str
    real: str
    kind: str
    reason: str
    suggestion: str
    flops: float | None
    advice: Advice | None = None

    @property
    def what_to_do(self) -> str:
        """What was tried on the provider and helps, or why nothing does; without a trial what its claims suggest."""
        if self.advice is not None:
            return self.advice.words
        return f"{self.suggestion} (not tried)" if self.suggestion else ""

    @property
    def provider(self) -> str:
        """Where it runs: by the record, else by the claims; empty for a node that the session has no more, unless it
        was one for the provider, which has it in a fused one."""
        return self.real or ("" if self.kind == FOLDED and self.predicted == CPU else self.predicted)


@dataclass(frozen=True)
class Placement(Copying):
    """The nodes of a model on one provider.

    partitions: groups of nodes on the provider, of the main graph, that are connected to each other. share: of the
    arithmetic, what the provider does; None where there is none, or a product's size is not known. unmatched: nodes of
    the record that the model does not have, made by ONNX Runtime's optimiser. best_opset: the opset for which the
    claims take the most nodes, and how many, where that is more than now. segments: in which order providers have their
    turn.
    """

    provider: str
    nodes: tuple[NodePlacement, ...]
    partitions: int
    copies: tuple[Copy, ...]
    share: float | None
    unmatched: tuple[tuple[str, str, str], ...]
    best_opset: tuple[int, int] | None
    recorded: bool
    segments: tuple[Segment, ...] = ()

    @property
    def elsewhere(self) -> tuple[NodePlacement, ...]:
        """The nodes that run, and not on the provider."""
        return tuple(node for node in self.nodes if node.provider not in ("", self.provider))

    def count(self, provider: str) -> int:
        """How many nodes run there."""
        return sum(node.provider == provider for node in self.nodes)


def place(
    model: onnx.ModelProto,
    provider: str,
    assignment: Sequence[tuple[str, str, str]] | None,
    shapes: Mapping[str, tuple[int, ...]],
) -> Placement:
    """The placement of a model whose nodes have names (see `named`) on a provider.

    assignment: (provider, operator, node) of the session's own record; None where nothing ran or nothing was recorded.
    shapes: input name -> the sizes that it was run with.
    """
    claims = claims_of(provider) if provider == DML else None  # the rules of `prediction` are those of DirectML's
    inferred = values.infer_types(model, shapes)
    weights = {tensor.name for tensor in model.graph.initializer}
    graphs = list(prediction.scopes(inferred, [value.name for value in model.graph.input if value.name not in weights]))
    recorded = {name: (where, operator) for where, operator, name in assignment or ()}
    known = {node.proto.name for graph in graphs for node in graph.nodes}
    unmatched = tuple(entry for entry in assignment or () if entry[2] not in known)
    providers = {entry[0] for entry in unmatched}
    expanded = providers.pop() if len(providers) == 1 else ""
    nodes = tuple(_all_nodes(graphs, provider, claims, recorded, assignment is not None, expanded))
    main = graphs[0]
    where = {node.index: node.provider for node in nodes if not node.scope}
    copies = tuple(_copies(model, main, where, provider, claims))
    parts = [SegmentNode(n.index, n.name, n.operator, n.provider, n.flops) for n in nodes if not n.scope]
    return Placement(
        provider,
        nodes,
        _partitions(main, where, provider),
        copies,
        _share(nodes, provider),
        unmatched,
        _best_opset(inferred, graphs, claims),
        assignment is not None,
        segments(wire(model), parts, copies, provider, CPU),
    )


def name_nodes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a name of its own for every node, in bodies as well; the model itself where they have that."""
    taken = Counter(node.name for node in _protos(model.graph.node))
    if not taken[""] and max(taken.values(), default=1) == 1:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    used = set(taken)
    seen: Counter[str] = Counter()
    for index, node in enumerate(_protos(copy.graph.node)):
        seen[node.name] += 1
        if node.name and seen[node.name] == 1:
            continue
        base = name = node.name or f"{node.op_type}_{index}"
        while name in used:
            seen[base] += 1
            name = f"{base}_{seen[base]}"
        used.add(name)
        node.name = name
    return copy


def _protos(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for _, body in bodies(node):
            yield from _protos(body.node)


def _all_nodes(
    graphs: Sequence[Scope],
    provider: str,
    claims: Claims | None,
    recorded: Mapping[str, tuple[str, str]],
    ran: bool,
    expanded: str,
) -> Iterator[NodePlacement]:
    """expanded: the provider of the recorded nodes that the model does not have, where that is one."""
    for graph in graphs:
        predictions = prediction.predict(graph, claims) if claims else None
        for at, node in enumerate(graph.nodes):
            predicted = predictions[at] if predictions else None
            real = recorded.get(node.proto.name, ("", ""))[0]
            if ran and not real and expanded and predicted is not None and not predicted.taken and _is_function(node):
                yield replace(
                    _node(node, predicted, provider, expanded, ran), kind="expanded", reason=EXPANDED, suggestion=""
                )
                continue
            yield _node(node, predicted, provider, real, ran)


def _is_function(node: Node) -> bool:
    """Whether ONNX defines the operator by others."""
    try:
        definition = onnx.defs.get_schema(node.proto.op_type, node.since_version, node.proto.domain)
    except onnx.defs.SchemaError:  # a domain that is not ONNX's
        return False
    # which onnx's stubs lack
    return bool(definition.has_function or definition.has_context_dependent_function)  # type: ignore[attr-defined]


def _node(node: Node, claimed: Prediction | None, provider: str, real: str, ran: bool) -> NodePlacement:
    predicted = "" if claimed is None else provider if claimed.taken else CPU
    kind, reason, suggestion = ("", "", "")
    if claimed is not None:
        kind, reason, suggestion = claimed.kind, claimed.reason, claimed.suggestion
    if ran and not real and predicted == CPU and any(t.dtype in CAST_BY_RUNTIME for t in node.inputs):
        kind, reason = "cast", f"{reason}; {CAST}"
    elif ran and not real:
        kind, reason, suggestion = FOLDED, NO_NODE, ""
    elif real == provider and predicted == CPU:
        kind, reason, suggestion = "better", BETTER, ""
    elif real and real != provider and predicted in ("", provider):
        kind, reason = (UNEXPLAINED_KIND, UNEXPLAINED) if predicted else _not_taken(node, provider)
        suggestion = ""
    if node.scope and real not in ("", provider) and (kind == UNEXPLAINED_KIND or not predicted):
        kind, reason = "body", "it is inside a control-flow body, which the session keeps on the CPU"
        suggestion = "unroll the loop, or export both branches and select with Where"
    shapes = [t.shape for t in node.inputs], [t.shape for t in node.outputs]
    return NodePlacement(
        node.index, node.name, node.operator, node.scope, _listed(node.inputs), _listed(node.outputs), predicted, real,
        kind, reason, suggestion, flops.of(node.proto, *shapes),
    )  # fmt: skip


def _not_taken(node: Node, provider: str) -> tuple[str, str]:
    """Kind and reason for a provider of which only its table of claims is known."""
    table, proto = claims_of(provider), node.proto
    if table is None:
        return UNEXPLAINED_KIND, NOT_TAKEN
    types = prediction.constraint_types(node)
    why = table.why_not(proto.domain, proto.op_type, node.since_version, types)
    if why is None:
        return UNEXPLAINED_KIND, f"{NOT_TAKEN}, although its table of claims has the operator"
    has_version = (proto.domain, proto.op_type, node.since_version) in table.operators
    versions = table.versions(proto.domain, proto.op_type)
    kind = prediction.DTYPE if has_version else prediction.VERSION if versions else prediction.OPERATOR
    return kind, f"{NOT_TAKEN}: {why}"


def _listed(types: Sequence[Type]) -> str:
    return ", ".join(str(t) for t in types if t != UNKNOWN)


def _partitions(graph: Scope, where: Mapping[int, str], provider: str) -> int:
    """Groups of nodes on the provider that tensors connect without leaving it."""
    maker = {name: node.index for node in graph.nodes for name in node.proto.output if name}
    group = {node.index: node.index for node in graph.nodes if where.get(node.index) == provider}

    def root(index: int) -> int:
        while group[index] != index:
            index = group[index]
        return index

    for node in graph.nodes:
        for name in node.proto.input:
            if node.index in group and (source := maker.get(name)) in group and source is not None:
                group[root(node.index)] = root(source)
    return len({root(index) for index in group})


def _copies(
    model: onnx.ModelProto, graph: Scope, where: Mapping[int, str], provider: str, claims: Claims | None
) -> Iterator[Copy]:
    """Each tensor that one provider makes and the other reads, once for each direction. Inputs and outputs of the model
    are in the CPU's memory. Nodes that the optimiser folded away have no provider."""
    if provider == CPU:
        return
    made = dict.fromkeys(graph.inputs, CPU)
    for node in graph.nodes:
        memory = CPU if node.proto.op_type in prediction.CPU_OUTPUTS else where.get(node.index, "")
        made.update((name, memory) for name in node.proto.output if name and where.get(node.index))
    seen: set[tuple[str, str]] = set()
    reads = [
        (name, _memory(node, at, where, claims)) for node in graph.nodes for at, name in enumerate(node.proto.input)
    ]
    for name, reader in (*reads, *((value.name, CPU) for value in model.graph.output)):
        maker = made.get(name, "")
        direction = TO_EP if reader == provider else FROM_EP
        if reader and maker and (reader == provider) != (maker == provider) and (name, direction) not in seen:
            seen.add((name, direction))
            yield Copy(name, direction, graph.types.get(name, UNKNOWN).bytes)


def _memory(node: Node, at: int, where: Mapping[int, str], claims: Claims | None) -> str:
    """The provider whose memory the node reads this input from."""
    kernel = claims.kernels.get((node.proto.domain, node.proto.op_type, node.since_version)) if claims else None
    reads_on_cpu = node.proto.op_type in prediction.CPU_OUTPUTS or (kernel is not None and at in kernel.cpu_inputs)
    return "" if reads_on_cpu and where.get(node.index) != CPU else where.get(node.index, "")


def _share(nodes: Sequence[NodePlacement], provider: str) -> float | None:
    """None where nobody knows how much a product is, as in a body: of what is left a share would say nothing."""
    for node in nodes:
        op_type = node.operator.rpartition("::")[2].partition("-")[0]
        if node.provider and node.flops is None and op_type in flops.PRODUCTS:
            return None
    total = sum(node.flops or 0.0 for node in nodes if node.provider)
    return sum(node.flops or 0.0 for node in nodes if node.provider == provider) / total if total else None


def _best_opset(model: onnx.ModelProto, graphs: Sequence[Scope], claims: Claims | None) -> tuple[int, int] | None:
    """The opset, no newer than the model's, at which kernels of the right version exist for more nodes than now."""
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    protos = [node.proto for graph in graphs for node in graph.nodes if not node.proto.domain]
    if claims is None or not any(p.kind == VERSION for graph in graphs for p in prediction.predict(graph, claims)):
        return None

    def count_claimed(version: int) -> int:
        keys = (("", proto.op_type, prediction.since_version(proto.op_type, version)) for proto in protos)
        return sum(key in claims.operators for key in keys)

    oldest = max(OLDEST_OPSET, *(first_opset(proto.op_type) for proto in protos))
    counts = {version: count_claimed(version) for version in range(oldest, opset + 1)}
    best = max(counts, key=lambda version: (counts[version], version), default=opset)
    return (best, counts[best]) if counts.get(best, 0) > counts.get(opset, 0) else None


def first_opset(operator: str) -> int:
    """The oldest opset that has the operator; 0 for an unknown operator."""
    return next((v for v in range(OLDEST_OPSET, 64) if prediction.since_version(operator, v)), 0)
