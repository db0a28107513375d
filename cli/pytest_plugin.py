"""The pytest plugin: options for the conformance suite, and one runner behind all of its tests.

    pytest --pyargs epcheck.conformance --ep dml --op Slice -k negative_step

Installed as a `pytest11` entry point; it costs other test suites nothing but its option group.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import pytest

if TYPE_CHECKING:
    from epcheck.api import CaseStream, Validation
    from epcheck.api.suite.stream import Axis
    from epcheck.conformance.records.record import Record
    from epcheck.generators.case import Case


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the suite."""
    group = parser.getgroup("epcheck", "epcheck: conformance of ONNX Runtime execution providers")
    group.addoption("--ep", metavar="TARGET", help="candidate target (default: the best that is installed)")
    group.addoption("--baseline", metavar="TARGET", help="target to compare with (default: cpu; 'none': oracles alone)")
    group.addoption("--op", action="append", default=[], metavar="OPERATOR", help="only this operator; repeatable")
    group.addoption("--dtype", action="append", default=[], metavar="DTYPE", help="only this dtype; repeatable")
    group.addoption(
        "--source",
        action="append",
        default=[],
        metavar="suite|onnx|FOLDER",
        help="whose cases; or a folder of `epcheck harvest`",
    )
    group.addoption("--thin", action="store_true", help="a few cases of each operator version and dtype")
    group.addoption(
        "--variants", action="append", default=[], metavar="AXIS,...", help="run each case in other ways too"
    )
    group.addoption(
        "--epcheck-strict", action="store_true", help="a fixed expectation and a flaky case fail their tests"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what does not exist before anything is collected: exit code 4 for an unknown operator or dtype, as for
    any usage error, and 2 for an unknown target. Costs nothing where none of the options is given."""
    operators, dtypes = config.getoption("--op"), config.getoption("--dtype")
    if operators or dtypes:
        from epcheck.generators.suite import SelectionError

        try:
            next(_select_cases(config))
        except SelectionError as error:
            raise pytest.UsageError(f"epcheck: {error}") from None
    _axes(config)
    candidate, baseline = config.getoption("--ep"), config.getoption("--baseline")
    if (candidate or baseline) and not hasattr(config, "workerinput"):
        from epcheck.api.suite import stream

        try:
            stream.check_targets(candidate, baseline)
        except stream.REASONS as error:
            give_up(config, str(error))


def _axes(config: pytest.Config) -> tuple[Axis, ...]:
    """The axes of `--variants`. Raises pytest.UsageError."""
    texts = config.getoption("--variants")
    if not texts:
        return ()
    from epcheck.api.suite.stream import VariantError, parse_axes

    try:
        return parse_axes(texts)
    except VariantError as error:
        raise pytest.UsageError(f"epcheck: {error}") from None


def _select_cases(config: pytest.Config) -> Iterator[Case]:
    """The cases that the options select. Raises SelectionError."""
    from epcheck.api.suite.listing import CasesOptions, Source, cases, sources_of

    return cases(
        CasesOptions(
            operators=tuple(config.getoption("--op")),
            dtypes=tuple(config.getoption("--dtype")),
            source=sources_of(config.getoption("--source")) or Source.SUITE,
            thin=config.getoption("--thin"),
        )
    )


def give_up(config: pytest.Config, sentence: str) -> NoReturn:
    """End the session with exit code 2. A worker of xdist cannot: there, the test fails with the sentence."""
    from epcheck.cli.terminal.text import printable

    if hasattr(config, "workerinput"):
        pytest.fail(f"epcheck: {printable(sentence)}", pytrace=False)
    pytest.exit(f"epcheck: {printable(sentence)}", returncode=2)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The suite's own module is collected as cases, not as Python: 20,000 of them in about a second."""
    is_suite = module_path.name == SUITE.name and module_path.samefile(SUITE)  # one file may have two paths: links
    return Suite.from_parent(parent, path=module_path) if is_suite else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Report a case that passes at once: there is nothing to set up or to tear down, and pytest's usual way takes
    longer than the case does. Whatever else is to be said of a case is said in the usual way."""
    if not isinstance(item, CaseItem) or item.config.getoption("setupshow") or not item.passes():
        return None
    hook = item.ihook
    names: dict[str, Literal[1]] = {item.name: 1}
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    call = pytest.TestReport(item.nodeid, item.location, names, "passed", None, "call", (), item.seconds())
    hook.pytest_runtest_logreport(report=call)
    hook.pytest_runtest_logreport(
        report=pytest.TestReport(item.nodeid, item.location, names, "passed", None, "teardown")
    )
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


class Suite(pytest.File):
    """Every selected case, by name; models are built when they are needed."""

    def collect(self) -> Iterator[pytest.Item]:
        for case in _select_cases(self.config):
            name = f"test_case[{case.id}]"
            # The id is given as text: from a name, pytest 9.2 makes one that --lf, --ff and --sw do not find again.
            yield CaseItem.from_parent(self, name=name, nodeid=f"{self.nodeid}::{name}", case=case)


class CaseItem(pytest.Item):
    """The candidate conforms in one case. A failure prints the verdict's words; known deviations are xfail with their
    reason."""

    def __init__(self, *, case: Case, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.case = case
        self._known: Record | None = None

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The verdict's words; a traceback through pytest says nothing of the case, and takes a tenth of a second."""
        if isinstance(excinfo.value, pytest.xfail.Exception | pytest.fail.Exception):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def passes(self) -> bool:
        """Whether the verdict is there, and nothing is to be said of it; where there is none, `runtest` says why."""
        from epcheck.api import CaseStreamError
        from epcheck.conformance.records import terms

        with contextlib.suppress(CaseStreamError):
            verdict = self._verdict()
            bad = {*terms.FAILING, terms.FIXED}
            return verdict.reading not in bad and verdict.status != terms.UNPLACED
        return False

    def seconds(self) -> float:
        """How long the candidate's session took, or this case's share of it; the verdict is let go of."""
        opinion, self._known = self._verdict().candidate, None
        return (opinion.create_s or 0.0) + (opinion.run_s or 0.0)

    def runtest(self) -> None:
        from epcheck.api import CaseStreamError
        from epcheck.cli.terminal.text import printable
        from epcheck.conformance.records import terms

        try:
            verdict = self._verdict()
        except CaseStreamError as error:
            give_up(self.config, str(error))
        self._known = None  # asked again, for example by a plugin that repeats failures, it is run again
        strict = self.config.getoption("--epcheck-strict")
        if verdict.reading == terms.EXPECTED and verdict.expectation is not None:
            when = verdict.expectation.when
            where = f", expected where {when}" if when else ""
            pytest.xfail(printable(f"{verdict.expectation.reason} ({verdict.reason}{where})"))
        if verdict.reading == terms.FAILURE or (verdict.reading in (terms.FIXED, terms.FLAKY) and strict):
            pytest.fail(words(verdict), pytrace=False)
        if verdict.reading == terms.FLAKY:
            pytest.xfail(printable(f"flaky: {verdict.reason}"))
        if verdict.status == terms.UNPLACED:
            pytest.skip(printable(verdict.reason))

    def _verdict(self) -> Record:
        if self._known is None:
            self._known = live_run(self.config, self.session).record(self.case)
        return self._known


def words(verdict: Record) -> str:
    """A failure as a test prints it."""
    from epcheck.cli.terminal.text import printable
    from epcheck.conformance.records.terms import FIXED

    lines = [f"{verdict.status}, blame: {verdict.blame or 'nobody'}: {verdict.reason}"]
    for difference in verdict.candidate.differences:
        for wrong in difference.first:
            ulp = "" if wrong.ulp is None else f", {wrong.ulp:g} ULP away"
            lines.append(f"{difference.output}{list(wrong.at)}: expected {wrong.expected}, got {wrong.got}{ulp}")
    if verdict.reading == FIXED:
        lines.append("the expectation of this case no longer fails: remove it")
    return "\n".join(map(printable, (*lines, f"reproduce with: {verdict.case.repro}")))


def live_run(config: pytest.Config, session: pytest.Session) -> CaseStream:
    """The workers of the candidate and the baseline, for the whole session; started when they are first needed.

    A worker of xdist learns its tests one by one, so there nothing runs ahead. Raises CaseStreamError.
    """
    from epcheck.api import CaseStream

    if _LIVE not in config.stash:
        parallel = hasattr(config, "workerinput")
        ahead = () if parallel else (item.case for item in session.items if isinstance(item, CaseItem))
        candidate, baseline = config.getoption("--ep"), config.getoption("--baseline")
        config.stash[_LIVE] = CaseStream(candidate, baseline, ahead, 1 if parallel else None, _axes(config))
    return config.stash[_LIVE]


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the workers."""
    if live := config.stash.get(_LIVE, None):
        live.__exit__(None, None, None)


@pytest.fixture(scope="session")
def epcheck_run(request: pytest.FixtureRequest) -> CaseStream:
    """For tests of one's own: `epcheck_run.record(case)` is the verdict on a case, on the targets of the options."""
    from epcheck.api import CaseStreamError

    try:
        return live_run(request.config, request.session)
    except CaseStreamError as error:
        give_up(request.config, str(error))


@pytest.fixture(scope="session")
def epcheck_validate(request: pytest.FixtureRequest) -> Callable[..., Validation]:
    """For tests of one's own: `epcheck_validate(path)` validates a model on the target of `--ep`; further arguments are
    fields of `epcheck.api.ValidateOptions`."""
    from epcheck.api import ValidateOptions, validate
    from epcheck.api.suite.stream import REASONS

    def validate_model(model: Path | str, **options: Any) -> Validation:
        candidate, baseline = request.config.getoption("--ep"), request.config.getoption("--baseline")
        chosen = {"targets": (candidate,) if candidate else (), "baseline": baseline, **options}
        try:
            return validate(ValidateOptions((Path(model),), **chosen)).validation
        except REASONS as error:
            give_up(request.config, str(error))

    return validate_model


SUITE = Path(__file__).parents[1] / "conformance" / "test_suite.py"
_LIVE = pytest.StashKey["CaseStream"]()
