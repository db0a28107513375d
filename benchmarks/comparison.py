"""The speed of comparing two large arrays: epcheck's ULP distance against `np.array_equal`.

    python benchmarks/comparison.py [--elements 100000000] [--repeats 5]

Both read the same arrays, in turn, in this process; read the ratio, not the seconds. Both run in one thread, and the
seconds are the processor's, so that a busy machine blurs them less. array_equal only says whether two arrays are equal;
ulp_distance says how many elements differ, by how much at most and on average, and where most. Memory is what a call
allocates at its peak beside the arrays.
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np

from epcheck.conformance.comparison.ulp import ulp_distance
from epcheck.generators.array import Array

Comparison = Callable[[Array, Array], object]


def pairs(elements: int) -> Iterator[tuple[str, Array, Array]]:
    """What is compared, float32: how the arrays differ, and both. Made one at a time, for memory's sake."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(elements, np.float32)
    yield "equal", x, x.copy()
    yield "1 to 4 ULP apart everywhere", x, (x.view(np.int32) + rng.integers(1, 5, elements, np.int32)).view(np.float32)
    yield "unrelated", x, rng.standard_normal(elements, np.float32)
    yield "equal, every other element of an array", np.repeat(x[::2], 2)[::2], np.repeat(x[::2], 2)[::2]


def seconds(compare: Comparison, first: Array, second: Array) -> float:
    """Processor time of a call, the system's share included."""
    started = time.process_time()
    compare(first, second)
    return time.process_time() - started


def peak_memory(compare: Comparison, first: Array, second: Array) -> int:
    """Bytes that a call allocates beside its arguments, at its peak."""
    tracemalloc.start()
    try:
        compare(first, second)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def main() -> None:
    """Print a line for each kind of data: the medians, and the least and greatest ratio of the repeats."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=10**8)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{arguments.elements:,} float32; seconds, array_equal / ulp_distance, MiB beside the arrays")
    print(f"{'data':40} {'array_equal':>11} {'ulp_distance':>12} {'ratio':>6} {'(spread)':>14} {'MiB':>7} {'MiB':>7}")
    for name, first, second in pairs(arguments.elements):
        runs = [
            (seconds(np.array_equal, first, second), seconds(ulp_distance, first, second))
            for _ in range(1 + arguments.repeats)
        ][1:]  # the first finds cold memory
        plain, ours = (statistics.median(run) for run in zip(*runs, strict=True))
        ratios = [equal / distance for equal, distance in runs]
        spread = f"({min(ratios):.2f} to {max(ratios):.2f})"
        memory = [peak_memory(compare, first, second) / 2**20 for compare in (np.array_equal, ulp_distance)]
        print(
            f"{name:40} {plain:11.3f} {ours:12.3f} {statistics.median(ratios):6.2f} {spread:>14} "
            f"{memory[0]:7.1f} {memory[1]:7.1f}"
        )


if __name__ == "__main__":
    main()
