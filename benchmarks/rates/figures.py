"""What the rows say of one another: ratios within one repeat of one table, and those of them that are promised."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.rates.measurement import Measurement

MEBIBYTE = 1 << 20

Results = Mapping[str, Sequence[Measurement]]
"""Row -> its measurements, one for each repeat."""


def times_faster(first: Measurement, second: Measurement) -> float:
    """The first row's cases per second over the second's."""
    return first.rate / second.rate


def once_started(first: Measurement, second: Measurement) -> float:
    """The same, of the first row only what came after its first record: without the start of its workers."""
    return float(first.report["later_cases"] / first.report["later_seconds"]) / second.rate


def growth(first: Measurement, second: Measurement) -> float:
    """MiB that the runner's peak memory is greater in the second row than in the first."""
    return float(second.report["peak_bytes"] - first.report["peak_bytes"]) / MEBIBYTE


@dataclass(frozen=True)
class Spread:
    """A value over the repeats."""

    median: float
    least: float
    greatest: float


@dataclass(frozen=True)
class Figure:
    """One value made of two rows of the same repeat. at_least, at_most: what its median is promised to be."""

    what: str
    first: str
    second: str
    value: Callable[[Measurement, Measurement], float] = times_faster
    unit: str = "×"
    at_least: float | None = None
    at_most: float | None = None

    @property
    def promised(self) -> bool:
        """Whether there is a bound."""
        return self.at_least is not None or self.at_most is not None

    @property
    def bound(self) -> str:
        """The promise in words; empty where there is none."""
        least = "" if self.at_least is None else f"≥ {self.at_least:g}"
        return least or ("" if self.at_most is None else f"≤ {self.at_most:g}")

    def of(self, results: Results) -> Spread | None:
        """The value of each repeat, summed up; None where a row was not measured."""
        return spread([self.value(a, b) for a, b in zip(results.get(self.first, ()), results.get(self.second, ()))])  # noqa: B905  (what is measured once has one)

    def kept_by(self, found: Spread) -> bool:
        """Whether the median is within the bound."""
        return (self.at_least is None or found.median >= self.at_least) and (
            self.at_most is None or found.median <= self.at_most
        )


def spread(values: Sequence[float]) -> Spread | None:
    """Median, least and greatest; None of nothing."""
    return Spread(statistics.median(values), min(values), max(values)) if values else None


FIGURES = (
    Figure("CPU, packed, to the bare loop", "cpu-packed", "cpu-bare", at_least=3.0),
    Figure("CPU, unpacked, to the bare loop", "cpu-unpacked", "cpu-bare", at_least=0.7),
    Figure("CPU, packed, from the first record on, to the bare loop", "cpu-packed", "cpu-bare", once_started),
    Figure("CPU, unpacked, from the first record on, to the bare loop", "cpu-unpacked", "cpu-bare", once_started),
    Figure("CPU, packed, cache empty, to the bare loop", "cpu-packed-cold", "cpu-bare"),
    Figure("CPU, unpacked, cache empty, to the bare loop", "cpu-unpacked-cold", "cpu-bare"),
    Figure("CPU, packed, to the bare loop without graph optimisation", "cpu-packed", "cpu-bare-unoptimised"),
    Figure("CPU, packed, the whole suite, to the bare loop", "suite-packed", "suite-bare"),
    Figure("CPU, unpacked, the whole suite, to the bare loop", "suite-unpacked", "suite-bare"),
    Figure("DirectML, unpacked: time a case, to the bare loop's", "dml-bare", "dml-unpacked", at_most=1.3),
    Figure("DirectML, packed, to unpacked", "dml-packed", "dml-unpacked", at_least=4.0),
    Figure("CPU, packed, to Polygraphy's Python API", "sample-packed", "polygraphy-api", at_least=20.0),
    Figure("CPU, packed, to Polygraphy's command line", "sample-packed", "polygraphy-command", at_least=300.0),
    Figure("CPU, packed, to onnx.backend.test under pytest", "cpu-packed", "onnx-nodes", at_least=20.0),
    Figure("CPU, packed, to the same without tracebacks", "cpu-packed", "onnx-nodes-lean"),
    Figure("CPU, epcheck under pytest, to onnx.backend.test under pytest", "pytest-cpu", "onnx-nodes"),
    Figure("CPU, pytest: time to that of `epcheck run`", "run-cpu", "pytest-cpu"),
    Figure("DirectML, pytest: time to that of `epcheck run`", "run-dml", "pytest-dml"),
    Figure("One crash in 1,000 cases: time to that without", "crash-none", "crash-1-in-1000", at_most=1.05),
    Figure(
        "Growth of the runner's memory, 1,000 to 50,000 cases",
        "memory-few",
        "memory-many",
        growth,
        "MiB",
        at_most=200.0,
    ),
)
