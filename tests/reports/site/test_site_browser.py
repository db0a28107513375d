"""The site of a store in a real browser: every view is an address, and nothing it was given is executed."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from epcheck import api
from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.run import Run
from tests.reports.browsing import ESCAPE, Browser
from tests.reports.stored_nights import keep
from tests.reports.stored_records import DTYPES, a_run, a_slice, a_wrong_slice, an_opinion

SCRIPT = "</script><script>document.title='owned';window.owned=1</script><img src=x onerror=window.owned=1>\x00\u202e"
SHOWN = SCRIPT.replace("\x00", "\\x00").replace("\u202e", "\\u202e")


def a_release(release: str, provider: str = "DmlExecutionProvider", adapter: str = "Radeon") -> Run:
    facts = {"execution_provider": provider, "adapter": adapter, "onnxruntime": release}
    name = "".join(filter(str.isalnum, provider))[:8] + release
    return a_run(run_id=f"run-{name}", candidates=("dml",), targets={"dml": facts})


def an_operator(record: Record, operator: str) -> Record:
    case_id = record.case_id.replace("Slice-", f"{operator}-")
    return replace(record, case=replace(record.case, operator=operator, case_id=case_id))


MEASURED = a_slice("float32", "a", candidate=an_opinion("dml", accuracy=Accuracy(4, 2.5, 3.0, (2, 1, 1))))
INFINITE = a_slice("float16", "a", candidate=an_opinion("dml", accuracy=Accuracy(1, float("inf"), 0.0, (0,))))


def records_of(release: str) -> Iterator[Record]:
    yield MEASURED
    yield INFINITE
    yield (a_wrong_slice if release == "1.20.1" else a_slice)("float16", "b")
    yield an_operator(a_slice("int64", "c"), "TopK")
    if release == "1.24.4":
        yield an_operator(a_wrong_slice("int64", "d"), "TopK")  # of this release alone
    yield an_operator((a_slice if release == "0.4.0" else a_wrong_slice)("int8", "e"), "Gather")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for release in ("1.20.1", "1.24.4"):
        keep(folder / "store", a_release(release), records_of(release))
    keep(folder / "store", a_release("0.4.0", "WebGpuExecutionProvider"), records_of("0.4.0"))
    api.site(api.SiteOptions(store=folder / "store", out=folder / "out"))
    return folder / "out" / "index.html"


def row(operator: str) -> str:
    """The texts of an operator's row of the matrix."""
    return (
        "return [...document.querySelectorAll('#matrix-table tbody tr')]"
        f".find((row) => row.cells[0].textContent === '{operator}')?.innerText.replaceAll(/\\s+/g, ' ')"
    )


def test_the_page_opens_on_the_newest_release_of_each_provider(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.text("h1") == "2 providers in 3 releases on 1 adapter: 3 operators"
    assert browser.texts("#matrix-table thead th") == ["Operator", "Dml1.24.4", "WebGpu0.4.0"]
    assert browser.run(row("Slice")) == "Slice ✓ ok 3 ✓ ok 3"
    assert browser.run(row("TopK")) == "TopK ✕ failure 1/2 ✓ ok 1"
    assert browser.run(row("Gather")) == "Gather ✕ failure 0/1 ✓ ok 1"
    assert browser.text("#result") == "3 operators"


def test_what_the_script_draws_is_what_the_page_had(browser: Browser, page: Path) -> None:
    browser.open(page)
    written = browser.run("return document.getElementById('matrix-table').innerText")
    links = browser.run("return [...document.querySelectorAll('#matrix-table a')].map((a) => a.hash)")
    browser.go("#find=Slice")
    browser.wait("return document.querySelectorAll('#matrix-table tbody tr').length === 1")
    browser.go("#")
    browser.wait("return document.querySelectorAll('#matrix-table tbody tr').length === 3")
    assert browser.run("return document.getElementById('matrix-table').innerText") == written
    assert browser.run("return [...document.querySelectorAll('#matrix-table a')].map((a) => a.hash)") == links


def test_filters_and_columns_are_in_the_address(browser: Browser, page: Path) -> None:
    browser.open(page, "#columns=all&find=sl")
    assert browser.texts("#matrix-table thead th") == ["Operator", "Dml1.20.1", "Dml1.24.4", "WebGpu0.4.0"]
    assert browser.run(row("Slice")) == "Slice ✕ failure 2/3 ✓ ok 3 ✓ ok 3"
    assert browser.text("#result") == "1 of 3 operators"
    browser.open(page, "#dtype=float16")
    assert browser.run(row("Slice")) == "Slice ✓ ok 2 ✓ ok 2"
    assert browser.run(row("TopK")) is None
    browser.select("dtype", "")
    browser.select("state", "failure")
    assert browser.texts("#matrix-table tbody th") == ["Gather", "TopK"]
    assert browser.driver.current_url.endswith("#state=failure")


def test_a_difference_is_told_of_cases_that_both_have(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.select("state", "differs")
    assert browser.driver.current_url.endswith("#state=differs&cases=common")
    assert browser.texts("#matrix-table tbody th") == ["Gather"]  # TopK's wrong case ran on one of them alone
    browser.select("cases", "")
    assert browser.texts("#matrix-table tbody th") == ["Gather", "TopK"]


def test_an_operator_shows_claims_errors_and_since_when(browser: Browser, page: Path) -> None:
    browser.open(page, "#operator=Slice&columns=all")
    assert browser.text("#view h1") == "Slice"
    rows = "[...document.querySelectorAll('.detailed tbody tr')].map((row) => row.innerText.replaceAll(/\\s+/g, ' '))"
    assert browser.run(f"return {rows}") == [
        "13 float16 ✕ failure 1/2 ∞ ULP since ≤ 1.20.1 ✓ ok 2 ∞ ULP since 1.24.4 ✓ ok 2 ∞ ULP",
        "13 float32 ✓ ok 1 2.5 ULP since ≤ 1.20.1 ✓ ok 1 2.5 ULP since ≤ 1.20.1 ✓ ok 1 2.5 ULP",
    ]
    assert browser.text("#wrong-result") == "1 case in 1 group"
    browser.wait("return document.querySelector('#view canvas')")
    browser.press("j")
    browser.wait("return document.querySelector('#view h1').textContent === 'TopK'")
    browser.press(ESCAPE)
    browser.wait("return document.getElementById('view').hidden")
    assert browser.shown("#matrix")


def test_a_provider_shows_what_its_release_changed(browser: Browser, page: Path) -> None:
    browser.open(page, "#provider=dml-1.24.4")
    assert browser.text("#view h1") == "Dml 1.24.4"
    assert browser.texts("#view .changes")[0] == "✓Slice 13: float16"
    assert "differs between Dml 1.24.4 and WebGpu 0.4.0" in browser.text("#view")
    browser.open(page, "#provider=dml-1.20.1")
    assert "no older release" in browser.text("#view")
    browser.open(page, "#provider=none-such")
    assert browser.text("#view h1") == "No such provider"


def test_what_is_wrong_is_searched_and_of_several_providers_listed_once(browser: Browser, page: Path) -> None:
    browser.open(page, "#columns=all")
    assert browser.text("#wrong-result") == "4 cases in 3 groups"
    assert browser.texts("#wrong-list li a.badge")[:2] == ["Dml 1.20.1: 1", "Dml 1.24.4: 1"]
    browser.type("q", "Gather")
    browser.wait("return document.querySelectorAll('#wrong-list li').length === 1")
    assert browser.driver.current_url.endswith("#columns=all&q=Gather")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "address", ["#", "#columns=all", "#operator=Slice&columns=all", "#provider=dml-1.24.4"],
    ids=["newest", "all", "operator", "provider"],
)  # fmt: skip
def test_axe_finds_no_violation(browser: Browser, page: Path, scheme: str, address: str) -> None:
    browser.scheme(scheme)
    browser.open(page, address)
    assert browser.violations() == []


def test_a_narrow_screen_is_not_scrolled_sideways(browser: Browser, page: Path) -> None:
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for address in ("#", "#columns=all", "#operator=Slice&columns=all", "#provider=dml-1.24.4"):
            browser.open(page, address)
            assert browser.run("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_hostile_names_are_shown_and_not_executed(browser: Browser, tmp_path: Path) -> None:
    record = a_wrong_slice("float16", SCRIPT, reason=SCRIPT)
    record = replace(record, case=replace(record.case, operator=SCRIPT, dtype=SCRIPT))
    keep(tmp_path / "store", replace(a_release("1.0", SCRIPT, SCRIPT), run_id="hostile"), [record])
    api.site(api.SiteOptions(store=tmp_path / "store", out=tmp_path / "out"))
    page = tmp_path / "out" / "index.html"
    browser.open(page)
    assert browser.texts("#matrix-table tbody th") == [SHOWN]
    assert SHOWN in browser.texts("#wrong-list .why")[0]
    browser.click("#matrix-table tbody th a")
    browser.wait("return !document.getElementById('view').hidden")
    assert browser.text("#view h1") == SHOWN
    browser.click("#view .standings a")
    browser.wait("return document.querySelector('#view .verdict')")
    assert browser.run("return window.owned") is None
    assert browser.driver.title != "owned"


def test_a_site_of_six_providers_with_two_hundred_operators_is_there_within_a_second(
    browser: Browser, tmp_path: Path
) -> None:
    operators = [f"Operator{number}" for number in range(210)]
    for number in range(6):
        records = [
            an_operator((a_wrong_slice if (i + number) % 17 == 0 else a_slice)(dtype, "a"), operator)
            for i, operator in enumerate(operators)
            for dtype in DTYPES
        ]
        keep(tmp_path / "store", a_release(f"1.{number}", f"Provider{number}ExecutionProvider"), records)
    api.site(api.SiteOptions(store=tmp_path / "store", out=tmp_path / "out"))
    page = tmp_path / "out" / "index.html"
    seconds = min(browser.open(page) for _ in range(3))
    assert browser.run("return document.querySelectorAll('#matrix-table tbody .cell').length") == 6 * 210
    assert seconds < 1, f"{seconds:.2f} s"
    started = time.monotonic()
    browser.go("#state=differs&cases=common")
    browser.wait("return document.getElementById('result').textContent.includes(' of ')")
    assert time.monotonic() - started < 1
