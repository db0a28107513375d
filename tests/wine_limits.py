"""What Wine cannot do and Windows can: the tests that `nox -s windows` leaves out on Linux, each with the reason."""

from __future__ import annotations

import sys
from collections.abc import Mapping

LIMITS: Mapping[str, tuple[str, ...]] = {
    "Ctrl-Break raises no SIGBREAK in Wine's C runtime, and ends no run": (
        "tests/examples/test_windows_check.py::test_ctrl_break_ends_a_run_as_ctrl_c_does",
    ),
    "the CPU time of a start is that of Wine's loader, too": (
        "tests/cli/test_help.py::test_help_is_fast_and_imports_neither_onnx_nor_numpy",
        "tests/cli/test_completion.py::test_an_answer_is_fast_and_imports_neither_onnx_nor_numpy",
    ),
}
"""Reason -> the tests, by module and name, or by module alone."""


def is_wine() -> bool:
    """Whether Windows Python runs under Wine, whose ntdll has a function more."""
    if sys.platform != "win32":
        return False
    import ctypes

    return hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")


def find_limit(test_id: str) -> str:
    """Why a test cannot run under Wine; empty where it can."""
    name = test_id.partition("[")[0]
    return next((reason for reason, tests in LIMITS.items() if name in tests or name.partition("::")[0] in tests), "")
