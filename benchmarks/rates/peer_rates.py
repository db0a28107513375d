"""How the peers are measured: bare loops, Polygraphy, ONNX's own backend tests. Each in processes of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.peers import polygraphy_environment
from benchmarks.rates import child_process, measurement
from benchmarks.rates.measurement import Measurement
from benchmarks.rates.workload import Workbench, Workload
from epcheck.conformance import lab
from epcheck.conformance.targets.target import DML

BENCHMARKS = Path(__file__).parents[1]
PEERS = BENCHMARKS / "peers"
"""Where the scripts are that run in processes of their own."""

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
GOOD_OR_FAILURES = (0, 1)
"""Exit codes of a test run that ran to its end."""

NODE_TESTS = "OnnxBackendNodeModelTest"


def bare(cases: Workload, *options: str) -> Measurement:
    """`bare_loop.py` in a process of this Python. options: its own."""
    return measurement.of(
        child_process.run([sys.executable, str(PEERS / "bare_loop.py"), str(cases.stored), *options]).report
    )


def bare_dml(cases: Workload) -> Measurement:
    """`bare_loop.py` on DirectML: in one Wine process of the lab, or here on Windows.

    Graph optimisation is off: it would compute nodes whose inputs are all constant on CPU when the session is made.
    """
    options = ("--provider", DML, "--unoptimised")
    if sys.platform == "win32":
        return bare(cases, *options)
    launch = lab.python_launch()
    environment = {**launch.env, "PYTHONPATH": f"{launch.env['PYTHONPATH']};{lab.windows_path(PEERS)}"}
    script, stored, prelude = map(lab.windows_path, (PEERS / "bare_loop.py", cases.stored, lab.prelude()))
    with lab.in_use():
        done = child_process.run([*launch.argv, script, stored, *options, "--prelude", prelude], environment)
    return measurement.of(done.report)


def polygraphy_api(cases: Workload) -> Measurement:
    """`polygraphy_loop.py` in Polygraphy's environment."""
    return measurement.of(child_process.run([*_polygraphy_loop(), "rate", str(cases.stored)]).report)


def polygraphy_command(bench: Workbench) -> Measurement:
    """Polygraphy's command line for each model, one process after the other."""
    folder = bench.folder / "commands"
    if not folder.exists():
        folder.mkdir()
        child_process.run([*_polygraphy_loop(), "export", str(bench.commands.stored), str(folder)])
    runs = [_compare(model) for model in sorted(folder.glob("*.onnx"))]
    return Measurement(len(runs), sum(run.seconds for run in runs))


def onnx_nodes(bench: Workbench, *options: str) -> Measurement:
    """pytest on `onnx_nodes.py`, the whole process; what is skipped does not count. options: pytest's own."""
    tests = (str(PEERS / "onnx_nodes.py"), "-p", "no:epcheck", "-k", NODE_TESTS)
    done = child_process.run([*PYTEST, *tests, *options], None, bench.folder, GOOD_OR_FAILURES)
    tally = measurement.pytest_tally(done.stdout)
    return Measurement(tally["passed"] + tally["failed"], done.seconds, tally)


def _polygraphy_loop() -> list[str]:
    return [str(polygraphy_environment.interpreter()), str(PEERS / "polygraphy_loop.py")]


def _compare(model: Path) -> child_process.Finished:
    options = ("--onnxrt", "--onnxrt", "--load-inputs", str(model.with_suffix(".json")))
    run = child_process.run([*polygraphy_environment.command(), "run", str(model), *options], allowed=GOOD_OR_FAILURES)
    if "Accuracy Summary" not in run.stdout:
        raise child_process.ChildFailed(f"polygraphy compared nothing: {run.stdout[-400:]}")
    return run
