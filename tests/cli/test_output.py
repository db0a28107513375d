"""`--json` prints one document and nothing else, `--quiet` the verdict alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import onnx
import pytest

from epcheck import reports
from tests.command_line import call, refused
from tests.conformance.small_cases import HERE
from tests.models.small_models import layers

CASES = ("--op", "Slice", "--dtype", "float32", "-k", "rank_", "--limit", "3", "--baseline", "none", "--no-reference")
WRONG = "python:turning_backend:answer"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "turning_backend.py").write_bytes((HERE / "turning_backend.py").read_bytes())
    monkeypatch.chdir(tmp_path)


def document(*arguments: str, code: int = 0) -> Any:
    """What a command prints, all of it, as JSON."""
    done = call(*arguments, "--json")
    assert done.code == code, done.err
    return json.loads(done.out)


def test_a_run_is_its_report_with_its_folder_and_verdict() -> None:
    (Path.cwd() / "epcheck.toml").write_text('[targets.mine]\nbase = "cpu"\n')  # whose notice is no part of it
    found = document("run", "-t", "mine", *CASES)
    folder = Path(found.pop("folder"))
    assert (found.pop("conforms"), found.pop("exit_code")) == (True, 0)
    assert found == json.loads((folder / "report.json").read_bytes())
    assert (found["schema"], found["complete"]) == (reports.DOCUMENT_SCHEMA, True)
    assert found["headline"] == "mine: no conformance failure, 3 of 3 cases pass."


def test_a_run_with_failures_names_them() -> None:
    Path("mood").write_text("wrong")
    found = document("run", "-t", WRONG, *CASES, code=1)
    assert (found["conforms"], found["exit_code"]) == (False, 1)
    assert {(record["status"], record["blame"], record["reading"]) for record in found["records"]} == {
        ("mismatch", "candidate", "failure")
    }


def test_a_run_that_cannot_begin_prints_no_document() -> None:
    done = call("run", "-t", "python:nothing:here", *CASES, "--json")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("epcheck: target 'python:nothing:here': its worker does not start: ")


def test_a_quiet_run_prints_its_verdict_and_its_report() -> None:
    Path("mood").write_text("wrong")
    done = call("run", "-t", WRONG, *CASES, "--quiet")
    verdict, report = done.out.splitlines()
    assert verdict == f"{WRONG}: 3 conformance failures (1 cause), 0 of 3 cases pass."
    assert re.fullmatch(r"Report: epcheck-runs[/\\][\w-]+[/\\]report.html", report)
    assert (done.code, done.err) == (1, "")


def test_a_quiet_night_prints_its_verdict_and_its_report() -> None:
    Path("mood").write_text("good")
    done = call("nightly", "-t", WRONG, *CASES, "-q", "--fuzz-minutes", "0")
    verdict, report = done.out.splitlines()
    assert verdict.startswith("python:turning_backend:answer: first night")
    assert re.fullmatch(r"Report: epcheck-runs[/\\][\w-]+[/\\]nightly.html", report)
    assert done.code == 0


def test_a_quiet_validation_prints_its_verdict_and_its_page() -> None:
    onnx.save(layers(2), "model.onnx")
    arguments = ("validate", "model.onnx", "--target", "cpu", "--dim", "batch=3")
    spoken, done = call(*arguments).out.splitlines(), call(*arguments, "--quiet")
    assert len(spoken) > 5
    assert (done.code, done.out.splitlines()) == (0, spoken[-2:])
    assert done.out.splitlines()[1] == "Page: model.onnx.validation.html"


def test_the_list_of_cases() -> None:
    found = document("list", "--op", "TopK", "--dtype", "int8", "-k", "TopK-11/*")
    assert found["schema"] == 1
    assert [case["id"] for case in found["cases"]] == call(
        "list", "--op", "TopK", "--dtype", "int8", "-k", "TopK-11/*"
    ).out.splitlines()
    first = found["cases"][0]
    assert first["id"] == f"TopK-11/int8/{first['sample']}[{first['binding']}]"
    assert (first["operator"], first["domain"], first["since_version"], first["dtype"]) == ("TopK", "", 11, "int8")


def test_the_list_of_operators_is_sorted_and_heeds_the_selection() -> None:
    names = ("--op", "Slice", "--op", "ImageDecoder", "--op", "Conv")
    found = document("list", "operators", *names)["operators"]
    assert [(each["name"], each["cases"] > 0, each["why"] != "") for each in found] == [
        ("Conv", True, False), ("ImageDecoder", False, True), ("Slice", True, False),
    ]  # fmt: skip
    lines = [line.split() for line in call("list", "operators", *names).out.splitlines()]
    assert [line[0] for line in lines] == ["Conv", "ImageDecoder", "Slice"]
    int8 = document("list", "operators", "--op", "Slice", "--dtype", "int8", "-k", "Slice-13/*")["operators"]
    listed = call("list", "--op", "Slice", "--dtype", "int8", "-k", "Slice-13/*").out.splitlines()
    assert int8 == [{"name": "Slice", "since_versions": [13], "cases": len(listed), "why": ""}]
    assert (
        refused("list", "operators", "--op", "Slize") == "unknown operator 'Slize'. Did you mean Size, Slice or Resize?"
    )


@pytest.mark.slow
def test_the_list_of_all_operators_is_sorted() -> None:
    names = [line.split()[0] for line in call("list", "operators").out.splitlines()]
    assert names == sorted(names)
    assert len(names) > 200


def test_the_other_lists() -> None:
    Path("known.toml").write_text('[[expect]]\ncase = "Slice-13/*"\nstatus = "crash"\nreason = "a test"\n')
    Path("epcheck.toml").write_text('[targets.mine]\nbase = "cpu"\nexpectations = "known.toml"\n')
    assert {"name": "complex64", "why": "ONNX Runtime has no tensor of it"} in document("list", "dtypes")["dtypes"]
    assert {"name": "mine", "meaning": "epcheck.toml"} in document("list", "targets")["targets"]
    entry = {"case": "Slice-13/*", "status": "crash", "reason": "a test", "link": "", "bound": None}
    entry |= {"when": "", "where": "", "variant": ""}
    assert entry in document("list", "expectations", "-t", "mine", "--op", "Slice")["expectations"]
    converted = document("list", "converted")["converted"]
    assert {"test": "test_acos", "operator": "Acos", "was": 22, "now": 7, "why": ""} in converted


def test_the_status_of_the_machine() -> None:
    done = call("status", "--json")
    found = json.loads(done.out)
    assert found["schema"] == 1
    assert found["installed"]["epcheck"]
    cpu = next(target for target in found["targets"] if target["name"] == "cpu")
    assert (cpu["ready"], cpu["command"]) == (True, "epcheck run --target cpu")
    (default,) = (target for target in found["targets"] if target["default"])
    assert done.code == (0 if default["ready"] else 2)
