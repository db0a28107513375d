"""The truth of a graph: each node by its own oracle, and how far errors of earlier nodes carry.

The values between nodes are the true results, rounded as the standard says. A provider is off by the bound of each
node, and what follows is off by more. How much is measured: every floating-point value between nodes is moved by its
bound, all up, all down, values and nodes against each other, and at random, and every quantised one by the step that it
may be off, and the graph is evaluated again. An output may differ by its own bound and SAFETY times
the largest change. Where such a change reaches an integer, a bool, a shape, or grows out of all proportion, the graph
is not numerically sound, and nothing is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.citation import Citation, CitationKind, statement
from epcheck.generators.graphs.node_graph import NodeGraph, Step
from epcheck.generators.node import Node, Operand
from epcheck.generators.registry import operator_of
from epcheck.generators.truth import Exact, OneStep, Open, Output, Outputs, Selection, Truth, Ulp

Judge = Callable[[str, Node], Truth | Open]
"""(key of the operator, node with its values) -> what the operator's oracle says of it."""

UP, DOWN, RANDOM, AGAINST = 1, -1, 0, 2

DIRECTIONS = (UP, DOWN, *range(AGAINST, AGAINST + 4), RANDOM, RANDOM)
"""How the values are moved in each trial. What moves as one cancels where a mean or a maximum is taken away. So of the
values in order of size each is moved against the next one, each pair against the next pair, and so on up to eight, so
that any two of sixteen neighbours are once moved against each other; and each node against the one before it. Equal
values move alike."""

SAFETY = 16.0
"""How much further an error may carry than the largest change that was measured."""

TRAVELLED = Citation(CitationKind.MEASURED, "errors of the nodes before it, as measured by moving their results")
"""The first citation of a bound that allows for them."""

LARGEST = 1e4
"""Magnitudes up to which a value may go on to another node: float16 ends at 65,504."""

LARGEST_SHARE = 0.02
"""Of the largest magnitude in an output, the most that may be allowed: more says nothing of a fault."""


def judge_node(key: str, node: Node) -> Truth | Open:
    """What the suite's oracle says of a node with these inputs; a selection in order is its one answer."""
    with np.errstate(all="ignore"):
        truth = operator_of(key).truth(node)
    if isinstance(truth, Selection) and truth.ordered and len(truth.accepted) == 1:
        return Outputs(tuple(map(Output, truth.names, truth.accepted[0])))
    return truth


def judge_graph(
    judge: Judge,
    steps: Sequence[Step],
    sources: Sequence[Operand],
    outputs: Sequence[str],
    seed: int = 0,
    known: Mapping[str, Output] | None = None,
    judge_moved: Judge | None = None,
    accept: Callable[[Output], bool] | None = None,
) -> NodeGraph | Open:
    """The graph with its truth, or why it is open. seed: of the random changes. known: the truth of every value that a
    step makes, where it was evaluated before. judge_moved: as judge, of nodes that it knows but for their values.
    accept: whether a value may go on to another node; `is_moderate` where it is left out."""
    accept = accept or is_moderate
    entering = {operand.name: operand.value for operand in sources}
    exact = _evaluate_steps(judge, steps, entering, accept, _keep_elements) if known is None else dict(known)
    if isinstance(exact, Open):
        return exact
    values = {**entering, **{name: output.value for name, output in exact.items()}}
    changes = {name: np.zeros(output.value.shape) for name, output in exact.items()}
    rng = np.random.default_rng(seed)
    for direction in DIRECTIONS if len(steps) > 1 else ():
        move = partial(_move_elements, rng, direction)
        moved = _evaluate_steps(judge_moved or judge, steps, entering, accept, move, exact)
        if isinstance(moved, Open):
            return Open(f"small errors change it: {moved.reason}")
        for name, output in exact.items():
            other = moved[name].value
            if other is output.value:
                continue
            if other.shape != output.value.shape:
                return Open("small errors change a shape")
            if output.value.dtype.kind != "f":
                if not np.array_equal(other, output.value):
                    return Open("small errors change an integer")
                continue
            if not np.array_equal(np.isnan(other), np.isnan(output.value)):
                return Open("small errors change what is no number")
            with np.errstate(all="ignore"):
                change = np.abs(other.astype(np.float64) - output.value.astype(np.float64))
            changes[name] = np.fmax(changes[name], change)  # which leaves out NaN
    allowed = [_widen_bound(exact[name], name, changes[name]) for name in outputs]
    if any(output is None for output in allowed):
        return Open("errors grow out of all proportion")
    read = [replace(step, node=step.reading(values)) for step in steps]
    truth = Outputs(tuple(output for output in allowed if output is not None))
    return NodeGraph(tuple(read), tuple(sources), tuple(outputs), truth, values)


def _evaluate_steps(
    judge: Judge,
    steps: Sequence[Step],
    entering: Mapping[str, Array],
    accept: Callable[[Output], bool],
    move: Callable[[int, Output], Array],
    exact: Mapping[str, Output] | None = None,
) -> dict[str, Output] | Open:
    """Value -> its truth, of every value that a step makes. move: what is read of each, by the number of its step.
    exact: the truth where nothing is moved, which holds for each step that reads no moved value."""
    values, found, moved = dict(entering), dict[str, Output](), set[str]()
    for number, step in enumerate(steps):
        if exact is not None and moved.isdisjoint(step.inputs):
            results: Mapping[str, Output] | Open = {name: exact[name] for name in step.outputs if name}
        else:
            results = _results(judge, step, values, accept)
        if isinstance(results, Open):
            return results
        for name, output in results.items():
            found[name] = output
            values[name] = move(number, output)
            if exact is not None and values[name] is not exact[name].value:
                moved.add(name)
    return found


def _results(
    judge: Judge, step: Step, values: Mapping[str, Array], accept: Callable[[Output], bool]
) -> dict[str, Output] | Open:
    """Value -> its truth, of those that a step makes."""
    truth = judge(step.key, step.reading(values))
    if not isinstance(truth, Outputs):
        return truth if isinstance(truth, Open) else Open("a node has no single result")
    found = name_outputs(step, truth)
    return found if all(map(accept, found.values())) else Open("a value is no ordinary number")


def name_outputs(step: Step, truth: Outputs) -> dict[str, Output]:
    """The outputs of a step by the names that they have in the graph."""
    outputs = {output.name: output for output in truth.outputs}
    return {name: outputs[own] for own, name in zip(step.node.outputs, step.outputs, strict=True) if own}


def is_moderate(output: Output) -> bool:
    """Whether the value may go on to another node: no NaN, nothing as large as LARGEST."""
    return output.value.dtype.kind != "f" or bool((np.abs(output.value) < LARGEST).all())


def _keep_elements(_number: int, output: Output) -> Array:
    return output.value


def _move_elements(rng: np.random.Generator, direction: int, number: int, output: Output) -> Array:
    """The value, each element moved by as much as the bound allows. direction: one of DIRECTIONS. number: of the node
    in the graph."""
    bound, value = output.bound, output.value
    if direction == RANDOM:
        signs = np.where(rng.random(value.shape) < 0.5, -1, 1)
    elif direction >= AGAINST:
        ranks = np.unique(value, return_inverse=True)[1].reshape(value.shape)
        signs = 1 - 2 * (((ranks >> (direction - AGAINST)) + number) % 2)
    else:
        signs = np.asarray(direction)
    if isinstance(bound, OneStep):
        limits = np.iinfo(value.dtype)
        moved = value.astype(np.int64) + signs * np.asarray(bound.allowed)
        return np.asarray(np.clip(moved, limits.min, limits.max)).astype(value.dtype)
    if not isinstance(bound, Ulp) or value.dtype.kind != "f":
        return value
    with np.errstate(all="ignore"):
        return np.asarray(np.where(np.isfinite(value), value.astype(np.float64) + signs * _own(output), value)).astype(
            value.dtype
        )


def _own(output: Output) -> Array:
    """How far a node itself may be from the truth: its bound in ULP, or its floor where that is more."""
    bound = output.bound
    assert isinstance(bound, Ulp)
    with np.errstate(over="ignore"):
        step = np.spacing(np.abs(np.where(np.isfinite(output.value), output.value, 0))).astype(np.float64)
    return np.maximum(bound.bound * step, bound.floor)


def _widen_bound(output: Output, name: str, change: Array) -> Output | None:
    """The output under its name in the graph, with what errors of earlier nodes may add; None for too much."""
    output = replace(output, zeros=None)  # nobody defines the signs of all zeros that it reads
    bound = output.bound
    if output.value.dtype.kind != "f" or not output.value.size:
        return replace(output, name=name)
    if isinstance(bound, Exact):
        bound = Ulp(0.5 if output.exact is None else 1.0, (statement("the operator is exact"),))
    assert isinstance(bound, Ulp)
    floor = _own(replace(output, bound=bound)) + SAFETY * change
    finite = np.isfinite(output.value)
    scale = float(np.abs(output.value.astype(np.float64)).max(initial=0.0, where=finite))
    if change.any() and float(floor.max()) > LARGEST_SHARE * max(scale, 1e-3):
        return None
    if not change.any():
        return replace(output, name=name)
    exact = np.asarray(output.value, np.float64) if output.exact is None else output.exact
    carried = Ulp(bound.bound, (TRAVELLED, *bound.citations), np.asarray(floor))
    return replace(output, name=name, exact=exact, bound=carried)
