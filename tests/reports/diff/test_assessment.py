"""What is said of a comparison, and the Markdown, JUnit XML, JSON and page that say it."""

from __future__ import annotations

from html import unescape
from io import BytesIO
from xml.etree import ElementTree

import pytest

from epcheck.conformance.records import strict_json
from epcheck.reports.diff import assessment, difference
from epcheck.reports.diff.assessment import Assessment
from epcheck.reports.diff.difference import compare, compare_nights
from epcheck.reports.diff.json_document import DIFFERENCE_SCHEMA, document
from epcheck.reports.diff.junit import junit
from epcheck.reports.diff.markdown import SHOWN, markdown
from epcheck.reports.diff.page import by_operator, write_page
from tests.reports.compared_rows import a_compared_run, a_row

HOSTILE = "<img src=x onerror=alert(1)></script>|`@everyone`[x](javascript:1)\u202e\x00"


def worse() -> Assessment:
    """Two cases broke, one of them crashes; one is fixed, one flaky, one new and failing, one less accurate."""
    older = [*map(a_row, ("rank_1", "rank_2", "nan", "wide")), a_row("zero", "mismatch"), a_row("far", ulp_max=1.0)]
    newer = [
        a_row("rank_1", "mismatch"),
        a_row("rank_2", "mismatch"),
        a_row("nan", "crash", blame="both"),
        a_row("zero"),
        a_row("wide", "flaky"),
        a_row("far", ulp_max=9.0),
        a_row("fresh", "mismatch"),
    ]
    return assessment.assess(compare(a_compared_run(*older), a_compared_run(*newer)))


def test_a_night_with_new_failures_is_worse_and_says_how() -> None:
    found = worse()
    assert (found.target, found.result) == ("dml", assessment.WORSE)
    assert found.sentences == (
        "Worse: 3 new failures of 2 new causes (blame: candidate 2, both 1); the largest: Slice, dml: mismatch. "
        "Also: 1 flaky, 1 fixed, 1 appeared (1 of them fail), 1 less accurate. "
        "Same driver, runtime and OS."
    )


def test_a_night_without_new_failures_is_as_good_as_before_though_much_still_fails() -> None:
    rows = [a_row("rank_1"), a_row("rank_2", "mismatch")]
    older, newer = ({"dml": {"adapter": "H200", "onnxruntime": release}} for release in ("1.24.4", "1.30.0"))
    found = assessment.assess(
        compare_nights(a_compared_run(*rows, targets=older), a_compared_run(*rows, targets=newer))
    )
    assert found.result == assessment.GOOD
    assert found.sentences == (
        "No new failure in 2 cases. Also: 1 still failing. Changed: onnxruntime: 1.24.4 → 1.30.0; "
        "driver and OS unknown."
    )


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("failed: target 'dml': device lost", "the run failed: target 'dml': device lost"),
        ("interrupted", "the run was interrupted"),
        ("running", "the run is still going or was killed"),
        ("complete", "the run says that it is complete"),
    ],
)
def test_a_machine_that_failed_is_not_run_whatever_it_recorded(status: str, words: str) -> None:
    rows = [a_row("rank_1"), a_row("rank_2")]
    some = assessment.assess(compare(a_compared_run(*rows), a_compared_run(rows[0], planned=2, status=status)))
    assert some.result == assessment.NOT_RUN
    assert some.sentences.startswith(f"Incomplete (1 of 2 cases): {words}.")
    none = assessment.assess(compare(a_compared_run(*rows), a_compared_run(planned=2, status=status)))
    assert none.result == assessment.NOT_RUN
    assert none.sentences.startswith(f"Nothing ran (0 of 2 cases): {words}.")
    assert "0 %" not in none.sentences


def test_runs_without_a_common_case_are_not_compared() -> None:
    assert (
        assessment.assess(compare(a_compared_run(a_row("a")), a_compared_run(a_row("b")))).result == assessment.NOT_RUN
    )


def test_the_first_night_says_that_there_is_nothing_to_compare_with() -> None:
    found = assessment.assess_first(
        difference.summarize_compared(a_compared_run(a_row("rank_1"), a_row("rank_2", "mismatch")))
    )
    assert found.result == assessment.FIRST
    assert found.sentences.endswith("no earlier run to compare with. 1 of 2 cases pass, 1 conformance failure.")
    failed = assessment.assess_first(
        difference.summarize_compared(a_compared_run(planned=5, status="failed: no adapter"))
    )
    assert (failed.result, failed.sentences) == (
        assessment.NOT_RUN,
        "Nothing ran (0 of 5 cases): the run failed: no adapter.",
    )


def test_sides_of_two_classes_are_told() -> None:
    found = assessment.assess(compare(a_compared_run(a_row()), a_compared_run(a_row(), target="cpu", targets={})))
    assert (
        "Different kinds of runs: DmlExecutionProvider on llvmpipe, the whole suite; CPUExecutionProvider on"
        in found.sentences
    )


def test_markdown_has_the_groups_by_kind() -> None:
    lines = markdown("a night", [worse()]).splitlines()
    assert lines[:3] == ["# a night", "", "## ❌ dml: worse"]
    assert "| new failure | 3 | 2 |" in lines
    assert "### new failure: 3 cases, passed before, fails now" in lines
    row = (
        r"| Slice | rank\_\* | 2 | pass → mismatch | candidate | dml: mismatch | Slice-13/float32/rank\_1\[runtime\] |"
    )
    assert row in lines
    assert "| Slice | float32 | far | 1 → 9 ULP, 9 times | 1 |" in lines


def test_markdown_writes_a_few_groups_out_and_counts_the_others() -> None:
    names = [f"sample{chr(ord('a') + n)}" for n in range(SHOWN + 3)]
    found = assessment.assess(
        compare(a_compared_run(*map(a_row, names)), a_compared_run(*(a_row(name, "mismatch") for name in names)))
    )
    text = markdown("a night", [found])
    assert text.count("| Slice | sample") == SHOWN
    assert "… and 3 more" in text


def test_markdown_takes_text_from_strangers_as_text() -> None:
    rows = [a_row(HOSTILE, operator=HOSTILE)], [a_row(HOSTILE, "mismatch", operator=HOSTILE, reason=HOSTILE)]
    text = markdown(HOSTILE, [assessment.assess(compare(*(a_compared_run(*each) for each in rows)))])
    assert "<img" not in text
    assert "@everyone" not in text
    assert "\u202e" not in text


def test_junit_has_a_test_for_each_group() -> None:
    root = ElementTree.fromstring(junit([worse()]))
    assert root.attrib == {"name": "epcheck, compared", "tests": "6", "failures": "1", "errors": "1"}
    assert [suite.get("skipped") for suite in root] == ["1"]
    cases = {case.get("name", ""): [child.tag for child in case] for case in root.iter("testcase")}
    assert cases == {
        "the target ran to its end": [],
        "rank_*": ["failure"],
        "nan": ["error"],
        "wide": ["skipped"],
        "zero": [],
        "fresh": [],
    }
    (failure,) = root.iter("failure")
    assert failure.get("message", "").startswith("pass → mismatch, ")
    assert "Slice-13/float32/rank_2[runtime]" in (failure.text or "")


def test_junit_says_how_to_reproduce_a_failure_and_whether_its_cause_is_new() -> None:
    target, older = "python:mine:run", a_row("rank_1")
    newer = a_row("rank_1", "mismatch", cause="rank ≥ 1: wrong values")
    found = assessment.assess(compare(*(a_compared_run(row, target=target) for row in (older, newer))))
    (failure,) = ElementTree.fromstring(junit([found])).iter("failure")
    lines = (failure.text or "").splitlines()
    assert lines[2] == f'reproduce with: epcheck show "Slice-13/float32/rank_1[runtime]" --target "{target}"'
    assert lines[3:] == ["cause: new", older.case_id]


def test_junit_names_no_two_tests_alike() -> None:
    older = [a_row("rank_2"), a_row("rank_3")]
    newer = [
        a_row("rank_2", "mismatch", reason="wrong"),
        a_row("rank_3", "crash", reason="gone"),
    ]
    found = assessment.assess(compare(a_compared_run(*older), a_compared_run(*newer)))
    names = [case.get("name", "") for case in ElementTree.fromstring(junit([found])).iter("testcase")]
    assert len(names) == len(set(names)) == 3
    assert "rank_*" in names


def test_junit_has_an_error_for_a_target_that_did_not_run() -> None:
    failed = assessment.assess_first(
        difference.summarize_compared(a_compared_run(planned=5, status="failed: no adapter"))
    )
    root = ElementTree.fromstring(junit([failed]))
    assert (root.get("tests"), root.get("errors"), root.get("failures")) == ("1", "1", "0")


def test_junit_is_xml_whatever_the_names_are() -> None:
    rows = [a_row(HOSTILE)], [a_row(HOSTILE, "mismatch", reason=HOSTILE)]
    root = ElementTree.fromstring(junit([assessment.assess(compare(*(a_compared_run(*each) for each in rows)))]))
    (failure,) = root.iter("failure")
    assert failure.get("message", "").startswith("pass → mismatch, 1 case: <img src=x onerror")


def test_the_document_has_all_of_it() -> None:
    decoded = strict_json.loads(document([worse()]))
    assert decoded["schema"] == DIFFERENCE_SCHEMA
    (written,) = decoded["assessments"]
    assert (written["target"], written["result"]) == ("dml", "worse")
    assert written["summary"].startswith("Worse: 3 new failures")
    groups = [group for group in written["difference"]["groups"] if group["kind"] == "new failure"]
    assert [len(group["case_ids"]) for group in groups] == [2, 1]


def page(*verdicts: Assessment, title: str = "a night") -> str:
    file = BytesIO()
    write_page(file, title, verdicts)
    return file.getvalue().decode("utf-8")


def test_the_page_has_every_target_and_its_groups() -> None:
    first = assessment.assess_first(difference.summarize_compared(a_compared_run(a_row(), target="cpu")))
    html = page(worse(), first)
    assert "rank_*" in html
    assert "3 cases</h2>" in html
    assert html.count('<section class="hero') == 2
    assert 'class="hero failure" id="target-1"' in html
    assert 'class="hero ok" id="target-2"' in html


def test_the_page_takes_text_from_strangers_as_text() -> None:
    rows = [a_row(HOSTILE, operator=HOSTILE)], [a_row(HOSTILE, "mismatch", operator=HOSTILE, reason=HOSTILE)]
    html = page(assessment.assess(compare(*(a_compared_run(*each) for each in rows))), title=HOSTILE)
    assert "<img src=x" not in html
    assert "\u202e" not in html


def test_the_chart_has_what_changed_by_operator() -> None:
    found = worse().difference
    assert found is not None
    chart = by_operator(found)
    assert chart is not None
    assert chart.labels == ("Slice",)
    assert {series.name: series.values for series in chart.series} == {
        "new failure": (3.0,),
        "fixed": (1.0,),
    }  # and no series for what did not happen
    assert [series.reading for series in chart.series] == ["failure", "ok"]


RELEASE_ENDS = [
    ("dml", "dml", "1.20.1", "1.24.4", " --target dml --releases 1.20.1..1.24.4"),
    ("dml", "dml", "1.24.4", "1.9.2", " --target dml --releases 1.9.2..1.24.4"),  # a step back
    ("cpu", "cpu", "1.24.4", "1.24.4", " --target cpu"),  # the driver changed, or the machine
    ("dml", "dml", "", "1.24.4", " --target dml"),
    ("dml@1.20.1", "dml@windowsml-1.30.0", "1.20.1", "1.30.0", " --target dml --releases 1.20.1..windowsml-1.30.0"),
    ("openvino", "openvino", "1.23.0", "1.24.1", " --target openvino --releases 1.23.0..1.24.1"),
    ("webgpu@0.3.0", "webgpu@0.4.0", "1.31.1", "1.31.1", " --target webgpu --releases 0.3.0..0.4.0"),
    ("dml", "cpu", "1.20.1", "1.24.4", None),
    ("python:a:b", "python:a:b", "1.20.1", "1.24.4", None),
]


@pytest.mark.parametrize(("before", "now", "older", "newer", "offered"), RELEASE_ENDS)
def test_a_regression_comes_with_the_command_that_finds_its_release(
    before: str, now: str, older: str, newer: str, offered: str | None
) -> None:
    rows = [a_row("rank_1"), a_row("zero", "mismatch")], [a_row("rank_1", "mismatch"), a_row("zero")]
    runs = (
        a_compared_run(*of_run, target=target, targets={target: {"onnxruntime": release}})
        for of_run, target, release in zip(rows, (before, now), (older, newer), strict=True)
    )
    found = assessment.assess(compare(*runs))
    command = f'epcheck bisect "Slice-13/float32/rank_1[runtime]"{offered}'
    file = BytesIO()
    write_page(file, "a night", [found])
    page, text = unescape(file.getvalue().decode()), markdown("a night", [found]).replace("\\", "")
    assert page.count("epcheck bisect") == text.count("epcheck bisect") == (offered is not None)
    if offered:
        assert f"<code>{command}</code>" in page
        assert f"- {command}" in text.splitlines()


def test_a_plugin_s_own_releases_are_the_ends() -> None:
    plugins = ("onnxruntime-ep-webgpu 0.3.0", "onnxruntime-ep-webgpu 0.4.0")
    rows = [a_row("rank_1")], [a_row("rank_1", "mismatch")]
    runs = (
        a_compared_run(*of_run, target="webgpu", targets={"webgpu": {"plugin": plugin, "onnxruntime": "1.31.1"}})
        for of_run, plugin in zip(rows, plugins, strict=True)
    )
    text = markdown("a night", [assessment.assess(compare(*runs))]).replace("\\", "")
    assert "--target webgpu --releases 0.3.0..0.4.0" in text


def test_two_nights_of_which_one_states_no_driver_are_not_said_to_have_the_same() -> None:
    stated = {"adapter": "Arc A770", "onnxruntime": "1.24.4", "os": "Windows-11", "driver_version": "31.0.101.4502"}
    unstated = {name: value for name, value in stated.items() if name != "driver_version"}
    runs = [a_compared_run(a_row(), targets={"dml": facts}) for facts in (unstated, unstated)]
    found = assessment.assess(compare_nights(*runs))
    assert found.sentences == "No new failure in 1 cases. Same runtime and OS; driver unknown."
    assert strict_json.loads(document([found]))["assessments"][0]["difference"]["unknown"] == ["driver"]
    file = BytesIO()
    write_page(file, "a night", [found])
    assert '<p class="quiet">Same runtime and OS; driver unknown.</p>' in file.getvalue().decode()
    runs = [a_compared_run(a_row(), targets={"dml": facts}) for facts in (stated, stated)]
    assert assessment.assess(compare_nights(*runs)).sentences.endswith("Same driver, runtime and OS.")
