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
    "epcheck and ONNX Runtime come by PYTHONPATH there, which Python's -I passes over and these tests empty": (
        "tests/conformance/workers/test_worker.py::test_a_copy_of_the_folder_is_a_worker_wherever_it_stands",
        "tests/test_working_directory.py",
    ),
    "the lab's Windows has no git": (
        "tests/test_architecture.py::test_the_page_names_every_folder_of_a_package",
        "tests/test_architecture.py::test_classes_and_functions_fit_a_screen_or_a_few",
        "tests/test_architecture.py::test_functions_take_few_parameters",
        "tests/test_architecture.py::test_a_package_of_epcheck_is_imported_by_its_full_name",
        "tests/test_architecture.py::test_an_identifier_says_what_it_names",
        "tests/test_architecture.py::test_no_file_is_named_for_nothing",
        "tests/test_architecture.py::test_what_a_process_prints_is_read_in_a_stated_encoding",
        "tests/test_architecture.py::test_nothing_asks_the_management_of_windows",
        "tests/test_release_files.py::test_git_for_windows_checks_out_the_bytes_of_the_repository",
    ),
    "the lab's Windows Python has no nox": (
        "tests/test_contributing.py::test_every_task_that_is_named_exists",
        "tests/test_contributing.py::test_every_task_is_in_contributing",
    ),
    "CPU of onnxruntime-directml 1.24.4 crashes, refuses or is wrong where the newest release is right": (
        "tests/api/test_certify.py::test_a_certificate_says_what_was_run_and_observed",
        "tests/api/test_probe.py::test_a_probe_writes_what_the_provider_takes",
        "tests/api/test_replay_truths.py::test_what_may_be_refused_is_right_where_it_is",
        "tests/api/test_replay_truths.py::test_each_pair_that_is_accepted_is_right_and_no_other",
        "tests/api/test_replay_truths.py::test_an_exact_replay_accepts_the_outputs_alone",
        "tests/benchmarks/test_refused_sessions.py::test_no_session_that_cpu_refuses_ends_its_worker",
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
