"""What several test modules need: the distributions, built once, and DirectML in the lab.

A test that uses a fixture of MARKERS, directly or through another fixture, gets its marker here.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import hypothesis
import pytest
from filelock import FileLock

from epcheck.conformance import lab
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import Target
from epcheck.generators import suite
from epcheck.generators.case import Case
from epcheck.generators.sources import version_converted
from epcheck.generators.sources.version_converted import Conversion, VersionConverted
from epcheck.models.execution.session import share_workers
from tests import parallel
from tests.kept_fork_servers import KeptForkServers, keep_fork_servers
from tests.programs import checked_run
from tests.wine_limits import find_limit, is_wine

ROOT = Path(__file__).parents[1]

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each of the thousand processes that tests start compiles epcheck
sys.dont_write_bytecode = False

hypothesis.settings.register_profile("unhurried", suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("unhurried")  # to draw takes a second for 2 examples where other tests keep Wine busy

MARKERS = {"installed_lab": "lab", "driver": "browser", "distributions": "slow"}
"""Fixture -> the marker of every test that uses it."""

OWN_FORK_SERVERS = tuple(
    ROOT / "tests" / name
    for name in (
        "benchmarks",
        "conformance/cluster",
        "conformance/directml",
        "conformance/lab",
        "conformance/preparation",
        "conformance/scheduling/pools",
        "conformance/targets/test_target.py",
        "conformance/workers",
    )
)
"""Folders and modules whose tests are about the processes that a run starts: each has fork servers of its own there."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of `parallel`."""
    parser.addoption("--write-seconds", action="store_true", help="write tests/seconds.json: which tests take long")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Choose how many processes run the tests."""
    parallel.choose_processes(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect all tests without looking for garbage in them: `collected_once` does."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their fixtures, so that none is forgotten, and those that Wine cannot run."""
    under_wine = is_wine()
    for item in items:
        if under_wine and (reason := find_limit(item.nodeid)):
            item.add_marker(pytest.mark.skip(reason=f"Wine: {reason}"))
        for fixture in getattr(item, "fixturenames", ()):
            if marker := MARKERS.get(fixture):
                item.add_marker(marker)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests keep nothing in the user's cache, and find nothing there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPCHECK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def listed_once() -> Iterator[None]:
    """Each operator's cases are listed once in a process that tests, not by each test that needs all: 2 s each time;
    and onnx's node tests are converted once for a provider."""

    @cache
    def list_operator_cases(key: str) -> tuple[Case, ...]:
        return tuple(list_each_time(key))

    @cache
    def convert_once(source: VersionConverted) -> tuple[Conversion, ...]:
        return tuple(convert_each_time(source))

    list_each_time, convert_each_time = suite._list_operator_cases, version_converted.convert_tests
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "_list_operator_cases", list_operator_cases)
        patch.setattr(version_converted, "convert_tests", lambda source: iter(convert_once(source)))
        yield


@pytest.fixture(scope="module", autouse=True)
def collected_once() -> None:
    """What is there before a module is no garbage: no collection in its tests looks at it again.

    Some hold all cases, built, of which each collection takes seconds.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def kept_fork_servers() -> Iterator[KeptForkServers]:
    """Fork servers that outlive a run."""
    kept = KeptForkServers()
    yield kept
    kept.close()


@pytest.fixture(scope="module", autouse=True)
def fork_servers(request: pytest.FixtureRequest, kept_fork_servers: KeptForkServers) -> Iterator[None]:
    """Tests whose subject is no worker start a fork server of each kind once in a process, not for each run."""
    if any(request.path.is_relative_to(folder) for folder in OWN_FORK_SERVERS):
        kept_fork_servers.close()
        yield
    else:
        with keep_fork_servers(kept_fork_servers):
            yield


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, built from a copy of the checkout's tracked and new files.

    Of several processes that test (xdist), whose folders lie in one, the first to need them builds them for all.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with FileLock(shared / "dist.lock"):
        if not (shared / "dist").exists():
            build(tmp_path_factory.mktemp("source"), shared / "being-built")
            (shared / "being-built").rename(shared / "dist")
    return shared / "dist"


def build(source: Path, out: Path) -> None:
    """Copy the checkout to `source`, and put its wheel and its sdist into `out`."""
    listed = checked_run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], ROOT).splitlines()
    for name in listed:
        copy = source / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
    checked_run([sys.executable, "-m", "build", "--outdir", str(out), str(source)], source)


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    """The built wheel."""
    (found,) = distributions.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def installed_lab() -> Iterator[None]:
    """The DirectML lab of this machine, which is installed when it is not there. Windows needs none.

    It is held meanwhile: a run beside the tests, the last one to use the lab, would end their programs (`lab.in_use`).
    """
    if sys.platform == "win32":
        yield
        return
    if not lab.status().installed:
        if reason := lab.can_install():
            pytest.skip(reason)
        lab.install()
    with lab.in_use():
        yield


@pytest.fixture(scope="module")
def dml(installed_lab: None) -> Iterator[Target]:  # noqa: ARG001
    """DirectML in the lab. Models that are validated in this process leave their worker to the next."""
    target = resolve("dml")
    with share_workers((target,)):
        yield target
