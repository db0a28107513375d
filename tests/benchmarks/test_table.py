"""The benchmark's own parts: the larger suite, stored cases, crash marks, figures and promises."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks import table
from benchmarks.peers import stored_cases
from benchmarks.peers.stored_cases import StoredCase
from benchmarks.rates import child_process, crashing_backend, figures, larger_suite, measurement, rows
from benchmarks.rates.figures import FIGURES, Figure, Spread
from benchmarks.rates.measurement import Measurement
from benchmarks.table import Results
from epcheck.generators import suite


def test_the_first_round_is_the_suite_and_later_ones_have_other_ids_and_other_data() -> None:
    own = next(suite.cases(["Slice"], ["float32"], ["negative_step"]))
    first, second = larger_suite.repeated([own], 2)
    assert first == own
    assert second.sample == f"{own.sample}_again2"
    first, second = first.build(), second.build()
    assert any((first.feeds[name] != second.feeds[name]).any() for name in first.feeds)


def test_what_has_one_version_and_dtype_stays_together_in_every_round() -> None:
    nodes = [case for case in larger_suite.cases(3) if not case.kind]
    kinds = [(case.operator, case.since_version, case.dtype) for case in nodes]
    changes = sum(first != second for first, second in pairwise(kinds))
    assert changes == len(set(kinds)) - 1


def test_exactly_so_many_cases_all_different() -> None:
    assert len({case.id for case in larger_suite.exactly(20_000)}) == 20_000


def test_stored_cases_come_back_as_they_were(tmp_path: Path) -> None:
    feeds = {
        "x": np.arange(6, dtype=np.int16).reshape(2, 3),
        "empty": np.zeros((0, 4), np.float16),
        "k": np.array(True),
    }
    stored_cases.write(tmp_path / "cases", [StoredCase("one", b"model", feeds), StoredCase("two", b"", {})])
    first, two = stored_cases.read(tmp_path / "cases")
    assert (first.id, first.model, two) == ("one", b"model", StoredCase("two", b"", {}))
    assert [(n, a.dtype, a.shape, a.tolist()) for n, a in first.feeds.items()] == [
        (n, a.dtype, a.shape, a.tolist()) for n, a in feeds.items()
    ]


def test_each_mark_means_one_case(tmp_path: Path) -> None:
    cases = [StoredCase(str(n), b"", {"x": np.array([n // 2 if n < 10 else n])}) for n in range(40)]
    crashing_backend.mark(tmp_path / "marks", cases, every=10)
    marks = (tmp_path / "marks").read_text().split()
    assert [sum(crashing_backend.digest(c.feeds["x"]) == mark for c in cases) for mark in marks] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("output", "tally"),
    [
        ("..F\n2 failed, 14 passed, 9 warnings in 5.25s", {"failed": 2, "passed": 14, "warnings": 9}),
        ("id\n21425 tests collected in 3.10s", {"collected": 21425}),
    ],
)
def test_the_tally_of_pytest(output: str, tally: dict[str, int]) -> None:
    assert measurement.pytest_tally(output) == tally


def test_a_child_that_fails_says_why() -> None:
    with pytest.raises(child_process.ChildFailed, match=r"ended with 3:\nno luck"):
        child_process.run([sys.executable, "-c", "print('no luck'); raise SystemExit(3)"])


def test_a_figure_is_a_ratio_of_two_rows_of_the_same_repeat() -> None:
    measured = {"one": [Measurement(100, 1.0), Measurement(300, 1.0)], "other": [Measurement(10, 1.0)] * 2}
    assert Figure("", "one", "other").of(measured) == Spread(median=20.0, least=10.0, greatest=30.0)
    assert Figure("", "one", "unknown").of(measured) is None


@pytest.mark.parametrize(("rate", "sentences"), [(3, []), (2, ["missed: CPU, packed: 2 ×, promised ≥ 3"])])
def test_a_promise_is_kept_or_told(rate: int, sentences: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "FIGURES", [Figure("CPU, packed", "packed", "bare", at_least=3.0)])
    measured = {"packed": [Measurement(rate, 1.0)], "bare": [Measurement(1, 1.0)]}
    assert table.broken_promises(Results(measured)) == sentences


def test_a_promise_whose_row_failed_is_told() -> None:
    output = table.broken_promises(Results({}, {"dml-bare": "no lab"}))
    assert output == ["not measured: DirectML, unpacked: time a case, to the bare loop's: dml-bare failed"]


def test_figures_and_references_name_rows_that_exist() -> None:
    keys = {row.key for row in rows.ROWS}
    assert {key for figure in FIGURES for key in (figure.first, figure.second)} <= keys
    assert {row.reference for row in rows.ROWS} - {""} <= keys
    assert figures.spread([]) is None
