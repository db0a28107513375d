"""A page that is open in a real browser, and what may be asked of it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--window-size=1280,1000",
)  # fmt: skip
AXE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
ESCAPE, ENTER = "\ue00c", "\ue007"


class Browser:
    """A page that is open, and what may be asked of it."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(self, page: Path, address: str = "") -> float:
        """Open the page anew; seconds until it is ready."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        started = time.monotonic()
        self.driver.get(page.as_uri() + address)
        self.wait("return document.documentElement.dataset.ready === 'yes'")
        return time.monotonic() - started

    def seconds_worked(self) -> float:
        """Seconds that script, style and layout of all pages have taken so far."""
        self.driver.execute_cdp_cmd("Performance.enable", {})
        metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return sum(
            m["value"] for m in metrics if m["name"] in ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
        )

    def go(self, address: str) -> None:
        """Another address within the open page."""
        self.run("location.hash = arguments[0]", address)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str, seconds: float = 30) -> None:
        until = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < until, f"waited {seconds} s in vain: {script}"
            time.sleep(0.02)

    def wait_for_result(self, expected: str) -> None:
        self.wait(f"return document.getElementById('result').textContent === {expected!r}")

    def text(self, selector: str) -> str:
        return str(self.driver.find_element("css selector", selector).text)

    def texts(self, selector: str) -> list[str]:
        return list(self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector))

    def shown(self, selector: str) -> bool:
        return bool(self.driver.find_element("css selector", selector).is_displayed())

    def click(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).click()", selector)

    def point(self, selector: str) -> None:
        """Click in the middle of an element with the mouse, as a person does."""
        self.run(
            "document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})", selector
        )
        self.driver.find_element("css selector", selector).click()

    def press(self, keys: str) -> None:
        """Keys for whatever has the focus."""
        self.driver.switch_to.active_element.send_keys(keys)

    def type(self, name: str, words: str) -> None:
        self.driver.find_element("name", name).send_keys(words)

    def select(self, name: str, value: str) -> None:
        choose = "const s = document.getElementsByName(arguments[0])[0]; s.value = arguments[1];"
        self.run(choose + "s.dispatchEvent(new Event('change'))", name, value)

    def scheme(self, name: str) -> None:
        """The scheme, light or dark, that the system asks for."""
        wanted = {"features": [{"name": "prefers-color-scheme", "value": name}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def violations(self) -> list[str]:
        """What axe-core finds against WCAG 2.2 A and AA in what is shown, one line for each kind and place."""
        self.run(AXE.read_text("utf-8"))
        rules = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}"
        done = f"axe.run(document, {rules}).then((found) => arguments[arguments.length - 1](found.violations))"
        found = self.driver.execute_async_script(done)
        return [f"{v['impact']} {v['id']}: {node['html'][:160]}" for v in found for node in v["nodes"]]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    if not (chromium and chromedriver):
        pytest.skip("no chromium with its chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.add_experimental_option("browserStartupTimeout", 300_000)  # milliseconds: a busy machine starts it slowly
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    started.set_script_timeout(60)
    yield started
    started.quit()


@pytest.fixture
def browser(driver: Chrome) -> Iterator[Browser]:
    opened = Browser(driver)
    yield opened
    complaints = opened.complaints()
    assert complaints == [], complaints  # no error, and nothing the page's policy had to refuse
