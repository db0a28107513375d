"""Every wrong node of a model in one search, and what each of them does to the outputs.

Every node is run alone on true values, all in one session, unless that is known; where none is wrong there, the first
is found as `first_wrong_node` does. The nodes that are wrong are replaced by the baseline's values, and the rest of the
model is searched again, until it is right: so a fusion that is wrong, or a node that ends the session, is found behind
another one too. Nodes of one pattern are one finding (`alike`). At last the wrong values of a node alone are put
into the baseline: what comes out is the effect of this node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.accuracy import thresholds
from epcheck.models.accuracy.metrics import measure
from epcheck.models.accuracy.thresholds import Threshold
from epcheck.models.execution.model_outcome import DONE
from epcheck.models.execution.runner import Runner, RunResult
from epcheck.models.graph import feed, values
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import SubgraphError, extract, select_feeds
from epcheck.models.wrong_nodes.alike import ENDS_SESSIONS, find_alike, group_alike
from epcheck.models.wrong_nodes.body_nodes import with_inside
from epcheck.models.wrong_nodes.culprit import Culprit, Effect, Kind
from epcheck.models.wrong_nodes.first_wrong_node import find
from epcheck.models.wrong_nodes.isolated_nodes import as_culprit, find_isolated_nodes
from epcheck.models.wrong_nodes.options import SearchOptions
from epcheck.models.wrong_nodes.search import LimitsReached, Search, SessionFailed

MOST = 20
"""Searches of one model at most."""

NEAR = 0.5
"""A wrong node is at fault from this share of an output's threshold on: with its values fed, ONNX Runtime fuses the
nodes behind it otherwise than in the whole model (QDQ groups), which moves the effect by a little."""


@dataclass(frozen=True)
class WrongNodes:
    """The result. culprits: in the order of the graph, each with its effect, those of one pattern as one; a single one
    that names nobody where no node is wrong. harmless: nodes that are wrong, and change no output by NEAR of its
    threshold. remainder: a sentence about the model with the baseline's values in place of theirs; empty where there is
    none to tell."""

    culprits: tuple[Culprit, ...]
    harmless: tuple[Culprit, ...] = ()
    remainder: str = ""


Keep = Callable[[Sequence[Culprit]], None]


def _keep_nothing(_found: Sequence[Culprit]) -> None:
    pass


def all_wrong_nodes(
    model: onnx.ModelProto,
    feeds: Mapping[str, Feed],
    candidate: Runner,
    baseline: Runner,
    options: SearchOptions | None = None,
    outcome: RunResult | None = None,
    keep: Keep = _keep_nothing,
) -> WrongNodes:
    """Every node, or group of fused nodes, that makes a candidate's outputs differ from a baseline's.

    The arguments are those of `first_wrong_node`. keep: called with all that are found each time when there are more.
    Nothing is raised for what a target does; where a limit is reached, the remainder says that more nodes may be
    wrong.
    """
    return _all(Search(model, feeds, candidate, baseline, options or SearchOptions()), outcome, keep)


def _all(search: Search, outcome: RunResult | None, keep: Keep = _keep_nothing) -> WrongNodes:
    found: list[Culprit] = []
    if outcome is not None and outcome.stage == DONE and not outcome.repeat_differs:
        found = [as_culprit(search, wrong) for wrong in search.options.wrong_alone or ()]
    if not found:
        first = find(search, outcome)
        if first.kind in (Kind.RIGHT, Kind.RANDOM):
            return WrongNodes((first,))
        found = [first]
    found, remainder = _others(search, found, keep)
    if not found:
        return WrongNodes((first,))
    grouped = group_alike(search, found)
    measured = [with_inside(search, _with_effect(search, culprit), _culprits_of) for culprit in grouped]
    culprits = [culprit for culprit in measured if culprit.effect is None or culprit.effect.times > NEAR]
    harmless = [culprit for culprit in measured if culprit not in culprits]
    if not culprits:  # none of them alone is enough
        culprits, harmless = measured, []
    return WrongNodes(_in_order(culprits), _in_order(harmless), remainder)


def _culprits_of(search: Search, outcome: RunResult | None) -> tuple[Culprit, ...]:
    """Every culprit of a search of a body, also those that are harmless for the outputs of the body alone."""
    found = _all(search, outcome)
    return _in_order((*found.culprits, *found.harmless))


def _in_order(culprits: Sequence[Culprit]) -> tuple[Culprit, ...]:
    return tuple(sorted(culprits, key=lambda culprit: [node.index for node in culprit.nodes]))


def _others(search: Search, first: Sequence[Culprit], keep: Keep) -> tuple[list[Culprit], str]:
    """The first culprits, as far as they name nodes, and all others; and what is left when they are replaced."""
    found = [culprit for culprit in first if culprit.is_named]
    ends = any(culprit.kind in ENDS_SESSIONS for culprit in first)
    remainder = ""
    try:
        for culprit in tuple(found):
            _add_alike(search, culprit, found)
            keep(group_alike(search, found))
        named = _named(found)
        if search.options.wrong_alone or (not ends and sum(search.sizes().values()) <= search.options.limits.bytes):
            found += [as_culprit(search, wrong) for wrong in find_isolated_nodes(search) if wrong.node not in named]
        for _ in range(MOST):
            named = _named(found)
            rest = search.without(named) if named else None
            if rest is None:
                break
            culprit = find(rest)
            if not culprit.is_named or named.issuperset(node.index for node in culprit.nodes):
                remainder = _remainder(culprit)
                break
            found.append(culprit)
            _add_alike(search, culprit, found)
            keep(group_alike(search, found))
    except LimitsReached:
        remainder = "more nodes may be wrong: search limit reached"
    except (SessionFailed, SubgraphError) as obstacle:
        remainder = f"it is not known whether more nodes are wrong: {obstacle}"
    return found, remainder


def _named(found: Sequence[Culprit]) -> set[int]:
    return {node.index for culprit in found for node in culprit.nodes}


def _add_alike(search: Search, culprit: Culprit, found: list[Culprit]) -> None:
    """Add what fails as this culprit does. What is found before a limit is reached is kept."""
    for each in find_alike(search, culprit, _named(found)):
        found.append(each)


def _remainder(culprit: Culprit) -> str:
    """What the search says of the model without the nodes that are wrong."""
    if culprit.kind in (Kind.RIGHT, Kind.ACCUMULATED, Kind.RANDOM):
        left = "" if culprit.kind == Kind.RIGHT else f", but for small errors: {culprit.words}"
        return f"with the baseline's values in place of theirs the rest of the model is right{left}"
    return f"with the baseline's values in place of theirs the outputs are still wrong: {culprit.words}"


def _with_effect(search: Search, culprit: Culprit) -> Culprit:
    """The culprit with its effect on the outputs, where its session gives values. Of nodes that are wrong alike it is
    that of the first that takes an output to its threshold, else the largest."""
    if culprit.effect is not None or culprit.kind in (*ENDS_SESSIONS, Kind.UNSTEADY):
        return culprit
    effects: list[Effect] = []
    try:
        for part in culprit.parts:
            nodes = [node.index for node in part]
            search.expect(name for node in nodes for name in (*search.wiring.list_received_values(node),
                                                              *search.wiring.list_outputs(node)))  # fmt: skip
            outcome = search.candidate(*search.part(nodes, search.expected))
            if outcome.stage == DONE:
                found = _effect(search, nodes, outcome.outputs)
                whose = ", ".join(map(str, part)) if culprit.count > 1 else ""
                effects.append(replace(found, node=whose))
                if found.times > NEAR:
                    break
    except (LimitsReached, SessionFailed, SubgraphError):
        pass  # what is known until then counts
    return replace(culprit, effect=max(effects, key=lambda effect: effect.times, default=None))


def _effect(search: Search, nodes: Collection[int], got: Mapping[str, Feed]) -> Effect:
    """The effect of these wrong values. Raises LimitsReached, SessionFailed, SubgraphError."""
    behind = _behind(search, nodes)
    reached = {name for node in behind for name in search.wiring.list_outputs(node)}
    outputs = [name for name in search.wiring.outputs if name in reached]
    changed = {name: value for name, value in got.items() if name in search.wiring.outputs}
    if outputs:
        inner = {*reached, *got}
        search.expect(name for node in behind for name in search.wiring.list_received_values(node) if name not in inner)
        known = {**search.expected, **got}
        outcome = search.baseline(
            extract(search.wiring, behind, known, outputs), select_feeds(search.wiring, behind, known)
        )
        if outcome.stage != DONE:
            return Effect(outputs[0], math.inf, 0.0)
        changed.update(outcome.outputs)
    right = search.expect(changed)
    allowed = search.options.thresholds or thresholds.of_outputs(
        values.infer_types(search.wiring.model, feed.shapes(search.feeds))
    )
    effects = [
        _on_output(name, value, right[name], allowed.get(name, Threshold()))
        for name, value in changed.items()
        if name in right
    ]
    return max(effects, key=lambda effect: (effect.times, effect.error), default=Effect("", 0.0, 0.0))


def _on_output(name: str, got: Feed, right: Feed, threshold: Threshold) -> Effect:
    pairs = list(zip(feed.tensors(got), feed.tensors(right), strict=False))
    if len(feed.tensors(got)) != len(feed.tensors(right)):
        return Effect(name, math.inf, 0.0)
    return max((_on_tensor(name, *pair, threshold) for pair in pairs), key=lambda effect: effect.times,
               default=Effect(name, 0.0, 0.0))  # fmt: skip


def _on_tensor(name: str, got: Array, right: Array, threshold: Threshold) -> Effect:
    if got.shape != right.shape or got.dtype != right.dtype:
        return Effect(name, math.inf, 0.0)
    if got.dtype.kind in "OSU":
        return Effect(name, float(np.mean(got != right)) if got.size else 0.0, 0.0)
    metrics = measure(got, right)
    if metrics.nonfinite:
        return Effect(name, math.inf, 0.0)
    if threshold.agreement is not None:
        return Effect(name, metrics.differing / max(metrics.elements, 1), 1 - threshold.agreement)
    if threshold.absolute is not None and metrics.max_abs <= threshold.absolute:
        return Effect(name, metrics.relative, max(metrics.relative, threshold.relative))
    if threshold.steps and got.dtype.kind in "iu":
        return Effect(name, metrics.max_abs, float(threshold.steps))
    relative = Effect(name, metrics.relative, threshold.relative)
    if threshold.snr_db is None:
        return relative
    noise = 10 ** (-metrics.snr_db / 20) if math.isfinite(metrics.snr_db) else 0.0 if metrics.snr_db > 0 else 1.0
    return max(relative, Effect(name, noise, 10 ** (-threshold.snr_db / 20)), key=lambda effect: effect.times)


def _behind(search: Search, nodes: Collection[int]) -> list[int]:
    """The nodes that read what these make, directly or by way of others."""
    reached = {name for node in nodes for name in search.wiring.list_outputs(node)}
    found = []
    for node in range(min(nodes), search.wiring.nodes):
        if node not in nodes and reached.intersection(search.wiring.reads[node]):
            found.append(node)
            reached.update(search.wiring.list_outputs(node))
    return found
