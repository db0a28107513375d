"""What the comparison of two parents lets pass, and what it finds; the comparison itself is `nox -s parity`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epcheck import reports
from epcheck.generators import suite

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no parent on Linux beside it")

if sys.platform != "win32":
    from tests import case_summaries, parity
    from tests.command_line import epcheck

SAME = {
    "a time": ({"create_s": 0.1, "status": "pass"}, {"create_s": 0.2, "status": "pass"}),
    "a time in a sentence": ("computed in 0.1 s", "computed in 12.5 s"),
    "last digits": ({"max_ulp": 1.0001}, {"max_ulp": 1.0002}),
    "last digits of printed values": ("6.55e+04, -0.7995773254966", "65500.0, -0.7995773254967"),
    "a path": (
        "epcheck reduce /tmp/a/linux/models/ssd.onnx --seed 0",
        r"epcheck reduce Z:\tmp\a\windows\models\ssd.onnx --seed 0",
    ),
    "an exit code": ("the worker process ended: exit code 5", "the worker process ended: exit code 0xc0000005"),
    "a line of Wine": ({"log_tail": "wine: Unhandled page fault"}, {}),
    "NaN": ([float("nan")], [float("nan")]),
}

DIFFERENT = {
    "a status": {"status": ("pass", "refused")},
    "a dtype": {"dtype": ("int64", "int32")},
    "a number": {"max_ulp": (1.0, 1.1)},
    "an integer": {"elements": (10000, 10001)},
    "a printed integer": {"preview": ("9223372036854775806", "9223372036854775807")},
    "a printed number": {"preview": ("0.5, 1.25", "0.5, 1.35")},
    "a line of the provider": {"log_tail": ("out of memory", "")},
    "what is not there": {"candidate": ({"attempts": 2}, None)},
    "a truth value": {"claimed": (True, 1)},
}


@pytest.mark.parametrize("name", SAME)
def test_what_parents_may_differ_in(name: str) -> None:
    linux, windows = SAME[name]
    assert list(parity.compare("record", linux, windows)) == []


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_planted_difference_is_found(name: str) -> None:
    ((field, (linux, windows)),) = DIFFERENT[name].items()
    found = list(parity.compare("record", {"case": {field: linux}}, {"case": {field: windows}}))
    assert found == [(f"record: case: {field}", linux, windows)]


def test_the_default_integer_and_a_wrong_truth_are_differences_of_a_case() -> None:
    of_linux, of_windows = (case_summaries.summarize_array(np.array([4], dtype)) for dtype in ("int64", "int32"))
    found = list(parity.compare("case", {"OneHot": [of_linux]}, {"OneHot": [of_windows]}))
    assert found == [("case: OneHot[0][0]", "int64", "int32")]
    exact, close, wrong = (
        case_summaries.summarize_array(np.array([np.nan, np.inf, 2.0 + added])) for added in (0, 1e-9, 0.1)
    )
    assert exact == ["float64", [3], 1, 1, 2.0]
    assert list(parity.compare("case", exact, close)) == []
    assert list(parity.compare("case", exact, wrong)) == [("case[4]", 2.0, 2.1)]


def test_a_case_is_summarized_with_the_inputs_that_its_model_holds() -> None:
    built = suite.case_by_id("OneHot-11/float32/depth_of_rank_1[initializer]").build()
    (indices, depth, values), (output,) = case_summaries.summarize_case(built)
    assert (indices[0], depth, values[0]) == ("int64", ["int64", [1], 0, 0, 4.0], "float32")
    assert output[:3] == ["Exact", "float32", [2, 4]]


def test_a_case_that_one_parent_does_not_record_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, limit in (("linux", "3"), ("windows", "2")):
        folder = tmp_path / name
        folder.mkdir()
        options = ("--limit", limit, "--root", "runs", "--baseline", "none", "--no-reference")
        done = epcheck("run", "--target", "cpu", "--op", "Relu", *options, cwd=folder)
        assert done.code == 0, done.err
        (folder / "validations.json").write_text('{"results": []}', encoding="utf-8")
        (folder / parity.CASES).write_text("{}", encoding="utf-8")
    found: list[Any] = list(parity.compare_folders(tmp_path / "linux", tmp_path / "windows"))
    (missing,) = found
    recorded = {record.case_id for record in reports.read_records(reports.latest(tmp_path / "windows" / "runs"))}
    assert missing[0].removeprefix("record: ") not in recorded
    assert (missing[1]["status"], missing[2]) == ("pass", None)
    assert parity.report(found) == 1
    assert capsys.readouterr().out.endswith("1 differences\n")
    assert parity.report([]) == 0
