"""What would place the nodes that are not on the provider: each change is tried on the provider itself.

A node is asked about alone, with the values that it received from the baseline. Nodes that are alike share a trial.
Where a provider takes a node alone, ONNX Runtime keeps it off in its surroundings, mostly because it computes a shape:
there the whole model is tried with fixed sizes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx

from epcheck.conformance.judging.opinion import condense
from epcheck.generators.claims import Claims, claims_of
from epcheck.generators.schema import NUMPY_NAMES
from epcheck.models.accuracy import closeness
from epcheck.models.execution.model_outcome import DONE, TIMEOUT, ModelOutcome
from epcheck.models.execution.session import Level
from epcheck.models.graph.feed import Feed, shapes
from epcheck.models.graph.skeleton import with_shapes
from epcheck.models.graph.subgraph import SubgraphError, extract, select_feeds
from epcheck.models.graph.values import bodies
from epcheck.models.graph.wiring import Wiring
from epcheck.models.oracle import oracle
from epcheck.models.placement import graphs, prediction
from epcheck.models.placement.change import Advice, Change, LoneNode
from epcheck.models.placement.changes import changes
from epcheck.models.placement.graphs import Graph, Run
from epcheck.models.placement.placement import NodePlacement, Placement
from epcheck.models.placement.reasons import why_alone, why_not_tried, why_nothing

EPSILONS = 256
"""Of the range of an output: by so much two honest providers may differ in one node (`wrong_nodes.node_check`)."""

ORACLE_OPERATIONS = 100_000_000
"""Multiplications and additions of a node that the oracle computes where the baseline does not."""

WRAPPING = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : (Exception during initialization: ?)?")
"""What ONNX Runtime puts before a message."""

FIXED_SIZES = "fix the sizes of the inputs"
"""What the words of that change begin with; the sizes follow."""

MESSAGE = 200
"""Characters of a runtime's message that advice repeats."""


@dataclass(frozen=True)
class AdviceLimits:
    """When to stop trying. sessions: of the candidate, for nodes alone; of_node: for those that are alike. seconds: of
    all sessions together. bytes: of the values that nodes receive."""

    sessions: int = 80
    of_node: int = 8
    seconds: float = 60.0
    bytes: int = 1 << 28


@dataclass(frozen=True)
class Subject:
    """What is advised on: a model, whose nodes have names; the feeds of a trial; what the candidate made of it.

    outcome: of the candidate at `level`, for these feeds; None where it did not run.
    """

    model: onnx.ModelProto
    feeds: Mapping[str, Feed]
    level: Level
    outcome: ModelOutcome | None
    limits: AdviceLimits = field(default_factory=AdviceLimits)


def advise_placement(placement: Placement, subject: Subject, candidate: Run, baseline: Run) -> Placement:
    """The placement, with advice on each node that is not on the provider. Raises TargetDown."""
    if not placement.elsewhere:
        return placement
    return _Adviser(placement, subject, candidate, baseline).add_advice()


def advice_on(alone: LoneNode, provider: str, candidate: Run, baseline: Run) -> Advice:
    """Advice on a node that the provider refuses, with the values that it received. Raises TargetDown."""
    limits = AdviceLimits()
    until = time.monotonic() + limits.seconds
    return _try_changes(alone, provider, _compute_expected_outputs(alone, baseline), candidate, limits.of_node, until)


def _compute_expected_outputs(alone: LoneNode, baseline: Run) -> Mapping[str, Feed]:
    """The node's outputs: the baseline's, or the oracle's where that has no kernel for the node; else nothing."""
    outcome = baseline(alone.model, alone.feeds, level="disabled")
    if outcome.is_done:
        return outcome.outputs
    try:
        true = oracle.evaluate(alone.model, alone.feeds, max_operations=ORACLE_OPERATIONS).values
    except oracle.OracleError:
        return {}
    types = prediction.main_scope(alone.model).types
    dtypes = {name: types[name].dtype for name in true if name in types and types[name].dtype in NUMPY_NAMES.values()}
    return {
        name: value.astype(dtypes[name]) for name, value in true.items()
        if isinstance(value, np.ndarray) and name in dtypes
    }  # fmt: skip


class _Adviser:
    def __init__(self, placement: Placement, subject: Subject, candidate: Run, baseline: Run) -> None:
        self._placement, self._subject = placement, subject
        self._candidate, self._baseline = candidate, baseline
        self._until = time.monotonic() + subject.limits.seconds
        self._sessions = 0

    def add_advice(self) -> Placement:
        elsewhere, subject = self._placement.elsewhere, self._subject
        scopes = dict.fromkeys(node.scope for node in elsewhere)
        known = graphs.graphs(subject.model, subject.feeds, scopes, self._baseline)
        found: dict[tuple[str, str], Advice] = {}
        for scope in sorted(scopes, key=len):
            nodes = [node for node in elsewhere if node.scope == scope]
            found.update(self._of_graph(known[scope], nodes) if scope in known else
                         {(scope, node.name): Advice("", why_not_tried(node)) for node in nodes})  # fmt: skip
        self._with_fixed_sizes(found)
        every = (
            replace(node, advice=found.get((node.scope, node.name))) if node in elsewhere else node
            for node in self._placement.nodes
        )
        return replace(self._placement, nodes=tuple(every))

    def _of_graph(self, graph: Graph, nodes: Sequence[NodePlacement]) -> dict[tuple[str, str], Advice]:
        """Advice on these nodes of one graph."""
        groups, index = _alike(graph.wiring, nodes), graph.index
        room = self._subject.limits.bytes
        values = graphs.read_received_values(graph, [index[alike[0].name] for alike in groups], self._baseline, room)
        found: dict[tuple[str, str], Advice] = {}
        for alike in groups:
            advice = self._of(graph.wiring, index[alike[0].name], alike[0], values)
            found.update(((node.scope, node.name), advice) for node in alike)
        return found

    def _of(self, wiring: Wiring, at: int, node: NodePlacement, values: Mapping[str, Feed]) -> Advice:
        """Advice on the node at this place of its graph."""
        if any(bodies(wiring.model.graph.node[at])):
            return Advice("", why_nothing(node))
        if self._sessions >= self._subject.limits.sessions or time.monotonic() > self._until:
            return Advice("", "not tried: the limit of sessions or time was reached")
        try:
            alone = lone_node(wiring, at, values)
        except SubgraphError as error:
            return Advice("", f"not tried: {error}")
        expected = _compute_expected_outputs(alone, self._baseline)
        if not expected:
            return Advice("", "not tried: neither the baseline nor the oracle runs the node alone")
        limit = min(self._subject.limits.of_node, self._subject.limits.sessions - self._sessions)
        advice = _try_changes(alone, self._placement.provider, expected, self._candidate, limit, self._until)
        self._sessions += advice.sessions
        return advice if advice.change or advice.alone else replace(advice, result=why_nothing(node))

    def _with_fixed_sizes(self, found: dict[tuple[str, str], Advice]) -> None:
        """Try the whole model with the sizes of the feeds, where that may help."""
        kept = {(node.scope, node.name): node for node in self._placement.elsewhere}
        unsolved = [key for key, advice in found.items() if not advice.change]
        subject = self._subject
        fixed = with_shapes(subject.model, shapes(subject.feeds))
        if not unsolved:
            return
        outcome = None
        if fixed is not subject.model and subject.outcome is not None and subject.outcome.is_done:
            outcome = self._candidate(fixed, subject.feeds, level=subject.level)
        if outcome is None or not outcome.is_done or outcome.assignment is None:
            for key in unsolved:
                found[key] = self._explain_vain_tries(
                    kept[key], found[key], "" if outcome is None else _explain_failed_session(outcome)
                )
            return
        assert subject.outcome is not None
        error = _error(subject.outcome.outputs, outcome.outputs)
        where = {name: provider for provider, _, name in outcome.assignment}
        still = sum(provider != self._placement.provider for provider in where.values())
        is_same = error <= EPSILONS * _epsilon(subject.outcome.outputs, "")
        for key in unsolved:
            provider = where.get(key[1], "")
            is_gone = provider in ("", self._placement.provider)
            if is_gone and is_same:
                how = "it is computed once, when the session is created" if not provider else "it is placed"
                sizes = _listed(subject)
                left = "no node is" if not still else "1 node is" if still == 1 else f"{still} nodes are"
                result = f"{how}, {left} left elsewhere, the outputs are {_same(error)}"
                found[key] = Advice(f"{FIXED_SIZES} ({sizes})", result, found[key].alone, error,
                                    found[key].sessions + 1)  # fmt: skip
            else:
                tried = f"with fixed sizes it is, but the outputs differ by {error:.1e} of their range"
                found[key] = self._explain_vain_tries(
                    kept[key], found[key], tried if is_gone else "with fixed sizes as well"
                )

    def _explain_vain_tries(self, node: NodePlacement, advice: Advice, tried: str) -> Advice:
        """Why nothing places a node, the sizes of the inputs included. tried: in words, what was tried in vain."""
        if not advice.alone:
            return advice
        why = why_alone(node)
        return replace(advice, result=f"{why}; {tried}" if tried else why)


def lone_node(wiring: Wiring, at: int, values: Mapping[str, Feed]) -> LoneNode:
    """A node as a model of its own. Raises SubgraphError."""
    name = wiring.model.graph.node[at].name
    model = extract(wiring, [at], values)
    for value in model.graph.output:
        value.type.ClearField("value")  # what the whole model declares may change with the node
    place = next(index for index, node in enumerate(model.graph.node) if node.name == name)
    return LoneNode(model, select_feeds(wiring, [at], values), place)


def _explain_failed_session(outcome: ModelOutcome) -> str:
    """Why a session with fixed sizes says nothing, in words."""
    if outcome.is_done:
        return ""
    message = WRAPPING.sub("", condense(outcome.message))[:MESSAGE]
    return f"with fixed sizes the whole model fails in {outcome.during}{f': {message}' if message else ''}"


def _try_changes(
    alone: LoneNode, provider: str, expected: Mapping[str, Feed], candidate: Run, limit: int, until: float
) -> Advice:
    """Ask the provider about the node alone, then with each change, until one places it with the same values. until:
    the time after which no session is begun."""
    claims: Claims | None = claims_of(provider)
    outcome = candidate(alone.model, alone.feeds, level="disabled")
    sessions = 1
    is_alone = outcome.is_done and _is_placed(outcome, provider, Change("", alone.model))
    if is_alone:
        return Advice("", "the provider takes it alone", True, _error(expected, outcome.outputs), sessions)
    others = 0
    for change in changes(alone, claims):
        if sessions >= limit or time.monotonic() > until or outcome.stage == TIMEOUT:
            break
        outcome = candidate(change.model, alone.feeds, level="disabled")
        sessions += 1
        if outcome.stage != DONE or not _is_placed(outcome, provider, change):
            continue
        error = _error(expected, outcome.outputs)
        if not expected or error > EPSILONS * _epsilon(expected, change.narrow):
            others += 1
            continue
        return Advice(change.words, f"it is placed there, and its outputs are {_same(error)}", False, error, sessions)
    words = f"none of {sessions - 1} changes that were tried places it"
    if others:
        words += f" with the same values ({others} do with other values)"
    return Advice("", words, False, None, sessions)


def _is_placed(outcome: ModelOutcome, provider: str, change: Change) -> bool:
    """Whether every node that the session has, but those that convert, is on the provider."""
    wanted = [where for where, _, name in outcome.assignment or () if name not in change.exempt]
    return bool(wanted) and set(wanted) == {provider}


def _alike(wiring: Wiring, nodes: Sequence[NodePlacement]) -> list[list[NodePlacement]]:
    """Nodes of the same operator, attributes, dtypes, ranks and reason, in the order of the graph."""
    groups: dict[tuple[object, ...], list[NodePlacement]] = {}
    index = {node.name: at for at, node in enumerate(wiring.model.graph.node)}
    for node in nodes:
        at = index[node.name]
        proto = wiring.model.graph.node[at]
        attributes = tuple(sorted(a.SerializeToString() for a in proto.attribute)) if not any(bodies(proto)) else at
        kinds = tuple((name in wiring.fixed or name in wiring.constants, _kind(wiring, name)) for name in proto.input)
        key = (node.operator, node.reason, attributes, kinds, tuple(map(bool, proto.output)))
        groups.setdefault(key, []).append(node)
    return list(groups.values())


def _kind(wiring: Wiring, name: str) -> tuple[int, int]:
    kind = wiring.types.get(name)
    return (kind.tensor_type.elem_type, len(kind.tensor_type.shape.dim)) if kind is not None else (0, -1)


def _error(expected: Mapping[str, Feed], got: Mapping[str, Feed]) -> float:
    """The largest difference of an output, relative to its range; infinite for another dtype or shape."""
    return max((_of_range(value, got.get(name)) for name, value in expected.items()), default=0.0)


def _of_range(expected: Feed, got: Feed) -> float:
    if not isinstance(expected, np.ndarray) or not isinstance(got, np.ndarray):
        return closeness.distance(expected, got)
    if expected.dtype != got.dtype or expected.shape != got.shape:
        return float("inf")
    if expected.dtype.kind not in "fiu":
        return closeness.distance(expected, got)
    true, value = expected.astype(np.float64), got.astype(np.float64)
    if not np.array_equal(np.isfinite(true), np.isfinite(value)):
        return float("inf")
    finite = np.isfinite(true)
    span = float(np.abs(true[finite]).max(initial=0.0)) or 1.0
    return float(np.abs(true - value)[finite].max(initial=0.0)) / span


def _epsilon(outputs: Mapping[str, Feed], narrow: str) -> float:
    """The largest epsilon of a floating-point output, and of a dtype on the way; 0 where there is none."""
    dtypes = {value.dtype for value in outputs.values() if isinstance(value, np.ndarray)}
    found = [float(np.finfo(dtype).eps) for dtype in dtypes if dtype.kind == "f"]
    if narrow and found:
        found.append(2.0**-7 if narrow == "bfloat16" else float(np.finfo(narrow).eps))
    return max(found, default=0.0)


def _same(error: float) -> str:
    return "the same to the last bit" if error == 0 else f"the same but for {error:.1e} of their range"


def _listed(subject: Subject) -> str:
    """The inputs whose sizes are dynamic, with those of the feeds."""
    known = {value.name: value for value in subject.model.graph.input}
    pairs: Iterator[str] = (
        f"{name}: {' × '.join(map(str, shape)) or 'a scalar'}"
        for name, shape in shapes(subject.feeds).items()
        if any(dim.dim_value <= 0 for dim in known[name].type.tensor_type.shape.dim)
    )
    return ", ".join(pairs)
