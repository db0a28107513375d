"""What is said of a comparison, and the Markdown, JUnit XML, JSON and page that say it."""

from __future__ import annotations

from io import BytesIO
from xml.etree import ElementTree

import pytest
from compared_rows import a_row, a_side

from epcheck.conformance.records import strict_json
from epcheck.reports.diff import difference, verdict
from epcheck.reports.diff.difference import compare
from epcheck.reports.diff.document import DIFFERENCE_SCHEMA, document
from epcheck.reports.diff.junit import junit
from epcheck.reports.diff.markdown import SHOWN, markdown
from epcheck.reports.diff.page import by_operator, write_page
from epcheck.reports.diff.verdict import Verdict

HOSTILE = "<img src=x onerror=alert(1)></script>|`@everyone`[x](javascript:1)\u202e\x00"


def worse() -> Verdict:
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
    return verdict.of(compare(a_side(*older), a_side(*newer)))


def test_a_night_with_new_failures_is_worse_and_says_how() -> None:
    found = worse()
    assert (found.target, found.word) == ("dml", verdict.WORSE)
    assert found.said == (
        "Worse: 3 new failures in 2 groups (blame: candidate 2, both 1). "
        "Besides: 1 flaky, 1 fixed, 1 appeared (1 of them fail), 1 less accurate. "
        "Driver, runtime and system are the same."
    )


def test_a_night_without_new_failures_is_as_good_as_before_though_much_still_fails() -> None:
    rows = [a_row("rank_1"), a_row("rank_2", "mismatch")]
    older, newer = ({"dml": {"adapter": "H200", "onnxruntime": release}} for release in ("1.24.4", "1.30.0"))
    found = verdict.of(compare(a_side(*rows, targets=older), a_side(*rows, targets=newer)))
    assert found.word == verdict.GOOD
    assert found.said == (
        "As good as before: no new failure in 2 cases. Besides: 1 still failing. Changed: onnxruntime: 1.24.4 → 1.30.0."
    )


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("failed: target 'dml': device lost", "it failed: target 'dml': device lost"),
        ("interrupted", "it was interrupted"),
        ("running", "it is still running or was killed"),
        ("complete", "though it says that it is complete"),
    ],
)
def test_a_machine_that_failed_is_not_run_whatever_it_recorded(status: str, words: str) -> None:
    rows = [a_row("rank_1"), a_row("rank_2")]
    some = verdict.of(compare(a_side(*rows), a_side(rows[0], planned=2, status=status)))
    assert some.word == verdict.NOT_RUN
    assert some.said.startswith(f"Not run to its end: 1 of 2 planned cases are recorded; {words}.")
    none = verdict.of(compare(a_side(*rows), a_side(planned=2, status=status)))
    assert none.word == verdict.NOT_RUN
    assert none.said.startswith(f"Not run: none of 2 planned cases is recorded; {words}.")
    assert "0 %" not in none.said


def test_runs_without_a_common_case_are_not_compared() -> None:
    assert verdict.of(compare(a_side(a_row("a")), a_side(a_row("b")))).word == verdict.NOT_RUN


def test_the_first_night_says_that_there_is_nothing_to_compare_with() -> None:
    found = verdict.first(difference.half(a_side(a_row("rank_1"), a_row("rank_2", "mismatch"))))
    assert found.word == verdict.FIRST
    assert found.said.endswith("there is nothing to compare with. 1 of 2 cases pass, 1 conformance failure.")
    failed = verdict.first(difference.half(a_side(planned=5, status="failed: no adapter")))
    assert (failed.word, failed.said) == (
        verdict.NOT_RUN,
        "Not run: none of 5 planned cases is recorded; it failed: no adapter.",
    )


def test_sides_of_two_classes_are_told() -> None:
    found = verdict.of(compare(a_side(a_row()), a_side(a_row(), target="cpu", targets={})))
    assert (
        "They are not alike: DmlExecutionProvider on llvmpipe, the whole suite; CPUExecutionProvider on" in found.said
    )


def test_markdown_has_the_groups_by_kind() -> None:
    lines = markdown("a night", [worse()]).splitlines()
    assert lines[:3] == ["# a night", "", "## ❌ dml: worse"]
    assert "| new failure | 3 | 2 |" in lines
    assert "### new failure: 3 cases, as good before, worse now" in lines
    row = (
        r"| Slice | rank\_\* | 2 | pass → mismatch | candidate | dml: mismatch | Slice-13/float32/rank\_1\[runtime\] |"
    )
    assert row in lines
    assert "| Slice | float32 | far | 1 → 9 ULP, 9 times | 1 |" in lines


def test_markdown_writes_a_few_groups_out_and_counts_the_others() -> None:
    names = [f"sample{chr(ord('a') + n)}" for n in range(SHOWN + 3)]
    found = verdict.of(compare(a_side(*map(a_row, names)), a_side(*(a_row(name, "mismatch") for name in names))))
    text = markdown("a night", [found])
    assert text.count("| Slice | sample") == SHOWN
    assert "… and 3 more" in text


def test_markdown_takes_text_from_strangers_as_text() -> None:
    rows = [a_row(HOSTILE, operator=HOSTILE)], [a_row(HOSTILE, "mismatch", operator=HOSTILE, reason=HOSTILE)]
    text = markdown(HOSTILE, [verdict.of(compare(*(a_side(*each) for each in rows)))])
    assert "<img" not in text
    assert "@everyone" not in text
    assert "\u202e" not in text


def test_junit_has_a_test_for_each_group() -> None:
    root = ElementTree.fromstring(junit([worse()]))
    counts = {"tests": "6", "failures": "1", "errors": "1", "skipped": "1"}
    assert {name: root.get(name) for name in counts} == counts
    cases = {case.get("name", "").partition(" (")[0]: [child.tag for child in case] for case in root.iter("testcase")}
    assert cases == {
        "the target ran to its end": [],
        "rank_*": ["failure"],
        "nan": ["error"],
        "wide": ["skipped"],
        "zero": [],
        "fresh": [],
    }
    (failure,) = root.iter("failure")
    assert "Slice-13/float32/rank_2[runtime]" in (failure.text or "")


def test_junit_has_an_error_for_a_target_that_did_not_run() -> None:
    failed = verdict.first(difference.half(a_side(planned=5, status="failed: no adapter")))
    root = ElementTree.fromstring(junit([failed]))
    assert (root.get("tests"), root.get("errors"), root.get("failures")) == ("1", "1", "0")


def test_junit_is_xml_whatever_the_names_are() -> None:
    rows = [a_row(HOSTILE)], [a_row(HOSTILE, "mismatch", reason=HOSTILE)]
    root = ElementTree.fromstring(junit([verdict.of(compare(*(a_side(*each) for each in rows)))]))
    (failure,) = root.iter("failure")
    assert failure.get("message", "").startswith("<img src=x onerror")


def test_the_document_has_all_of_it() -> None:
    told = strict_json.loads(document([worse()]))
    assert told["schema"] == DIFFERENCE_SCHEMA
    (one,) = told["verdicts"]
    assert (one["target"], one["word"]) == ("dml", "worse")
    assert [len(group["case_ids"]) for group in one["difference"]["groups"] if group["kind"] == "new failure"] == [2, 1]


def page(*verdicts: Verdict, title: str = "a night") -> str:
    file = BytesIO()
    write_page(file, title, verdicts)
    return file.getvalue().decode("utf-8")


def test_the_page_has_every_target_and_its_groups() -> None:
    first = verdict.first(difference.half(a_side(a_row(), target="cpu")))
    html = page(worse(), first)
    assert "rank_*" in html
    assert "3 cases</h2>" in html
    assert html.count('<section class="hero') == 2
    assert 'class="hero failure" id="target-1"' in html
    assert 'class="hero ok" id="target-2"' in html


def test_the_page_takes_text_from_strangers_as_text() -> None:
    rows = [a_row(HOSTILE, operator=HOSTILE)], [a_row(HOSTILE, "mismatch", operator=HOSTILE, reason=HOSTILE)]
    html = page(verdict.of(compare(*(a_side(*each) for each in rows))), title=HOSTILE)
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
        "still failing": (0.0,),
        "fixed": (1.0,),
    }
