"""The rows of the table: what each runs, and what of it is counted.

To add a row of epcheck's, add a `Row` that calls `epcheck_rates.rate` with a workload and options of
`epcheck_rate.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.rates import epcheck_rates, peer_rates
from benchmarks.rates.measurement import Measurement
from benchmarks.rates.workload import Workbench

DML_SELECTION = ("--op", "QLinearConv")
"""What pytest and `epcheck run` are compared on, on DirectML."""

LARGE_ROUNDS = 1
"""Rounds of the whole suite, about 62,000 cases, that pytest collects."""

FEW, MANY = 1_000, 50_000
"""Cases between which the runner's memory must not grow much."""


@dataclass(frozen=True)
class Row:
    """group: rows that are selected together. counts: what is timed and counted, for the reader of the table.

    reference: the row whose rate this one's is divided by. dml: it needs DirectML. most: repeats at most.
    """

    key: str
    group: str
    counts: str
    measure: Callable[[Workbench], Measurement]
    reference: str = ""
    dml: bool = False
    most: int = sys.maxsize


ROWS = (
    Row(
        "cpu-bare",
        "cpu",
        "bare loop: a session and one run of it for each passing case; models and feeds ready-made, nothing judged",
        lambda bench: peer_rates.bare(bench.passing),
    ),
    Row(
        "cpu-bare-unoptimised",
        "cpu",
        "the same, graph optimisation off, as in epcheck's sessions",
        lambda bench: peer_rates.bare(bench.passing, "--unoptimised"),
        reference="cpu-bare",
    ),
    Row(
        "cpu-packed",
        "cpu",
        "epcheck on the same cases, its cache warm: start of workers, packed sessions run twice, oracles, verdicts",
        lambda bench: epcheck_rates.rate(bench, bench.passing),
        reference="cpu-bare",
    ),
    Row(
        "cpu-packed-cold",
        "cpu",
        "the same with an empty cache: every model is built and every oracle asked as well",
        lambda bench: epcheck_rates.rate(bench, bench.passing, cold=True),
        reference="cpu-bare",
        most=2,
    ),
    Row(
        "cpu-unpacked",
        "cpu",
        "a session for each case, its cache warm",
        lambda bench: epcheck_rates.rate(bench, bench.passing, "--no-pack"),
        reference="cpu-bare",
    ),
    Row(
        "cpu-unpacked-cold",
        "cpu",
        "a session for each case, an empty cache",
        lambda bench: epcheck_rates.rate(bench, bench.passing, "--no-pack", cold=True),
        reference="cpu-bare",
        most=2,
    ),
    Row(
        "suite-bare",
        "suite",
        "bare loop over the whole suite but what ends its process; a model that ONNX Runtime refuses counts as well",
        lambda bench: peer_rates.bare(bench.suite),
    ),
    Row(
        "suite-packed",
        "suite",
        "epcheck on the same cases, its cache warm: failures are confirmed in a second worker",
        lambda bench: epcheck_rates.rate(bench, bench.suite),
        reference="suite-bare",
    ),
    Row(
        "suite-unpacked",
        "suite",
        "the same, a session for each case",
        lambda bench: epcheck_rates.rate(bench, bench.suite, "--no-pack"),
        reference="suite-bare",
    ),
    Row(
        "dml-bare",
        "dml",
        "bare loop of DirectML sessions in one process (Wine on Linux) after its start, graph optimisation off",
        lambda bench: peer_rates.bare_dml(bench.dml),
        dml=True,
    ),
    Row(
        "dml-unpacked",
        "dml",
        "epcheck on the same cases, cache warm, from the first record on, which leaves out the start of its workers",
        lambda bench: epcheck_rates.started_rate(bench, bench.dml, "--target", "dml", "--no-pack"),
        reference="dml-bare",
        dml=True,
    ),
    Row(
        "dml-packed",
        "dml",
        "the same, packed",
        lambda bench: epcheck_rates.started_rate(bench, bench.dml, "--target", "dml"),
        reference="dml-bare",
        dml=True,
    ),
    Row(
        "sample-packed",
        "polygraphy",
        "epcheck, packed, cache warm, on Polygraphy's sample many times over, each time with other random data",
        lambda bench: epcheck_rates.rate(bench, bench.sample),
    ),
    Row(
        "polygraphy-api",
        "polygraphy",
        "two OnnxrtRunner, Comparator.run and compare_accuracy for each case, log off; after start and import",
        lambda bench: peer_rates.polygraphy_api(bench.sample),
        reference="sample-packed",
    ),
    Row(
        "polygraphy-command",
        "polygraphy",
        "`polygraphy run --onnxrt --onnxrt --load-inputs` for each of the sample's first cases, whole processes",
        peer_rates.polygraphy_command,
        reference="sample-packed",
    ),
    Row(
        "onnx-nodes",
        "onnx",
        "`python -m pytest` on every node test of onnx.backend.test; tests that passed or failed, the whole process",
        peer_rates.onnx_nodes,
        reference="cpu-packed",
        most=2,
    ),
    Row(
        "onnx-nodes-lean",
        "onnx",
        "the same, only the tests for CPU, without tracebacks and warnings",
        lambda bench: peer_rates.onnx_nodes(
            bench, "-k", f"{peer_rates.NODE_TESTS} and _cpu", "--tb=no", "-p", "no:warnings"
        ),
        reference="cpu-packed",
        most=2,
    ),
    Row(
        "run-cpu",
        "pytest",
        "`epcheck run --target cpu`, no baseline, cache warm, the whole suite, the whole process with its reports",
        lambda bench: epcheck_rates.command(bench, "cpu"),
    ),
    Row(
        "pytest-cpu",
        "pytest",
        "`pytest --pyargs epcheck.conformance --ep cpu`, no baseline, the same cases, the whole process",
        lambda bench: epcheck_rates.pytest(bench, "cpu"),
        reference="run-cpu",
    ),
    Row(
        "run-dml",
        "pytest",
        f"`epcheck run --target dml {' '.join(DML_SELECTION)}`, no baseline, the whole process with its reports",
        lambda bench: epcheck_rates.command(bench, "dml", *DML_SELECTION),
        dml=True,
    ),
    Row(
        "pytest-dml",
        "pytest",
        "pytest on the same cases, the whole process",
        lambda bench: epcheck_rates.pytest(bench, "dml", *DML_SELECTION),
        reference="run-dml",
        dml=True,
    ),
    Row(
        "crash-none",
        "crash",
        "epcheck on the passing cases by a Python function that runs ONNX Runtime's CPU provider",
        lambda bench: epcheck_rates.crashing(bench, crashes=False),
    ),
    Row(
        "crash-1-in-1000",
        "crash",
        "the same, and one case in 1,000 kills its worker, and the one that confirms it",
        lambda bench: epcheck_rates.crashing(bench, crashes=True),
        reference="crash-none",
    ),
    Row(
        "collect",
        "scale",
        "`pytest --collect-only` of the whole suite, the whole process",
        lambda bench: epcheck_rates.collection(bench, LARGE_ROUNDS),
        most=1,
    ),
    Row(
        "memory-few",
        "scale",
        f"epcheck on CPU, {FEW:,} cases of the whole suite, for the runner's peak memory",
        lambda bench: epcheck_rates.memory(bench, FEW),
        most=1,
    ),
    Row(
        "memory-many",
        "scale",
        f"the same, {MANY:,} cases",
        lambda bench: epcheck_rates.memory(bench, MANY),
        reference="memory-few",
        most=1,
    ),
)
