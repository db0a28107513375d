"""What the oracle says of a node that nobody wrote down: a truth, or that the question is open, and why.

The oracles were written for the samples of their operators. Beyond these a page may say nothing, a bound may not hold,
or the evaluation may take hours. `domains` says where; what an oracle raises is open, too. Nothing that is open is
judged.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.fuzzing.domains import domain, families
from epcheck.generators.node import Node
from epcheck.generators.operator import Operator
from epcheck.generators.truth import Open as Open
from epcheck.generators.truth import Output, Outputs, Selection, Truth, Ulp

MOST_ELEMENTS = 1 << 18
"""Elements of an input or an output, at most: 1 MiB in float32."""

MOST_RANK = 8
"""Ranks beyond this are refused by DirectML and left open by kernels that have no text for them."""


RECURRENT = frozenset({"RNN", "GRU", "LSTM"})
"""Operators whose results go through many steps."""


AVERAGING = frozenset({"AveragePool", "QLinearAveragePool"})
"""Operators that take the mean of a window."""


def judge(operator: Operator[Any], node: Node) -> Truth | Open:
    """The truth of the node, or why it is open. Raises nothing, and takes a bounded time."""
    if any(o is not None and o.value.size > MOST_ELEMENTS for o in node.inputs):
        return Open(f"an input has more than {MOST_ELEMENTS:,} elements")
    if any(o is not None and o.value.ndim > MOST_RANK for o in node.inputs):
        return Open(f"an input has more than {MOST_RANK} dimensions")
    truth = _judge_node(operator, node, _why_open)
    return truth if isinstance(truth, Open) else _require_bound(truth)


def judge_moved(operator: Operator[Any], node: Node) -> Truth | Open:
    """The same of a node that was judged before with values that differ a little: attributes, shapes and dtypes are
    known to be right, so that the page of the operator alone is asked. Raises nothing."""
    truth = _judge_node(operator, node, lambda _, moved: families.why_open(moved))
    return truth if isinstance(truth, Open) else _require_bound(truth)


def judge_real(operator: Operator[Any], node: Node) -> Truth | Open:
    """The same of a node that somebody's model has, whose inputs are small enough. It may have what no sample of the
    operator has. Raises nothing."""
    return _judge_node(operator, node, lambda _, real: domain.why_undefined(real))


def _why_open(operator: Operator[Any], node: Node) -> str:
    if reason := domain.why_open(operator, node):
        return reason
    large = domain.elements(node) > MOST_ELEMENTS
    return f"the oracle would make more than {MOST_ELEMENTS:,} elements" if large else ""


def _judge_node(operator: Operator[Any], node: Node, why_open: Callable[[Operator[Any], Node], str]) -> Truth | Open:
    try:
        if reason := why_open(operator, node):
            return Open(reason)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            truth = operator.truth(node)
    except Exception as error:  # whatever an oracle raises outside of what it was written for
        return Open(f"the oracle does not know the node: {type(error).__name__}: {error}")
    if node.op_type in RECURRENT and isinstance(truth, Outputs) and not all(map(_is_finite, truth.outputs)):
        return Open("a state leaves the range of numbers, and what follows depends on the order of the operations")
    if node.op_type in AVERAGING and isinstance(truth, Outputs) and _is_mean_of_nothing(node, truth):
        return Open("a window holds nothing but padding, and the mean of nothing is not defined")
    if isinstance(truth, Outputs) and any(map(_may_overflow, truth.outputs)):
        return Open("the error that is allowed is larger than the dtype's largest number")
    return truth


def _is_mean_of_nothing(node: Node, truth: Outputs) -> bool:
    """Whether an element is NaN, and none of the inputs."""
    values = (output.value if output.exact is None else output.exact for output in truth.outputs)
    return any(map(_has_nan, values)) and not any(_has_nan(o.value) for o in node.inputs if o is not None)


def _may_overflow(output: Output) -> bool:
    """Whether a right answer may be infinite where the truth is a number."""
    if not isinstance(output.bound, Ulp) or output.value.dtype.kind != "f":
        return False
    floor = np.asarray(output.bound.floor)
    return bool((floor[np.isfinite(floor)] >= np.finfo(output.value.dtype).max).any())


def _has_nan(value: Array) -> bool:
    return value.dtype.kind == "f" and bool(np.isnan(value).any())


def _is_finite(output: Output) -> bool:
    return output.value.dtype.kind != "f" or bool(np.isfinite(output.value).all())


def _require_bound(truth: Truth) -> Truth | Open:
    shapes = (
        [output.value.shape for output in truth.outputs]
        if isinstance(truth, Outputs)
        else [part.shape for part in truth.accepted[0]]
        if isinstance(truth, Selection)
        else []
    )
    if any(len(shape) > MOST_RANK for shape in shapes):
        return Open(f"an output has more than {MOST_RANK} dimensions")
    if any(prod(shape) > MOST_ELEMENTS for shape in shapes):
        return Open(f"an output has more than {MOST_ELEMENTS:,} elements")
    return truth
