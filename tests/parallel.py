"""The tests in parallel, as `python -m pytest` runs them: a process for each core, a module's tests in one of them.

`seconds.json` has the tests that take longest, on 2 quiet cores. By it the longest modules are the first, and a line
says how long all will take. `python -m pytest --write-seconds` writes it anew.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

SECONDS_FILE = Path(__file__).with_name("seconds.json")
LONG_S = 2.0
"""A test that takes longer has a line in SECONDS_FILE; the others have their mean."""

TOGETHER = {
    "tests/generators/test_readings.py": "tests/generators/test_built_models.py",  # all cases, built
    "tests/generators/test_suite.py": "tests/generators/test_built_models.py",
    "tests/conformance/preparation/test_prepared_case.py": "tests/generators/test_built_models.py",
    "tests/generators/test_node_tests.py": "tests/test_documentation.py",  # onnx's own tests, computed and converted
    "tests/generators/sources/test_node_tests.py": "tests/test_documentation.py",
    "tests/generators/sources/test_function_bodies.py": "tests/test_documentation.py",
    "tests/generators/sources/test_version_converted.py": "tests/test_documentation.py",
    "tests/conformance/targets/test_expectation.py": "tests/test_documentation.py",
    "tests/conformance/judging/test_coverage.py": "tests/test_documentation.py",  # the dtypes of all operators' cases
    "tests/conformance/judging/test_kernel_coverage.py": "tests/test_documentation.py",
    "tests/docs/test_pages_run.py": "tests/test_documentation.py",
    "tests/cli/test_output.py": "tests/test_documentation.py",
}
"""Module -> the module in whose process it runs: both need what takes long to make."""


def module_of(test_id: str) -> str:
    """The module in whose process the test runs."""
    module = test_id.partition("::")[0]
    return TOGETHER.get(module, module)


def seconds_by_module(test_ids: Iterable[str]) -> Counter[str]:
    """Module -> how long its tests take."""
    document = json.loads(SECONDS_FILE.read_text(encoding="utf-8"))
    seconds: Counter[str] = Counter()
    for test_id in test_ids:
        seconds[module_of(test_id)] += document["long"].get(test_id, document["mean of the others"])
    return seconds


def describe_duration(test_ids: Sequence[str], processes: int) -> str:
    """How long the tests take, for a person who waits."""
    seconds = seconds_by_module(test_ids).values()
    minutes = max(sum(seconds) / processes, max(seconds, default=0)) / 60
    duration = f"about {minutes:.0f} min" if minutes >= 1 else "less than 1 min"
    return f"{count(len(test_ids), 'test')}: {duration} on {count(processes, 'core')}"


def count(number: int, noun: str) -> str:
    """The number and the noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class Scheduling(LoadFileScheduling):
    """Whole modules, in the order of the tests."""

    def _split_scope(self, nodeid: str) -> str:
        return module_of(nodeid)


class Plugin:
    """The order of the tests, the line that says how long they take, and SECONDS_FILE."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.seconds: Counter[str] = Counter()
        self.is_announced = False
        self.is_worker = hasattr(config, "workerinput")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.is_worker:
            seconds = seconds_by_module(item.nodeid for item in items)
            items.sort(key=lambda item: -seconds[module_of(item.nodeid)])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items and not self.is_worker:
            self._announce([item.nodeid for item in session.items], 1)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: object) -> LoadFileScheduling | None:
        return Scheduling(config, log) if config.option.dist == "loadfile" else None

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self._announce(ids, len(self.config.option.tx))

    def _announce(self, test_ids: Sequence[str], processes: int) -> None:
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if terminal and not self.is_announced:
            self.is_announced = True
            terminal.write_line(describe_duration(test_ids, processes))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        if self.config.option.write_seconds and not self.is_worker:
            write_seconds(self.seconds)


def write_seconds(seconds: Mapping[str, float]) -> None:
    """Write SECONDS_FILE."""
    long = {test_id: round(taken, 1) for test_id, taken in sorted(seconds.items()) if taken > LONG_S}
    others = [taken for test_id, taken in seconds.items() if test_id not in long]
    document = {"mean of the others": round(sum(others) / max(len(others), 1), 3), "long": long}
    SECONDS_FILE.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def choose_processes(config: pytest.Config) -> None:
    """A process for each core, unless the user chose, debugs, or names modules and no folder."""
    config.pluginmanager.register(Plugin(config), "parallel")
    option = config.option
    if hasattr(config, "workerinput") or option.usepdb or option.trace or not config.pluginmanager.hasplugin("xdist"):
        return
    if option.numprocesses is None and not option.tx and any(Path(argument).is_dir() for argument in config.args):
        option.numprocesses = "logical"
    if option.numprocesses and option.dist == "no":
        option.dist, option.loadscopereorder, option.maxworkerrestart = "loadfile", False, "0"
