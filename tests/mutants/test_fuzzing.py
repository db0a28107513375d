"""Whether fuzzing finds faults: drawn nodes, judged by the oracles, tell the mutants of the suite's operators."""

from __future__ import annotations

from random import Random

import pytest
from mutant import Mutant
from test_mutants import MUTANTS, NO_MEANING, is_wrong

from epcheck.generators import suite
from epcheck.generators.fuzzing.drawing import Space, Tally
from epcheck.generators.fuzzing.drawn_case import case_of

SAMPLED, DRAWS = 60, 4000
"""Mutants, and draws for each: on one core that is a second or two, and at most some ten."""


def is_told(mutant: Mutant) -> bool:
    """Whether a drawn node of its operator tells the mutant."""
    space, tally, random = Space(suite.operator_of(mutant.operator)), Tally(), Random(1)
    for _ in range(DRAWS):
        drawn = space.draw(random, tally)
        if drawn is None:
            continue
        try:
            if is_wrong(mutant.answer, case_of(drawn).build()):
                return True
        except NO_MEANING:
            continue
    return False


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_drawn_nodes_tell_the_mutants() -> None:
    """297 of 300 were told, half of them by the first dozen of nodes."""
    sampled = Random(7).sample(MUTANTS, SAMPLED)
    missed = [f"{mutant.operator}: {mutant.fault}" for mutant in sampled if not is_told(mutant)]
    assert len(missed) <= SAMPLED // 20, missed
