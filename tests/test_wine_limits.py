"""What the session for Windows Python leaves out, and what it runs, is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import windows_session
from tests.wine_limits import LIMITS, find_limit

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("test_id", [test for tests in LIMITS.values() for test in tests])
def test_each_limit_is_of_a_test_that_is_there(test_id: str) -> None:
    module, _, name = test_id.partition("::")
    assert re.search(rf"^def {name}\(" if name else "", (ROOT / module).read_text(encoding="utf-8"), re.MULTILINE)
    assert find_limit(f"{test_id}[of a parameter]" if name else f"{module}::test_it") != ""


def test_others_have_no_limit() -> None:
    assert find_limit("tests/test_wine_limits.py::test_others_have_no_limit") == ""


def test_what_the_session_leaves_out_is_there() -> None:
    assert [part for part in windows_session.LEFT_OUT if not (ROOT / part).exists()] == []


def test_every_wheel_of_the_session_is_pinned() -> None:
    lines = windows_session.REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    assert len(pinned) > 30
    assert [line for line in pinned if not re.fullmatch(r"[\w-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line)] == []
