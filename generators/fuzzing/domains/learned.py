"""What the samples of an operator show that its oracle was written for, where the schema does not say it.

An attribute that is 0 or 1 in every sample is a flag: what 3 means is said nowhere. An epsilon that is positive in
every sample is none when it is negative. Where no sample has a dimension of size 0, a page mostly says nothing of one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import Operator

FLAG = frozenset({0, 1})

WHOLE = frozenset({"tensor(int32)", "tensor(int64)"})


@dataclass(frozen=True)
class Shown:
    """What the samples of an operator have in common.

    flags: attributes that are 0 or 1. positive, unsigned: attributes whose numbers are all above 0, or never below.
    ranks: of each input. empty: (input, axis) of dimensions of size 0. above_0: floating-point inputs whose values are
    all above 0: scales, variances. unordinary: (input, what some hold of it: NaN, inf, -inf). zero_lists,
    negative_lists, empty_lists: attributes with lists of integers of which some hold 0 or less, below 0, or nothing.
    counted, counted_from_0: integers that say how to compute, all of them above 0, or never below.
    """

    flags: frozenset[str]
    positive: frozenset[str]
    unsigned: frozenset[str]
    ranks: Mapping[str, frozenset[int]]
    empty: frozenset[tuple[str, int]]
    above_0: frozenset[str]
    unordinary: frozenset[tuple[str, str]]
    zero_lists: frozenset[str]
    negative_lists: frozenset[str]
    empty_lists: frozenset[str]
    counted: frozenset[str]
    counted_from_0: frozenset[str]


def why_open(operator: Operator[Any], node: Node) -> str:
    """What the node has that no sample of the operator has, in words; empty where there is nothing."""
    shown = summarize_samples(operator)
    for name, value in node.attributes.items():
        if reason := _attribute(shown, name, value):
            return reason
    for operand in node.inputs:
        if operand is not None and (reason := _operand(shown, operand, operator)):
            return reason
    return ""


def _attribute(shown: Shown, name: str, value: Any) -> str:
    if name in shown.flags and value not in FLAG:
        return f"{name} is a flag, and {value} is neither 0 nor 1"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name in shown.positive and value <= 0:
            return f"no sample has {name} at {value}: all are above 0"
        if name in shown.unsigned and value < 0:
            return f"no sample has {name} at {value}: none is below 0"
    if not isinstance(value, tuple):
        return ""
    if name not in shown.zero_lists and any(isinstance(v, int) and v <= 0 for v in value):
        return f"no sample has {name} with an element of 0 or less"
    if name not in shown.negative_lists and any(isinstance(v, int) and v < 0 for v in value):
        return f"no sample has {name} with an element below 0"
    return f"no sample has {name} without elements" if not value and name not in shown.empty_lists else ""


def _operand(shown: Shown, operand: Operand, operator: Operator[Any]) -> str:
    value, name = operand.value, operand.name
    for axis, size in enumerate(value.shape):
        if not size and (name, axis) not in shown.empty:
            return f"no sample has {name} with a size of 0 in dimension {axis}"
    ranks = shown.ranks.get(name, frozenset())
    if ranks and (value.ndim > max(ranks) or value.ndim < min(ranks) or (operator.domain and value.ndim not in ranks)):
        return f"no sample has {name} of rank {value.ndim}"
    if name in shown.above_0 and not _is_above_0(value):
        return f"no sample has {name} at 0 or below"
    if value.dtype.kind in "iu" and value.size and name in shown.counted_from_0:
        least = 1 if name in shown.counted else 0
        if int(value.min()) < least:
            return f"no sample has {name} with an element below {least}"
    for what in _unordinary(value):
        if (name, what) not in shown.unordinary and (operand.parameter or what not in operator.propagates):
            return f"no sample has {what} in {name}"
    return ""


@lru_cache(maxsize=512)
def summarize_samples(operator: Operator[Any]) -> Shown:
    """What the samples of the operator show; those that must be refused show nothing."""
    attributes: dict[str, list[Any]] = {}
    operands: list[Operand] = []
    for node in _nodes(operator):
        for name, value in node.attributes.items():
            attributes.setdefault(name, []).append(value)
        operands += [operand for operand in node.inputs if operand is not None]
    numbers = {n: v for n, v in attributes.items() if all(isinstance(x, int | float) for x in v)}
    lists = {n: v for n, v in attributes.items() if all(isinstance(x, tuple) for x in v)}
    named = _list_whole_inputs(operator)
    whole = [o for o in operands if o.parameter and o.name in named and o.value.dtype.kind == "i" and o.value.size]
    return Shown(
        flags=frozenset(n for n, v in numbers.items() if all(isinstance(x, int) and x in FLAG for x in v)),
        positive=frozenset(n for n, v in numbers.items() if min(v) > 0),
        unsigned=frozenset(n for n, v in numbers.items() if min(v) >= 0),
        ranks={
            name: frozenset(o.value.ndim for o in operands if o.name == name) for name in {o.name for o in operands}
        },
        empty=frozenset((o.name, axis) for o in operands for axis, size in enumerate(o.value.shape) if not size),
        above_0=frozenset(o.name for o in operands if o.value.dtype.kind == "f")
        - frozenset(o.name for o in operands if not _is_above_0(o.value)),
        unordinary=frozenset((o.name, what) for o in operands for what in _unordinary(o.value)),
        zero_lists=frozenset(n for n, v in lists.items() if _find_least(v) <= 0),
        negative_lists=frozenset(n for n, v in lists.items() if _find_least(v) < 0),
        empty_lists=frozenset(n for n, v in lists.items() if not all(v)),
        counted=frozenset(o.name for o in whole) - frozenset(o.name for o in whole if int(o.value.min()) <= 0),
        counted_from_0=frozenset(o.name for o in whole) - frozenset(o.name for o in whole if int(o.value.min()) < 0),
    )


def _nodes(operator: Operator[Any]) -> Iterator[Node]:
    """A node of each sample that is valid, in the newest version that has it."""
    versions = tuple(reversed(schema.since_versions(operator.name, operator.domain)))
    for sample in operator.samples():
        if sample.refused:
            continue
        for version in versions:
            node = _node(operator, sample, version)
            if node is not None:
                yield node
                break


def _node(operator: Operator[Any], sample: Any, version: int) -> Node | None:
    for dtypes in operator.dtypes(version):
        if operator.bindings(sample, version, dtypes):
            rng = np.random.Generator(np.random.Philox(key=0))
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return operator.node(sample, CaseContext(version, tuple(map(np.dtype, dtypes)), rng))
    return None


def _list_whole_inputs(operator: Operator[Any]) -> frozenset[str]:
    """The inputs that are 32- or 64-bit integers whatever the data is."""
    version = schema.since_versions(operator.name, operator.domain)[-1]
    definition = schema.schema(operator.name, version, operator.domain)
    return frozenset(formal.name for formal in definition.inputs if formal.types <= WHOLE)


def _find_least(lists: list[Any]) -> int:
    """The least integer in all of them; 1 where there is none."""
    return min((i for each in lists for i in each if isinstance(i, int)), default=1)


def _is_above_0(value: Array) -> bool:
    return value.dtype.kind != "f" or bool((value > 0).all())


def _unordinary(value: Array) -> Iterator[str]:
    """What the array holds beside numbers: NaN, inf, -inf."""
    if value.dtype.kind not in "fc" or bool(np.isfinite(value).all()):
        return
    found = {"NaN": np.isnan(value), "inf": value == np.inf, "-inf": value == -np.inf}
    yield from (name for name, where in found.items() if bool(where.any()))
