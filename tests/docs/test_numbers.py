"""The numbers, the picture and the terminal capture of README and docs are those of the suite that is here."""

from __future__ import annotations

import re

import pytest

from docs.site import pictures, suite_numbers
from tests.documents import ROOT
from tests.generators.case_ids import released

README = (ROOT / "README.md").read_text(encoding="utf-8")
RELEASED = {name: int(line.split()[0]) for name, line in released().items()}
"""Operator version -> how many cases `case_ids.txt` has, which another test compares with the suite."""


def count_released(operator: str) -> int:
    return sum(count for name, count in RELEASED.items() if name.rpartition("-")[0] == operator)


def test_readme_states_the_size_of_the_suite() -> None:
    operators = {name.rpartition("-")[0] for name in RELEASED}
    assert suite_numbers.stated(suite_numbers.STATEMENTS[0]) == {
        "operators": len(operators),
        "cases": sum(RELEASED.values()),
    }


@pytest.mark.slow
def test_the_pages_state_the_numbers_of_the_suite() -> None:
    assert list(suite_numbers.differences(suite_numbers.count_suite())) == []


def test_a_wrong_number_is_reported_and_corrected() -> None:
    statement = suite_numbers.STATEMENTS[0]
    numbers = {**suite_numbers.stated(statement), "cases": 1_234_567}
    corrected = suite_numbers.corrected(README, statement, numbers)
    assert f"has {numbers['operators']} operators and 1,234,567 cases" in corrected


def test_the_picture_and_the_capture_are_of_one_run() -> None:
    (capture,) = pictures.CAPTURE.findall(README)
    assert pictures.read_text(pictures.PICTURE.read_bytes()) == pictures.verdict(capture)


def test_the_capture_counts_the_cases_that_the_suite_has() -> None:
    (capture,) = pictures.CAPTURE.findall(README)
    command, _, *rows = capture.splitlines()
    assert command == f"$ {pictures.COMMAND}"
    chosen = re.findall(r"--op (\S+)", pictures.COMMAND)
    counted = {name: int(row.split()[1].replace(",", "")) for name, row in zip(chosen, rows, strict=False)}
    assert counted == {name: count_released(name) for name in chosen}


def test_readme_is_short() -> None:
    assert len(README.splitlines()) <= 100
