"""Run the nodes at which right becomes wrong alone, on the values that they received in the whole model.

They run without graph optimisation first: what is wrong then does not depend on the optimiser. The baseline runs on the
same values only where the operator's oracle has not decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from epcheck.models.accuracy import closeness
from epcheck.models.execution.model_outcome import DONE
from epcheck.models.execution.session import Level
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.values import bodies
from epcheck.models.wrong_nodes.culprit import Culprit, Kind
from epcheck.models.wrong_nodes.node_check import BASELINE, ORACLE, NodeCheck, check_node, kind_of_difference
from epcheck.models.wrong_nodes.search import Search, SessionFailed


def confirm(search: Search, nodes: Sequence[int]) -> Culprit | None:
    """The nodes as the culprit; None where they are right alone. Raises SessionFailed where their session fails."""
    levels: dict[str, str] = {}
    tried: tuple[Level, ...] = ("disabled", search.options.level)
    for level in dict.fromkeys(tried):
        check = _check_alone(search, nodes, level)
        levels[level] = "wrong" if check.wrong else "right"
        if check.wrong:
            only = "; without graph optimisation it is right" if "right" in levels.values() else ""
            reason = f"{check.words} ({check.judge}){only}"
            words = f"{search.named(nodes)} is wrong on the values that it received: {reason}"
            received = search.part(nodes, search.candidate_values)[1]
            return search.culprit(Kind.NODE, nodes, words, difference=check.kind, levels=levels, received=received)
    return None


def is_wrong_inside(search: Search, nodes: Sequence[int]) -> bool:
    """Whether the nodes are wrong inside the whole model, for the values that they received there."""
    seen = search.candidate_values
    made = {name: seen[name] for node in nodes for name in search.wiring.list_outputs(node) if name in seen}
    return _check(search, nodes, made, seen, _by_baseline(search, nodes)).wrong


def _check_alone(search: Search, nodes: Sequence[int], level: Level) -> NodeCheck:
    outcome = search.candidate(*search.part(nodes, search.candidate_values), level)
    if outcome.stage != DONE:
        raise SessionFailed(outcome)
    inside = {name: search.expected[name] for node in nodes for name in search.wiring.list_outputs(node)
              if name in search.expected}  # fmt: skip
    check = _check(search, nodes, outcome.outputs, search.candidate_values, inside)
    if check.wrong and check.judge == ORACLE:
        return check  # the oracle found the baseline right, whose inputs were nearly the same
    return _check(search, nodes, outcome.outputs, search.candidate_values, _by_baseline(search, nodes))


def _by_baseline(search: Search, nodes: Sequence[int]) -> Mapping[str, Feed]:
    """The baseline's outputs of these nodes for the values that they received. Raises SessionFailed."""
    outcome = search.baseline(*search.part(nodes, search.candidate_values))
    if outcome.stage != DONE:
        raise SessionFailed(outcome)
    return outcome.outputs


def _check(
    search: Search,
    nodes: Sequence[int],
    got: Mapping[str, Feed],
    received: Mapping[str, Feed],
    expected: Mapping[str, Feed],
) -> NodeCheck:
    """One node is checked by its oracle; several, or one with bodies, by the baseline on the same values."""
    if len(nodes) == 1 and not any(bodies(search.wiring.model.graph.node[nodes[0]])):
        return check_node(search.wiring, nodes[0], {**search.constants(nodes), **received}, got, expected)
    for name, value in got.items():
        kind = kind_of_difference(expected.get(name), value)
        if kind != "right" and closeness.distance(expected[name], value) > search.tolerance:
            return NodeCheck(kind, f"'{name}' differs from the baseline", BASELINE)
    return NodeCheck("right", judge=BASELINE)
