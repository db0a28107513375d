"""Operators of com.microsoft that came before ONNX had them, and mean what a version of ONNX's operator means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from epcheck.generators import schema
from epcheck.generators.case import CaseContext, Sample
from epcheck.generators.node import Node
from epcheck.generators.operator import NO_KERNEL, Operator
from epcheck.generators.truth import Truth

MICROSOFT = "com.microsoft"
S = TypeVar("S", bound=Sample)


def make_twin(
    operator: Operator[S], since_version: int, has: Callable[[S, tuple[str, ...]], bool] = lambda *_: True
) -> Operator[S]:
    """The operator of the same name in com.microsoft, with the samples that ONNX's has in a version.

    Its inputs are ONNX's in their order, under names of their own. has: (sample, dtypes) -> whether it has them, too.
    """
    name = operator.name

    def bindings(sample: S, _version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        return operator.bindings(sample, since_version, dtypes) if has(sample, dtypes) else ()

    def samples() -> Iterator[S]:
        every = tuple(operator.dtypes(since_version))
        return (s for s in operator.samples() if any(bindings(s, since_version, dtypes) for dtypes in every))

    def node(sample: S, context: CaseContext) -> Node:
        made = operator.node(sample, replace(context, since_version=since_version))
        renamed = _rename_inputs(made, schema.input_names(name, context.since_version, MICROSOFT))
        return replace(renamed, domain=MICROSOFT, since_version=context.since_version)

    def truth(node: Node) -> Truth:
        """What ONNX's version says of the same node."""
        renamed = _rename_inputs(node, schema.input_names(name, since_version))
        return operator.truth(replace(renamed, domain="", since_version=since_version))

    without_9, without_dtypes = operator.without_rank_9, operator.without_rank_dtypes
    return Operator(
        name,
        samples,
        bindings,
        node,
        truth,
        NO_KERNEL,
        operator.varied,
        MICROSOFT,
        without_rank_9=without_9,
        without_rank_dtypes=without_dtypes,
    )


def _rename_inputs(node: Node, names: tuple[str, ...]) -> Node:
    inputs = tuple(
        None if operand is None else replace(operand, name=names[index]) for index, operand in enumerate(node.inputs)
    )
    return replace(node, inputs=inputs)
