"""The steps of `windows_check.py` that interrupt a run, on Windows and under Wine: `nox -s windows`."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="needs a console of Windows")

SCRIPT = Path(__file__).parents[2] / "examples" / "windows_check.py"


@pytest.fixture(scope="module")
def steps() -> dict[str, Callable[[Path], Any]]:
    """Name of a step -> what does it in a folder, and gives what was expected and what was found."""
    found: dict[str, Callable[[Path], Any]] = runpy.run_path(str(SCRIPT))["STEPS"]
    return found


@pytest.mark.parametrize("name", ["ctrl-c", "closed-console", "killed"])
def test_nothing_is_left_of_a_run_that_is_ended_and_it_can_be_resumed(
    name: str, steps: dict[str, Callable[[Path], Any]], tmp_path: Path
) -> None:
    expected, found = steps[name](tmp_path)
    assert found == expected


def test_ctrl_break_ends_a_run_as_ctrl_c_does(steps: dict[str, Callable[[Path], Any]], tmp_path: Path) -> None:
    expected, found = steps["ctrl-break"](tmp_path)
    assert found == expected
