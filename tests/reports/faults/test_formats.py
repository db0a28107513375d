"""A night's search for faults in the formats of its reports."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from epcheck.reports.diff.write import write_html, write_json, write_junit, write_markdown
from epcheck.reports.faults.fault_search import FaultSearch, FoundFault

HOSTILE = "<img src=x onerror=alert(1)>|`[x](javascript:1)"


def fault(name: str, known: str = "", replayed: bool = False, reason: str = "wrong") -> FoundFault:
    return FoundFault(name, "Relu", "mismatch", "candidate", reason, known, replayed, f"out/faults/Relu-{name}")


SEARCH = FaultSearch(
    "dml", "nodes", 739577, 12345, 245.4, 3, "", "out",
    (fault("a", reason=HOSTILE), fault("b", replayed=True), fault("c", known="Relu-14/*: ticket 1")),
    50.3, 17,
)  # fmt: skip
NONE = FaultSearch("dml", "graphs", 7, 0, 0.0, 0, "the example database cannot be read", "out", ())


def test_new_faults_are_told_from_those_that_are_still_there() -> None:
    assert [found.id for found in SEARCH.new] == ["a"]
    assert [found.id for found in SEARCH.again] == ["b"]
    assert SEARCH.sentences == (
        "1 new fault, 1 found before and still failing, 1 similar to recorded deviations. 12,345 nodes judged in 50 s, "
        "245 a second, 17 more judged in earlier searches, 3 examples replayed first; seed 739577."
    )
    assert NONE.sentences == "Not searched: the example database cannot be read."


def test_every_format_has_them(tmp_path: Path) -> None:
    write_markdown(tmp_path / "n.md", "night", (), (SEARCH, NONE))
    lines = (tmp_path / "n.md").read_text(encoding="utf-8").splitlines()
    assert "## Fuzzing dml: nodes" in lines
    assert "| Relu | mismatch | candidate | wrong | out/faults/Relu-b |" in lines
    assert "Not searched: the example database cannot be read." in lines
    write_json(tmp_path / "n.json", "night", (), (SEARCH,))
    (found,) = json.loads((tmp_path / "n.json").read_text(encoding="utf-8"))["searches"]
    assert (found["judged"], [each["id"] for each in found["faults"]]) == (12345, ["a", "b", "c"])
    write_junit(tmp_path / "n.xml", "night", (), (SEARCH, NONE))
    root = ElementTree.parse(tmp_path / "n.xml").getroot()
    assert [suite.get("name") for suite in root] == [
        "Fuzzing dml: nodes",
        "Fuzzing dml: graphs",
    ]
    assert [skipped.get("type") for skipped in root.iter("skipped")] == ["new fault", "found before"]
    assert (root.get("failures"), root.get("errors"), root.get("tests")) == ("0", "1", "4")


def test_the_page_has_them_as_text(tmp_path: Path) -> None:
    write_html(tmp_path / "n.html", "night", (), searches=(SEARCH,))
    page = (tmp_path / "n.html").read_text(encoding="utf-8")
    assert '<h2 id="search-1-head">Fuzzing dml: nodes</h2>' in page
    assert "<td>found before</td>" in page
    assert "out/faults/Relu-c" not in page
    assert "<img src=x" not in page
    write_html(tmp_path / "n.html", "night", ())
    assert "Fuzzing" not in (tmp_path / "n.html").read_text(encoding="utf-8")
