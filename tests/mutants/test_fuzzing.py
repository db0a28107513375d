"""Whether fuzzing finds faults: drawn nodes, judged by the oracles, tell the mutants of the suite's operators."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from tests.mutants import fuzzed
from tests.mutants.mutant import Mutant
from tests.mutants.test_mutants import MUTANTS

SAMPLED, DRAWS = 60, 4000
"""Mutants, and draws for each: on one core that is a second or two, and at most some ten."""


def is_told(mutant: Mutant) -> bool:
    """Whether a drawn node of its operator tells the mutant."""
    return any(drawn is not None and fuzzed.tells(mutant, drawn) for drawn in islice(fuzzed.draws(mutant), DRAWS))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_drawn_nodes_tell_the_mutants() -> None:
    """297 of 300 were told, half of them by the first dozen of nodes."""
    sampled = Random(7).sample(MUTANTS, SAMPLED)
    missed = [f"{mutant.operator}: {mutant.fault}" for mutant in sampled if not is_told(mutant)]
    assert len(missed) <= SAMPLED // 20, missed


@pytest.mark.filterwarnings("ignore")
def test_what_tells_a_mutant_is_made_small() -> None:
    """What shows a fault may be the last element of many."""
    mutant = next(m for m in MUTANTS if (m.operator, m.fault) == ("Transpose", "denormals become 0"))
    found = fuzzed.search(mutant, 20)
    assert found.drawn is not None
    assert found.is_small
    assert fuzzed.tells(mutant, found.drawn)
