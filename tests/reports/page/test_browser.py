"""The page of a run in a real browser: every view and filter is an address, and nothing it was given is executed."""

import base64
import dataclasses
import io
import os
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.case_facts import DirectML, Value
from epcheck.conformance.records.record import Direct, Expected, Record, VariantResult
from epcheck.conformance.records.run import Run
from epcheck.reports import read_run, write_html
from tests.reports.browsing import ENTER, ESCAPE, Browser
from tests.reports.stored_records import (
    a_crashed_topk,
    a_refused_qlinearconv,
    a_run,
    a_slice,
    a_wrong_slice,
    an_opinion,
    changed,
    stored,
)

SCRIPT = "</script><script>document.title='owned';window.owned=1</script><img src=x onerror=window.owned=1>\x00\u202e"
SHOWN = SCRIPT.replace("\x00", "\\x00").replace("\u202e", "\\u202e")


def a_measured_gelu() -> Record:
    """A Gelu case of which both targets' errors were measured."""
    candidate = an_opinion("dml", "Gelu", accuracy=Accuracy(12, 3.5, 9.0, (6, 4, 1, 1)))
    baseline = an_opinion("cpu", "Gelu", accuracy=Accuracy(12, 0.5, 3.0, (12,)))
    case_id = "Gelu-20/float32/ordinary[runtime]"
    record = a_slice(case_id=case_id, operator="Gelu", since_version=20, sample="ordinary")
    return changed(record, candidate=candidate, baseline=baseline)


WRONG, CRASHED, REFUSED, GELU = a_wrong_slice(), a_crashed_topk(), a_refused_qlinearconv(), a_measured_gelu()
PASSING = [a_slice(dtype) for dtype in ("float16", "float32", "int64")]


def a_zip() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("model.onnx", b"\x00\xff")
    return made.getvalue()


ZIP = a_zip()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = stored(tmp_path_factory.mktemp("runs") / "run", [*PASSING, WRONG, CRASHED, REFUSED, GELU])
    return write_html(folder, archive=lambda case_id: ZIP if case_id == WRONG.case_id else None)


def link(record: Record, filters: str = "") -> str:
    return f"#{filters}case=" + quote(record.case_id, safe="")


def test_the_page_opens_on_the_verdict(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.text("h1") == "dml 20250102-030405-beef"
    assert browser.text(".figures").splitlines() == ["2 failures", "2 causes", "57.14 % pass"]
    assert browser.text("#result") == "7 cases"
    assert browser.texts("#rows .row > span:first-child")[:4] == ["✕failure", "✕failure", "≈expected", "✓ok"]
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")


def test_the_way_goes_from_matrix_to_operator_to_case_and_back(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.click(".matrix a.cell.failure")
    browser.wait_for_result("2 of 7 cases")
    assert browser.driver.current_url.endswith("#operator=Slice&dtype=float16")
    assert browser.text("#operator h1") == "Slice float16"
    assert "1 of 2 cases pass; 1 failure, 1 ok." in browser.text("#operator")
    assert browser.texts("#operator .matrix thead th") == ["Version", "float16"]
    assert WRONG.reason in browser.text("#operator .groups")
    assert not browser.shown("#overview")
    assert browser.texts("#rows code") == [WRONG.case_id, PASSING[0].case_id]
    browser.click("#rows a")
    browser.wait("return !document.getElementById('case').hidden")
    assert browser.text("#case h1") == WRONG.case_id
    assert browser.text("#case .step") == "← Slice"
    browser.press(ESCAPE)
    browser.wait("return !document.getElementById('operator').hidden")
    browser.click("#operator header a[href='#operator=Slice']")
    browser.wait("return document.querySelector('#operator h1').textContent === 'Slice'")
    assert "3 of 4 cases pass; 1 failure, 3 ok." in browser.text("#operator")
    assert browser.texts("#operator .matrix thead th") == ["Version", "float16", "float32", "int64"]
    browser.press(ESCAPE)
    browser.wait("return !document.getElementById('overview').hidden")


def test_an_operator_shows_its_accuracy_against_the_baseline(browser: Browser, page: Path) -> None:
    browser.open(page, "#operator=Gelu")
    browser.wait("return document.querySelector('#operator canvas')")
    series = browser.texts("#operator .chart .plain thead th")
    assert series == ["dml, largest", "baseline, largest", "dml, mean", "baseline, mean"]
    assert browser.texts("#operator .chart .plain tbody tr > *") == ["float32", "3.5", "0.5", "0.75", "0.25"]


def test_the_accuracy_of_all_operators_is_a_chart_that_leads_to_each(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.wait("return document.querySelector('#accuracy canvas')")
    assert browser.texts("#accuracy figcaption") == ["Largest error in float32"]
    assert browser.texts("#accuracy .u-legend .u-label") == [" ", "dml", "cpu (baseline)"]
    browser.point("#accuracy .u-over")
    browser.wait_for_result("1 of 7 cases")
    assert browser.driver.current_url.endswith("#operator=Gelu&dtype=float32")


def test_a_section_below_charts_is_where_its_address_leads(browser: Browser, page: Path) -> None:
    top = "return Math.round(document.getElementById('findings').getBoundingClientRect().top)"
    bar = 63  # pixels: what html has as its scroll padding
    browser.open(page, "#section=findings")
    assert browser.run(top) == bar
    browser.go(link(WRONG))
    browser.wait("return !document.getElementById('case').hidden")
    browser.go("#section=findings")
    browser.wait("return document.getElementById('case').hidden")
    assert browser.run(top) == bar
    assert len(browser.texts("#accuracy canvas")) == 1


def test_the_heads_of_the_list_stand_above_their_columns(browser: Browser, page: Path) -> None:
    browser.open(page)
    left = "return [...document.querySelectorAll(arguments[0])].map((e) => Math.round(e.getBoundingClientRect().left))"
    columns = browser.run(left, "#rows .row:first-child > span")
    assert len(columns) == 5
    assert browser.run(left, ".row.head > span") == columns


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        ("reading", "failure", 2),
        ("status", "crash", 1),
        ("blame", "candidate", 3),
        ("operator", "Slice", 4),
        ("version", "13", 4),
        ("dtype", "uint8", 1),  # the first of uint8-int8-uint8
        ("dtype", "uint8-int8-uint8", 1),
        ("binding", "initializer", 1),
        ("blame", "nobody", 4),
    ],
)
def test_a_filter_is_in_the_address_and_back(browser: Browser, page: Path, name: str, value: str, left: int) -> None:
    result = f"{left} of 7 cases"
    browser.open(page)
    browser.select(name, value)
    browser.wait_for_result(result)
    assert browser.driver.current_url.endswith(f"#{name}={value}")
    assert browser.texts(".chip") == [f"{name}: {value} ✕"]
    assert len(browser.texts("#rows .row")) == left
    browser.open(page, f"#{name}={value}")
    assert browser.text("#result") == result
    browser.click(".chip")
    browser.wait_for_result("7 cases")


def test_of_several_targets_one_can_be_chosen(browser: Browser, tmp_path: Path) -> None:
    other = changed(WRONG, candidate=dataclasses.replace(WRONG.candidate, target="webgpu"))
    browser.open(write_html(stored(tmp_path / "run", [WRONG, other], a_run(2, candidates=("dml", "webgpu")))))
    assert browser.texts("#matrix h3") == ["Targets side by side", "dml", "webgpu"]
    browser.go("#target=webgpu")
    browser.wait_for_result("1 of 2 cases")
    browser.click("#rows a")
    browser.wait("return document.getElementById('case').textContent.includes('on webgpu')")


def test_a_finding_filters_the_list(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.click(".finding li a")
    browser.wait_for_result("1 of 7 cases")
    assert browser.texts(".chip")[0] == "one group of findings ✕"


def test_a_cause_opens_its_smallest_case_and_filters_the_list(browser: Browser, page: Path) -> None:
    browser.open(page)
    causes = browser.texts("#findings .finding .why")
    assert causes == [
        "the process ends (exit code 5)",
        "wrong values: … of … elements differ",
        "per-channel weights: known",
    ]
    assert browser.texts("#findings .finding .what") == [
        "TopK DML_TOP_K1_OPERATOR_DESC", "Slice DML_SLICE1_OPERATOR_DESC",
        "QLinearConv DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC",
    ]  # fmt: skip
    browser.click(".finding.expected > p:last-child a")
    browser.wait_for_result("1 of 7 cases")
    assert browser.texts(".chip") == ["cause: per-channel weights: known ✕"]
    browser.click("#rows a")
    browser.wait("return !document.getElementById('case').hidden")
    assert browser.texts(".expects a") == ["All cases of this cause"]
    browser.open(page)
    browser.click(".finding.failure p a")
    browser.wait("return document.querySelector('#case h1')?.textContent === " + repr(CRASHED.case_id))


def test_a_cause_shows_what_fails_beside_what_passes(browser: Browser, tmp_path: Path) -> None:
    values = (Value("data", "float16", (2,), "input", "1, 2"), Value("output", "float16", (1,), "output", "2"))
    passes = a_slice("float16", "one_element", values=values)
    repro = 'epcheck show "Slice" --target "python:mine:run"'
    browser.open(write_html(stored(tmp_path / "run", [changed(WRONG, repro=repro), passes])))
    browser.click("details.cause > summary")
    browser.wait("return document.querySelectorAll('.side table').length === 2")
    assert browser.texts(".side > p > a") == [WRONG.case_id, passes.case_id]
    assert browser.texts(".side > p.bad") == [
        "output[0, 0, 0, 0]: expected 3, got 1, 1024 ULP; 6 of 8 elements are wrong"
    ]
    assert browser.texts(".side > p.good") == ["passes"]
    assert browser.texts(".side.passes tr.differs th") == ["data", "output"]
    assert browser.texts(".side.passes tr.differs code") == ["float16[2] 1, 2", "float16[1] 2"]
    assert browser.texts(".repro") == [repro]
    assert browser.run("const [a, b] = document.querySelectorAll('.side'); return a.offsetTop === b.offsetTop")
    assert browser.violations() == []


def test_the_reason_of_an_expectation_is_searched(browser: Browser, page: Path) -> None:
    browser.open(page, "#q=weights%20known")
    assert browser.texts("#rows code") == [REFUSED.case_id]


def test_what_directml_says_is_a_filter(browser: Browser, tmp_path: Path) -> None:
    asked = changed(WRONG, direct=Direct("lowering", an_opinion("directml")))
    browser.open(write_html(stored(tmp_path / "run", [asked, CRASHED])))
    assert browser.texts("#findings .marks .badge:nth-child(3)") == ["asked directly: lowering"]
    browser.select("below", "lowering")
    browser.wait_for_result("1 of 2 cases")


def test_flaky_cases_and_cases_that_never_ran_are_apart(browser: Browser, tmp_path: Path) -> None:
    flaky = changed(WRONG, status="flaky", reading="flaky")
    idle = a_slice("int8", status="unplaced", claimed=False)
    browser.open(write_html(stored(tmp_path / "run", [flaky, idle, *PASSING])))
    assert browser.text(".kicker").lower() == "flaky cases only"
    assert browser.texts(".tally a") == ["≠1 flaky", "✓3 ok", "–1 not run"]
    browser.click(".tally a.not-run")
    browser.wait_for_result("1 of 5 cases")
    assert browser.texts("#rows .row > span:first-child") == ["–not run"]


def test_the_columns_of_the_list_sort_it(browser: Browser, page: Path) -> None:
    browser.open(page)
    for column, order in enumerate(("id", "status", "ulp", "ms"), 2):
        browser.click(f"#table .head > :nth-child({column}) button")
        browser.wait(f"return location.hash === '#sort={order}'")
        assert (
            browser.run("return document.querySelector('#table .head [aria-sort]').textContent")
            == (browser.texts("#table .head > span")[column - 1])
        )
    browser.open(page, "#sort=status")
    assert browser.texts("#rows .row > :nth-child(3)")[:3] == ["crash · candidate", "mismatch · candidate", "pass"]


def test_search_narrows_the_list_and_is_in_the_address(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.type("q", "TOPK crash")
    browser.wait_for_result("1 of 7 cases")
    assert browser.driver.current_url.endswith("#q=TOPK%20crash")
    browser.open(page, "#q=per_channel&reading=expected")
    assert browser.texts("#rows code") == [REFUSED.case_id]


def test_the_order_is_in_the_address(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.select("sort", "ulp")
    browser.wait("return location.hash === '#sort=ulp'")
    assert browser.texts("#rows code")[:2] == [WRONG.case_id, GELU.case_id]
    assert browser.texts("#rows .number")[0::2][:2] == ["2050 ULP", "3.5 ULP"]
    browser.open(page, "#sort=id")
    assert browser.texts("#rows code")[:2] == [GELU.case_id, REFUSED.case_id]
    browser.open(page, "#sort=ms")
    assert browser.texts("#rows .number")[1] == "7.08 ms"


def test_the_matrix_can_be_filtered_and_its_filter_is_in_the_address(browser: Browser, page: Path) -> None:
    operators = "#matrix tr[data-operator]:not([hidden]) th"
    browser.open(page)
    browser.type("find", "conv")
    assert browser.texts(operators) == ["QLinearConv"]
    assert browser.driver.current_url.endswith("#section=matrix&find=conv")
    browser.open(page, "#section=matrix&worst=failure")
    assert browser.texts(operators) == ["Slice", "TopK"]


def test_a_deep_link_opens_a_failing_case_with_all_there_is_to_know(browser: Browser, page: Path) -> None:
    browser.open(page, link(WRONG))
    article = browser.text("#case")
    assert not browser.shown("#overview")
    for text in (
        WRONG.case_id,
        "output: 6 of 8 elements differ from the truth; the baseline and two oracles agree with it",
        "output equals the truth bit for bit",
        "epcheck repro 'Slice-13/float16/negative_step_past_both_ends[runtime]' --target dml",
        "[0, 0, 0, 1] 1 3 1536",
        "DML_SLICE1_OPERATOR_DESC",
        "InputWindowStrides [1, 1, 1, -2]",
        "Slice → DmlExecutionProvider",
        "onnx.reference oracle agrees",
    ):
        assert text in article, text
    assert len(browser.texts(".heat rect.wrong")) == 6
    assert browser.texts(".graph .name") == ["data", "starts", "ends", "axes", "steps", "output"]
    assert "float16[1,1,4,4]" in " ".join(browser.texts(".graph .type"))


def test_a_case_lists_its_variants(browser: Browser, tmp_path: Path) -> None:
    worse = replace(WRONG.candidate, target="dml level=all")
    found = (VariantResult("level=basic", "same"), VariantResult("level=all", "differs", "is wrong: y", worse))
    record = changed(a_slice("float32"), variants=found)
    browser.open(write_html(stored(tmp_path / "run", [record])), link(record))
    browser.wait("return document.querySelector('section[aria-label=Variants]')")
    cells = browser.texts("section[aria-label=Variants] table.opinions tbody td")
    assert cells[:7] == ["level=basic", "same", "–", "–", "level=all", "differs", "is wrong: y"]
    assert "dml level=all" in browser.text("section[aria-label=Variants] .difference h3")


def test_a_case_shows_the_errors_of_all_its_elements(browser: Browser, page: Path) -> None:
    browser.open(page, link(GELU))
    browser.wait("return document.querySelector('#case canvas')")
    assert browser.texts("#case .chart .plain tbody th") == ["≤ 0.5", "≤ 1", "≤ 2", "≤ 4"]
    assert browser.texts("#case .chart .plain tbody td") == ["6", "12", "4", "–", "1", "–", "1", "–"]
    assert "dml (candidate): at most 3.5 ULP, 0.75 on average over 12 elements" in browser.text("#case")


def test_what_reproduces_a_case_can_be_downloaded(browser: Browser, page: Path, tmp_path: Path) -> None:
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.driver.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    browser.open(page, link(WRONG))
    browser.wait("return document.getElementById('download')")
    browser.press("d")
    saved = tmp_path / "Slice-13_float16_negative_step_past_both_ends_runtime.zip"
    until = time.monotonic() + 30
    while not saved.exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    assert saved.read_bytes() == ZIP
    browser.open(page, link(CRASHED))
    browser.wait("return document.getElementById('case').innerText.includes('does not embed the model and data')")


def test_a_crash_shows_its_log_and_what_the_description_violates(browser: Browser, page: Path) -> None:
    browser.open(page, link(CRASHED))
    article = browser.text("#case")
    assert "at run: the worker died with exit code 5" in article
    assert "0024:err:vkd3d-proton: device lost" in article
    assert "Violates: InputTensor.DataType INT64 is not supported" in article
    assert "sorted = 0" in " ".join(browser.texts(".graph .attribute"))


def test_an_expectation_shows_reason_and_link_and_initializers_are_told_apart(browser: Browser, page: Path) -> None:
    browser.open(page, link(REFUSED))
    words = "Expected: per-channel weights: known QLinearConv-10/*/per_channel* (refused, where vendor is 0x10de)"
    assert words in browser.text("#case")
    outside = "const a = document.querySelector('#case .note a'); return [a.href, a.rel]"
    assert browser.run(outside) == ["https://example.test/issues/7", "noopener noreferrer nofollow"]
    assert len(browser.texts(".graph .initializer")) == 7
    assert len(browser.texts(".graph .input")) == 1


def test_the_record_as_json_is_the_record(browser: Browser, page: Path) -> None:
    browser.open(page, link(WRONG))
    raw = "return JSON.parse([...document.querySelectorAll('#case .log')].at(-1).textContent)"
    record = browser.run(raw)
    assert record["case_id"] == WRONG.case_id
    assert record["repro"] == WRONG.case.repro
    assert record["values"][0]["preview"] == "0, 1, 2, 3, 4, 5, 6, 7, …"


def test_keys_walk_through_the_filtered_cases(browser: Browser, page: Path) -> None:
    browser.open(page, link(WRONG, "operator=Slice&"))
    browser.press("j")
    browser.wait("return document.title.startsWith('Slice-13/float16/inner_backward_by_2')")
    browser.press("k")
    browser.wait("return document.title.startsWith('Slice-13/float16/negative_step')")
    browser.press(ESCAPE)
    browser.wait_for_result("4 of 7 cases")
    assert browser.texts("#rows [aria-current] code") == [WRONG.case_id]
    browser.press("j" + ENTER)
    browser.wait("return document.title.startsWith('Slice-13/float16/inner_backward_by_2')")


def test_a_link_to_what_is_not_there_says_so(browser: Browser, page: Path) -> None:
    browser.open(page, "#case=nothing%3Cb%3E")
    assert "This run has no record of nothing<b>." in browser.text("#case")
    browser.go("#operator=nothing%3Cb%3E")
    browser.wait("return document.getElementById('operator').innerText.includes('no record of nothing<b>')")


def test_the_copy_button_says_that_it_copied(browser: Browser, page: Path) -> None:
    browser.open(page, link(WRONG))
    browser.press("y")
    browser.wait("return document.querySelector('.command button').textContent === 'Copied'")


def hostile(run: Run) -> tuple[Run, Record]:
    """A run and a failing record in which every text is an attack."""
    record = changed(
        a_wrong_slice(case_id=SCRIPT, operator=SCRIPT, domain=SCRIPT, dtype=SCRIPT, sample=SCRIPT, binding=SCRIPT),
        types={SCRIPT: SCRIPT},
        attributes={SCRIPT: SCRIPT, "starts": [-(2**63)]},
        values=(Value(SCRIPT, SCRIPT, (1,), "input", SCRIPT), Value(SCRIPT, SCRIPT, (), "output", SCRIPT)),
        directml=DirectML(SCRIPT, {SCRIPT: {SCRIPT: SCRIPT}}, (SCRIPT,)),
        expects=SCRIPT,
        candidate=an_opinion(
            SCRIPT,
            status="mismatch",
            message=SCRIPT,
            log_tail=SCRIPT,
            assignment=((SCRIPT, SCRIPT),),
            accuracy=Accuracy(2, 3.0, 3.0, (1, 0, 1)),
        ),
        oracles={SCRIPT: SCRIPT},
        reason=SCRIPT,
        repro=SCRIPT,
        expectation=Expected(SCRIPT, SCRIPT, SCRIPT, "javascript:window.owned=1", SCRIPT),
    )
    facts = {SCRIPT: {SCRIPT: SCRIPT}}
    return dataclasses.replace(run, run_id=SCRIPT, command=(SCRIPT,), notes=(SCRIPT,), targets=facts), record


def test_hostile_names_are_shown_and_never_executed(browser: Browser, tmp_path: Path) -> None:
    run, record = hostile(a_run(1))
    page = write_html(stored(tmp_path / "run", [record], run), archive=lambda _: SCRIPT.encode())
    browser.open(page)
    browser.wait("return document.querySelector('#accuracy canvas')")
    assert browser.texts("#rows code") == [SHOWN]
    for name in ("operator", "dtype", "binding"):
        assert SHOWN in browser.text(f"select[name={name}]")
    browser.click(".matrix a.cell")
    browser.wait("return document.querySelector('#operator canvas')")
    assert SHOWN in browser.text("#operator h1")
    browser.click("#rows a")
    browser.wait("return !document.getElementById('case').hidden")
    assert browser.text("#case h1") == SHOWN
    assert "-9223372036854775808" in browser.text("#case")
    assert browser.texts("#case .note a") == []  # javascript: is text, not a link
    assert browser.run("return window.owned") is None
    assert browser.run("return document.images.length") == 0


def test_a_page_without_decompression_keeps_what_needs_no_script(browser: Browser, page: Path) -> None:
    added = browser.driver.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.DecompressionStream"}
    )
    try:
        browser.open(page)
        assert "This browser cannot unpack the cases" in browser.text("#list-problem")
        assert "2 failures" in browser.text(".figures")
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


@pytest.mark.skipif("EPCHECK_SCREENSHOT_RUN" not in os.environ, reason="EPCHECK_SCREENSHOT_RUN names no run's folder")
def test_the_screenshot_of_the_readme_is_of_a_run(browser: Browser, tmp_path: Path) -> None:
    folder = Path(os.environ["EPCHECK_SCREENSHOT_RUN"])
    browser.scheme("light")
    browser.open(write_html(folder, tmp_path / "report.html"), "#")
    assert read_run(folder).run_id in browser.text(".subject")
    size = {"width": 1280, "height": 1240, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    shot = base64.b64decode(browser.driver.get_screenshot_as_base64())
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert 50_000 < len(shot) < 300_000
    (Path(__file__).parents[3] / "docs" / "images" / "report.png").write_bytes(shot)
