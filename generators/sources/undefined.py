"""The cases of what the standard leaves undefined: their samples' names begin with `undefined_`.

A provider may refuse such a node or answer it. It must not end its process, nor hang; its answer has the shape and the
dtype that the page gives it; the elements that are defined are right; an output is written, and the same twice; and
where the operator only moves data, an undefined element is one of an input or 0, for anything else is memory that the
node was not given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.declaration.undefined_sample import Answer, UndefinedSample
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import NotLowered, Operator, build_case
from epcheck.generators.truth import Output, Outputs, Undefined

SOURCE = "undefined"
KIND = "undefined"
KINDS = {
    KIND: "what the standard leaves undefined: may be refused or answered; must not crash, hang or read foreign memory"
}
"""What these cases are called -> what they are aimed at."""

NOT_LOWERED = NotLowered("its description defines no more than the page")


def cases(operator: Operator[Any]) -> Iterator[Case]:
    """A case for each `UndefinedSample` of the operator."""
    for sample in operator.undefined():
        version = sample.version or newest_claimed_version(operator.name, operator.domain)
        builder, binding = partial(_build, sample, operator), graph.RUNTIME
        yield Case(
            operator.name,
            operator.domain,
            version,
            sample.dtype,
            sample.sample,
            binding,
            builder,
            kind=KIND,
            source=SOURCE,
        )


def _build(sample: UndefinedSample, operator: Operator[Any], case: Case) -> BuiltCase:
    definition = schema.schema(operator.name, case.since_version, operator.domain)
    formals = [formal.name for formal in definition.inputs]
    inputs = tuple(
        None if value is None else Operand(name, value) for name, value in zip(formals, sample.inputs, strict=False)
    )
    names = tuple(formal.name for formal in definition.outputs)[: len(sample.answers)]
    node = Node(operator.name, operator.domain, case.since_version, inputs, names, dict(sample.attributes))
    outputs = tuple(_output(name, answer, inputs) for name, answer in zip(names, sample.answers, strict=True))
    return build_case(replace(operator, lower=NOT_LOWERED), node, Outputs(outputs, sample.why), case)


def _output(name: str, answer: Answer, inputs: tuple[Operand | None, ...]) -> Output:
    where = np.broadcast_to(np.asarray(answer.undefined, np.bool_), answer.value.shape)
    return Output(name, answer.value, undefined=Undefined(where, _movable(answer, inputs)))


def _movable(answer: Answer, inputs: tuple[Operand | None, ...]) -> Array | None:
    """1-D: what may stand in an undefined element; None for anything."""
    if not answer.moved:
        return None
    dtype = answer.value.dtype
    parts = [o.value.reshape(-1) for o in inputs if o is not None and o.value.dtype == dtype]
    return np.unique(np.concatenate([*parts, np.zeros(1, dtype)]))
