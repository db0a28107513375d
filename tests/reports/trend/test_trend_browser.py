"""The page of a trend in a real browser: it runs under its own policy and draws its charts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command_line import call
from tests.reports.browsing import Browser
from tests.reports.stored_nights import a_night, keep
from tests.reports.stored_records import a_slice, a_wrong_slice

HOSTILE = "</script><img src=x onerror=window.owned=1>"


def test_the_page_draws_its_charts_opens_its_events_and_runs_nothing_it_was_given(
    browser: Browser, tmp_path: Path
) -> None:
    store, page = tmp_path / "store", tmp_path / "trend.html"
    good = a_slice("float16", "negative_step_past_both_ends")
    for day in range(1, 7):
        run = a_night(day, HOSTILE, driver_version="31.0.1" if day < 4 else "31.0.2")
        keep(store, run, [a_slice(), good if day < 4 else a_wrong_slice()])
    assert call("trend", "--store", str(store), "--html", str(page)).code == 0
    browser.driver.get(page.as_uri())
    assert browser.run("return window.owned") is None
    drawn = "return [...document.querySelectorAll('figure.chart')].map((f) => f.querySelectorAll('canvas').length)"
    assert browser.run(drawn) == [1, 1, 1]  # the rate, the failures, and the family that moved
    browser.point("#events details summary")
    event = browser.text("#events details")
    assert a_wrong_slice().case_id in event
    assert "driver: 31.0.1 → 31.0.2" in event
    assert "wrong values: … of … elements differ · DML_SLICE1_OPERATOR_DESC (1 case)" in event
    assert browser.text("h1") == f"1 case that once passed fails, of 1 regression; the newest: 2025-01-04, {HOSTILE}."
    first = "return [...document.querySelectorAll('main > section')].map((section) => section.id).slice(0, 3)"
    assert browser.run(first) == ["", "events", "machines"]
    assert browser.violations() == []
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")


WRITTEN = """window.written = []
const fillText = CanvasRenderingContext2D.prototype.fillText
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  window.written.push(text)
  return fillText.call(this, text, ...rest)
}"""


@pytest.mark.parametrize(
    ("wrong", "ends"), [((1, 1), (49, 51)), ((0, 0), (99, 100)), ((0, 1), (50, 100))], ids=["flat", "right", "falling"]
)
def test_an_axis_ends_near_what_is_drawn_and_no_share_is_above_100_percent(
    browser: Browser, tmp_path: Path, wrong: tuple[int, int], ends: tuple[float, float]
) -> None:
    store, page = tmp_path / "store", tmp_path / "trend.html"
    for day, is_wrong in enumerate(wrong, 1):
        keep(store, a_night(day), [a_slice(), a_wrong_slice() if is_wrong else a_slice("float16", "other")])
    assert call("trend", "--store", str(store), "--html", str(page)).code == 0
    kept = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WRITTEN})
    browser.driver.get(page.as_uri())
    browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", kept)
    rates = [float(text) for text in browser.run("return window.written") if re.fullmatch(r"[\d.]{2,}", text)]
    assert (min(n for n in rates if n > 20), max(rates)) == ends
