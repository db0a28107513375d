"""Files of earlier versions of epcheck are read, and mean what they meant: `golden/schema_4` has a run, two nights of a
store and their difference as JSON, with the Parquet schema 4, in which a binding is called `variant`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from epcheck import reports
from epcheck.reports.runs import run_folder
from epcheck.reports.store.query import query
from epcheck.reports.store.store import open_store
from tests.command_line import call
from tests.reports.stored_nights import a_night, keep
from tests.reports.stored_records import a_slice

GOLDEN = Path(__file__).parent / "golden" / "schema_4"
BINDINGS = {
    "Compress-11/float32/refused_condition_matrix[initializer]": "initializer",
    "Compress-11/float32/refused_condition_matrix[runtime]": "runtime",
    "Slice-13/float32/rank_1_last_axis[initializer]": "initializer",
    "Slice-13/float32/rank_1_last_axis[runtime]": "runtime",
    "Slice-13/float32/rank_1_last_axis[symbolic]": "symbolic",
    "Slice-13/float32/rank_1_last_axis[constant]": "constant",
}

PRESENT_NAMES = {"word": "result", "said": "summary"}
"""Fields of an assessment, by their names in schema 1 of `diff --json`."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "run", tmp_path / "run"))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "store", tmp_path / "store"))


def with_binding(record: dict[str, Any]) -> dict[str, Any]:
    """A record in JSON with the present name of its field."""
    return {"binding" if name == "variant" else name: value for name, value in record.items()}


def test_a_journal_has_the_binding_of_each_record(run: Path) -> None:
    assert {record.case_id: record.case.binding for record in reports.read_records(run)} == BINDINGS
    lines = (run / "journal.jsonl").read_bytes().splitlines()
    for before, (line, _) in zip(lines, run_folder.read_lines(run), strict=True):
        fields = json.loads(before)
        del fields["crc32"]
        assert list(json.loads(line).items()) == list(with_binding(fields).items())


def test_a_run_is_resumed_and_has_lines_of_both_kinds(run: Path) -> None:
    journal = run / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1][:200])
    last = list(reports.read_records(GOLDEN / "run"))[-1]
    resumed = run_folder.resume(run)
    assert resumed.done == {("cpu", case_id) for case_id in BINDINGS} - {("cpu", last.case_id)}
    resumed.journal.append(last)
    resumed.journal.close(resumed.run)
    assert {record.case_id: record.case.binding for record in reports.read_records(run)} == BINDINGS
    assert [b'"binding":' in line for line in journal.read_bytes().splitlines()] == [False] * 5 + [True]


def test_reports_of_a_run_are_those_of_today(run: Path) -> None:
    before = json.loads((run / "report.json").read_bytes())
    files = ("--json", str(run / "report.json"), "--html", str(run / "page.html"))
    assert call("report", str(run), "--parquet", *files).code == 0
    now = json.loads((run / "report.json").read_bytes())
    assert (before.pop("schema"), now.pop("schema")) == (2, 4)
    (old_causes,), (causes,) = ([t.pop("causes") for t in each["summary"]["targets"]] for each in (before, now))
    assert now == {**before, "records": [with_binding(record) for record in before["records"]]}
    same = ("target", "reading", "text", "link", "statuses", "operators", "dtypes", "smallest", "repro", "cases")
    assert [[cause[name] for name in same] for cause in causes] == [
        [cause[name] for name in same] for cause in old_causes
    ]
    old, new = (pq.read_table(folder / "outcomes.parquet").to_pylist() for folder in (GOLDEN / "run", run))
    for row in old:
        if row["record"]:
            row["record"] = row["record"].replace('"variant":', '"binding":')
    assert new == [with_binding(row) for row in old]


def test_a_store_is_asked_alone_and_together_with_files_of_today(store: Path) -> None:
    sql = "SELECT DISTINCT run_id, binding FROM outcomes WHERE binding IS NOT NULL ORDER BY ALL"
    earlier = [{"run_id": path.stem, "binding": "runtime"} for path in sorted(store.iterdir())]
    opened = open_store(store)
    assert [night.schema for night in opened.runs] == [4, 4]
    assert query(opened.runs, sql).to_pylist() == earlier
    assert call("store", "check", "--store", str(store)).code == 0
    keep(store, a_night(1), [a_slice(binding="symbolic")])
    both = open_store(store)
    assert both.problems == ()
    assert query(both.runs, sql).to_pylist() == [{"run_id": a_night(1).run_id, "binding": "symbolic"}, *earlier]
    assert "variant" not in query(both.runs, "SELECT * FROM outcomes").column_names
    assert call("store", "check", "--store", str(store)).code == 0


def test_two_nights_are_compared_and_have_a_trend(store: Path, tmp_path: Path) -> None:
    older, newer = map(str, sorted(store.iterdir()))
    assert call("diff", older, newer, "--json", str(tmp_path / "diff.json")).code == 1
    (before,) = json.loads((GOLDEN / "diff.json").read_bytes())["verdicts"]
    written = json.loads((tmp_path / "diff.json").read_bytes())
    assert written["assessments"][0].pop("summary").startswith("Worse: 2 new failures of 1 new cause ")
    assert before.pop("said").startswith("Worse: 2 ")
    groups = written["assessments"][0]["difference"].pop("groups")
    before_groups = before["difference"].pop("groups")
    (cause,) = written["assessments"][0]["difference"].pop("causes")
    assert written["assessments"][0]["difference"].pop("unknown") == ["driver", "runtime"]
    assert (cause["what"], cause["cases"]) == ("new", 2)
    assert [(g["kind"], g["operators"], len(g["case_ids"])) for g in groups] == [("new failure", {"Slice": 2}, 2)]
    assert sorted(c for g in before_groups for c in g["case_ids"]) == sorted(c for g in groups for c in g["case_ids"])
    assert written == {
        "schema": 3,
        "assessments": [{PRESENT_NAMES.get(name, name): value for name, value in before.items()}],
    }
    trend = call("trend", "--store", str(store), "--html", str(tmp_path / "trend.html"))
    assert (trend.code, trend.err) == (0, "")
    assert "2 nights of 1 machine" in trend.out
