"""The page of a certificate: what stands on it, and in a real browser with axe-core, wide and narrow."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from epcheck.conformance.records.contract import Contract, Device, Library, Rule
from epcheck.reports.certificate.certificate import Certificate, Group, OperatorClaim, Use, Values
from epcheck.reports.certificate.page import write_page
from epcheck.reports.runs.accuracy import AccuracyProfile, AccuracySuspicion, ErrorStatistics
from tests.reports.browsing import Browser

HOSTILE = "</script><img src=x onerror=window.owned=1>"

LONG = "Conv-22/float32/" + "a_name_without_any_space_" * 6 + "[initializer]"


def make_certificate(level: str = "none") -> Certificate:
    """A certificate with a row in each table."""
    rules = (
        Rule("stdout", "Nothing is written to stdout", "broken", f"3 bytes: {HOSTILE}"),
        Rule("options", "An option that it does not have is refused, and named", "remark", "taken without a word"),
        Rule("network", "It needs no network", "holds", "none open"),
    )
    contract = Contract(
        "ep", "MyExecutionProvider", {"onnxruntime": "1.32.0", "jail": "none", "plugin": "my-ep 1.0"},
        (Device("MyExecutionProvider", "Me", "cpu of Me", {"version": "1.0.0"}, {"threads": "1"}),),
        (Library("library", "libmy.so", 12_345, "ab" * 32),), rules, 24, "its kernel registry",
    )  # fmt: skip
    claims = (
        OperatorClaim("Conv", "wrong", 8, 10, 12, ("float16",)),
        OperatorClaim("Abs", "never taken", 0, 0, 5),
        OperatorClaim("Add", "proven", 5, 5, 6),
    )
    errors = ErrorStatistics(100, 2.5, 1.0, 0.25)
    return Certificate(
        "ep", "MyExecutionProvider", level, () if level != "none" else ("2 cases fail without an exclusion.",), "thin",
        "20261128-205053-1f5a", "2026-11-28T20:50:53+00:00", 85.0, {"epcheck": "0.2.0", "onnx": "1.23.2"}, "0" * 64,
        "set:0", Values(23, 13, 15, 2, 0, 1, 10, 8),
        (Group("wrong values", 2, {"mismatch": 2}, LONG, f'epcheck "{LONG}"'),),
        (Group("It is known.", 1, {"refused": 1}, LONG, link="docs/findings.md"),),
        (Use("threads=2", 3, 1, 0, 0, 2, LONG, "crash: killed by SIGSEGV"), Use("reruns=feeds", 4)), claims,
        (AccuracyProfile("Conv", "float32", errors, None),),
        (AccuracySuspicion("Conv", "float32", 1, 4, LONG, 119.0, 0.5),), contract, ("Relu",),
    )  # fmt: skip


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "certificate.html"
    with path.open("wb") as file:
        write_page(file, make_certificate())
    return path


def test_the_page_says_the_level_and_what_keeps_it_from_one() -> None:
    texts = {}
    for level in ("none", "thin with exclusions"):
        file = io.BytesIO()
        write_page(file, make_certificate(level))
        texts[level] = file.getvalue().decode()
    assert "<h1>No level</h1>" in texts["none"]
    assert "2 cases fail without an exclusion." in texts["none"]
    assert "<h1>Level: thin with exclusions</h1>" in texts["thin with exclusions"]
    assert "86.67 % of the results are right: 13 of 15 (2 fail, 0 flaky, 1 excluded); 23 cases" in texts["none"]
    assert "3 registered operators: 1 proven, 1 wrong, 1 never taken, 0 without a case" in texts["none"]
    assert "2 ways: threads=2 differ" in texts["none"]
    assert "1 broken, 1 remark, 1 holds" in texts["none"]
    assert "MyExecutionProvider · my-ep 1.0" in texts["none"]
    assert HOSTILE not in texts["none"]


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_and_nothing_that_was_given_runs(browser: Browser, page: Path, scheme: str) -> None:
    browser.scheme(scheme)
    browser.driver.get(page.as_uri())
    browser.run("for (const d of document.querySelectorAll('details')) d.open = true")
    assert browser.violations() == []
    assert browser.run("return window.owned") is None
    browser.scheme("light")


@pytest.mark.browser
def test_a_narrow_screen_is_not_scrolled_sideways(browser: Browser, page: Path) -> None:
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.driver.get(page.as_uri())
        browser.run("for (const d of document.querySelectorAll('details')) d.open = true")
        assert browser.run("return document.documentElement.scrollWidth") == 390
        assert browser.violations() == []
        cells = "[...document.querySelectorAll('.stacked td:last-child')].map((c) => c.getBoundingClientRect())"
        assert browser.run(f"return {cells}.every((r) => r.right <= 390 && r.width >= 200)") is True
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
