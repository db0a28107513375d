"""Operators whose samples name attributes and optional inputs, and whose inputs are drawn by one function, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from onnx.defs import OpSchema

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, NotLowered, Operator, spread
from epcheck.generators.truth import Truth

MICROSOFT = "com.microsoft"


@dataclass(frozen=True, kw_only=True)
class DrawnSample(Sample):
    """present: the optional inputs that are there. outputs: how many are asked for; all where it is 0. omitted: those
    among them that are left out."""

    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    present: tuple[str, ...] = ()
    outputs: int = 0
    omitted: tuple[str, ...] = ()


D = TypeVar("D", bound=DrawnSample)


@dataclass(frozen=True)
class Drawn(Generic[D]):
    """How an operator is declared.

    draw: (sample, context) -> the values of its inputs by name; an optional one that is not given need not be there.
    parameters: the inputs that exporters write as initializers. first: the dtypes in which every sample has a case.
    has: (sample, dtypes) -> whether the sample has a case in them.
    """

    name: str
    samples: Callable[[], Iterable[D]]
    draw: Callable[[D, CaseContext], Mapping[str, Array]]
    truth: Callable[[Node], Truth]
    parameters: tuple[str, ...] = ()
    varied: tuple[str, ...] = ("T",)
    first: tuple[str, ...] = ("float32",)
    domain: str = MICROSOFT
    has: Callable[[D, tuple[str, ...]], bool] = lambda *_: True

    def bindings(self, sample: D, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        """Every way for the samples that deserve every dtype; without parameters none is an initializer."""
        if not self.has(sample, dtypes):
            return ()
        newest = since_version == schema.since_versions(self.name, self.domain)[-1]
        ways = spread(sample, first=dtypes == self.first, newest=newest and sample.every_dtype)
        there = {name for name, optional in self._inputs(since_version) if not optional or name in sample.present}
        if there & set(self.parameters):
            return ways
        return tuple(way for way in ways if way != graph.INITIALIZER) or (graph.RUNTIME,) * bool(ways)

    def node(self, sample: D, context: CaseContext) -> Node:
        """The inputs in the order of the schema."""
        definition = schema.schema(self.name, context.since_version, self.domain)
        drawn = self.draw(sample, context)
        operands: list[Operand | None] = []
        for name, optional in self._inputs(context.since_version):
            there = not optional or name in sample.present
            operands.append(Operand(name, drawn[name], parameter=name in self.parameters) if there else None)
        while operands[-1] is None:
            operands.pop()
        asked = [formal.name for formal in definition.outputs][: sample.outputs or None]
        names = tuple("" if name in sample.omitted else name for name in asked)
        attributes = dict(sample.attributes)
        return Node(self.name, self.domain, context.since_version, tuple(operands), names, attributes)

    def _inputs(self, since_version: int) -> Iterator[tuple[str, bool]]:
        """Each with whether it is optional."""
        for formal in schema.schema(self.name, since_version, self.domain).inputs:
            yield formal.name, formal.option == OpSchema.FormalParameterOption.Optional

    def declare(self, lower: NotLowered = NO_KERNEL, **more: Any) -> Operator[D]:
        """The operator. more: fields of `Operator`."""
        return Operator(
            self.name, self.samples, self.bindings, self.node, self.truth, lower, self.varied, self.domain, **more
        )
