"""Which cheap algorithms no case separates from the truth: where the data of an operator does not discriminate."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from epcheck.conformance.comparison import compare
from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.families.cheap_algorithms import CheapAlgorithm, readings
from epcheck.generators.operator import Operator
from epcheck.generators.truth import Outputs, Refusal, Selection, Truth

NO_MEANING = (ValueError, IndexError, KeyError, AssertionError, TypeError, ZeroDivisionError, OverflowError)
"""What a truth raises for inputs that have no meaning after they were changed: there is no answer to compare."""


@dataclass(frozen=True)
class Separation:
    """What the cases of an operator say of a cheap algorithm.

    does: what it does, in words. dtype: of the inputs that it changes. separated: whether a case tells it from the
    truth. met: in how many of the cases it changes an input.
    """

    operator: str
    algorithm: str
    does: str
    dtype: str
    separated: bool
    met: int


def separations(operators: Iterable[Operator[Any]]) -> Iterator[Separation]:
    """Every algorithm that changes an input of a case, for each operator in its newest version."""
    for operator in operators:
        yield from _of_operator(operator)


def _of_operator(operator: Operator[Any]) -> Iterator[Separation]:
    found: dict[tuple[CheapAlgorithm, str], list[int]] = {}
    for built in _built(operator):
        if built.node.surroundings or isinstance(built.truth, Refusal):
            continue
        for algorithm, dtype, node in readings(built.node):
            counts = found.setdefault((algorithm, dtype), [0, 0])
            counts[0] += 1
            if not counts[1]:
                counts[1] = _tells(built.truth, lambda node=node: operator.truth(node))
    for (algorithm, dtype), (met, separated) in found.items():
        yield Separation(operator.key, algorithm.name, algorithm.does, dtype, bool(separated), met)


def _built(operator: Operator[Any]) -> Iterator[Any]:
    newest = max(schema.since_versions(operator.name, operator.domain), default=0)
    return (case.build() for case in operator.cases() if case.since_version == newest)


def _tells(truth: Outputs | Selection, answer: Any) -> bool:
    """Whether the case tells the answer from the truth."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            changed = answer()
    except NO_MEANING:
        return False
    outputs = _outputs(changed)
    return outputs is None or not compare.are_right(truth, outputs)


def _outputs(truth: Truth) -> dict[str, Array] | None:
    """What a provider gives that computes this; None where it refuses."""
    if isinstance(truth, Outputs):
        return {output.name: output.value for output in truth.outputs}
    return dict(zip(truth.names, truth.accepted[0], strict=True)) if isinstance(truth, Selection) else None
