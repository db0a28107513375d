"""Names that strangers chose, in every writer: shown, and harmless to page, XML, table, terminal and folder."""

from __future__ import annotations

import io
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from epcheck.api import RunResult
from epcheck.cli.terminal import summary
from epcheck.cli.terminal.terminal import Terminal
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.repro_command import folder_name
from epcheck.reports import Reported, write_html, write_junit
from epcheck.reports.diff import assessment
from epcheck.reports.diff.difference import compare
from epcheck.reports.diff.junit import junit
from epcheck.reports.diff.markdown import markdown
from epcheck.reports.runs.summary import summarize
from tests.reports.compared_rows import a_compared_run, a_row
from tests.reports.hostile_names import DANGEROUS, NAMES, Tags
from tests.reports.stored_records import a_run, a_wrong_slice, an_opinion, stored


@pytest.fixture(params=list(NAMES))
def name(request: pytest.FixtureRequest) -> str:
    return NAMES[request.param]


def wrong(name: str) -> Record:
    return a_wrong_slice(case_id=name, operator=name, reason=name, candidate=an_opinion(name, name, message=name))


def test_the_page_has_the_elements_that_it_has_with_a_harmless_name(tmp_path: Path, name: str) -> None:
    pages = [
        write_html(stored(tmp_path / folder, [wrong(chosen)], a_run(1))).read_text(encoding="utf-8")
        for folder, chosen in (("harmless", "harmless"), ("hostile", name))
    ]
    harmless, hostile = map(Tags, pages)
    assert (hostile.elements, hostile.handlers) == (harmless.elements, [])
    assert not DANGEROUS.search(pages[1])


def test_junit_is_xml_with_the_same_elements(tmp_path: Path, name: str) -> None:
    path = write_junit(stored(tmp_path / "run", [wrong(name)], a_run(1, targets={name: {name: name}})))
    root = ElementTree.parse(path).getroot()
    assert [element.tag for element in root.iter("testcase")] == ["testcase"]
    assert [element.tag for element in root.iter("failure")] == ["failure"]
    assert not DANGEROUS.search(path.read_text(encoding="utf-8"))


def compared(name: str) -> assessment.Assessment:
    rows = [a_row("a", operator=name)], [a_row("a", "mismatch", operator=name, reason=name)]
    return assessment.assess(compare(*(a_compared_run(*each) for each in rows)))


def test_markdown_has_the_lines_that_it_has_with_a_harmless_name(name: str) -> None:
    hostile, harmless = (markdown(chosen, [compared(chosen)]) for chosen in (name, "harmless"))
    assert hostile.count("\n") == harmless.count("\n")
    assert not DANGEROUS.search(hostile)
    assert not re.search(r"<img|<script|(?<!\\)`@|@everyone", hostile)


def test_junit_of_a_comparison_is_xml(name: str) -> None:
    written = junit([compared(name)])
    assert len(list(ElementTree.fromstring(written).iter("failure"))) == 1
    assert not DANGEROUS.search(written.decode("utf-8"))


def test_the_terminal_shows_the_summary_on_the_lines_that_it_has_and_obeys_nothing(name: str) -> None:
    shown = []
    for chosen in (name, "harmless"):
        records = (wrong(chosen),)
        run = a_run(1)
        file = io.StringIO()
        terminal = Terminal(file, width=20_000)
        summary.show(terminal, RunResult.of(Reported(Path("run"), run, summarize(run, records)), strict=False))
        shown.append(file.getvalue())  # type: ignore[attr-defined]
    assert shown[0].count("\n") == shown[1].count("\n")
    assert not DANGEROUS.search(shown[0])


def test_a_folder_that_is_named_for_a_case_is_one_name_of_plain_characters(name: str) -> None:
    folder = folder_name(name)
    assert re.fullmatch(r"\w[\w.\-]*", folder)
    assert folder.strip(".") == folder


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("aux", "case_aux"),
        ("NUL.txt", "case_NUL.txt"),
        ("con", "case_con"),
        ("com1.onnx", "case_com1.onnx"),
        ("lpt²", "case_lpt²"),
        ("conin$", "case_conin"),
        ("console", "console"),
        ("auxiliary.txt", "auxiliary.txt"),
        ("com10", "com10"),
        ("ends...", "ends"),
        ("a:b", "a_b"),
        ("C:\\aux", "C_aux"),
    ],
)
def test_no_folder_is_a_device_of_windows(tmp_path: Path, name: str, folder: str) -> None:
    assert folder_name(name) == folder
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "model.onnx").write_bytes(b"x")
    assert [path.name for path in tmp_path.iterdir()] == [folder]
