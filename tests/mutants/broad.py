"""Broad faults that a rule draws: each is wrong in one step, for whatever node the step is a part of.

Nobody chooses them: a node is drawn from the declaration of an operator (as `epcheck fuzz` does), and so is a mistake
that can be made with it: an attribute that is not seen, taken for another value, off by one or reversed, an optional
input that is not seen, two inputs that are exchanged, an input that is read or an output that is written in one of the
ways of CHANGES. Only a mistake that makes the drawn node wrong is a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random

import numpy as np

from epcheck.generators import registry
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.fuzzing.drawing import Space, Tally
from epcheck.generators.fuzzing.drawn_case import case_of
from epcheck.generators.node import Attribute, Node
from tests.mutants.mutant import Mutant, attribute, by_truth, inputs, misread, outputs_of, swapped
from tests.mutants.test_mutants import is_wrong

Change = Callable[[Array], Array]
"""What a kernel makes of a tensor that has elements, of the same shape and dtype."""


def _where(value: Array, wrong: Array, by: object) -> Array:
    return np.where(wrong, np.asarray(by, value.dtype), value)


def _flat(change: Change) -> Change:
    """The change of the elements in the order of memory."""
    return lambda value: change(value.reshape(-1).copy()).reshape(value.shape)


def _zero(where: slice) -> Change:
    def change(flat: Array) -> Array:
        flat[where] = 0
        return flat

    return _flat(change)


def _without_tail(flat: Array) -> Array:
    flat[flat.size // 4 * 4 :] = 0
    return flat


def _transposed(value: Array) -> Array:
    return value.swapaxes(-1, -2).reshape(value.shape) if value.ndim > 1 else value


def _through(name: str) -> Change:
    return lambda value: value.astype(name).astype(value.dtype)


def _first_row(value: Array) -> Array:
    return np.broadcast_to(value[:1], value.shape).copy() if value.ndim else value


CHANGES: Mapping[str, tuple[str, Change]] = {
    "with 0 for its first element": ("biuf", _zero(slice(1))),
    "with 0 for its last element": ("biuf", _zero(slice(-1, None))),
    "with 0 after the whole vectors of 4": ("biuf", _flat(_without_tail)),
    "one element further": ("biuf", _flat(lambda flat: np.roll(flat, 1))),
    "with its last axis reversed": ("biuf", lambda value: value[..., ::-1] if value.ndim else value),
    "with its last two axes exchanged": ("biuf", _transposed),
    "with its first row for all": ("biuf", _first_row),
    "without its sign": ("if", np.abs),
    "with 0 for what is negative": ("if", lambda value: _where(value, value < 0, 0)),
    "with 0 for NaN": ("f", lambda value: _where(value, np.isnan(value), 0)),
    "with the largest number for infinity": ("f", lambda value: np.nan_to_num(value, nan=np.nan)),
    "with 0 for denormals": ("f", lambda value: _where(value, np.abs(value) < np.finfo(value.dtype).tiny, 0)),
    "without fractions": ("f", np.trunc),
    "by way of float16": ("iuf", _through("float16")),
    "by way of float32": ("iuf", _through("float32")),
    "by way of int8": ("iu", _through("int8")),
    "by way of uint16": ("iu", _through("uint16")),
    "at most 127": ("iu", lambda value: np.minimum(value, np.asarray(127, value.dtype))),
    "inverted": ("b", np.logical_not),
}
"""How a tensor may be read or written -> the kinds of dtype of which it may, and what becomes of it."""


def _changed(how: str, value: Array) -> Array:
    kinds, change = CHANGES[how]
    return change(value) if value.size and value.dtype.kind in kinds else value


def _read(operator: str, name: str, how: str) -> Mutant:
    fault = f"{name} is read {how}"
    return inputs(operator, fault, lambda own, value: _changed(how, value) if own == name else value)


def _written(operator: str, number: int, how: str) -> Mutant:
    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        if right is None or number >= len(right):
            return right
        name = list(right)[number]
        return {**right, name: _changed(how, right[name])}

    return by_truth(operator, f"output {number} is written {how}", answer)


def _unseen(operator: str, number: int) -> Mutant:
    def change(node: Node) -> Node:
        return replace(node, inputs=tuple(None if at == number else o for at, o in enumerate(node.inputs)))

    return misread(operator, f"input {number} is not seen", change)


def _moved(operator: str, name: str, fault: str, change: Callable[[Attribute], Attribute]) -> Mutant:
    def misreading(node: Node) -> Node:
        if name not in node.attributes:
            return node
        return replace(node, attributes={**node.attributes, name: change(node.attributes[name])})

    return misread(operator, f"{name} is {fault}", misreading)


def _of_attribute(operator: str, name: str, own: Attribute, other: Attribute | None) -> Iterator[Mutant]:
    yield attribute(operator, name, None)
    if other is not None and repr(other) != repr(own):
        yield attribute(operator, name, other, f"{name} is always {other}")
    if isinstance(own, int | float):
        yield _moved(operator, name, "one more", lambda value: value + 1)  # type: ignore[operator]
    if isinstance(own, tuple) and own[::-1] != own:
        yield _moved(operator, name, "reversed", lambda value: value[::-1] if isinstance(value, tuple) else value)


def mistakes(operator: str, node: Node, other: Node) -> Iterator[list[Mutant]]:
    """What can go wrong with the node, by kind. other: a node of the operator that another one may be taken for."""
    there = {at: operand for at, operand in enumerate(node.inputs) if operand is not None}
    yield [
        mutant
        for name, value in node.attributes.items()
        for mutant in _of_attribute(operator, name, value, other.attributes.get(name))
    ]
    yield [_unseen(operator, at) for at in there if at]
    yield [swapped(operator, at - 1, at) for at in there if at - 1 in there]
    yield [
        _read(operator, operand.name, how)
        for operand in there.values()
        for how, (kinds, _) in CHANGES.items()
        if operand.value.dtype.kind in kinds
    ]
    yield [_written(operator, number, how) for number in range(len(node.outputs)) for how in CHANGES]


def tells(build: Callable[[], BuiltCase], mutant: Mutant) -> bool:
    """Whether the case tells the mutant; one that cannot be built does not, nor does one that the mutant misreads as
    what has no meaning."""
    try:
        return is_wrong(mutant.answer, build())
    except Exception:  # whatever a truth raises of a node that no schema allows
        return False


def faults(count: int, seed: int) -> list[Mutant]:
    """So many, of operators drawn at random."""
    random, found = Random(seed), dict[tuple[str, str], Mutant]()
    operators = list(registry.all_operators())
    while len(found) < count:
        key = random.choice(operators)
        space, tally = Space(registry.operator_of(key)), Tally()
        drawn, other = space.draw(random, tally), space.draw(random, tally)
        if drawn is None or other is None:
            continue
        mutant = random.choice(random.choice([kind for kind in mistakes(key, drawn.node, other.node) if kind]))
        if tells(case_of(drawn).build, mutant):
            found[mutant.operator, mutant.fault] = mutant
    return list(found.values())
