"""The page of a comparison of speed, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from epcheck import reports
from tests.reports.browsing import Browser
from tests.reports.speed_reports import REPORT

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_everybody_can_read_it(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    reports.write_speed_page(tmp_path / "speed.html", REPORT)
    metrics = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.scheme(scheme)
    try:
        browser.driver.get((tmp_path / "speed.html").as_uri())
        assert browser.text("h1") == REPORT.headline
        assert browser.texts("#ratios .words") == [
            "slower by 1.18 × (1.15 to 1.21), too slow",
            "slower by 1.09 × (1.03 to 1.13)",
            "equivalent: 1.00 × (0.99 to 1.01)",
        ]
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
        assert browser.violations() == []
        places = "return [...document.querySelectorAll('#ratios .ratio')].map((e) => Number(e.getAttribute('cx')))"
        assert browser.run(places) == [122.7, 111.8, 100]
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
