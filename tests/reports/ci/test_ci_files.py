"""What a CI step shows of a run: annotations, grouped and few; the summary; the badge."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from epcheck import api, reports
from epcheck.conformance.records.record import Record
from epcheck.reports.ci.annotation import ERROR, MOST, WARNING, Annotation, at_most
from epcheck.reports.ci.badge import GREEN, GREY, RED, YELLOW, badge
from epcheck.reports.ci.from_run import annotate
from epcheck.reports.ci.step_summary import step_summary
from epcheck.reports.runs.summary import Summary, summarize
from tests.command_line import call
from tests.reports.stored_records import a_run, a_slice, a_wrong_slice, changed, stored


def summary(*records: Record, planned: int | None = None) -> Summary:
    return summarize(a_run(len(records) if planned is None else planned), records)


def failing(reason: str, count: int = 1) -> list[Record]:
    """Refused cases of a cause of their own."""
    refused = replace(a_slice().candidate, status="refused", message=reason)
    right = a_wrong_slice(candidate=refused, status="refused")
    names = [f"{reason.replace(' ', '_')}_{at}" for at in range(count)]
    return [changed(right, case_id=f"Slice-13/float16/{name}[runtime]", sample=name) for name in names]


def test_a_command_is_one_line_whatever_the_text_is() -> None:
    made = Annotation(ERROR, "a: b, c", "100 % wrong\nx::y\x1b[0m", "models/a,b.onnx").command
    assert made == "::error file=models/a%2Cb.onnx,title=a%3A b%2C c::100 %25 wrong%0Ax::y\\x1b[0m"


def test_sarif_has_a_result_for_each_cause_with_its_key_condition_and_command(tmp_path: Path) -> None:
    right = [a_slice("float32", f"right_{at}") for at in range(8)]
    records = [*failing("no kernel", 6), a_slice("float16", "expected", reading="noted"), *right]
    folder = stored(tmp_path / "run", records)
    call("report", str(folder), "--sarif", str(tmp_path / "run.sarif"))
    (run,) = json.loads((tmp_path / "run.sarif").read_text("utf-8"))["runs"]
    (result,) = run["results"]
    (cause,) = summarize(a_run(len(records)), records).targets[0].causes_of("failure")
    assert (result["ruleId"], result["level"]) == ("failure", "error")
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "failure"
    assert result["properties"] == {
        "cause": cause.key, "condition": cause.condition, "evidence": cause.evidence, "symptom": cause.text,
        "reproduce": cause.repro,
    }  # fmt: skip
    assert cause.condition == "dtype = float16"
    assert result["partialFingerprints"] == {"epcheck/v1": f"dml/{cause.key}"}
    assert result["message"]["text"].endswith("(6 cases of Slice)")
    assert not (folder / "report.html").exists()


def test_of_many_the_last_that_is_kept_counts_the_others() -> None:
    many = [Annotation(WARNING, str(number), f"text {number}") for number in range(MOST + 3)]
    kept = at_most(many)
    assert len(kept) == MOST
    assert kept[:-1] == tuple(many[: MOST - 1])
    assert kept[-1].text == "text 9\n… and 3 more like these: see the report."
    assert at_most(many[:MOST]) == tuple(many[:MOST])


def test_a_cause_is_one_annotation_and_the_largest_comes_first() -> None:
    found = annotate(a_run(3), summary(*failing("few"), *failing("many of them", 2)))
    assert [(each.level, each.title) for each in found] == [
        (ERROR, "dml: failure, 2 cases of Slice"),
        (ERROR, "dml: failure, 1 case of Slice"),
    ]
    assert found[0].text.splitlines() == [
        "is refused: many of them",
        "at DML_SLICE1_OPERATOR_DESC",
        "smallest: epcheck repro 'Slice-13/float16/negative_step_past_both_ends[runtime]' --target dml",
    ]


def test_what_is_right_or_expected_has_none_and_a_run_that_did_not_end_has() -> None:
    assert annotate(a_run(1), summary(a_slice())) == ()
    (found,) = annotate(a_run(5, status="interrupted"), summary(a_slice(), planned=5))
    assert (found.level, found.title) == (ERROR, "epcheck: the run is interrupted")
    assert "Incomplete (1 of 5 cases)" in found.text


def test_the_summary_has_the_verdict_and_each_cause_with_its_command() -> None:
    text = step_summary(a_run(3), summary(a_slice(), *failing("a <b> | c", 2)))
    lines = text.splitlines()
    assert lines[0] == "## ❌ epcheck: dml"
    assert lines[2] == "dml: 2 conformance failures (1 cause), 1 of 3 cases pass."
    assert "| dml | 1.24.4 | llvmpipe (LLVM 19.1.7, 256 bits), 25.0.7 | 3 | 1 | 2 |" in lines
    why = "is refused: a &lt;b&gt; \\| c (DML\\_SLICE1\\_OPERATOR\\_DESC)"
    command = "`epcheck repro 'Slice-13/float16/negative_step_past_both_ends[runtime]' --target dml`"
    assert f"| failure | 2 | Slice | candidate | {why} | {command} |" in lines


def test_a_summary_of_many_causes_says_how_many_more_there_are() -> None:
    words = [f"cause {letter}" for letter in "abcdefghijkl"]
    text = step_summary(a_run(12), summary(*(record for word in words for record in failing(word))))
    assert text.count("| failure |") == 10 + 1  # the first is the head of the table of targets
    assert "… and 2 more causes: see the report." in text


@pytest.mark.parametrize(
    ("records", "status", "message", "ground"),
    [
        ([a_slice(), a_slice("int8")], "complete", "2 cases pass", GREEN),
        ([a_slice(), a_wrong_slice()], "complete", "1 failure", RED),
        ([a_slice(), a_slice("int8", status="flaky", reading="flaky")], "complete", "1 case passes, 1 flaky", YELLOW),
        ([a_slice()], "interrupted", "incomplete", GREY),
        ([], "complete", "nothing proven", GREY),
    ],
)
def test_a_badge_says_the_result_in_words_and_colour(
    records: list[Record], status: str, message: str, ground: str
) -> None:
    image = badge(a_run(len(records), status=status), summary(*records))
    root = ElementTree.fromstring(image)
    assert root.get("aria-label") == f"epcheck dml: {message}"
    assert root.findtext("{http://www.w3.org/2000/svg}title") == f"epcheck dml: {message}"
    assert f'fill="{ground}"' in image
    assert "href" not in image


def test_a_badge_has_the_end_of_a_long_name_and_no_markup_of_it() -> None:
    run = a_run(1, candidates=("python:a.very.long.name.of.a.package:<b>&provider",))
    root = ElementTree.fromstring(badge(run, summary()))
    assert root.get("aria-label") == "epcheck ….name.of.a.package:<b>&provider: nothing proven"


def test_report_writes_what_is_asked_for_and_no_page(tmp_path: Path) -> None:
    folder = stored(tmp_path / "20250102-030405-beef", [a_wrong_slice()])
    files = [tmp_path / "out" / name for name in ("a.md", "b.svg", "c.txt")]
    flags = ("--markdown", "--badge", "--annotations")
    done = call("report", str(folder), *(word for pair in zip(flags, map(str, files), strict=True) for word in pair))
    assert (done.code, done.out.splitlines()) == (0, [str(path) for path in files])
    assert files[2].read_text(encoding="utf-8").startswith("::error title=dml%3A failure%2C 1 case of Slice::")
    assert not (folder / "report.html").exists()
    assert api.report(api.ReportOptions(folder)) == (folder / "report.html",)
    assert reports.read_run(folder).status == "complete"
