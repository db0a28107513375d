"""The page of a trend in a real browser: it runs under its own policy and draws its charts."""

from __future__ import annotations

from pathlib import Path

from browsing import Browser
from command_line import call
from stored_nights import a_night, keep
from stored_records import a_slice, a_wrong_slice

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
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
