"""How many narrow faults the suite meets: each is wrong for nodes that have one property, and right for all others.

    python -m tests.mutants.narrow --faults 300

Nobody chooses the properties: a node is drawn from the declaration of an operator (as `epcheck fuzz` does), and what
it has is what the fault is about: a size, a rank, a dtype, the value of an attribute, two such values together, a
special value at the first or the last element, which optional inputs and outputs are there, how two operands broadcast.
A fault is met where a case of the suite that must be answered has the property too; what it makes wrong, shows. Prints
those that no case has, and one line of figures; the exit code is 1 where less than 97 % are met.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np

from epcheck.generators import registry, suite
from epcheck.generators.array import Array
from epcheck.generators.fuzzing.drawing import Space, Tally
from epcheck.generators.node import Node
from epcheck.generators.truth import Outputs, Refusal, Selection, Truth

WANTED = 0.97
"""Share of the faults that have to be met."""

Property = tuple[object, ...]
"""What a node has: a kind, and what identifies it among others of the kind."""


@dataclass(frozen=True)
class NarrowFault:
    """Wrong for nodes of this operator that have the property."""

    operator: str
    property: Property


def properties(node: Node, truth: Truth) -> Iterator[Property]:
    """Everything that a fault can be about, of a node that must be answered with some element."""
    if isinstance(truth, Refusal) or not _has_elements(truth):
        return
    arrays = [operand.value for operand in node.inputs if operand is not None]
    for number, array in enumerate(arrays[:2]):
        yield ("rank", number, array.ndim)
        yield ("dtype and rank", number, array.dtype.name, min(array.ndim, 4))
        yield from (("size", number, size) for size in set(array.shape))
        yield from (("special", number, what, place) for what, place in _specials(array))
    there = tuple(operand is not None for operand in node.inputs)
    yield ("optional", there, tuple(bool(name) for name in node.outputs))
    written = sorted((name, _plain(value)) for name, value in node.attributes.items())
    yield from (("attribute", pair) for pair in written)
    yield from (("attributes", this, other) for at, this in enumerate(written) for other in written[at + 1 :])
    if len(arrays) > 1:
        yield ("broadcast", arrays[0].ndim, arrays[1].ndim, _ones(arrays[0]), _ones(arrays[1]))


def _has_elements(truth: Truth) -> bool:
    if isinstance(truth, Selection):
        return bool(truth.accepted[0][0].size)
    assert isinstance(truth, Outputs)
    return not truth.undefined and any(output.value.size for output in truth.outputs)


def _specials(array: Array) -> Iterator[tuple[str, str]]:
    if array.dtype.kind != "f" or not array.size:
        return
    flat = array.reshape(-1)
    for place, value in (("first", flat[0]), ("last", flat[-1])):
        if np.isnan(value):
            yield "NaN", place
        elif np.isinf(value):
            yield ("inf" if value > 0 else "-inf"), place
        elif value == 0:
            yield ("-0" if np.signbit(value) else "0"), place
        elif abs(value) < np.finfo(array.dtype).tiny:
            yield "denormal", place


def _ones(array: Array) -> tuple[bool, ...]:
    """Which of the last two axes have size 1."""
    return tuple(size == 1 for size in array.shape[-2:])


def _plain(value: object) -> str:
    """The value of an attribute, of a list its length and ends: no fault is about the numbers in the middle."""
    if isinstance(value, np.ndarray):
        return f"tensor {value.dtype}"
    if isinstance(value, tuple) and len(value) > 1:
        return f"{len(value)}: {value[0]} ... {value[-1]}"
    return repr(value)


def faults(count: int, seed: int) -> list[NarrowFault]:
    """So many, of operators drawn at random."""
    random, found = Random(seed), dict[NarrowFault, None]()
    operators = list(registry.all_operators())
    while len(found) < count:
        key = random.choice(operators)
        drawn = Space(registry.operator_of(key)).draw(random, Tally())
        if drawn is None or not (own := sorted(set(properties(drawn.node, drawn.truth)), key=repr)):
            continue
        kind = random.choice(sorted({str(each[0]) for each in own}))
        found[NarrowFault(key, random.choice([each for each in own if each[0] == kind]))] = None
    return list(found)


@cache
def met(operator: str, among: frozenset[str] = frozenset()) -> frozenset[Property]:
    """The properties of the operator's cases. among: of those with these ids alone, where it is not empty."""
    found: set[Property] = set()
    with np.errstate(all="ignore"):
        for case in suite.cases([operator]):
            if not case.kind.startswith("graph") and (not among or case.id in among):
                built = case.build()
                found.update(properties(built.node, built.truth))
    return frozenset(found)


def main(arguments: list[str]) -> int:
    """Print the figures; 1 where less than WANTED is met."""
    parser = argparse.ArgumentParser(description="how many narrow faults the suite meets")
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    drawn = faults(options.faults, options.seed)
    missed = [fault for fault in drawn if fault.property not in met(fault.operator)]
    for fault in missed:
        print(f"not met: {fault.operator}: {fault.property}")
    print(f"{len(drawn) - len(missed)} of {len(drawn)} met")
    return int(len(drawn) - len(missed) < WANTED * len(drawn))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
