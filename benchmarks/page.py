"""The page of a run: how large it is, how long it takes to make and to open, by number of cases.

    python benchmarks/page.py RUN                      # a run's folder, its records repeated up to 50,000 of them
    python benchmarks/page.py RUN --cases 10000 --repeats 5

It needs chromium with its chromedriver, and selenium (`pip install -e ".[test]"`). A page is opened anew in a browser
that runs: the time is from asking for it until the list of cases stands and a filter would be obeyed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from selenium import webdriver

from epcheck.api.runs.archive import archive
from epcheck.reports import write_html
from epcheck.reports.checksum import line_with_checksum
from epcheck.reports.runs.run_folder import JOURNAL, RUN, read_lines

READY = "return document.documentElement.dataset.ready === 'yes'"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, help="A run's folder.")
    parser.add_argument("--cases", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = repeated(options.run, Path(folder) / "run", options.cases)
        started = time.process_time()
        page = write_html(run, archive=archive)
        made = time.process_time() - started
        opened = opening_times(page, options.repeats)
        print(f"{options.cases:,} cases: {page.stat().st_size / 1e6:.2f} MB, made in {made:.1f} s of CPU time")
        print(f"opened in {statistics.median(opened):.2f} s ({min(opened):.2f} to {max(opened):.2f})")


def repeated(source: Path, folder: Path, cases: int) -> Path:
    """A run with so many of the source's records, which come again with other ids when there are too few."""
    folder.mkdir()
    described = json.loads((source / RUN).read_text("utf-8"))
    (folder / RUN).write_text(json.dumps({**described, "planned": cases}), "utf-8")
    lines = [line for line, _ in read_lines(source)]
    with (folder / JOURNAL).open("wb") as out:
        for number in range(cases):
            turn, at = divmod(number, len(lines))
            out.write(line_with_checksum(_renamed(lines[at], turn) if turn else lines[at]))
    return folder


def _renamed(line: bytes, turn: int) -> bytes:
    record = json.loads(line)
    case_id = record["case_id"]
    sample = f"{record['sample']}_again_{turn}"
    renamed = case_id.replace(f"/{record['sample']}[", f"/{sample}[")
    changes = {"case_id": renamed, "sample": sample, "repro": record["repro"].replace(case_id, renamed)}
    return json.dumps({**record, **changes}, separators=(",", ":")).encode() + b"\n"


def opening_times(page: Path, repeats: int) -> list[float]:
    """Seconds until the page is ready, each time anew."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium") or shutil.which("google-chrome"))
    for flag in FLAGS:
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        return [_opened(driver, page) for _ in range(repeats)]
    finally:
        driver.quit()


def _opened(driver: webdriver.Chrome, page: Path) -> float:
    driver.get("about:blank")
    started = time.monotonic()
    driver.get(page.as_uri())
    while not driver.execute_script(READY):
        time.sleep(0.01)
    return time.monotonic() - started


if __name__ == "__main__":
    main()
