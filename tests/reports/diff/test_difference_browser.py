"""The page of a comparison in a real browser: under its own policy, with axe-core, on a narrow screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from epcheck.reports.diff import assessment, difference
from epcheck.reports.diff.difference import compare
from epcheck.reports.diff.write import write_html
from tests.reports.browsing import Browser
from tests.reports.compared_rows import a_compared_run, a_row

HOSTILE = "</script><img src=x onerror=window.owned=1>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every kind of change, drift of every sort, and a target that did not run; one operator means harm."""
    older = [a_row(f"rank_{n}", ulp_max=1.0, run_s=1e-3, placement="DmlExecutionProvider: Slice") for n in range(30)]
    newer = [row._replace(ulp_max=8.0, run_s=2e-3, placement="CPUExecutionProvider: Slice") for row in older]
    older += [a_row(f"far_{n}") for n in range(40)]
    newer += [a_row(f"far_{n}", "mismatch", reason=HOSTILE * 5) for n in range(40)]
    older += [
        a_row("nan", operator=HOSTILE),
        a_row("zero", "mismatch"),
        a_row("wide"),
        a_row("gone"),
        a_row("bad", "crash"),
    ]
    newer += [
        a_row("nan", "crash", operator=HOSTILE),
        a_row("zero"),
        a_row("wide", "flaky"),
        a_row("new"),
        a_row("bad", "crash"),
    ]
    both = compare(a_compared_run(*older), a_compared_run(*newer, targets={"dml": {"driver_version": HOSTILE}}))
    failed = difference.summarize_compared(a_compared_run(planned=5, target="cpu", status=f"failed: {HOSTILE}"))
    path = tmp_path_factory.mktemp("page") / "diff.html"
    write_html(path, HOSTILE, [assessment.assess(both), assessment.assess_first(failed)])
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_and_nothing_that_was_given_runs(browser: Browser, page: Path, scheme: str) -> None:
    browser.scheme(scheme)
    browser.driver.get(page.as_uri())
    browser.run("for (const d of document.querySelectorAll('details')) d.open = true")
    assert browser.violations() == []
    assert browser.run("return window.owned") is None
    assert browser.run("return document.querySelectorAll('figure.chart canvas').length") == 1
    browser.scheme("light")


def test_a_tally_leads_to_its_cases(browser: Browser, page: Path) -> None:
    browser.driver.get(page.as_uri())
    assert browser.texts("#target-1 .tally li")[0].split() == ["41", "new", "failure"]
    browser.click("#target-1 .tally a")
    assert browser.driver.current_url.endswith("#target-1-new-failure")
    browser.click("#target-1-new-failure .cause summary")
    assert "Slice-13/float32/far_0[runtime]" in browser.text("#target-1-new-failure .cause")
    assert "… and 20 cases more" in browser.text("#target-1-new-failure .cause")


def test_a_page_with_many_causes_is_a_few_screens_of_a_phone(browser: Browser, tmp_path: Path) -> None:
    causes = [f"dtype = float16 and rank of X ≥ {n}: wrong values: the last element is wrong" for n in range(15)]
    older = [a_row(f"s_{n}", operator=f"Operator{n}") for n in range(15)]
    newer = [row._replace(status="mismatch", reading="failure", cause=causes[n]) for n, row in enumerate(older)]
    older += [a_row(f"t_{n}", "mismatch", operator=f"Other{n}", cause=f"cause {n}") for n in range(15)]
    newer += older[15:]
    found = assessment.assess(compare(a_compared_run(*older), a_compared_run(*newer)))
    path = tmp_path / "diff.html"
    write_html(path, "diff", [found])
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.driver.get(path.as_uri())
        assert browser.run("return document.documentElement.scrollHeight") < 3000
        assert browser.violations() == []
        assert browser.texts("#target-1-new-failure .badge.worse") == ["new cause"] * 15
        assert browser.run("return document.querySelector('#target-1-still-failing .kind').open") is False
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_narrow_screen_is_not_scrolled_sideways(browser: Browser, page: Path) -> None:
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.driver.get(page.as_uri())
        assert browser.run("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
