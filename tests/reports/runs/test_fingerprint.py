"""Which runs are of one class, and what is said of what changed between two of them."""

from __future__ import annotations

from typing import Any

import pytest

from epcheck.conformance.records.run import Run
from epcheck.reports.runs.fingerprint import (
    Changed,
    FingerprintClass,
    changes,
    describe_changes,
    fingerprint,
    fingerprint_class,
    unknown_parts,
)
from tests.reports.stored_records import a_run

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


@pytest.mark.parametrize(
    ("target", "facts", "adapter"),
    [
        ("dml", {}, "unknown adapter beside Intel Xeon Processor"),
        ("dml", {"provider_options": "device_id=1"}, "unknown adapter 1 beside Intel Xeon Processor"),
        ("python.exe#CUDAExecutionProvider", {}, "unknown adapter beside Intel Xeon Processor"),
        ("ep:of_gpus", {"device": "gpu of NVIDIA (0x10de:0x2335)"}, "gpu of NVIDIA (0x10de:0x2335)"),
        ("ep:of_cpus", {"device": "cpu of Intel (0x8086:0x0000)"}, "Intel Xeon Processor"),
        ("ep:openvino", {"provider_options": "device_type=CPU, threads=2"}, "Intel Xeon Processor"),
        ("cpu", {}, "Intel Xeon Processor"),
        ("reference", {}, "Intel Xeon Processor"),
    ],
)
def test_an_adapter_that_is_not_stated_is_not_the_processor(target: str, facts: dict[str, str], adapter: str) -> None:
    stated = {"processor": LAVAPIPE["processor"], **facts}
    if target.startswith("ep:"):
        stated["execution_provider"] = "OneOfAnExecutionProvider"
    run = a_run(candidates=(target,), targets={target: stated}, selection={})
    assert fingerprint_class(run, target).adapter == adapter


def test_two_adapters_behind_one_processor_are_two_classes() -> None:
    arc = {"adapter": "Intel Arc A770", "vendor_id": "0x8086", "device_id": "0x56a0"}
    nvidia = {"adapter": "NVIDIA RTX 4090", "vendor_id": "0x10de", "device_id": "0x2684"}
    first, second = (fingerprint_class(night(**facts), "dml") for facts in (arc, nvidia))
    assert (first.provider, first.selection) == (second.provider, second.selection)
    assert first != second
    unstated = [
        fingerprint_class(night(adapter="", provider_options=f"device_id={number}"), "dml") for number in (0, 1)
    ]
    assert unstated[0] != unstated[1]


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


def unknown(first: dict[str, str], second: dict[str, str], target: str = "dml") -> tuple[str, ...]:
    older, newer = (a_run(candidates=(target,), targets={target: facts}) for facts in (first, second))
    return unknown_parts((older, target), (newer, target))


NATIVE = {"os": "Windows-11", "processor": "Intel", "onnxruntime": "1.24.4", "DirectML.dll": "1.15.4.0"}


def test_a_driver_that_one_night_does_not_state_is_unknown_and_not_the_same() -> None:
    stated = {**NATIVE, "adapter": "Arc", "driver_version": "31.0.101.4502"}
    assert unknown(stated, stated) == ()
    assert unknown(stated, NATIVE) == unknown(NATIVE, stated) == unknown(NATIVE, NATIVE) == ("driver",)
    assert describe_changes((), ("driver",)) == "Same runtime and OS; driver unknown."
    assert describe_changes((), ("driver", "runtime", "OS")) == "Driver, runtime and OS unknown."
    change = Changed("onnxruntime", "1.20.1", "1.24.4")
    assert describe_changes((change,), ("driver",)) == "Changed: onnxruntime: 1.20.1 → 1.24.4; driver unknown."


def test_a_driver_that_appears_is_a_change_and_not_unknown_as_well() -> None:
    change = Changed("driver", "", "31.0.101.4502")
    assert describe_changes((change,), ("driver",)) == "Changed: driver: 31.0.101.4502, not there before."


def test_a_provider_on_the_cpu_has_no_driver_and_others_on_any_system_do() -> None:
    linux = {"os": "Linux-6.1", "onnxruntime": "1.24.4", "processor": "Intel"}
    assert unknown(linux, linux, "cpu") == ()
    assert unknown(linux, linux, "/venv/bin/python#CUDAExecutionProvider") == ("driver",)
    assert unknown({"onnx": "1.20", "os": "Linux"}, {"onnx": "1.20", "os": "Linux"}, "reference") == ()
    assert unknown({"os": "Linux"}, {"os": "Linux"}, "python:mine:backend") == ("driver", "runtime")
    on_cpu = {**linux, "device": "cpu of Intel (0x8086:0x0000)"}
    on_gpu = {**linux, "execution_provider": "WebGpuExecutionProvider", "device": "gpu of Arc (0x8086:0x56a0)"}
    assert unknown(on_cpu, on_cpu, "ep:mine") == ()
    assert unknown(on_gpu, on_gpu, "ep:mine") == ("driver",)


def test_a_new_driver_is_told_once_though_four_facts_name_its_version() -> None:
    newer = night(
        driver_version="Mesa 26.1.0 (LLVM 20.1.0)",
        vulkan_driver="llvmpipe Mesa 26.1.0 (LLVM 20.1.0)",
        adapter="llvmpipe (LLVM 20.1.0, 256 bits)",
        graphics_stack="wine 10.0, vkd3d 1.14 DXIL, llvmpipe Mesa 26.1.0 (LLVM 20.1.0)",
    )
    assert changed(night(), newer) == ["driver: Mesa 25.0.7 (LLVM 19.1.7) → Mesa 26.1.0 (LLVM 20.1.0)"]


def test_the_feature_level_and_the_luid_of_an_adapter_are_no_changes_of_their_own() -> None:
    older, newer = (
        night(driver_version=driver, d3d_feature_level=level, luid=luid)
        for driver, level, luid in (("31.0", "12_1", "0x0_0x1"), ("32.0", "12_2", "0x0_0x2"))
    )
    assert changed(older, newer) == ["driver: 31.0 → 32.0"]
    assert changed(night(luid="0x0_0x1"), night(luid="0x0_0x2")) == []


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
