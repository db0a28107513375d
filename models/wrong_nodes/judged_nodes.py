"""Judge every node of a model that runs: alone, on true values, within its own bound, whatever the outputs are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from epcheck.models.execution.runner import Runner
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import SubgraphError
from epcheck.models.wrong_nodes.alike import group_alike
from epcheck.models.wrong_nodes.culprit import Culprit
from epcheck.models.wrong_nodes.isolated_nodes import IsolatedNodes, as_culprit
from epcheck.models.wrong_nodes.node_check import IsolatedNode
from epcheck.models.wrong_nodes.options import SearchOptions
from epcheck.models.wrong_nodes.search import LimitsReached, Search, SessionFailed


@dataclass(frozen=True)
class JudgedNodes:
    """wrong: the nodes that are beyond their bounds; None where nobody could judge. culprits: the same, as a validation
    names them: those of one pattern as one. words: a sentence that says how many were judged, and on which values.
    licensed: nodes that are right by a published bound alone."""

    wrong: tuple[IsolatedNode, ...] | None
    culprits: tuple[Culprit, ...]
    words: str
    licensed: tuple[IsolatedNode, ...] = ()


def judge_nodes(
    model: onnx.ModelProto, feeds: Mapping[str, Feed], candidate: Runner, baseline: Runner, options: SearchOptions
) -> JudgedNodes:
    """Judge each node alone. The arguments are those of `all_wrong_nodes`; `options.truth` has the values that the
    nodes receive, without it they are the baseline's."""
    search = Search(model, feeds, candidate, baseline, options)
    try:
        found = IsolatedNodes(search)
    except LimitsReached:
        return leave_unjudged("the limit of sessions or time is reached")
    except (SessionFailed, SubgraphError) as obstacle:
        return leave_unjudged(str(obstacle))
    nodes = [node for node in range(search.wiring.nodes) if not search.is_constant(node)]
    whose = "the oracle's" if options.truth else "the baseline's"
    count = f"all {len(nodes)} nodes were" if len(found.judged) == len(nodes) else (
        f"{len(found.judged)} of {len(nodes)} nodes were")  # fmt: skip
    words = f"{count} judged alone, on {whose} values: {len(found.wrong) or 'none'} beyond the bound"
    if found.is_cut:
        words += "; the limit of sessions or time is reached"
    culprits = group_alike(search, [as_culprit(search, wrong) for wrong in found.wrong])
    return JudgedNodes(tuple(found.wrong), culprits, words, tuple(found.licensed))


def leave_unjudged(why: str) -> JudgedNodes:
    """No node was judged, for that reason."""
    return JudgedNodes(None, (), f"no node was judged alone: {why}")
