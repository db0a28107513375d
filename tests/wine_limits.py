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
    "the lab's Windows Python is the embeddable one, which has neither pip nor ensurepip": (
        "tests/conformance/lab/packages/test_wheels.py::test_the_pip_of_this_python_comes_first",
        "tests/conformance/lab/packages/test_wheels.py::"
        "test_where_there_is_no_pip_the_one_that_python_keeps_for_new_environments_runs",
    ),
    "ONNX Runtime comes by PYTHONPATH there, which Python's -I passes over": (
        "tests/conformance/workers/test_worker.py::test_a_copy_of_the_folder_is_a_worker_wherever_it_stands",
    ),
    "/proc is there, below drive Z, and does not list what a program of Windows has open": (
        "tests/conformance/workers/program/test_contract.py::test_a_session_that_writes_leaves_and_opens_is_described",
    ),
    "onnxruntime-directml lists its kernels with a D3D12 device, which Wine has in workers of dml alone": (
        "tests/conformance/judging/test_kernel_coverage.py::test_the_command_names_the_kernels_of_cpu_and_writes_them",
        "tests/conformance/judging/test_kernel_registry.py::test_a_worker_lists_every_kernel_and_schema_of_its_runtime",
        "tests/conformance/judging/test_kernel_registry.py::test_the_runtime_s_own_library_names_its_kernels",
        "tests/generators/test_exclusions.py::test_what_no_runtime_has_is_not_in_the_registry_and_is_no_function",
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
