"""What an operator family declares, and how its cases follow from the declaration."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Generic, TypeVar

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.case import Binding, BuiltCase, Case, Lowering, Node, Sample, Truth

S = TypeVar("S", bound=Sample)


@dataclass(frozen=True)
class Operator(Generic[S]):
    """One ONNX operator: everything that the suite knows of it.

    samples: the situations worth testing, independent of version and dtype.
    variants: (sample, since_version, dtypes) -> how its inputs enter the model; empty where it does not apply.
    node: the sample with version, dtypes and random data applied.
    truth: what the text of the ONNX standard says of a node.
    lower: the DirectML operator that the DML EP turns a node into; None where it executes nothing.
    varied: the type constraints whose dtypes make the dtype axis.
    """

    name: str
    samples: Callable[[], Iterable[S]]
    variants: Callable[[S, int, tuple[str, ...]], tuple[str, ...]]
    node: Callable[[S, Binding], Node]
    truth: Callable[[Node], Truth]
    lower: Callable[[Node], Lowering | None]
    varied: tuple[str, ...] = ("T",)
    domain: str = ""

    def dtypes(self, since_version: int) -> Iterator[tuple[str, ...]]:
        """Every combination of dtypes that the schema of that version allows for the varied constraints."""
        return product(*(schema.dtypes(self.name, since_version, c, self.domain) for c in self.varied))

    def cases(self) -> Iterator[Case]:
        """Every case of the operator, in a stable order; nothing is built yet."""
        samples = tuple(self.samples())
        for since_version in schema.since_versions(self.name, self.domain):
            for dtypes in self.dtypes(since_version):
                for sample in samples:
                    for variant in self.variants(sample, since_version, dtypes):
                        yield Case(
                            self.name,
                            self.domain,
                            since_version,
                            "-".join(dtypes),
                            sample.name,
                            variant,
                            partial(_build, self, sample),
                        )


def _build(operator: Operator[S], sample: S, case: Case) -> BuiltCase:
    dtypes = tuple(np.dtype(name) for name in case.dtype.split("-"))
    node = operator.node(sample, Binding(case.since_version, dtypes, random_source(case.id)))
    return BuiltCase(
        case=case,
        node=node,
        opset=schema.opset_for(operator.name, case.since_version, operator.domain),
        model=graph.model(node, case.variant),
        feeds=graph.feeds(node, case.variant),
        truth=operator.truth(node),
        types=graph.type_bindings(node),
        lowering=operator.lower(node),
    )


def random_source(case_id: str) -> np.random.Generator:
    """The generator that makes a case's data: the same id gives the same data on every machine."""
    seed = int.from_bytes(hashlib.sha256(case_id.encode()).digest()[:16], "little")
    return np.random.Generator(np.random.PCG64(seed))


def spread(sample: Sample, *, first: bool, newest: bool) -> tuple[str, ...]:
    """The variants of a sample of an operator whose parameters are inputs.

    first: these are the operator's first dtypes, where every sample has a case; in the others only those worth it have.
    newest: this is the newest version, where every way for inputs to enter the model is tried.
    """
    if first:
        return tuple(graph.VARIANTS) if newest else (graph.INITIALIZER,)
    if not sample.every_dtype:
        return ()
    return (graph.INITIALIZER, graph.RUNTIME) if newest else (graph.INITIALIZER,)
