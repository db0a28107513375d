"""How fuzzing fares against the mutants: how many drawn nodes tell, and how small the nodes become that tell them.

    python -m tests.mutants.fuzzed --mutants 300 --seconds 60

draws nodes of each mutant's operator from its declaration alone, until one tells the mutant or the time (of CPU) is
over, and makes that node small. It prints what was not found and what stayed large, and one line of figures; its exit
code is 1 where less than 95 % was found.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from epcheck.generators import registry
from epcheck.generators.fuzzing import drawing, reduction
from epcheck.generators.fuzzing.drawing import Drawn, Space, Tally
from epcheck.generators.fuzzing.drawn_case import case_of
from tests.mutants.mutant import Mutant
from tests.mutants.test_mutants import MUTANTS, NO_MEANING, is_wrong

MOST_DIMS, MOST_ELEMENTS = 3, 8
"""Of each input of a node that is small."""

WANTED = 0.95
"""Share of the mutants that have to be found."""


@dataclass(frozen=True)
class Search:
    """mutant, seconds of CPU until it was told, the smallest node that tells it; None where none was drawn."""

    mutant: Mutant
    seconds: float
    drawn: Drawn | None

    @property
    def is_small(self) -> bool:
        """Whether no input has more than MOST_DIMS dimensions or MOST_ELEMENTS elements."""
        inputs = [operand.value for operand in self.drawn.node.inputs if operand is not None] if self.drawn else []
        return all(value.ndim <= MOST_DIMS and value.size <= MOST_ELEMENTS for value in inputs)


def tells(mutant: Mutant, drawn: Drawn) -> bool:
    """Whether the node tells the mutant; one that it gives no meaning does not."""
    try:
        return is_wrong(mutant.answer, case_of(drawn).build())
    except NO_MEANING:
        return False


def draws(mutant: Mutant, seed: int = 1) -> Iterator[Drawn | None]:
    """Nodes of its operator, without end; None for a draw that gives none."""
    space, tally, random = Space(registry.operator_of(mutant.operator)), Tally(), Random(seed)
    while space.applications:
        yield space.draw(random, tally)


def search(mutant: Mutant, seconds: float) -> Search:
    """Draw for so long, in seconds of CPU, and make small what tells the mutant."""
    started = time.process_time()
    for drawn in draws(mutant):
        if drawn is not None and tells(mutant, drawn):
            taken = time.process_time() - started
            return Search(mutant, taken, small(mutant, drawn, time.process_time() + seconds))
        if time.process_time() - started > seconds:
            break
    return Search(mutant, time.process_time() - started, None)


def small(mutant: Mutant, drawn: Drawn, until: float) -> Drawn:
    """The smallest node that tells the mutant, until that time of CPU."""
    better: Drawn | None = drawn
    while better is not None and time.process_time() < until:
        drawn = better
        smaller = (drawing.replace_node(drawn, node) for node in reduction.smaller(drawn.node))
        better = next((found for found in smaller if found is not None and tells(mutant, found)), None)
    return drawn


def main(arguments: list[str]) -> int:
    """Print the figures; 1 where less than WANTED was found."""
    parser = argparse.ArgumentParser(description="how fuzzing fares against the mutants of the suite")
    parser.add_argument("--mutants", type=int, default=len(MUTANTS), help="so many of them, drawn at random")
    parser.add_argument("--seconds", type=float, default=60.0, help="of CPU for each")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    done: list[Search] = []
    for mutant in Random(options.seed).sample(MUTANTS, options.mutants):
        done.append(each := search(mutant, options.seconds))
        if each.drawn is None:
            print(f"{len(done)}: not found: {mutant.operator}: {mutant.fault}", flush=True)
        elif not each.is_small:
            sizes = [operand.value.shape for operand in each.drawn.node.inputs if operand is not None]
            print(f"{len(done)}: large: {mutant.operator}: {mutant.fault}: {sizes}", flush=True)
    found = [each for each in done if each.drawn is not None]
    slowest = max((each.seconds for each in found), default=0.0)
    print(
        f"{len(found)} of {len(done)} found, {sum(each.is_small for each in found)} of these small "
        f"({MOST_DIMS} dimensions, {MOST_ELEMENTS} elements); the slowest after {slowest:.1f} s of CPU"
    )
    return int(len(found) < WANTED * len(done))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
