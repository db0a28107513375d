"""The nodes of a cluster: who is there, who is fit for which order, and what they have reported of themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from distributed import Client

from epcheck.conformance.cluster.connection import asking
from epcheck.conformance.cluster.node import Order, TaskResult, Unfit
from epcheck.conformance.records.target_facts import allowing, differing_facts, join_facts, tell_apart, varying_facts
from epcheck.conformance.targets.expectation import Expectation

SAME = ("epcheck", "onnx")
"""Packages that decide what a case is and what must come out: nodes need the client's versions."""


class Nodes:
    """Who is there, who is fit for which order, and what they have reported of themselves.

    say: takes the sentence when a node is left out.
    """

    def __init__(self, client: Client, orders: Sequence[Order], may_differ: Collection[str]) -> None:
        self.say: Callable[[str], None] = lambda _: None
        self._client = client
        self._orders = orders
        self._may_differ = may_differ
        self._there: Mapping[str, Mapping[str, Any]] = {}
        self._checked: set[str] = set()
        self._left_out: dict[tuple[str, str], str] = {}
        self._incidents: dict[str, None] = {}
        self._candidates: dict[str, list[Mapping[str, str]]] = {order.candidate: [] for order in orders}
        self._oracles: dict[str, list[Mapping[str, str]]] = {}
        self._expectations: dict[str, dict[Expectation, None]] = {order.candidate: {} for order in orders}

    @property
    def facts(self) -> dict[str, dict[str, str]]:
        """Target name -> what was reported of it."""
        names = dict.fromkeys([*self._candidates, *self._oracles])
        return {name: join_facts([*self._candidates.get(name, ()), *self._oracles.get(name, ())]) for name in names}

    @property
    def left_out(self) -> tuple[str, ...]:
        """Which nodes are not fit, and why."""
        return tuple(dict.fromkeys(self._left_out.values()))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the reader of the report."""
        return (
            *(f"Left out: {why}" for why in self.left_out),
            *self._incidents,
            *(
                f"The target {name} is not the same on all machines; it differs in {', '.join(facts)}"
                for name, reported in self._oracles.items()
                if (facts := varying_facts(reported))
            ),
        )

    def expectations(self) -> Iterator[tuple[str, Expectation]]:
        """(candidate, expectation) of all that apply on a node."""
        return ((name, expectation) for name, known in self._expectations.items() for expectation in known)

    def look(self) -> None:
        """See who is there now. Raises ClusterError when the scheduler is gone."""
        with asking():  # Client.scheduler_info answers from a cache that Dask empties of nodes every few seconds
            self._there = self._client.sync(self._client.scheduler.identity, n_workers=-1)["workers"]
        self._check_versions()

    def has(self, address: str) -> bool:
        """Whether a node was there at the last look."""
        return address in self._there

    def is_known(self, order: Order) -> bool:
        """Whether any node has reported what the candidate is."""
        return bool(self._candidates[order.candidate])

    def fit(self, order: Order) -> dict[str, int]:
        """The nodes that an order may be given to: address -> how many tasks it runs at once."""
        name = order.candidate
        slots = {
            address: min(int(details["resources"].get(name, 0)), details["nthreads"])
            for address, details in self._there.items()
            if (name, address) not in self._left_out
        }
        return {address: count for address, count in slots.items() if count}

    def why_none(self, order: Order) -> str:
        """Why no node is fit for an order, and what to do."""
        left_out = [why for (name, _), why in self._left_out.items() if name == order.candidate]
        if left_out:
            return f"no machine is left for '{order.candidate}': {'; '.join(left_out)}"
        return (
            f"no Dask worker declares the resource '{order.candidate}'; start one where the target is: "
            f'dask worker {self._client.scheduler.address} --nthreads 1 --resources "{order.candidate}=1"'
        )

    def hear(self, order: Order, address: str, result: TaskResult | Unfit) -> TaskResult | None:
        """The result of a node; None, and the node is left out from now on, when it is not fit."""
        if isinstance(result, Unfit):
            why = result.why
        elif not (why := self._recognise(order, result)):
            return result
        self._leave_out(order.candidate, address, f"{result.host} ({address}): {why}")
        return None

    def _recognise(self, order: Order, result: TaskResult) -> str:
        """Take down what a node reports; why its candidate is not that of the others, if it is not."""
        name = order.candidate
        reported = self._candidates[name]
        different = differing_facts(reported[0], result.facts[name], self._may_differ) if reported else ()
        if different:
            return (
                f"its '{name}' is not what other machines have: {tell_apart(different)}; give its target and resource "
                f"another name, or pass {allowing(different)}"
            )
        for target, facts in result.facts.items():
            known = reported if target == name else self._oracles.setdefault(target, [])
            if facts not in known:
                known.append(facts)
        self._expectations[name].update(dict.fromkeys(result.expectations))
        self._incidents.update(dict.fromkeys(result.notes))
        return ""

    def _leave_out(self, name: str, address: str, why: str) -> None:
        if (name, address) not in self._left_out:
            self._left_out[name, address] = why
            self.say(f"Left out: {why}")

    def _check_versions(self) -> None:
        """Leave nodes out, when they are first seen, whose suite is not ours."""
        new = [(o.candidate, at) for o in self._orders for at in self.fit(o) if at not in self._checked]
        if not new:
            return
        ours = {package: version(package) for package in SAME}
        with asking():
            reported = self._client.get_versions(packages=list(SAME))["workers"]
        for name, address in new:
            if not isinstance(of_node := reported.get(address), dict):
                continue  # it did not answer: next time
            self._checked.add(address)
            for package, wanted in ours.items():
                if (has := of_node["packages"].get(package)) != wanted:
                    why = f"it has {package} {has}" if has else f"it has no {package}"
                    self._leave_out(name, address, f"{address}: {why}, and this machine {wanted}")
