"""Bytes of a device's memory that this process has, as its driver counts them.

Linux: NVML, which lists processes by the numbers of the caller's namespace; else Vulkan's memory budget; each is asked
only where this process has loaded such a driver. Windows: DXGI; under Wine Vulkan's budget, because Wine's DXGI counts
nothing that vkd3d allocates. The memory of a driver without a GPU is resident memory, and is not counted here.

The `run.py` of a reproduction has a copy of this file beside it, so it needs nothing else of epcheck.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import uuid
from pathlib import Path
from typing import Any

MOST = 64
"""Processes, devices and heaps that are asked for, at most of each."""

NOT_KNOWN = 2**64 - 1
"""NVML_VALUE_NOT_AVAILABLE, as memory of a process."""

PROPERTIES_2, BUDGET = 1000059006, 1000237000
"""VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2 and ..._MEMORY_BUDGET_PROPERTIES_EXT (vulkan_core.h)."""

VULKAN_1_1, VULKAN_CPU = 1 << 22 | 1 << 12, 4
"""VK_API_VERSION_1_1, and VK_PHYSICAL_DEVICE_TYPE_CPU."""

IID_FACTORY1, IID_ADAPTER3 = "770aae78-f26f-4dba-a829-253c83d1b387", "645967a4-1392-4310-a798-8053ce3e93fd"
QUERY_INTERFACE, RELEASE, ENUM_ADAPTERS1, QUERY_VIDEO_MEMORY_INFO = 0, 2, 12, 14
"""Places of methods, in the order of dxgi.h and dxgi1_4.h."""


class _Process(ctypes.Structure):
    """nvmlProcessInfo_v2_t (nvml.h)."""

    _fields_ = (
        ("pid", ctypes.c_uint32),
        ("used", ctypes.c_uint64),
        ("gpu_instance", ctypes.c_uint32),
        ("compute_instance", ctypes.c_uint32),
    )


class _Application(ctypes.Structure):
    """VkApplicationInfo."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("version", ctypes.c_uint32),
        ("engine", ctypes.c_char_p),
        ("engine_version", ctypes.c_uint32),
        ("api_version", ctypes.c_uint32),
    )


class _Instance(ctypes.Structure):
    """VkInstanceCreateInfo."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("next", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
        ("application", ctypes.c_void_p),
        ("layer_count", ctypes.c_uint32),
        ("layers", ctypes.c_void_p),
        ("extension_count", ctypes.c_uint32),
        ("extensions", ctypes.c_void_p),
    )


class _Budget(ctypes.Structure):
    """VkPhysicalDeviceMemoryBudgetPropertiesEXT. usage: bytes that this process has of each heap."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("next", ctypes.c_void_p),
        ("budget", ctypes.c_uint64 * 16),
        ("usage", ctypes.c_uint64 * 16),
    )


class _Properties2(ctypes.Structure):
    """VkPhysicalDeviceMemoryProperties2: 32 types of 8 bytes, and 16 heaps of 16."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("next", ctypes.c_void_p),
        ("type_count", ctypes.c_uint32),
        ("types", ctypes.c_uint32 * 64),
        ("heap_count", ctypes.c_uint32),
        ("heaps", ctypes.c_uint64 * 32),
    )


def read_device_bytes() -> int:
    """The sum over devices; 0 where no driver says it."""
    try:
        if sys.platform == "win32":
            return _read_vulkan("vulkan-1.dll") if _is_wine() else _read_dxgi()
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
        used = _read_nvml() if "libcuda.so" in maps or "nvidia" in maps else 0
        return used or (_read_vulkan("libvulkan.so.1") if "libvulkan.so" in maps else 0)
    except (OSError, AttributeError):  # no such library, or an old one
        return 0


def _read_nvml() -> int:
    """A process that computes and draws is in both lists of a device, with the same memory."""
    library = _open_nvml()
    count = ctypes.c_uint32()
    library.nvmlDeviceGetCount_v2(ctypes.byref(count))
    total = 0
    for index in range(min(count.value, MOST)):
        device, used = ctypes.c_void_p(), 0
        if library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint32(index), ctypes.byref(device)):
            continue
        for read in (library.nvmlDeviceGetComputeRunningProcesses_v3, library.nvmlDeviceGetGraphicsRunningProcesses_v3):
            listed, processes = ctypes.c_uint32(MOST), (_Process * MOST)()
            if read(device, ctypes.byref(listed), processes):
                continue
            own = [each.used for each in processes[: listed.value] if each.pid == os.getpid()]
            used = max([used, *(each for each in own if each != NOT_KNOWN)])
        total += used
    return total


@functools.cache
def _open_nvml() -> Any:
    """Raises OSError where the library is not there or does not start."""
    library = ctypes.CDLL("libnvidia-ml.so.1")
    if code := library.nvmlInit_v2():
        raise OSError(f"nvmlInit_v2 answered {code}")
    return library


def _read_vulkan(name: str) -> int:
    library, devices = _open_vulkan(name)
    total = 0
    for device in devices:
        budget = _Budget(BUDGET)
        properties = _Properties2(PROPERTIES_2, ctypes.addressof(budget))
        library.vkGetPhysicalDeviceMemoryProperties2(device, ctypes.byref(properties))
        total += sum(budget.usage[: min(properties.heap_count, 16)])
    return total


@functools.cache
def _open_vulkan(name: str) -> tuple[Any, tuple[ctypes.c_void_p, ...]]:
    """The library and its GPUs, of an instance that stays: to make one takes 0.1 to 0.3 s. Raises OSError."""
    library = ctypes.CDLL(name)
    application = _Application(0, None, b"epcheck", 0, None, 0, VULKAN_1_1)
    wanted = _Instance(1, None, 0, ctypes.addressof(application))
    instance = ctypes.c_void_p()
    if code := library.vkCreateInstance(ctypes.byref(wanted), None, ctypes.byref(instance)):
        raise OSError(f"vkCreateInstance answered {code}")
    count, listed = ctypes.c_uint32(MOST), (ctypes.c_void_p * MOST)()
    library.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), listed)
    devices = tuple(ctypes.c_void_p(each) for each in listed[: count.value])
    return library, tuple(each for each in devices if _read_device_type(library, each) != VULKAN_CPU)


def _read_device_type(library: Any, device: ctypes.c_void_p) -> int:
    """The fifth number of VkPhysicalDeviceProperties, which has 824 bytes."""
    properties = (ctypes.c_uint32 * 256)()
    library.vkGetPhysicalDeviceProperties(device, properties)
    return properties[4]


def _is_wine() -> bool:
    windows: Any = ctypes
    return hasattr(windows.WinDLL("ntdll"), "wine_get_version")


def _read_dxgi() -> int:
    """https://learn.microsoft.com/windows/win32/api/dxgi1_4/nf-dxgi1_4-idxgiadapter3-queryvideomemoryinfo"""
    create = ctypes.CDLL("dxgi.dll").CreateDXGIFactory1
    create.argtypes, create.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_int32
    factory, total = ctypes.c_void_p(), 0
    if create(_guid(IID_FACTORY1), ctypes.byref(factory)) < 0:
        return 0
    try:
        for index in range(MOST):
            adapter = ctypes.c_void_p()
            if _call(factory, ENUM_ADAPTERS1, index, adapter) < 0:
                break
            try:
                total += _read_adapter(adapter)
            finally:
                _call(adapter, RELEASE)
        return total
    finally:
        _call(factory, RELEASE)


def _read_adapter(adapter: ctypes.c_void_p) -> int:
    """CurrentUsage of both groups of memory segments."""
    newer, used = ctypes.c_void_p(), 0
    if _call(adapter, QUERY_INTERFACE, _guid(IID_ADAPTER3), newer) < 0:
        return 0
    for group in range(2):
        info = (ctypes.c_uint64 * 4)()  # DXGI_QUERY_VIDEO_MEMORY_INFO: Budget, CurrentUsage, ...
        if _call(newer, QUERY_VIDEO_MEMORY_INFO, 0, group, info) >= 0:
            used += info[1]
    _call(newer, RELEASE)
    return used


def _guid(text: str) -> Any:
    return ctypes.create_string_buffer(uuid.UUID(text).bytes_le, 16)


def _call(pointer: ctypes.c_void_p, place: int, *arguments: Any) -> int:
    """The HRESULT of a method of a COM object, by its place in the object's table of functions. arguments: numbers of
    32 bits, and data of ctypes whose addresses the method takes."""
    table = ctypes.cast(pointer, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p))).contents
    types = [ctypes.c_uint32 if isinstance(each, int) else ctypes.c_void_p for each in arguments]
    method = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *types)(table[place])
    return int(method(pointer, *(each if isinstance(each, int) else ctypes.addressof(each) for each in arguments)))
