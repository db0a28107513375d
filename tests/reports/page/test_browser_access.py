"""Who reads the page: with a keyboard, a screen reader, in the dark, on paper, on a narrow screen."""

from pathlib import Path
from urllib.parse import quote

import pytest

from epcheck.conformance.records.accuracy import Accuracy
from epcheck.reports import write_html
from tests.reports.browsing import ESCAPE, Browser
from tests.reports.stored_records import a_slice, a_wrong_slice, an_opinion, many, stored

WRONG = "#case=" + quote(a_wrong_slice("float16", "start_0_step_1").case_id, safe="")


def of(elements: int) -> Accuracy:
    """Elements that are within half an ULP, all of them."""
    return Accuracy(elements, 0.5, elements / 4, (elements,))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    measured = [
        a_slice("float32", name.lower(), operator=name, candidate=an_opinion("dml", name, accuracy=of(elements)))
        for name, elements in (("Sin", 1200), ("Gelu", 90), ("Tan", 30_000))
    ]
    wrong = a_wrong_slice("float16", "start_0_step_1")
    records = [wrong, a_slice("float64", "of_its_own"), *measured, *list(many(400))[5:]]
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


def test_a_narrow_screen_has_links_to_the_sections_and_a_page_of_some_screens(browser: Browser, page: Path) -> None:
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.open(page)
        assert browser.shown(".bar nav a")
        assert browser.run("return document.documentElement.scrollHeight") < 7 * 844
        assert browser.violations() == []
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_each_section_has_a_link_to_itself(browser: Browser, page: Path) -> None:
    browser.open(page)
    links = browser.run(
        "return [...document.querySelectorAll('.anchor')].map((a) => [a.hash, a.parentElement.textContent])"
    )
    titles = {"findings": "What is wrong", "matrix": "Operator × dtype", "accuracy": "Accuracy", "cases": "Cases"}
    assert dict(links) == {f"#section={section}": title for section, title in titles.items()}
    browser.point("#matrix .anchor")
    browser.wait("return location.hash === '#section=matrix'")


def test_a_press_on_a_head_sorts_the_figures_of_accuracy(browser: Browser, page: Path) -> None:
    browser.open(page, "#section=accuracy")
    browser.run("document.querySelectorAll('#accuracy details').forEach((details) => { details.open = true; })")
    heads = browser.texts("[data-sortable] thead button")
    assert heads == ["Operator", "dtype", "elements", "max", "99 %", "mean", "max", "99 %", "mean"]
    numbers = "return [...document.querySelectorAll('[data-sortable] tbody tr')].map((r) => r.cells[2].textContent)"
    for order, reverse in (("descending", True), ("ascending", False)):
        browser.click("[data-sortable] thead tr:first-child th:nth-child(3) button")
        found = [int(text.replace(",", "")) for text in browser.run(numbers)]
        assert len(found) == 3
        assert found == sorted(found, reverse=reverse)
        assert browser.run("return document.querySelector('[data-sortable] [aria-sort]').ariaSort") == order
    browser.click("[data-sortable] thead button")
    assert browser.run("return document.querySelectorAll('[data-sortable] [aria-sort]').length") == 1
    assert browser.texts("[data-sortable] tbody th") == sorted(browser.texts("[data-sortable] tbody th"))


def test_paper_cuts_no_column_and_has_every_cause(browser: Browser, page: Path) -> None:
    size = {"width": 718, "height": 1040, "deviceScaleFactor": 1, "mobile": False}  # A4 with a margin of 1 cm
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.open(page)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        browser.run("document.querySelectorAll('#findings .findings').forEach((group) => { group.open = false; })")
        browser.run("dispatchEvent(new Event('beforeprint'))")
        beyond = """return [...document.querySelectorAll('main *')]
            .filter((e) => e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 1)
            .map((e) => e.outerHTML.slice(0, 80))"""
        assert browser.run(beyond) == []
        assert browser.run("return getComputedStyle(document.querySelector('#matrix .window')).maxHeight") == "none"
        shown = "return [...document.querySelector('#rows .row').children].map((e) => e.offsetWidth > 0)"
        assert browser.run(shown) == [True] * 5
        assert browser.run("return document.querySelectorAll('#findings .findings:not([open])').length") == 0
        browser.run("dispatchEvent(new Event('afterprint'))")
        assert browser.run("return document.querySelectorAll('#findings .findings[open]').length") == 0
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
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
