"""How many faults the suite finds that nobody has seen: half of them narrow, all drawn by rule.

    python -m tests.mutants.new_faults --faults 300 --seed 31 --seed 32
    python -m tests.mutants.new_faults --among ids.txt

Half of the faults of each seed are narrow (`narrow.py`: wrong for nodes that have one property), half broad
(`broad.py`: wrong in one step). Prints those that no case of the suite tells, and for each seed one line of figures;
the exit code is 1 where less than 97 % of them are found. With --among, what these cases alone tell: those of an older
suite, as its `epcheck list` prints them.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from functools import cache, partial
from importlib import import_module
from pathlib import Path

from tests.mutants import broad, narrow
from tests.mutants.mutant import Mutant
from tests.mutants.test_mutants import MODULES, built, cases

WANTED = 0.97
"""Share of the faults that have to be found."""


@cache
def families() -> dict[str, str]:
    """Operator -> the family that it belongs to: the folder of its faults."""
    return {m.operator: module.split(".")[-2] for module in MODULES for m in import_module(module).MUTANTS}


def main(arguments: list[str]) -> int:
    """Print the figures; 1 where less than WANTED is found of the faults of a seed."""
    parser = argparse.ArgumentParser(description="how many new faults, half of them narrow, the suite finds")
    parser.add_argument("--faults", type=int, default=300, help="of each seed")
    parser.add_argument("--seed", type=int, action="append", help="31 by default; repeat for more")
    parser.add_argument("--among", type=Path, help="a file of case ids, one a line, that alone are run; all by default")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    among = frozenset(options.among.read_text(encoding="utf-8").split()) if options.among else frozenset[str]()
    shares = [_share(options.faults, seed, among) for seed in options.seed or [31]]
    return int(min(shares) < WANTED)


def _share(count: int, seed: int, among: frozenset[str]) -> float:
    """The share that is found of the faults of that seed."""
    narrow_ones = narrow.faults(count // 2, seed)
    broad_ones = broad.faults(count - len(narrow_ones), seed)
    unmet = [fault for fault in narrow_ones if fault.property not in narrow.met(fault.operator, among)]
    uncaught = [mutant for mutant in broad_ones if not _is_caught(mutant, among)]
    for fault in unmet:
        print(f"not found: {fault.operator}: {fault.property}")
    for mutant in uncaught:
        print(f"not found: {mutant.operator}: {mutant.fault}")
    found = count - len(unmet) - len(uncaught)
    operators = {fault.operator for fault in (*narrow_ones, *broad_ones)}
    print(
        f"seed {seed}: {found} of {count} found ({found / count:.1%}): {len(narrow_ones) - len(unmet)} of "
        f"{len(narrow_ones)} narrow ones and {len(broad_ones) - len(uncaught)} of {len(broad_ones)} broad ones, of "
        f"{len(operators)} operators in {len({families()[operator] for operator in operators})} families",
        flush=True,
    )
    return found / count


def _is_caught(mutant: Mutant, among: frozenset[str]) -> bool:
    every = (case for case in cases(mutant.operator) if not among or case.id in among)
    return any(broad.tells(partial(built, case), mutant) for case in every)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
