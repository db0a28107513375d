"""What an operator family declares, and how its cases follow from the declaration."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import product
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from epcheck.generators import graph, schema
from epcheck.generators.case import BuiltCase, Case, CaseContext, Sample
from epcheck.generators.declaration.interaction import Interaction
from epcheck.generators.declaration.optional_io import OptionalIO
from epcheck.generators.declaration.parameter_space import ParameterSpace
from epcheck.generators.declaration.undefined_sample import UndefinedSample
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.node import Node, qualified_name
from epcheck.generators.truth import Outputs, Refusal, Selection, Truth

S = TypeVar("S", bound=Sample)


@dataclass(frozen=True)
class NotLowered:
    """The `lower` of an operator no node of which is a single DirectML operator. reason: what it is instead."""

    reason: str

    def __call__(self, _node: Node) -> Lowering | None:
        """None, for any node."""
        return None


GRAPH = NotLowered("the DML EP makes it a graph of several DirectML operators")
SHADERS = NotLowered("the DML EP computes it by shaders of its own")
ON_CPU = NotLowered("the DML EP's kernel computes it on the CPU")
CPU_KERNEL = NotLowered("the DML EP registers ONNX Runtime's CPU kernel under its own name")
NO_KERNEL = NotLowered("the DML EP has no kernel")

DECLARED, FOREIGN = "declared", "foreign"
"""`Case.source` of the cases of an operator's samples: of one of the suite, or of one that other code has made."""

OTHER_RANK = "one more dimension in each operand of 8 makes no node of 9"
NO_TENSOR = "it takes or gives a sequence, an optional or a boolean, which no device holds"
PAIRS_OF_DTYPES = "its dtypes are pairs, each of which has cases of its own"
NO_ELEMENTS = "it gives no element of its input"


@dataclass(frozen=True)
class Operator(Generic[S]):
    """One ONNX operator: everything that the suite knows of it.

    samples: the situations worth testing, independent of version and dtype.
    bindings: (sample, since_version, dtypes) -> how its inputs enter the model; empty where it does not apply.
    node: the sample with version, dtypes and random data applied.
    truth: what the text of the ONNX standard says of a node.
    lower: the DirectML operator that the DML EP turns a node into; None where it executes nothing, or where that is no
    single operator. `NotLowered` where it never is one.
    varied: the type constraints whose dtypes make the dtype axis.
    without_rank_9: why no node of 9 dimensions follows from a sample of 8; empty where one does.
    new_axis_last: the ninth dimension is the last one. With a new axis in front of theirs, Scatter and ScatterElements
    would write an element several times, and ONNX does not say which update counts.
    without_rank_dtypes: why it has no case of 0, 3 and 4 dimensions in every dtype; empty where it has.
    parameter_space: its parameters, of which sizes, empty dimensions, pairs and single values follow.
    interactions: nodes in which several conditions meet.
    undefined: nodes for some of whose elements the standard defines nothing.
    magnitudes: what leaves the range of its dtype although inputs and results fit, of `sources/magnitudes.py`.
    propagates: what of NaN, inf and -inf may stand in its data although no sample has it there: its formula defines the
    result.
    optional_io: optional inputs and outputs that are tried in every combination, where its samples leave some out.
    gives_fractions: the result of integers is a fraction, or less than 0, so that the page leaves it open.
    """

    name: str
    samples: Callable[[], Iterable[S]]
    bindings: Callable[[S, int, tuple[str, ...]], tuple[str, ...]]
    node: Callable[[S, CaseContext], Node]
    truth: Callable[[Node], Truth]
    lower: Callable[[Node], Lowering | None]
    varied: tuple[str, ...] = ("T",)
    domain: str = ""
    without_rank_9: str = ""
    new_axis_last: bool = False
    without_rank_dtypes: str = ""
    gives_fractions: bool = False
    parameter_space: ParameterSpace | None = field(default=None, hash=False)
    interactions: tuple[Interaction, ...] = field(default=(), hash=False)  # it holds lists of values
    optional_io: tuple[OptionalIO, ...] = field(default=(), hash=False)
    undefined: Callable[[], Iterable[UndefinedSample]] = tuple
    propagates: tuple[str, ...] = ()
    magnitudes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """How a user names it: `Slice`, `com.microsoft::Gelu`."""
        return qualified_name(self.name, self.domain)

    def types(self, node: Node, truth: Truth, dtypes: tuple[str, ...]) -> Mapping[str, str]:
        """Type constraint -> numpy dtype name: what the inputs bind, else the outputs, else the dtypes of the case.

        Outputs of a refused node have the first of these.
        """
        if node.surroundings:
            return node.surroundings.types
        signature = schema.signature(node.op_type, node.since_version, node.domain)
        varied = dict(zip(self.varied, dtypes, strict=False))
        assumed = {**(dict.fromkeys(signature.outputs, dtypes[0]) if isinstance(truth, Refusal) else {}), **varied}
        known = {name: dtype for name, dtype in assumed.items() if name in signature.constraints}
        return {**known, **graph.result_bindings(node, truth), **graph.type_bindings(node)}

    def dtypes(self, since_version: int) -> Iterator[tuple[str, ...]]:
        """Every combination of dtypes that the schema of that version allows for the varied constraints."""
        return product(*(schema.dtypes(self.name, since_version, c, self.domain) for c in self.varied))

    def cases(self) -> Iterator[Case]:
        """Every case of the operator, in a stable order; nothing is built yet."""
        samples = tuple(self.samples())
        source = DECLARED if _is_own(self) else FOREIGN
        for since_version in schema.since_versions(self.name, self.domain):
            for dtypes in self.dtypes(since_version):
                for sample in samples:
                    for binding in self.bindings(sample, since_version, dtypes):
                        yield Case(
                            self.name,
                            self.domain,
                            since_version,
                            "-".join(dtypes),
                            sample.name,
                            binding,
                            partial(_build, self, sample),
                            source=source,
                        )


def declare(
    operators: Iterable[Operator[Any]],
    *,
    parameter_spaces: Mapping[str, ParameterSpace] = MappingProxyType({}),
    interactions: Mapping[str, tuple[Interaction, ...]] = MappingProxyType({}),
    optional_io: Mapping[str, tuple[OptionalIO, ...]] = MappingProxyType({}),
    undefined: Mapping[str, Callable[[], Iterable[UndefinedSample]]] = MappingProxyType({}),
    magnitudes: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> tuple[Operator[Any], ...]:
    """The operators, each with what stands under its key. Raises ValueError for a key of none."""
    every = {operator.key: operator for operator in operators}
    declared = (parameter_spaces, interactions, optional_io, undefined, magnitudes)
    if strange := {key for by_key in declared for key in by_key} - every.keys():
        raise ValueError(f"no operator here is called {', '.join(sorted(strange))}")
    return tuple(
        replace(
            operator,
            parameter_space=parameter_spaces.get(key),
            interactions=interactions.get(key, ()),
            optional_io=optional_io.get(key, ()),
            undefined=undefined.get(key, tuple),
            magnitudes=magnitudes.get(key, operator.magnitudes),
        )
        for key, operator in every.items()
    )


def _build(operator: Operator[S], sample: S, case: Case) -> BuiltCase:
    dtypes = tuple(np.dtype(name) for name in case.dtype.split("-"))
    node = operator.node(sample, CaseContext(case.since_version, dtypes, random_source(case.id)))
    return build_case(operator, node, operator.truth(node), case)


def build_case(operator: Operator[Any], node: Node, truth: Truth, case: Case) -> BuiltCase:
    """The case of a node whose truth is known: its model, feeds and lowering."""
    types = operator.types(node, truth, tuple(case.dtype.split("-")))
    return BuiltCase(
        case=case,
        node=node,
        opset=schema.opset_for(case.since_version, operator.domain),
        model=graph.model(node, case.binding, types, _output_ranks(node, truth)),
        feeds=graph.feeds(node, case.binding),
        truth=truth,
        types=types,
        lowering=operator.lower(node),
    )


@cache
def _is_own(operator: Operator[Any]) -> bool:
    """Whether all functions of the operator are defined in this package."""
    functions: tuple[Callable[..., Any], ...] = (operator.samples, operator.node, operator.truth, operator.lower)
    return all(is_defined_here(function) for function in functions)


def is_defined_here(function: Callable[..., Any]) -> bool:
    """Whether the function, or what it is a part of (`functools.partial`), is defined in this package."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__module__", "").startswith(f"{__package__}.")


def _output_ranks(node: Node, truth: Truth) -> tuple[int, ...]:
    """The ranks of the outputs; a node that must be refused has none: the rank of its first input stands in, or 0."""
    if isinstance(truth, Outputs):
        return tuple(output.value.ndim for output in truth.outputs)
    if isinstance(truth, Selection):
        return tuple(part.ndim for part in truth.accepted[0])
    return tuple(next((o.value.ndim for o in node.inputs if o is not None), 0) for _ in node.results)


def random_source(case_id: str) -> np.random.Generator:
    """The generator that makes a case's data: the same id gives the same data on every machine."""
    key = _Key(hashlib.sha256(case_id.encode()).digest()[:16])
    return np.random.Generator(np.random.Philox(key))  # type: ignore[arg-type]  # the stub knows SeedSequence only


class _Key(ISeedSequence):
    """The 16 bytes of a Philox key as they are: `Philox(key=...)` takes randomness from the system first, in vain."""

    def __init__(self, key: bytes) -> None:
        self._words = np.frombuffer(key, "<u8")

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """The key as two words of 64 bits, which is all that Philox asks for."""
        assert (n_words, dtype) == (2, np.uint64)
        return self._words


def spread(sample: Sample, *, first: bool, newest: bool, scalar: bool = False) -> tuple[str, ...]:
    """The bindings of a sample of an operator whose parameters are inputs.

    first: these are the operator's first dtypes, where every sample has a case; in the others only those worth it have.
    newest: this is the newest version, where every way for inputs to enter the model is tried.
    scalar: the data has no dimension that could be symbolic.
    """
    if first:
        every = tuple(binding for binding in graph.BINDINGS if not (scalar and binding == graph.SYMBOLIC))
        return every if newest else (graph.INITIALIZER,)
    if not sample.every_dtype:
        return ()
    return (graph.INITIALIZER, graph.RUNTIME) if newest else (graph.INITIALIZER,)
