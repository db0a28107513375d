"""Which runs are of one class, and what is said of what changed between two of them."""

from __future__ import annotations

from typing import Any

import pytest
from stored_records import a_run

from epcheck.conformance.records.run import Run
from epcheck.reports.runs.fingerprint import (
    Changed,
    FingerprintClass,
    changes,
    describe_changes,
    fingerprint,
    fingerprint_class,
)

LAVAPIPE = {
    "os": "Windows-10-10.0.19043-SP0",
    "processor": "Intel(R) Xeon(R) Processor, fma, avx2",
    "interpreter": "Z:\\lab\\python.exe",
    "onnxruntime": "1.24.4",
    "onnxruntime_build": "git-commit-id=2d92",
    "DirectML.dll": "1.15.4.0",
    "adapter": "llvmpipe (LLVM 19.1.7, 256 bits)",
    "vendor_id": "0x10005",
    "device_id": "0x0000",
    "driver_version": "Mesa 25.0.7 (LLVM 19.1.7)",
    "vulkan_driver": "llvmpipe Mesa 25.0.7 (LLVM 19.1.7)",
    "graphics_stack": "wine 10.0, vkd3d 1.14 DXIL, llvmpipe Mesa 25.0.7 (LLVM 19.1.7)",
}


def night(target: str = "dml", selection: dict[str, Any] | None = None, **facts: str) -> Run:
    return a_run(candidates=(target,), targets={target: {**LAVAPIPE, **facts}}, selection=selection or {})


def changed(older: Run, newer: Run, target: str = "dml") -> list[str]:
    return [str(change) for change in changes(fingerprint(older, target), fingerprint(newer, target))]


def test_a_new_driver_and_a_new_runtime_are_of_the_same_class() -> None:
    newer = night(
        driver_version="Mesa 26.1.0 (LLVM 20.1.0)",
        adapter="llvmpipe (LLVM 20.1.0, 256 bits)",
        onnxruntime="1.30.0",
    )
    assert fingerprint_class(night(), "dml") == fingerprint_class(newer, "dml")
    assert str(fingerprint_class(newer, "dml")) == "DmlExecutionProvider on llvmpipe, the whole suite"


def test_another_adapter_is_another_class_even_where_only_the_device_differs() -> None:
    first, second = (
        night(adapter="NVIDIA H200", vendor_id="0x10de", device_id=device) for device in ("0x2335", "0x2336")
    )
    assert fingerprint_class(first, "dml").adapter == "NVIDIA H200 [10de:2335]"
    assert fingerprint_class(first, "dml") != fingerprint_class(second, "dml")


@pytest.mark.parametrize(
    ("target", "provider"),
    [
        ("dml", "DmlExecutionProvider"),
        ("dml@1.20.1", "DmlExecutionProvider"),
        ("cpu@1.24.4", "CPUExecutionProvider"),
        ("/opt/venv/bin/python", "CPUExecutionProvider"),
        ("C:\\venv\\python.exe#CUDAExecutionProvider", "CUDAExecutionProvider"),
        ("python:mine:backend", "python:mine:backend"),
        ("mine", "mine"),
    ],
)
def test_the_provider_is_read_from_the_specification(target: str, provider: str) -> None:
    assert fingerprint_class(night(target), target).provider == provider


def test_without_a_gpu_the_adapter_is_the_processor_without_its_features() -> None:
    assert fingerprint_class(night("cpu", adapter=""), "cpu").adapter == "Intel Xeon Processor"


def test_a_target_that_never_answered_has_an_unknown_adapter() -> None:
    run = a_run(targets={}, selection={})
    assert fingerprint_class(run, "dml") == FingerprintClass("DmlExecutionProvider", "unknown", "the whole suite")


def test_the_selection_counts_and_how_it_was_run_does_not() -> None:
    older = {"operators": [], "limit": None, "jobs": None, "pack": True}
    newer = {"operators": [], "limit": None, "jobs": 4, "pack": False, "source": "suite", "thin": False}
    assert fingerprint_class(night(selection=older), "dml") == fingerprint_class(night(selection=newer), "dml")
    thin = night(selection={**newer, "thin": True, "operators": ["TopK", "Slice"], "source": "onnx"})
    assert fingerprint_class(thin, "dml").selection == "operators Slice+TopK, source onnx, thin"
    varied = night(selection={**newer, "variants": ["level", "binding"]})
    assert fingerprint_class(varied, "dml").selection.endswith("variants binding+level")


def test_what_did_not_change_is_not_told() -> None:
    assert changed(night(), night(interpreter="D:\\elsewhere.exe")) == []
    assert describe_changes(()) == "Same driver, runtime and OS."


def test_a_new_driver_is_told_once_though_four_facts_name_its_version() -> None:
    newer = night(
        driver_version="Mesa 26.1.0 (LLVM 20.1.0)",
        vulkan_driver="llvmpipe Mesa 26.1.0 (LLVM 20.1.0)",
        adapter="llvmpipe (LLVM 20.1.0, 256 bits)",
        graphics_stack="wine 10.0, vkd3d 1.14 DXIL, llvmpipe Mesa 26.1.0 (LLVM 20.1.0)",
    )
    assert changed(night(), newer) == ["driver: Mesa 25.0.7 (LLVM 19.1.7) → Mesa 26.1.0 (LLVM 20.1.0)"]


def test_the_parts_of_the_stack_are_told_by_name() -> None:
    newer = night(graphics_stack="wine 10.4, vkd3d 1.15 DXIL, llvmpipe Mesa 25.0.7 (LLVM 19.1.7)")
    assert changed(night(), newer) == ["Wine: 10.0 → 10.4", "vkd3d: 1.14 DXIL → 1.15 DXIL"]


def test_another_build_is_told_only_of_the_same_release() -> None:
    build = night(onnxruntime_build="git-commit-id=beef")
    release = night(onnxruntime_build="git-commit-id=beef", onnxruntime="1.30.0")
    assert changed(night(), build) == ["onnxruntime's build: git-commit-id=2d92 → git-commit-id=beef"]
    assert changed(night(), release) == ["onnxruntime: 1.24.4 → 1.30.0"]


def test_epcheck_and_onnx_are_parts_of_the_fingerprint() -> None:
    older, newer = (a_run(versions={"epcheck": e, "onnx": o}) for e, o in (("0.1.0", "1.20.0"), ("0.2.0", "1.23.2")))
    assert changed(older, newer) == ["epcheck: 0.1.0 → 0.2.0", "onnx: 1.20.0 → 1.23.2"]


def test_what_one_run_does_not_have_is_gone_or_new() -> None:
    assert changes({"vkd3d": "1.14"}, {"OS": "Windows 11"}) == (
        Changed("OS", "", "Windows 11"),
        Changed("vkd3d", "1.14", ""),
    )
    assert str(Changed("vkd3d", "1.14", "")) == "vkd3d: 1.14 is gone"
