"""Several targets side by side on the page of a run."""

from dataclasses import replace
from pathlib import Path

import pytest

from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.record import Record
from epcheck.reports import write_html
from tests.reports.browsing import Browser
from tests.reports.stored_records import a_run, a_slice, a_wrong_slice, an_opinion, stored

TARGETS = {
    "dml": {"execution_provider": "DmlExecutionProvider", "onnxruntime": "1.24.4", "adapter": "Radeon"},
    "dml@1.9.0": {"execution_provider": "DmlExecutionProvider", "onnxruntime": "1.9.0", "adapter": "Radeon"},
    "dml@1.20.1": {"execution_provider": "DmlExecutionProvider", "onnxruntime": "1.20.1", "adapter": "Radeon"},
    "cpu": {"execution_provider": "CPUExecutionProvider", "onnxruntime": "1.32.0", "processor": "EPYC"},
}


def on(target: str, record: Record) -> Record:
    return replace(record, candidate=replace(record.candidate, target=target))


def declined(dtype: str, sample: str) -> Record:
    opinion = an_opinion("dml", status="unplaced")
    return replace(a_slice(dtype, sample), status="unplaced", claimed=False, candidate=opinion)


def another(record: Record) -> Record:
    """The same of another operator."""
    case = replace(record.case, operator="Gather", case_id=record.case_id.replace("Slice", "Gather"))
    return replace(record, case=case)


MEASURED = a_slice("float32", "m", candidate=an_opinion("dml", accuracy=Accuracy(4, 2.5, 3.0, (2, 1, 1))))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    records = []
    for target in TARGETS:
        wrong_once = a_wrong_slice if target == "dml@1.9.0" else a_slice
        records += [on(target, MEASURED), on(target, wrong_once("float16", "a")), on(target, another(a_slice()))]
        records.append(on(target, a_slice("int8", "d") if target == "cpu" else declined("int8", "d")))
    run = a_run(len(records), candidates=tuple(TARGETS), targets=TARGETS)
    return write_html(stored(tmp_path_factory.mktemp("runs") / "run", records, run))


def rows(table: str) -> str:
    text = "(row) => row.innerText.replaceAll(/\\s+/g, ' ').trim()"
    return f"return [...document.querySelectorAll('{table} tbody tr')].map({text})"


def test_the_matrix_has_a_column_for_each_target(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.texts("#side-by-side thead th") == ["Operator", "dml", "dml@1.9.0", "dml@1.20.1", "cpu"]
    (gather, slices) = browser.run(rows("#side-by-side"))
    assert gather.count("✓") == 4
    assert [word for word in slices.split() if "/" in word or word.isdigit()] == ["2/3", "1/3", "2/3", "3"]
    browser.click("#side-by-side tbody tr:nth-child(2) .failure")
    browser.wait("return !document.getElementById('operator').hidden")
    assert browser.driver.current_url.endswith("#operator=Slice&target=dml%401.9.0")


def test_operators_on_which_targets_differ_are_an_address(browser: Browser, page: Path) -> None:
    listed = "[...document.querySelectorAll('#side-by-side tbody tr')]"
    shown = f"return {listed}.filter((row) => !row.hidden).map((row) => row.dataset.operator)"
    browser.open(page)
    assert browser.run(shown) == ["Slice"]
    assert browser.text("#matrix-shown") == "Something is wrong in 1 of 2 operators. Show all 2 operators"
    browser.click("#matrix-shown a")
    browser.wait("return location.hash === '#section=matrix&worst=any'")
    assert browser.run(shown) == ["Gather", "Slice"]
    browser.select("worst", "differs")
    assert browser.run(shown) == ["Slice"]
    assert browser.driver.current_url.endswith("#section=matrix&worst=differs")
    browser.open(page, "#section=matrix&worst=differs")
    assert browser.run(shown) == ["Slice"]


def test_an_operator_says_what_is_claimed_how_many_ulp_and_since_which_release(browser: Browser, page: Path) -> None:
    browser.open(page, "#operator=Slice")
    details = "(cell) => [...cell.querySelectorAll('.detail')].map((line) => line.textContent).join('; ')"
    listed = "[...document.querySelectorAll('#operator .detailed tbody tr')]"
    cells = f"return {listed}.map((row) => [...row.cells].map({details}))"
    assert browser.texts("#operator .detailed tbody th") == ["13 float16", "13 float32", "13 int8"]
    float16, float32, int8 = browser.run(cells)
    assert float16 == ["", "since 1.20.1", "since ≤ 1.9.0", "since 1.20.1", ""]
    assert float32 == ["", *["2.5 ULP; since ≤ 1.9.0"] * 3, "2.5 ULP"]
    assert int8 == ["", *["not claimed; since ≤ 1.9.0"] * 3, ""]


@pytest.mark.parametrize("address", ["#", "#operator=Slice"])
def test_axe_finds_no_violation(browser: Browser, page: Path, address: str) -> None:
    browser.open(page, address)
    assert browser.violations() == []


def test_a_run_of_one_target_has_no_such_table(browser: Browser, tmp_path: Path) -> None:
    page = write_html(stored(tmp_path / "run", [a_slice()]))
    browser.open(page)
    assert browser.texts("#side-by-side") == []
    assert "differs" not in browser.run(
        "return [...document.getElementsByName('worst')[0].options].map((o) => o.value)"
    )
