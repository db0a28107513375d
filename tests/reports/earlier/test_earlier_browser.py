"""What the page of a run says of earlier runs, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from epcheck.reports import write_all
from epcheck.reports.earlier.comparison import compare_with_earlier
from tests.reports.browsing import Browser
from tests.reports.stored_nights import a_night
from tests.reports.stored_records import a_slice, a_wrong_slice, stored

OLD = [a_slice("float16", "broken"), a_wrong_slice(sample="steady"), a_wrong_slice(sample="repaired_since")]
NEW = [a_wrong_slice(sample="broken"), a_wrong_slice(sample="steady"), a_slice("float16", "repaired_since")]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run, beside whose folder lies that of an earlier one with another driver."""
    root = tmp_path_factory.mktemp("runs")
    for day, records, driver in ((1, OLD, "535"), (2, NEW, "540")):
        run = a_night(day, driver_version=driver)
        folder = stored(root / run.run_id, records, run)
        write_all(folder, comparison=compare_with_earlier(folder))
    return folder / "report.html"


def test_what_broke_stands_below_the_verdict_and_is_a_filter(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert " ".join(browser.text(".hero .since").split()) == (
        "Since 2025-01-01 03:04:05 UTC: 1 broke 1 repaired 1 failed before "
        "Changed: driver: 535 → 540; runtime unknown. Causes: 1 still there"
    )
    assert browser.texts(".finding .badge.worse") == ["1 broke"]
    browser.click(".since .badge.worse")
    browser.wait_for_result("1 of 3 cases")
    assert browser.texts("#rows code") == [NEW[0].case_id]
    assert browser.texts(".chip") == ["since: broke ✕"]
    assert browser.violations() == []


def test_a_case_has_its_history_with_links_to_the_earlier_reports(browser: Browser, page: Path) -> None:
    browser.open(page, "#since=broke")
    browser.click("#rows a")
    browser.wait("return !document.getElementById('case').hidden")
    assert browser.texts("section[aria-label=History] td:nth-child(3)") == ["mismatch", "pass"]
    assert browser.texts(".badges .worse") == ["broke"]
    assert browser.violations() == []
    browser.click("section[aria-label=History] a")
    browser.wait("return document.querySelector('#case .verdict')?.textContent === 'every element equals the truth'")


def test_a_run_without_earlier_ones_says_nothing_of_them(browser: Browser, page: Path) -> None:
    browser.open(next(page.parent.parent.glob("20250101-*")) / "report.html")
    assert browser.texts(".since") == []
    assert browser.texts("select[name=since]") == []
