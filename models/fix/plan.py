"""The changes that a validation advises, as plans for the whole model: which can be applied together or left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import onnx

from epcheck.generators.claims import Claims
from epcheck.models.graph.feed import Feed, shapes
from epcheck.models.graph.skeleton import with_shapes
from epcheck.models.graph.subgraph import SubgraphError
from epcheck.models.placement import prediction
from epcheck.models.placement.advise import FIXED_SIZES, lone_node
from epcheck.models.placement.apply import ApplyError, AskLone, Look, convert_opset, find_change, replace_node
from epcheck.models.placement.change import LoneNode, kind_of, opset_of
from epcheck.models.placement.changes import FIXED_INPUTS
from epcheck.models.placement.graphs import Graph, Run, graphs, read_received_values
from epcheck.models.validation.validation import Validation

Key = tuple[str, str]
"""(scope, name) of a node."""


class Whole(StrEnum):
    """What of a model a plan changes."""

    NODES = "nodes"
    OPSET = "opset"
    SIZES = "sizes"


@dataclass(frozen=True)
class Plan:
    """One change of the model. words: what to do. nodes: those that it is to place or mend, and the words of the change
    that was tried for each. opset: that it needs; 0 for the model's own."""

    whole: Whole
    words: str
    nodes: Mapping[Key, str]
    opset: int = 0

    @property
    def identity(self) -> tuple[str, tuple[Key, ...]]:
        """Equal for a plan that was made before."""
        return kind_of(self.words), tuple(self.nodes)


def list_advice(found: Validation) -> dict[Key, str]:
    """Node -> the words of the change that was tried for it and places or mends it."""
    placed = found.placement.elsewhere if found.placement else ()
    advice = {(node.scope, node.name): node.advice.change for node in placed if node.advice and node.advice.change}
    for culprit in found.culprits:
        if culprit.advice is not None and culprit.advice.change and len(culprit.nodes) == 1:
            advice["", culprit.nodes[0].name] = culprit.advice.change
    return advice


def list_alike(model: onnx.ModelProto, found: Validation) -> dict[Key, str]:
    """The nodes of the main graph that are like one that the target refuses, which the validation does not name: the
    target ends at the first of them. Node -> the words of the change of that one."""
    nodes = {node.name: node for node in model.graph.node}
    mended = {
        _describe_node(nodes[culprit.nodes[0].name]): culprit.advice.change
        for culprit in found.culprits
        if culprit.advice is not None and culprit.advice.change and culprit.nodes[0].name in nodes
    }
    return {("", name): mended[key] for name, node in nodes.items() if (key := _describe_node(node)) in mended}


def _describe_node(node: onnx.NodeProto) -> tuple[object, ...]:
    attributes = tuple(sorted(attribute.SerializeToString() for attribute in node.attribute))
    return node.domain, node.op_type, attributes, tuple(map(bool, node.input)), tuple(map(bool, node.output))


class LoneNodes:
    """The nodes of a model, each alone with the values that it receives in a trial on the baseline."""

    def __init__(
        self, model: onnx.ModelProto, feeds: Mapping[str, Feed], baseline: Run, known: Mapping[str, Feed]
    ) -> None:
        """known: values of the main graph, for a model that the baseline does not run."""
        self._model, self._feeds, self._baseline, self._known = model, feeds, baseline, known
        self._graphs: dict[str, Graph] = {}
        self._values: dict[str, dict[str, Feed]] = {}

    def prepare(self, keys: Sequence[Key]) -> None:
        """Read what these nodes receive, all at once."""
        scopes = {scope for scope, _ in keys}
        self._graphs = graphs(self._model, self._feeds, scopes, self._baseline)
        for scope in scopes & set(self._graphs):
            graph = self._graphs[scope]
            indices = [graph.index[name] for where, name in keys if where == scope and name in graph.index]
            self._values[scope] = read_received_values(graph, indices, self._baseline)

    def ask(self, scope: str, name: str) -> LoneNode:
        """Raises SubgraphError."""
        if scope not in self._graphs:
            self.prepare([(scope, name)])
        graph = self._graphs.get(scope)
        if graph is None or name not in graph.index:
            raise SubgraphError("it is in a body that the feeds do not reach")
        values = self._values.setdefault(scope, dict(graph.feeds))
        at = graph.index[name]
        if any(each not in values for each in graph.wiring.list_received_values(at)):
            values.update(read_received_values(graph, [at], self._baseline))
        if not scope:
            values.update((each, value) for each, value in self._known.items() if each not in values)
        return lone_node(graph.wiring, at, values)


def make_plans(
    model: onnx.ModelProto, advice: Mapping[Key, str], ask: AskLone, claims: Claims | None
) -> tuple[list[Plan], dict[Key, str]]:
    """The plans, and the nodes whose change is not to be found again, with the reason."""
    now = opset_of(model)
    groups: dict[tuple[Whole, str, int], dict[Key, str]] = {}
    lost: dict[Key, str] = {}
    for key, words in advice.items():
        if words.startswith((FIXED_SIZES, FIXED_INPUTS)):
            groups.setdefault((Whole.SIZES, FIXED_SIZES, 0), {})[key] = words
            continue
        try:
            alone = ask(*key)
            opset = opset_of(find_change(alone, words, claims).model)
        except (ApplyError, SubgraphError) as error:
            lost[key] = str(error)
            continue
        where = (Whole.NODES, kind_of(words), 0) if opset == now else (Whole.OPSET, "", opset)
        groups.setdefault(where, {})[key] = words
    plans = [Plan(whole, next(iter(found.values())), found, opset)
             for (whole, _, opset), found in groups.items() if whole is not Whole.OPSET]  # fmt: skip
    opsets = {opset: found for (whole, _, opset), found in groups.items() if whole is Whole.OPSET}
    return [*plans, *_plan_opset(opsets, ask)], lost


def _plan_opset(opsets: Mapping[int, Mapping[Key, str]], ask: AskLone) -> Iterator[Plan]:
    """One opset for all nodes that need another: that in which the most of them are the operator that they need."""
    wanted: dict[Key, tuple[str, int]] = {}
    for opset, found in opsets.items():
        for key in found:
            operator = ask(*key).node.op_type
            wanted[key] = operator, prediction.since_version(operator, opset)
    counts = Counter({
        opset: sum(prediction.since_version(operator, opset) == version for operator, version in wanted.values())
        for opset in opsets
    })  # fmt: skip
    if counts:
        best = max(counts, key=lambda opset: (counts[opset], opset))
        kept = {key: words for found in opsets.values() for key, words in found.items()
                if prediction.since_version(wanted[key][0], best) == wanted[key][1]}  # fmt: skip
        yield Plan(Whole.OPSET, f"write the model in opset {best}", kept, best)


def apply_plans(
    model: onnx.ModelProto, plans: Sequence[Plan], look: Look, feeds: Mapping[str, Feed], claims: Claims | None
) -> onnx.ModelProto:
    """The model with all of these plans: nodes first, then the opset, then the sizes of its inputs. Raises ApplyError
    and SubgraphError."""
    ask = look(model)
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for plan in plans:
        if plan.whole is Whole.NODES:
            for key, words in plan.nodes.items():
                alone = ask(*key)
                replace_node(changed, key[0], alone, find_change(alone, words, claims).model)
    for plan in plans:
        if plan.whole is Whole.OPSET:
            convert_opset(changed, plan.opset, look, plan.nodes, claims)
    if any(plan.whole is Whole.SIZES for plan in plans):
        changed = with_shapes(changed, shapes(feeds))
    return changed
