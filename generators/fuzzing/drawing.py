"""Drawing nodes of one operator at random, until the oracle can judge one."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any

import numpy as np

from epcheck.generators import registry, schema
from epcheck.generators.case import CaseContext
from epcheck.generators.claims import Claims
from epcheck.generators.fuzzing import node_mutation, oracle
from epcheck.generators.fuzzing.history import SearchHistory
from epcheck.generators.fuzzing.oracle import Open
from epcheck.generators.fuzzing.sample_mutation import mutate_sample
from epcheck.generators.node import Node
from epcheck.generators.operator import Operator
from epcheck.generators.serialization.node_json import SerializedNode
from epcheck.generators.truth import Refusal, Truth

REFUSED_SHARE = 0.1
"""How many of the nodes that must be refused are kept: a mutated sample often breaks a rule."""


TRIES = 40
"""Draws for each node that is wanted, before the operators are given up."""

UNTAKEN, FOREVER = 3, 10**9
"""Nodes of a version and dtypes that a provider did not take, after which they are drawn rarely."""

RARELY = 0.02
"""How often what the provider does not take, or does not claim, is drawn nevertheless."""


@dataclass(frozen=True)
class Drawn:
    """A node that nobody wrote, how its inputs enter the model, and what the oracle says of it.

    dtypes: of the varied type constraints, by their numpy names.
    """

    operator: Operator[Any]
    node: Node
    dtypes: tuple[str, ...]
    binding: str
    truth: Truth

    @property
    def serialized(self) -> SerializedNode:
        """What is kept of it."""
        return SerializedNode(self.node, self.dtypes, self.binding)


@dataclass
class Tally:
    """What became of the draws. valueless: the operator gives the sample no meaning in that version and dtype, or its
    generator raises. repeated: an earlier search judged the node."""

    drawn: int = 0
    judged: int = 0
    open: int = 0
    valueless: int = 0
    repeated: int = 0


@dataclass(frozen=True)
class Space:
    """The nodes of one operator that can be drawn. opset: of ai.onnx, where only the version that it resolves to is.
    claims: of the provider that they are for; what it does not claim is drawn rarely. history: of nodes that are not
    drawn again; None where any is."""

    operator: Operator[Any]
    opset: int | None = None
    claims: Claims | None = None
    history: SearchHistory | None = None

    @cached_property
    def samples(self) -> tuple[Any, ...]:
        """Its samples; those that must be refused are among them."""
        return tuple(self.operator.samples())

    @cached_property
    def applications(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """Its versions and dtypes that some sample has; the newest version first."""
        versions = schema.since_versions(self.operator.name, self.operator.domain)
        if self.opset is not None and not self.operator.domain:
            versions = tuple(version for version in versions if version <= self.opset)[-1:]
        every = [(version, dtypes) for version in reversed(versions) for dtypes in self.operator.dtypes(version)]
        return tuple(pair for pair in every if any(self._bindings(sample, *pair) for sample in self.samples))

    @cached_property
    def claimed_applications(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """The applications that the provider claims; all where its claims are not known."""
        return tuple(pair for pair in self.applications if self._is_claimed(*pair))

    def _is_claimed(self, version: int, dtypes: tuple[str, ...]) -> bool:
        types = dict(zip(self.operator.varied, dtypes, strict=False))
        return self.claims is None or not self.claims.why_not(self.operator.domain, self.operator.name, version, types)

    def draw(self, random: Random, tally: Tally) -> Drawn | None:
        """A node that the oracle can judge; None where this draw gives none."""
        tally.drawn += 1
        version, dtypes = self._application(random)
        sample = mutate_sample(random.choice(self.samples), self.samples, random)
        ways = self._bindings(sample, version, dtypes)
        if not ways:
            tally.valueless += 1
            return None
        binding = random.choice(ways)
        node = self._node(sample, version, dtypes, random)
        if node is None:
            tally.valueless += 1
            return None
        if self.history is not None and self.history.has(node, binding):
            tally.repeated += 1
            return None
        truth = oracle.judge(self.operator, node)
        if isinstance(truth, Open):
            tally.open += 1
            return None
        if isinstance(truth, Refusal) and random.random() > REFUSED_SHARE:
            return None
        tally.judged += 1
        return Drawn(self.operator, node, dtypes, binding, truth)

    def _application(self, random: Random) -> tuple[int, tuple[str, ...]]:
        """The newest version half of the time: what is wrong there is wrong in the others, mostly."""
        is_any = self.claims is not None and (not self.claimed_applications or random.random() < RARELY)
        pairs = self.applications if is_any else self.claimed_applications
        newest = [pair for pair in pairs if pair[0] == pairs[0][0]]
        return random.choice(newest if random.random() < 0.5 else pairs)

    def _bindings(self, sample: Any, version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        try:
            return self.operator.bindings(sample, version, dtypes)
        except Exception:  # a sample that no declaration foresaw
            return ()

    def _node(self, sample: Any, version: int, dtypes: tuple[str, ...], random: Random) -> Node | None:
        rng = np.random.Generator(np.random.Philox(key=random.getrandbits(64)))
        context = CaseContext(version, tuple(np.dtype(name) for name in dtypes), rng)
        if is_large(sample):
            return None
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                node = self.operator.node(sample, context)
        except Exception:  # a sample that the generator cannot make a node of
            return None
        with np.errstate(all="ignore"):
            return node_mutation.mutate_node(node, random) if random.random() < 0.5 else node


def is_large(sample: Any) -> bool:
    """Whether some shape in the sample has more elements than an oracle takes."""
    return any(_elements(value) > oracle.MOST_ELEMENTS for value in vars(sample).values())


def _elements(value: Any) -> int:
    if isinstance(value, tuple) and value:
        if all(type(v) is int for v in value):
            total = 1
            for size in value:
                total *= max(size, 1)
            return total
        return max(map(_elements, value))
    if isinstance(value, dict):
        return max((_elements(getattr(v, "shape", ())) for v in value.values()), default=0)
    return 0


class Source:
    """Nodes of several operators in turn, without end. The same seed and the same answers give the same nodes."""

    def __init__(
        self,
        operators: Iterable[Operator[Any]],
        seed: int,
        opset: int | None = None,
        claims: Claims | None = None,
        history: SearchHistory | None = None,
    ) -> None:
        """opset, claims, history: as in `Space`. The operators that the history has least of come first."""
        self.tally = Tally()
        self._random = Random(seed)
        spaces = (Space(operator, opset, claims, history) for operator in operators)
        self._spaces = [space for space in spaces if space.applications]
        self._next = 0
        self._history = history or SearchHistory()
        self._leads = self._history.leads(space.operator.key for space in self._spaces)
        self._untaken: Counter[tuple[str, int, tuple[str, ...]]] = Counter()
        self._costly: Counter[str] = Counter()

    def draw(self, count: int) -> list[Drawn]:
        """So many nodes; fewer where the operators give none any more."""
        return list(self.draw_each(count))

    def draw_each(self, count: int) -> Iterator[Drawn]:
        """The same, one after the other."""
        tries = TRIES * max(count, len(self._spaces)) if self._spaces else 0
        while count and tries:
            tries -= 1
            space = self._choose_space()
            if self._wants(space) and (drawn := space.draw(self._random, self.tally)) and self._is_worth(drawn):
                count -= 1
                yield drawn

    def _choose_space(self) -> Space:
        """The operator that is the furthest behind the others; the next one in turn where none is."""
        place = self._next
        if self._leads:
            behind = max(self._leads, key=self._leads.__getitem__)
            place = next(i for i, space in enumerate(self._spaces) if space.operator.key == behind)
            self._leads[behind] -= 1
            if not self._leads[behind]:
                del self._leads[behind]
        else:
            self._next = (self._next + 1) % len(self._spaces)
        space = self._spaces[place]
        self._history.turns[space.operator.key] += 1
        return space

    def note_untaken(self, drawn: Drawn) -> None:
        """The provider does not take the node, and need not: others of that version and dtypes are not worth much."""
        self._untaken[_application(drawn)] += 1

    def note_taken(self, drawn: Drawn) -> None:
        """The provider took the node."""
        self._untaken[_application(drawn)] = -FOREVER

    def note_costly(self, drawn: Drawn) -> None:
        """The node ended its process or hung: each such node costs as much as a thousand others."""
        self._costly[drawn.operator.key] += 1

    def _wants(self, space: Space) -> bool:
        if not space.claimed_applications and self._random.random() > RARELY:
            return False
        crashes = self._costly[space.operator.key]
        return crashes < UNTAKEN or self._random.random() < 1 / crashes**2

    def _is_worth(self, drawn: Drawn) -> bool:
        return self._untaken[_application(drawn)] < UNTAKEN or self._random.random() < RARELY


def _application(drawn: Drawn) -> tuple[str, int, tuple[str, ...]]:
    return drawn.operator.key, drawn.node.since_version, drawn.dtypes


def judge_node(written: SerializedNode) -> Drawn | Open:
    """A node that was kept, with what the oracle says of it now."""
    try:
        operator = registry.operator_of(written.operator)
    except KeyError:
        return Open("the suite has no such operator")
    truth = oracle.judge(operator, written.node)
    if isinstance(truth, Open):
        return truth
    return Drawn(operator, written.node, written.dtypes, written.binding, truth)


def replace_node(drawn: Drawn, node: Node) -> Drawn | None:
    """Another node in place of the drawn one; None where the oracle cannot judge it, or it changes sides: one that
    must be refused and one that must not are not alike."""
    truth = oracle.judge(drawn.operator, node)
    if isinstance(truth, Open) or isinstance(truth, Refusal) != isinstance(drawn.truth, Refusal):
        return None
    return replace(drawn, node=node, truth=truth)
