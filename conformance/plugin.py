"""The pytest plugin: options for the conformance suite, and one runner behind all of its tests.

    pytest --pyargs epcheck.conformance --ep dml --op Slice -k negative_step

Installed as a `pytest11` entry point; it costs other test suites nothing but its option group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn, cast

import pytest

if TYPE_CHECKING:
    from epcheck.conformance.live import LiveRun
    from epcheck.generators.case import Case

PREFETCH = 64
"""Tests ahead of the running one whose cases are under way already."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the suite."""
    group = parser.getgroup("epcheck", "epcheck: conformance of ONNX Runtime execution providers")
    group.addoption("--ep", metavar="TARGET", help="candidate target (default: the best that is installed)")
    group.addoption("--baseline", metavar="TARGET", help="target to compare with (default: cpu; 'none': oracles alone)")
    group.addoption("--op", action="append", default=[], metavar="OPERATOR", help="only this operator; repeatable")
    group.addoption("--dtype", action="append", default=[], metavar="DTYPE", help="only this dtype; repeatable")
    group.addoption("--epcheck-strict", action="store_true", help="a fixed expectation fails its test")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what does not exist before anything is collected: exit code 4 for an unknown operator or dtype, as for
    any usage error, and 2 for an unknown target. Costs nothing where none of the options is given."""
    operators, dtypes = config.getoption("--op"), config.getoption("--dtype")
    if operators or dtypes:
        from epcheck.generators import suite

        try:
            next(suite.cases(operators, dtypes))
        except suite.SelectionError as error:
            raise pytest.UsageError(f"epcheck: {error}") from None
    candidate, baseline = config.getoption("--ep"), config.getoption("--baseline")
    if (candidate or baseline) and not hasattr(config, "workerinput"):
        from epcheck.conformance import live

        try:
            live.choose((candidate,) if candidate else (), baseline)
        except live.REASONS as error:
            give_up(config, str(error))


def give_up(config: pytest.Config, sentence: str) -> NoReturn:
    """End the session with exit code 2. A worker of xdist cannot: there, the test fails with the sentence."""
    if hasattr(config, "workerinput"):
        pytest.fail(f"epcheck: {sentence}", pytrace=False)
    pytest.exit(f"epcheck: {sentence}", returncode=2)


@pytest.fixture(scope="session")
def epcheck_run(request: pytest.FixtureRequest) -> Iterator[LiveRun]:
    """The workers of the candidate and the baseline, for the whole session."""
    from epcheck.conformance.live import LiveRun, LiveRunError

    try:
        live = LiveRun(request.config.getoption("--ep"), request.config.getoption("--baseline"))
    except LiveRunError as error:
        give_up(request.config, str(error))
    with live:
        yield live


def upcoming(item: pytest.Item) -> list[Case]:
    """The cases of the tests that follow this one. Under xdist a worker learns its tests one by one: only this one."""
    if hasattr(item.config, "workerinput"):
        return []
    items: list[pytest.Item] = item.session.items
    position = item.stash.get(_POSITION, None)
    if position is None:
        for index, other in enumerate(items):
            other.stash[_POSITION] = index
        position = item.stash[_POSITION]
    ahead = items[position + 1 : position + 1 + PREFETCH]
    return [cast("Case", i.callspec.params["case"]) for i in ahead if isinstance(i, pytest.Function) and _is_case(i)]


def _is_case(item: pytest.Function) -> bool:
    return hasattr(item, "callspec") and "epcheck_run" in item.fixturenames and "case" in item.callspec.params


_POSITION = pytest.StashKey[int]()
