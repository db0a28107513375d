"""The conformance suite as pytest sees it: one test for each case, its id the case id."""

from __future__ import annotations

import pytest

from epcheck.conformance import record
from epcheck.conformance.live import LiveRun, LiveRunError
from epcheck.conformance.plugin import give_up, upcoming
from epcheck.generators import suite
from epcheck.generators.case import Case


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every selected case, by name; models are built when they are needed."""
    config = metafunc.config
    cases = list(suite.cases(config.getoption("--op"), config.getoption("--dtype")))
    metafunc.parametrize("case", cases, ids=[case.id for case in cases])


def test_case(case: Case, epcheck_run: LiveRun, request: pytest.FixtureRequest) -> None:
    """The candidate conforms. A failure prints the verdict's words; known deviations are xfail with their reason."""
    try:
        verdict = epcheck_run.record(case, upcoming(request.node))
    except LiveRunError as error:
        give_up(request.config, str(error))
    strict = request.config.getoption("--epcheck-strict")
    if verdict.reading == record.EXPECTED and verdict.expectation is not None:
        pytest.xfail(f"{verdict.expectation.reason} ({verdict.reason})")
    if verdict.reading == record.FAILURE or (verdict.reading == record.FIXED and strict):
        words = [f"{verdict.status}, blame: {verdict.blame or 'nobody'}: {verdict.reason}"]
        for difference in verdict.candidate.differences:
            for wrong in difference.first:
                ulp = "" if wrong.ulp is None else f", {wrong.ulp:g} ULP away"
                words.append(f"{difference.output}{list(wrong.at)}: expected {wrong.expected}, got {wrong.got}{ulp}")
        if verdict.reading == record.FIXED:
            words.append("the expectation of this case no longer fails: remove it")
        pytest.fail("\n".join([*words, f"reproduce with: {verdict.case.repro}"]), pytrace=False)
    if verdict.status == record.UNPLACED:
        pytest.skip(verdict.reason)
