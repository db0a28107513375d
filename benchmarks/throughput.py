"""Cases per second of epcheck's CPU target, isolated in workers, against a bare loop of InferenceSession + run.

    python benchmarks/throughput.py [--repeats 5] [--rounds 3] [--op Slice]

Both run the same cases, in turn, in this process and this run; read the ratio, not the seconds. The bare loop gets its
models and feeds ready-made and judges nothing; epcheck's rate includes building models, oracles, two runs of each
session, comparison with the truth and the records. Both use single-threaded sessions; the bare loop's other options
are ONNX Runtime's own, and for comparison without graph optimisation, which epcheck switches off, too.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Sequence

import onnxruntime as ort

from epcheck.conformance import runner
from epcheck.conformance import target as targets
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase, Case


def bare(cases: Sequence[BuiltCase], optimised: bool) -> float:
    """Cases per second of the plain loop; models that ONNX Runtime refuses count as well."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if not optimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    ort.set_default_logger_severity(4)
    started = time.perf_counter()
    for case in cases:
        try:
            session = ort.InferenceSession(case.model, options, providers=["CPUExecutionProvider"])
            session.run(None, dict(case.feeds))
        except Exception:
            continue
    return len(cases) / (time.perf_counter() - started)


def epcheck(cases: Sequence[Case]) -> float:
    """Cases per second of a whole run on the CPU target: start of the worker, build, run, judge, record."""
    verdicts: Counter[str] = Counter()
    target = targets.resolve("cpu")
    started = time.perf_counter()
    runner.run(runner.Plan(cases, (target,)), lambda record: verdicts.update([record.status]))
    assert verdicts.total() == len(cases)
    return len(cases) / (time.perf_counter() - started)


def main() -> None:
    """Print a line for each repeat and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3, help="how often a repeat goes over the suite")
    parser.add_argument("--op", action="append", default=[])
    arguments = parser.parse_args()
    cases = list(suite.cases(arguments.op)) * arguments.rounds
    built = [case.build() for case in suite.cases(arguments.op)] * arguments.rounds
    print(f"{len(cases)} cases; cases/s")
    print(f"{'epcheck':>10} {'bare':>10} {'ratio':>7} {'bare, unoptimised':>19} {'ratio':>7}")
    ratios, unoptimised_ratios = [], []
    for _ in range(arguments.repeats):
        plain, unoptimised, ours = bare(built, optimised=True), bare(built, optimised=False), epcheck(cases)
        ratios.append(ours / plain)
        unoptimised_ratios.append(ours / unoptimised)
        print(f"{ours:10.0f} {plain:10.0f} {ratios[-1]:7.2f} {unoptimised:19.0f} {unoptimised_ratios[-1]:7.2f}")
    print(f"{'median':>21} {statistics.median(ratios):7.2f} {statistics.median(unoptimised_ratios):27.2f}")


if __name__ == "__main__":
    main()
