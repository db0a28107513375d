"""How epcheck is measured: in a process of its own that runs the runner, and as its users start it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.rates import child_process, crashing_backend, measurement
from benchmarks.rates.measurement import Measurement
from benchmarks.rates.peer_rates import BENCHMARKS, GOOD_OR_FAILURES, PYTEST
from benchmarks.rates.workload import Workbench, Workload
from epcheck.conformance.cache.cache import FOLDER
from epcheck.generators import suite

EPCHECK = [sys.executable, "-c", "from epcheck.cli.start import main; main()"]
NO_BASELINE = ("--baseline", "none")
ENDED = ("passed", "failed", "skipped", "xfailed", "xpassed")
"""How a test of the suite can end."""


def rate(bench: Workbench, cases: Workload, *options: str, cold: bool = False) -> Measurement:
    """A whole run. options: of `epcheck_rate.py`. cold: with an empty cache instead of one that has all the cases."""
    cache = bench.cold() if cold else bench.warm(cases)
    return measurement.of(_report(*cases.arguments, "--cache", str(cache), *options))


def started_rate(bench: Workbench, cases: Workload, *options: str) -> Measurement:
    """A run from its first record on, which leaves the start of the workers out; with a warm cache."""
    return measurement.of(rate(bench, cases, *options).report, "later_")


def crashing(bench: Workbench, crashes: bool) -> Measurement:
    """A whole run by the backend of `crashing_backend`, its marks set or not."""
    options = (*bench.crash.arguments, "--cache", str(bench.warm(bench.crash)))
    environment = {crashing_backend.MARKS: str(bench.marks)} if crashes else {}
    return measurement.of(_report(*options, "--target", crashing_backend.TARGET, environment=environment))


def memory(bench: Workbench, cases: int) -> Measurement:
    """A whole run of so many cases with an empty cache; its report has the runner's peak memory."""
    return measurement.of(_report("--cases", str(cases), "--cache", str(bench.cold())))


def command(bench: Workbench, target: str, *selection: str) -> Measurement:
    """`epcheck run` of a selection, the whole process."""
    options = ("--target", target, *NO_BASELINE, "--no-reference", *selection)
    done = child_process.run([*EPCHECK, "run", *options], _warm_environment(bench), bench.folder, GOOD_OR_FAILURES)
    return Measurement(_selected(*selection), done.seconds)


def pytest(bench: Workbench, target: str, *selection: str) -> Measurement:
    """pytest of a selection, the whole process."""
    options = ("--pyargs", "epcheck.conformance", "--ep", target, *NO_BASELINE, *selection)
    done = child_process.run([*PYTEST, *options], _warm_environment(bench), bench.folder, GOOD_OR_FAILURES)
    tally, cases = measurement.pytest_tally(done.stdout), _selected(*selection)
    if (ended := sum(tally.get(how, 0) for how in ENDED)) != cases:
        raise child_process.ChildFailed(f"pytest ran {ended} of {cases} cases")
    return Measurement(cases, done.seconds, tally)


def collection(bench: Workbench, rounds: int) -> Measurement:
    """pytest collects the suite so many times over and runs nothing, the whole process."""
    path = os.pathsep.join(filter(None, (str(BENCHMARKS.parent), os.environ.get("PYTHONPATH"))))
    larger = ("-p", "benchmarks.rates.larger_suite_plugin", "--rounds", str(rounds), "--collect-only")
    options = (*larger, "--pyargs", "epcheck.conformance", "--ep", "cpu")
    done = child_process.run([*PYTEST, *options], {**os.environ, "PYTHONPATH": path}, bench.folder)
    return Measurement(measurement.pytest_tally(done.stdout)["collected"], done.seconds)


def _report(*options: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    script = [sys.executable, str(BENCHMARKS / "epcheck_rate.py")]
    return child_process.run([*script, *options], {**os.environ, **(environment or {})}, BENCHMARKS.parent).report


def _warm_environment(bench: Workbench) -> dict[str, str]:
    """An environment in which `epcheck run` and pytest have a cache that is not the user's and has the whole suite."""
    folder: Path = bench.folder / "cache"
    environment = {**os.environ, FOLDER: str(folder)}
    if not folder.exists():
        options = ("--target", "cpu", *NO_BASELINE, "--no-reference")
        child_process.run([*EPCHECK, "run", *options], environment, bench.folder, GOOD_OR_FAILURES)
    return environment


def _selected(*selection: str) -> int:
    """How many cases a selection as the command line and the plugin have it leaves."""
    options = dict(zip(selection[::2], selection[1::2], strict=True))
    operators, dtypes = ([options[name]] if name in options else [] for name in ("--op", "--dtype"))
    return sum(1 for _ in suite.cases(operators, dtypes))
