"""Check every node in isolation, all in one session: each receives the values that it should, not those of another.

They are the oracle's, rounded to the types of the model, where it knows them (`SearchOptions.truth`), else the
baseline's. This finds what halving cannot: a node whose error is within the noise at first and grows along the graph,
or is lost in the noise of the outputs. Where no node is wrong, the error of the model is the sum of many small ones.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from epcheck.models.accuracy import closeness
from epcheck.models.execution.model_outcome import DONE
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import disconnect_nodes
from epcheck.models.graph.values import bodies
from epcheck.models.wrong_nodes.culprit import Culprit, Kind
from epcheck.models.wrong_nodes.node_check import IsolatedNode, check_node, is_like, is_random
from epcheck.models.wrong_nodes.search import LimitsReached, Search

CHECKS_S = 60.0
"""Seconds that the checks of the nodes of one model may take, where a target is not like the baseline."""


class IsolatedNodes:
    """The nodes of a model, each judged on the values that it should receive. wrong: in the order of the graph.
    licensed: nodes that are right by a published bound alone. judged: indices of the nodes that were judged. is_cut:
    whether a limit of sessions or time left others out."""

    def __init__(self, search: Search) -> None:
        """Run and judge the nodes. Raises SessionFailed where the baseline returns no values, and LimitsReached before
        there are any."""
        self.wrong: list[IsolatedNode] = []
        self.licensed: list[IsolatedNode] = []
        self.is_cut = False
        self.judged: set[int] = set()
        self._search, self._left_s = search, CHECKS_S
        self._values: Mapping[str, Feed] = search.options.truth
        if not self._values:
            search.expect(search.possible_outputs())
            self._values = search.expected
        try:
            for nodes in self._groups(self._nodes_to_check()):
                self._judge(nodes)
        except LimitsReached:  # what is judged until then counts
            self.is_cut = True
        self.wrong.sort(key=lambda found: found.node)

    def _nodes_to_check(self) -> Iterator[int]:
        """The nodes whose inputs and outputs are known, that hold no graphs and draw no random numbers."""
        wiring = self._search.wiring
        known = {*self._values, *self._search.feeds, *wiring.constants}
        for node, proto in enumerate(wiring.model.graph.node):
            names = {*wiring.reads[node], *(name for name in wiring.list_outputs(node) if name in wiring.last_read)}
            constant = self._search.is_constant(node)
            if names <= known and not constant and not any(bodies(proto)) and not is_random(wiring, node):
                yield node

    def _groups(self, nodes: Iterable[int]) -> Iterator[list[int]]:
        """The nodes in groups, each as large as the limit of bytes allows and of at least one node."""
        group: list[int] = []
        wiring, most, sizes = self._search.wiring, self._search.options.limits.bytes, self._search.sizes()
        room = most
        for node in nodes:
            names = (*wiring.list_received_values(node), *wiring.list_outputs(node))
            size = sum(sizes.get(name, 0) for name in names)
            if group and size > room:
                yield group
                group, room = [], most
            group.append(node)
            room -= size
        if group:
            yield group

    def _judge(self, nodes: Sequence[int]) -> None:
        """Judge nodes in one session. Those of a session that fails are divided between two."""
        search = self._search
        model, feeds = disconnect_nodes(search.wiring, nodes, {**search.feeds, **self._values})
        outcome = search.candidate(model, feeds)
        right = search.baseline(model, feeds) if search.options.truth and outcome.stage == DONE else None
        if outcome.stage != DONE or (right is not None and right.stage != DONE):
            if len(nodes) > 1:
                half = len(nodes) // 2
                self._judge(nodes[:half])
                self._judge(nodes[half:])
            return
        expected = search.expected if right is None else right.outputs
        started = time.monotonic()
        for node in nodes:
            if time.monotonic() - started < self._left_s:
                self._check(node, outcome.outputs, expected)
        self._left_s -= time.monotonic() - started

    def _check(self, node: int, outputs: Mapping[str, Feed], expected: Mapping[str, Feed]) -> None:
        search = self._search
        made = [name for name in search.wiring.list_outputs(node) if name in expected]
        if not made:
            return
        self.judged.add(node)
        if all(is_like(outputs.get(name), expected[name]) for name in made):
            return
        got = {name: outputs[name] for name in made if name in outputs}
        values = {**search.constants([node]), **search.feeds, **self._values}
        check = check_node(search.wiring, node, values, got, expected)
        if check.wrong or check.licence:
            received = {name: values[name] for name in search.wiring.list_received_values(node)}
            apart = closeness.farthest(expected, outputs, made)
            found = self.wrong if check.wrong else self.licensed
            found.append(IsolatedNode(node, check, apart, got, received))


def find_isolated_nodes(search: Search) -> Sequence[IsolatedNode]:
    """Every node that is wrong on the values that it should receive, in the order of the graph; those of the options
    where they are known. Raises LimitsReached, and SessionFailed where the baseline returns no values."""
    if search.options.wrong_alone is not None:
        return search.options.wrong_alone
    found = IsolatedNodes(search)
    if found.is_cut:
        raise LimitsReached
    return found.wrong


def check_isolated_nodes(search: Search) -> Culprit | None:
    """Of these nodes the one with the largest error; None where each is right. Raises as `find_isolated_nodes` does."""
    wrong = find_isolated_nodes(search)
    return as_culprit(search, max(wrong, key=lambda found: (found.error, -found.node))) if wrong else None


def as_culprit(search: Search, wrong: IsolatedNode) -> Culprit:
    """The result that names this node."""
    check = wrong.check
    words = f"{search.named([wrong.node])} is wrong on the values that it should receive: {check.words} ({check.judge})"
    return search.culprit(Kind.NODE, [wrong.node], words, difference=check.kind, received=wrong.received)
