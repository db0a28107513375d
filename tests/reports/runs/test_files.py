"""JUnit XML and the JSON document, from good runs, broken runs and hostile ones."""

import dataclasses
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from epcheck.conformance.records import strict_json
from epcheck.conformance.records.record import Record, decode
from epcheck.conformance.records.run import run_from_json
from epcheck.reports import StoreError, write_json, write_junit
from epcheck.reports.text import visible
from tests.reports.stored_records import (
    a_crashed_topk,
    a_refused_qlinearconv,
    a_run,
    a_slice,
    a_wrong_slice,
    an_opinion,
    stored,
)

HOSTILE = "a\x00<script>alert(1)</script>]]>\u202e\udc80&\x1b[31m"


def hostile() -> Record:
    return a_wrong_slice(
        case_id=HOSTILE, operator=HOSTILE, reason=HOSTILE, candidate=an_opinion(HOSTILE, message=HOSTILE)
    )


def fixed() -> Record:
    return dataclasses.replace(a_refused_qlinearconv(), reading="fixed", status="pass", candidate=an_opinion("dml"))


def parsed(folder: Path, *, strict: bool = False) -> ElementTree.Element:
    return ElementTree.parse(write_junit(folder, strict=strict)).getroot()


def test_junit_has_a_testcase_for_each_record(tmp_path: Path) -> None:
    idle = a_slice("int8", status="unplaced", reason="not claimed")
    records = [a_slice(), a_wrong_slice(), a_crashed_topk(), a_refused_qlinearconv(), idle]
    root = parsed(stored(tmp_path / "run", records))
    assert [(each.get("tests"), each.get("failures"), each.get("errors")) for each in (root, *root)] == [
        ("5", "1", "1"),
        ("5", "1", "1"),
    ]
    assert [each.get("skipped") for each in (root, *root)] == [None, "2"]
    cases = list(root.iter("testcase"))
    assert [case.get("name") for case in cases] == [record.case_id for record in records]
    assert [case.get("classname") for case in cases] == ["Slice", "Slice", "TopK", "QLinearConv", "Slice"]
    assert [[child.tag for child in case] for case in cases] == [[], ["failure"], ["error"], ["skipped"], ["skipped"]]
    failure = cases[1][0]
    assert failure.get("message") == a_wrong_slice().reason
    assert "  at [0, 0, 0, 1]: expected 1, got 3" in (failure.text or "")
    assert "reproduce with: epcheck repro" in (failure.text or "")
    assert re.search(r"\ncause [0-9a-f]{10}: wrong values: … of … elements differ\n", failure.text or "")
    known = next(case[0].get("message", "") for case in cases if case.get("classname") == "QLinearConv")
    assert known.endswith("(expected where vendor is 0x10de: per-channel weights: known)")


def test_junit_fails_a_fixed_expectation_only_when_strict(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", [fixed()])
    assert parsed(folder).get("failures") == "0"
    assert parsed(folder, strict=True).get("failures") == "1"


@pytest.mark.parametrize("records", [(), (a_slice(),)])
def test_junit_of_an_incomplete_run_has_an_error(tmp_path: Path, records: tuple[Record, ...]) -> None:
    root = parsed(stored(tmp_path / "run", records, a_run(9, status="failed: no adapter")))
    assert root.get("errors") == "1"
    (error,) = root.iter("error")
    assert "no adapter" in error.get("message", "")


def test_junit_counts_each_candidate_and_all_of_them(tmp_path: Path) -> None:
    """Candidates take turns in the journal; each suite has its own cases, and its counts before them."""

    def on(target: str, record: Record) -> Record:
        return dataclasses.replace(record, candidate=dataclasses.replace(record.candidate, target=target))

    records = [
        on("dml", a_slice()), on("arc", a_wrong_slice()), on("dml", a_wrong_slice()), on("arc", a_crashed_topk()),
        on("arc", a_refused_qlinearconv()),
    ]  # fmt: skip
    facts = {"dml": {"adapter": "A"}, "arc": {"adapter": "B", "os": "C"}}
    run = a_run(9, status="interrupted", candidates=("dml", "arc"), targets=facts)
    root = parsed(stored(tmp_path / "run", records, run))
    names = ("name", "tests", "failures", "errors", "skipped")
    assert [tuple(suite.get(name) for name in names) for suite in (root, *root)] == [
        ("epcheck", "6", "2", "2", None),
        ("dml", "2", "1", "0", "0"),
        ("arc", "3", "1", "1", "1"),
        ("epcheck run", "1", "0", "1", "0"),
    ]
    assert [case.get("name") for case in root[1].iter("testcase")] == [records[i].case_id for i in (1, 3, 4)]
    properties = [{element.get("name"): element.get("value") for element in suite.iter("property")} for suite in root]
    assert properties == [facts["dml"], facts["arc"], {}]


@pytest.mark.parametrize("text", [HOSTILE, "a\"b'c\n\td", "]]>&amp;<!--", "\ufffe\ud800", " "])
def test_junit_keeps_every_text_apart_from_its_markup(tmp_path: Path, text: str) -> None:
    wrong = a_wrong_slice(case_id=text, operator=text, reason=text, candidate=an_opinion(text, message=text))
    remark = dataclasses.replace(wrong, reading="noted", candidate=an_opinion(f"{text}.", message=text))
    targets = {text: {text: text}}
    root = parsed(stored(tmp_path / "run", [wrong, remark], a_run(2, started=text, targets=targets)))
    suite, _ = root
    (prop,) = root.iter("property")
    failed, noted = root.iter("testcase")
    seen = visible(text)
    assert (suite.get("name"), suite.get("timestamp"), prop.get("name"), prop.get("value")) == (seen,) * 4
    assert (failed.get("classname"), failed.get("name"), failed[0].get("message")) == (seen,) * 3
    assert (failed[0].text or "").startswith(f"{seen}\nblame: candidate\n")
    assert noted[0].text == f"noted: {seen}"


def test_junit_stays_well_formed_with_hostile_names(tmp_path: Path) -> None:
    root = parsed(stored(tmp_path / "run", [hostile()], a_run(1, targets={HOSTILE: {HOSTILE: HOSTILE}})))
    (case,) = root.iter("testcase")
    assert case.get("name") == "a\\x00<script>alert(1)</script>]]>\\u202e\\udc80&\\x1b[31m"


def test_the_document_has_the_run_its_counts_and_every_record_that_is_not_ok(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", [a_slice(), a_wrong_slice()])
    document = json.loads(write_json(folder).read_text())
    assert document["schema"] == 4
    assert document["complete"] is True
    assert run_from_json(document["run"]) == a_run(2)
    assert document["summary"]["by_reading"] == {"ok": 1, "failure": 1}
    assert document["headline"] == "dml: 1 conformance failure (1 cause), 1 of 2 cases pass."
    (wrong,) = document["records"]
    assert wrong["candidate"]["differences"][0]["first"][0]["got"] == "1"
    assert "heat" not in wrong["candidate"]["differences"][0]
    assert decode(strict_json.dumps(wrong)).case_id == a_wrong_slice().case_id
    (cause,) = document["summary"]["targets"][0]["causes"]
    assert (cause["cases"], cause["smallest"]) == (1, a_wrong_slice().case_id)


def test_the_document_of_an_incomplete_run_says_so(tmp_path: Path) -> None:
    document = json.loads(write_json(stored(tmp_path / "run", [], a_run(3, status="interrupted"))).read_text())
    assert (document["complete"], document["records"]) == (False, [])


def test_a_report_of_a_corrupt_run_leaves_the_old_report(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", [a_slice()])
    before = write_json(folder).read_text()
    (folder / "journal.jsonl").write_text("{}\n")
    with pytest.raises(StoreError, match="line 1"):
        write_json(folder)
    assert (folder / "report.json").read_text() == before
    assert not list(folder.glob("*.tmp"))


def test_a_report_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", [a_slice()])
    with pytest.raises(StoreError, match="cannot write"):
        write_junit(folder, tmp_path / "nowhere" / "junit.xml")
