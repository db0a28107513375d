"""Who reads the page: with a keyboard, a screen reader, in the dark, on paper, on a narrow screen."""

from pathlib import Path
from urllib.parse import quote

import pytest
from browsing import ESCAPE, Browser
from stored_records import a_slice, a_wrong_slice, many, stored

from epcheck.reports import write_html

WRONG = "#case=" + quote(a_wrong_slice("float16", "start_0_step_1").case_id, safe="")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    records = [a_wrong_slice("float16", "start_0_step_1"), a_slice("float64", "of_its_own"), *list(many(400))[2:]]
    return write_html(stored(tmp_path_factory.mktemp("runs") / "run", records))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", ["#", "#operator=Slice", WRONG], ids=["run", "operator", "case"])
def test_axe_finds_no_violation(browser: Browser, page: Path, scheme: str, address: str) -> None:
    browser.scheme(scheme)
    browser.open(page, address)
    assert browser.violations() == []
    if address == "#":
        browser.run("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
        assert browser.violations() == []
        browser.press("?")
        assert browser.violations() == []


def test_keys_open_the_help_and_the_sections(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.press("?")
    assert browser.shown("#help")
    assert "next and previous case" in browser.text("#help")
    browser.press("m")  # belongs to the dialog while it is open
    assert not browser.driver.current_url.endswith("#section=matrix")
    browser.press(ESCAPE)
    assert not browser.shown("#help")
    for key, section in {"m": "matrix", "a": "accuracy", "f": "findings", "c": "cases"}.items():
        browser.press(key)
        browser.wait(f"return location.hash === '#section={section}'")
    browser.press("/")
    assert browser.run("return document.activeElement.name") == "q"
    browser.press("t?")  # typed, not obeyed
    assert not browser.shown("#help")


def test_light_and_dark_follow_the_system_until_they_are_switched(browser: Browser, page: Path) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    colours = {}
    for scheme in ("dark", "light"):
        browser.scheme(scheme)
        browser.open(page)
        colours[scheme] = browser.run(ground)
    assert colours["dark"] != colours["light"]
    browser.click("#theme")
    assert browser.run(ground) == colours["dark"]
    browser.press("t")
    assert browser.run(ground) == colours["light"]
    browser.run("localStorage.clear()")


def test_a_narrow_screen_is_not_scrolled_sideways(browser: Browser, page: Path) -> None:
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for address in ("#", "#operator=Slice", WRONG):
            browser.open(page, address)
            assert browser.run("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_paper_gets_the_list_without_its_window(browser: Browser, page: Path) -> None:
    browser.scheme("dark")
    browser.open(page)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert len(browser.texts("#rows .row")) == 300
    assert browser.text("#result") == "400 cases; the first 300 are printed"
    assert browser.run("return getComputedStyle(document.body).colorScheme") == "light"
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert len(browser.texts("#rows .row")) < 60
    browser.scheme("light")
