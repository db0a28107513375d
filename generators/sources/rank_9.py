"""The cases of 9 dimensions: their samples' names begin with `beyond_`.

ONNX has no greatest rank. DirectML has 8 dimensions, kernels have tables of their own; so such a node may be refused,
with a clean error, or must be right. It is a sample of the operator with 8 dimensions, each of whose operands of that
rank gets one more in front.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case, CaseContext, Sample
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import NotLowered, Operator, build_case, random_source
from epcheck.generators.truth import Outputs

SOURCE = "rank_9"
KIND = "beyond"
KINDS = {KIND: "tensors of 9 dimensions: the right answer, or a clean refusal"}
"""What these cases are called -> what they are aimed at."""

RANK = 9

WHY = "9 dimensions: ONNX has no greatest rank, and DirectML takes 8"

PADS = "pads"

FOR_EACH_AXIS = frozenset({"repeats", "scales"})
"""Inputs that have a number for each axis; 1 leaves the axis as it is."""

NOT_LOWERED = NotLowered("DirectML has 8 dimensions")


def cases(operator: Operator[Any]) -> Iterator[Case]:
    """One, in the version that is tried in every way or else the newest that has a sample of 8 dimensions."""
    if operator.without_rank_9:
        return
    samples = [sample for sample in operator.samples() if sample.rank == RANK - 1]
    for version in _versions(operator) if samples else ():
        for sample, dtypes in ((sample, dtypes) for dtypes in operator.dtypes(version) for sample in samples):
            if operator.bindings(sample, version, dtypes):
                name = f"{KIND}_{sample.name.replace(f'rank_{RANK - 1}', f'rank_{RANK}')}"
                words, builder = "-".join(dtypes), partial(_build, operator, sample)
                yield Case(
                    operator.name,
                    operator.domain,
                    version,
                    words,
                    name,
                    graph.INITIALIZER,
                    builder,
                    kind=KIND,
                    source=SOURCE,
                )
                return


def _versions(operator: Operator[Any]) -> list[int]:
    """The version that is tried in every way, and those that have samples which that has not."""
    first = newest_claimed_version(operator.name, operator.domain)
    others = (each for each in reversed(schema.since_versions(operator.name, operator.domain)) if each != first)
    return [first, *others]


def _build(operator: Operator[Any], sample: Sample, case: Case) -> BuiltCase:
    dtypes = tuple(np.dtype(name) for name in case.dtype.split("-"))
    node = operator.node(sample, CaseContext(case.since_version, dtypes, random_source(case.id)))
    for is_front in (not operator.new_axis_last, operator.new_axis_last):
        raised = _raise_node(node, is_front)
        with np.errstate(all="ignore"):
            truth = operator.truth(raised)
        if isinstance(truth, Outputs):
            return build_case(replace(operator, lower=NOT_LOWERED), raised, replace(truth, undefined=WHY), case)
    raise ValueError(f"{operator.key} has no node of {RANK} dimensions that follows from one of {RANK - 1}")


def _raise_node(node: Node, is_front: bool) -> Node:
    """The node whose operands of 8 dimensions have one more, in front or behind, and whose lists of a number for each
    axis have one more."""
    inputs = tuple(
        None if operand is None else replace(operand, value=_raise_value(operand, is_front)) for operand in node.inputs
    )
    return replace(node, inputs=inputs)


def _raise_value(operand: Operand, is_front: bool) -> Array:
    """A tensor with its values, and with the same in reverse; a list with a 1 that leaves the new axis as it is."""
    value = operand.value
    if value.ndim == RANK - 1:
        return np.stack([value, value.reshape(-1)[::-1].reshape(value.shape)], 0 if is_front else -1)
    if value.ndim == 1 and operand.name == PADS and value.size == 2 * (RANK - 1):
        begins, ends = value.reshape(2, -1)
        return np.concatenate([_insert_neutral(begins, 0, is_front), _insert_neutral(ends, 0, is_front)])
    if value.ndim == 1 and operand.name in FOR_EACH_AXIS and value.size == RANK - 1:
        return _insert_neutral(value, 1, is_front)
    return value


def _insert_neutral(values: Array, neutral: int, is_front: bool) -> Array:
    return np.insert(values, 0 if is_front else values.size, neutral)
