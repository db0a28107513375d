"""The page in a real browser: it runs under its own policy, follows its links, and executes nothing it was given."""

import dataclasses
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from stored_records import (
    a_crashed_topk,
    a_refused_qlinearconv,
    a_run,
    a_slice,
    a_wrong_slice,
    an_opinion,
    changed,
    many,
    stored,
)

from epcheck.conformance.record import DirectML, Expected, Record, Run, Value
from epcheck.reports import write_html

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.chrome.options import Options  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--window-size=1280,1000",
)  # fmt: skip
SCRIPT = "</script><script>document.title='owned';window.owned=1</script><img src=x onerror=window.owned=1>\x00\u202e"


class Browser:
    """A page that is open, and what may be asked of it."""

    def __init__(self, driver: "webdriver.Chrome") -> None:
        self.driver = driver

    def open(self, page: Path, address: str = "") -> float:
        """Open the page anew; seconds until it is ready."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        started = time.monotonic()
        self.driver.get(page.as_uri() + address)
        self.wait("return document.documentElement.dataset.ready === 'yes'")
        return time.monotonic() - started

    def wait(self, script: str) -> None:
        WebDriverWait(self.driver, 10, poll_frequency=0.02).until(lambda driver: driver.execute_script(script))

    def text(self, selector: str) -> str:
        return str(self.driver.find_element(By.CSS_SELECTOR, selector).text)

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.driver.find_elements(By.CSS_SELECTOR, selector)]

    def click(self, selector: str) -> None:
        self.driver.execute_script("document.querySelector(arguments[0]).click()", selector)

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator["webdriver.Chrome"]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    if not (chromium and chromedriver):
        pytest.skip("no chromium with its chromedriver on this machine")
    options = Options()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(chromedriver))
    yield started
    started.quit()


@pytest.fixture
def browser(driver: "webdriver.Chrome") -> Iterator[Browser]:
    opened = Browser(driver)
    yield opened
    assert opened.complaints() == []  # no error, and nothing the page's policy had to refuse


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    passing = [a_slice(dtype) for dtype in ("float16", "float32", "int64")]
    records = [*passing, a_wrong_slice(), a_crashed_topk(), a_refused_qlinearconv()]
    return write_html(stored(tmp_path_factory.mktemp("runs") / "run", records))


def link(record: Record) -> str:
    return "#case=" + quote(record.case_id, safe="")


def test_the_page_opens_on_the_verdict(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.text("h1") == ("dml: 2 conformance failures in 2 groups, 1 expected deviation, 3 of 6 cases pass.")
    assert browser.text("#result") == "6 cases"
    assert browser.texts("#rows td:first-child")[:4] == ["✕failure", "✕failure", "≈expected", "✓ok"]


def test_a_matrix_cell_filters_the_list(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.click(".matrix a.cell.failure")
    browser.wait("return document.getElementById('result').textContent === '2 of 6 cases'")
    assert browser.driver.current_url.endswith("#operator=Slice&version=13&dtype=float16&target=dml")
    assert browser.texts("#rows code") == [a_wrong_slice().case_id, a_slice("float16").case_id]
    assert "dtype: float16 ✕" in browser.texts(".chip")


def test_a_finding_filters_the_list(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.click(".finding p a")
    browser.wait("return document.getElementById('result').textContent === '1 of 6 cases'")


def test_search_narrows_the_list_and_is_in_the_address(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.driver.find_element(By.NAME, "q").send_keys("TOPK crash")
    browser.wait("return document.getElementById('result').textContent === '1 of 6 cases'")
    assert browser.driver.current_url.endswith("#q=TOPK%20crash")
    browser.open(page, "#q=per_channel&reading=expected")
    assert browser.texts("#rows code") == [a_refused_qlinearconv().case_id]


def test_a_select_filters_and_shows_what_is_left(browser: Browser, page: Path) -> None:
    browser.open(page)
    select = browser.driver.find_element(By.NAME, "status")
    select.find_element(By.CSS_SELECTOR, "option[value=crash]").click()
    browser.wait("return document.getElementById('result').textContent === '1 of 6 cases'")
    assert browser.texts("select[name=operator] option") == ["any", "TopK (1)"]


def test_a_deep_link_opens_a_failing_case_with_all_there_is_to_know(browser: Browser, page: Path) -> None:
    browser.open(page, link(a_wrong_slice()))
    article = browser.text("#case")
    assert not browser.driver.find_element(By.ID, "overview").is_displayed()
    for said in (
        a_wrong_slice().case_id,
        "output: 6 of 8 elements differ from the truth; the baseline and two oracles agree with it",
        "output equals the truth bit for bit",
        "epcheck repro 'Slice-13/float16/negative_step_past_both_ends[runtime]' --target dml",
        "[0, 0, 0, 1] 1 3 1536",
        "DML_SLICE1_OPERATOR_DESC",
        "InputWindowStrides [1, 1, 1, -2]",
        "Slice → DmlExecutionProvider",
        "onnx.reference oracle agrees",
    ):
        assert said in article, said
    assert len(browser.texts(".heat rect.wrong")) == 6
    assert browser.texts(".graph .name") == ["data", "starts", "ends", "axes", "steps", "output"]
    assert "float16[1,1,4,4]" in browser.texts(".graph .type")


def test_a_crash_shows_its_log_and_what_the_description_violates(browser: Browser, page: Path) -> None:
    browser.open(page, link(a_crashed_topk()))
    article = browser.text("#case")
    assert "at run: the worker died with exit code 5" in article
    assert "0024:err:vkd3d-proton: device lost" in article
    assert "Violates: InputTensor.DataType INT64 is not supported" in article
    assert "sorted = 0" in browser.texts(".graph .attribute")


def test_an_expectation_shows_reason_and_link_and_initializers_are_told_apart(browser: Browser, page: Path) -> None:
    browser.open(page, link(a_refused_qlinearconv()))
    assert "Expected: per-channel weights: known QLinearConv-10/*/per_channel* (refused)" in browser.text("#case")
    outside = browser.driver.find_element(By.CSS_SELECTOR, "#case .note a")
    assert outside.get_attribute("href") == "https://example.test/issues/7"
    assert "noopener" in (outside.get_attribute("rel") or "")
    assert len(browser.texts(".graph .initializer")) == 7
    assert len(browser.texts(".graph .input")) == 1


def test_keys_walk_through_the_filtered_cases(browser: Browser, page: Path) -> None:
    browser.open(page, "#operator=Slice&case=" + quote(a_wrong_slice().case_id, safe=""))
    body = browser.driver.find_element(By.TAG_NAME, "body")
    body.send_keys("j")
    browser.wait("return document.title.startsWith('Slice-13/float16/inner_backward_by_2')")
    body.send_keys("\ue00c")  # Escape
    browser.wait("return document.getElementById('result').textContent === '4 of 6 cases'")


def test_a_link_to_a_case_that_is_not_there_says_so(browser: Browser, page: Path) -> None:
    browser.open(page, "#case=nothing%3Cb%3E")
    assert "This run has no record of nothing<b>." in browser.text("#case")


def test_the_copy_button_says_that_it_copied(browser: Browser, page: Path) -> None:
    browser.open(page, link(a_wrong_slice()))
    browser.driver.find_element(By.CSS_SELECTOR, ".command button").click()
    browser.wait("return document.querySelector('.command button').textContent === 'Copied'")


def test_the_theme_can_be_switched(browser: Browser, page: Path) -> None:
    browser.open(page)
    ground = "return getComputedStyle(document.body).backgroundColor"
    before = browser.driver.execute_script(ground)
    browser.click("#theme")
    assert browser.driver.execute_script(ground) != before
    browser.click("#theme")
    assert browser.driver.execute_script(ground) == before


def hostile(run: Run) -> tuple[Run, Record]:
    """A run and a failing record in which every text is an attack."""
    record = changed(
        a_wrong_slice(case_id=SCRIPT, operator=SCRIPT, domain=SCRIPT, dtype=SCRIPT, sample=SCRIPT, variant=SCRIPT),
        types={SCRIPT: SCRIPT},
        attributes={SCRIPT: SCRIPT, "starts": [-(2**63)]},
        values=(Value(SCRIPT, SCRIPT, (1,), "input", SCRIPT), Value(SCRIPT, SCRIPT, (), "output", SCRIPT)),
        directml=DirectML(SCRIPT, {SCRIPT: {SCRIPT: SCRIPT}}, (SCRIPT,)),
        expects=SCRIPT,
        candidate=an_opinion(
            SCRIPT, status="mismatch", message=SCRIPT, log_tail=SCRIPT, assignment=((SCRIPT, SCRIPT),)
        ),
        oracles={SCRIPT: SCRIPT},
        reason=SCRIPT,
        repro=SCRIPT,
        expectation=Expected(SCRIPT, SCRIPT, SCRIPT, "javascript:window.owned=1"),
    )
    facts = {SCRIPT: {SCRIPT: SCRIPT}}
    return dataclasses.replace(run, run_id=SCRIPT, command=(SCRIPT,), notes=(SCRIPT,), targets=facts), record


def test_hostile_names_are_shown_and_never_executed(browser: Browser, tmp_path: Path) -> None:
    run, record = hostile(a_run(1))
    page = write_html(stored(tmp_path / "run", [record], run))
    shown = SCRIPT.replace("\x00", "\\x00").replace("\u202e", "\\u202e")
    browser.open(page)
    assert browser.texts("#rows code") == [shown]
    for name in ("operator", "dtype", "variant"):
        assert shown in browser.text(f"select[name={name}]")
    browser.click("#rows a")
    browser.wait("return !document.getElementById('case').hidden")
    assert browser.text("#case h1") == shown
    assert "-9223372036854775808" in browser.text("#case")
    assert browser.texts("#case .note a") == []  # javascript: is text, not a link
    assert browser.driver.execute_script("return window.owned") is None
    assert browser.driver.execute_script("return document.images.length") == 0


def test_five_thousand_cases_open_within_three_seconds(browser: Browser, tmp_path: Path) -> None:
    page = write_html(stored(tmp_path / "run", many(5000)))
    assert browser.open(page) < 3
    assert browser.text("#result") == "5,000 cases"
    started = time.monotonic()
    browser.driver.execute_script("location.hash = '#q=start_44_+slice-13'")
    browser.wait("return document.getElementById('result').textContent.startsWith('2 of')")
    assert time.monotonic() - started < 1


def test_a_page_without_decompression_keeps_what_needs_no_script(browser: Browser, page: Path) -> None:
    added = browser.driver.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.DecompressionStream"}
    )
    try:
        browser.open(page)
        assert "This browser cannot unpack the cases" in browser.text("#list-problem")
        assert "2 conformance failures" in browser.text("h1")
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
