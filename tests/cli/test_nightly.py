"""`epcheck nightly` and `epcheck diff`, as a scheduler and a person start them."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from epcheck.conformance.targets.choice import Choice
from epcheck.reports.store.run_file import StoredRun
from epcheck.reports.store.store import open_store
from tests.command_line import Done, call, refused
from tests.conformance.small_cases import HERE

TARGET = "python:turning_backend:answer"
CASES = ("--op", "Slice", "--dtype", "float32", "-k", "rank_", "--limit", "2")


@pytest.fixture(scope="module")
def good_and_wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the backend and two nights, the second of which is worse."""
    folder = tmp_path_factory.mktemp("nights")
    shutil.copy(HERE / "turning_backend.py", folder)
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        _plain(patch)
        first = night("good")
        assert (first.code, last_assessment()["result"]) == (0, "first night")
        assert "no earlier run to compare with" in first.out
        worse = night("wrong")
        assert (worse.code, last_assessment()["result"]) == (1, "worse")
        assert last_assessment()["summary"].startswith("Worse: 2 new failures")
    return folder


@pytest.fixture(autouse=True)
def here(good_and_wrong: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory of each test has the two nights."""
    shutil.copytree(good_and_wrong, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    _plain(monkeypatch)


def _plain(patch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_STEP_SUMMARY", "EPCHECK_STORE"):
        patch.delenv(name, raising=False)


def night(mood: str, *options: str, target: str = TARGET) -> Done:
    Path("mood").write_text(mood, encoding="utf-8")
    fixed = ("--baseline", "none", "--no-reference", "--out", "night", "--fuzz-minutes", "0")
    return call("nightly", "-t", target, *fixed, *CASES, *options)


def last_assessment() -> dict[str, Any]:
    """The only assessment of the last night."""
    (assessment,) = json.loads(Path("night", "nightly.json").read_text(encoding="utf-8"))["assessments"]
    return dict(assessment)


def stored() -> tuple[StoredRun, ...]:
    return open_store(Path("epcheck-store")).runs


@pytest.mark.slow
def test_what_broke_stays_a_new_failure_until_it_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (night("wrong").code, last_assessment()["result"]) == (1, "worse")
    assert last_assessment()["difference"]["older"]["run_id"] == stored()[0].run_id
    summary = Path("summary.md")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert (night("good").code, last_assessment()["result"]) == (0, "as good as before")
    assert last_assessment()["difference"]["older"]["run_id"] == stored()[0].run_id
    assert [stored_run.run.worse for stored_run in stored()] == [(), (TARGET,), (TARGET,), ()]
    assert summary.read_text(encoding="utf-8") == Path("night", "nightly.md").read_text(encoding="utf-8")
    assert {path.name for path in Path("night").iterdir()} == {
        "nightly.html", "nightly.md", "nightly.json", "nightly.junit.xml",
    }  # fmt: skip


@pytest.mark.slow
def test_a_failure_that_is_expected_with_a_reason_is_tolerated() -> None:
    assert call("expect", "--from", str(stored()[-1].path), "--reason", "ticket 1", "--write").code == 0
    done = night("wrong", "--expect", "expectations.toml")
    assert (done.code, last_assessment()["result"]) == (0, "as good as before")
    assert "2 tolerated" in last_assessment()["summary"]


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("/nowhere/python#ThisExecutionProvider", "no such interpreter: /nowhere/python"),
        ("python:nothing:here", "its worker does not start: the worker process ended: exit code 1"),
    ],
)
def test_a_machine_that_cannot_run_is_not_run_and_the_store_knows_it(target: str, why: str) -> None:
    failed = night("good", target=target)
    assert (failed.code, last_assessment()["result"]) == (2, "not run")
    assert why in failed.err
    assert "0 %" not in failed.out + Path("night", "nightly.md").read_text(encoding="utf-8")
    root = ElementTree.fromstring(Path("night", "nightly.junit.xml").read_bytes())
    assert (root.get("errors"), root.get("failures")) == ("1", "0")
    last = stored()[-1]
    assert (last.whole, last.recorded) == (False, 0)
    assert last.run.status.startswith(f"failed: target '{target}")


def test_what_was_asked_wrongly_leaves_nothing_behind() -> None:
    assert "unknown operator 'Nothing'" in refused("nightly", "-t", TARGET, "--op", "Nothing")
    assert len(stored()) == 2
    assert call("nightly", "--factor", "0.5").code == 2


@pytest.mark.slow
def test_against_another_run_and_with_a_damaged_file_in_the_store() -> None:
    Path("epcheck-store", "broken.parquet").write_bytes(b"PAR1 and no more")
    done = night("wrong", "--against", str(stored()[1].path))
    assert (done.code, last_assessment()["summary"].startswith("No new failure in")) == (0, True)
    assert "broken.parquet: is cut off after 16 bytes" in done.out


def test_two_runs_are_compared_from_folder_and_store() -> None:
    older, newer = (stored_run.run_id for stored_run in stored())
    by_folder = call("diff", f"epcheck-runs/{older}", f"epcheck-runs/{newer}", "--json", "a.json", "--html", "a.html")
    by_store = call("diff", f"epcheck-store/{older}.parquet", f"epcheck-store/{newer}.parquet", "--json", "b.json")
    assert (by_folder.code, by_store.code) == (1, 1)
    assert by_folder.out == by_store.out
    page = Path("a.html").read_text(encoding="utf-8")
    links = re.findall(r'href="(epcheck-runs/[^"#]*)#case=([^"&]*)&amp;target=', page)
    assert {Path(report).is_file() for report, _ in links} == {True}
    assert {report.split("/")[1] for report, _ in links} == {older, newer}
    assert all(unquote(case) in page for _, case in links)
    assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
    assert "Content-Security-Policy" in Path("a.html").read_text(encoding="utf-8")
    assert call("diff", f"epcheck-runs/{newer}", f"epcheck-runs/{older}").code == 0
    assert "cannot compare 'python:turning_backend:answer' with itself" in refused("diff", f"epcheck-runs/{older}")
    assert "has no target 'cpu'" in refused("diff", *[f"epcheck-runs/{older}"] * 2, "--target-b", "cpu")


def test_without_a_target_the_best_of_the_machine_is_the_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epcheck.api.suite.nightly.best_choice", lambda: Choice("cpu", "there is no GPU"))
    done = call("nightly", "--baseline", "none", "--no-reference", *CASES, "--out", "night", "--fuzz-minutes", "0")
    assert done.code == 0, done.err
    assert "Candidate: cpu (there is no GPU)" in done.out
    assert last_assessment()["target"] == "cpu"
