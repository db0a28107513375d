"""The device's memory of a process, with NVML's lists played by functions of the same names."""

import ctypes
import os
import sys

import numpy as np
import pytest

from epcheck.conformance.workers.program.backends import device_memory, uses

OWN, OTHER = 7 << 20, 5 << 30


class Library:
    """Functions of NVML on two devices. The second has no list of processes that draw."""

    def nvmlDeviceGetCount_v2(self, count: "ctypes._CArgObject") -> int:  # noqa: N802
        count._obj.value = 2  # type: ignore[attr-defined]
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: ctypes.c_uint32, device: "ctypes._CArgObject") -> int:  # noqa: N802
        device._obj.value = index.value + 1  # type: ignore[attr-defined]
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(  # noqa: N802
        self, _device: ctypes.c_void_p, count: "ctypes._CArgObject", processes: "ctypes.Array[device_memory._Process]"
    ) -> int:
        count._obj.value = 2  # type: ignore[attr-defined]
        processes[0] = device_memory._Process(1 << 30, OTHER)
        processes[1] = device_memory._Process(os.getpid(), OWN)
        return 0

    def nvmlDeviceGetGraphicsRunningProcesses_v3(  # noqa: N802
        self, device: ctypes.c_void_p, count: "ctypes._CArgObject", processes: "ctypes.Array[device_memory._Process]"
    ) -> int:
        if device.value == 2:
            return 3
        used = OWN + 1 if device.value == 1 else device_memory.NOT_KNOWN
        count._obj.value = 1  # type: ignore[attr-defined]
        processes[0] = device_memory._Process(os.getpid(), used)
        return 0


def test_nvml_counts_this_process_once_on_each_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_memory, "_open_nvml", Library)
    assert device_memory._read_nvml() == 2 * OWN + 1


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of Linux' processes")
def test_a_process_that_has_loaded_no_driver_has_no_device_memory() -> None:
    assert device_memory.read_device_bytes() == 0


def test_a_session_that_leaves_device_memory_is_a_leak() -> None:
    held = [0]

    def create() -> uses.Session:
        held[0] += 1 << 20
        return lambda feeds: feeds

    sessions = uses.Sessions(create, read_device_bytes=lambda: held[0])
    with pytest.raises(uses.UseError, match=r"sessions that were released leave [\d,]+ bytes of device memory"):
        uses.USES["lifecycle=repeated"](sessions, {"x": np.ones(3, np.float32)})
