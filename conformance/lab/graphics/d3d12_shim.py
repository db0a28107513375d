"""Make DirectML work on Wine's Direct3D 12 (vkd3d), from inside a process and only there.

This file runs in Windows Python under Wine, alone, before onnxruntime is imported. `install` patches four things:

- ID3D12Device5::EnumerateMetaCommands answers "none". Wine answers E_NOTIMPL, and DirectML gives up.
- IDXGIAdapter::CheckInterfaceSupport answers a version. Without an X server Wine refuses.
- D3D12CreateDevice hands out one device in a process, as Windows does for an adapter. Wine makes a new one each
  time and never lets go of it: 150 to 490 MB and 8 threads for every session.
- That device comes from a vkd3d rebuilt with shader model 6, where there is one.

A COM object is a pointer to a table of functions; a slot is an index into it, counted from IUnknown's three, in the
order of d3d12.h and dxgi.h.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import uuid

assert sys.platform == "win32"

from collections.abc import Callable  # noqa: E402
from ctypes import wintypes  # noqa: E402
from typing import Any  # noqa: E402

IID_DXGI_FACTORY1 = "770aae78-f26f-4dba-a829-253c83d1b387"
IID_D3D12_DEVICE = "189819f1-1db6-4b57-be54-1821339b85f7"
IID_D3D12_DEVICE5 = "8b4f173b-2fea-4b80-8f58-4307191ab95d"
FEATURE_LEVEL_11_0 = 0xB000

_QUERY_INTERFACE = 0  # slot in every COM object
_FACTORY_ENUM_ADAPTERS = 7
_ADAPTER_GET_DESC, _ADAPTER_CHECK_INTERFACE_SUPPORT, _ADAPTER_GET_DESC1 = 8, 9, 10
_DEVICE5_ENUMERATE_META_COMMANDS = 59
_PAGE_EXECUTE_READWRITE = 0x40
_S_OK, _S_FALSE = 0, 1
_ANY_DRIVER_VERSION = 1 << 48  # 1.0.0.0 as Windows packs it


class _Luid(ctypes.Structure):
    _fields_ = (("low", wintypes.DWORD), ("high", wintypes.LONG))


class _AdapterDesc(ctypes.Structure):
    """DXGI_ADAPTER_DESC; DXGI_ADAPTER_DESC1 begins with it."""

    _fields_ = (
        ("description", wintypes.WCHAR * 128),
        ("vendor_id", wintypes.UINT),
        ("device_id", wintypes.UINT),
        ("sub_system_id", wintypes.UINT),
        ("revision", wintypes.UINT),
        ("dedicated_video_memory", ctypes.c_size_t),
        ("dedicated_system_memory", ctypes.c_size_t),
        ("shared_system_memory", ctypes.c_size_t),
        ("luid", _Luid),
    )


_device = ctypes.c_void_p()  # the process's only ID3D12Device
_hooks: list[object] = []  # functions that native code calls: they must outlive everything


def _enumerate_meta_commands(_this: int, count: Any, _descriptions: int) -> int:
    if count:
        count[0] = 0
    return _S_OK


def _check_interface_support(_this: int, _iid: int, driver_version: Any) -> int:
    if driver_version:
        driver_version[0] = _ANY_DRIVER_VERSION
    return _S_OK


def _create_device(_adapter: int, _level: int, iid: int, result: int) -> int:
    if not result:
        return _S_FALSE  # the documented answer to "could a device be made?"
    return int(_method(_device, _QUERY_INTERFACE, ctypes.c_void_p, ctypes.c_void_p)(_device, iid, result))


def install(*, vkd3d: str | None = None, vendor: tuple[int, int] | None = None) -> None:
    """Patch this process; call it once, before onnxruntime or DirectML is loaded.

    vkd3d: the path of a vkd3d that exports VkD3D12CreateDevice; its device is then the one handed out. vendor: a PCI
    vendor and device id for the adapter to report; DirectML chooses its kernels by them. Raises OSError with the
    HRESULT of the call that failed.
    """
    adapter = _first_adapter()
    check = _hook(_check_interface_support, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))
    _patch(adapter, _ADAPTER_CHECK_INTERFACE_SUPPORT, check)
    d3d12 = ctypes.WinDLL("d3d12.dll")
    iid = _guid(IID_D3D12_DEVICE)
    if vkd3d:
        luid = _describe(adapter).luid
        create = ctypes.WinDLL(vkd3d).VkD3D12CreateDevice
        made = create(ctypes.byref(luid), None, FEATURE_LEVEL_11_0, ctypes.byref(iid), ctypes.byref(_device))
    else:
        made = d3d12.D3D12CreateDevice(None, FEATURE_LEVEL_11_0, ctypes.byref(iid), ctypes.byref(_device))
    _expect("making a Direct3D 12 device", made)
    device5 = ctypes.c_void_p()
    query = _method(_device, _QUERY_INTERFACE, ctypes.c_void_p, ctypes.c_void_p)
    _expect("ID3D12Device5", query(_device, ctypes.byref(_guid(IID_D3D12_DEVICE5)), ctypes.byref(device5)))
    none = _hook(_enumerate_meta_commands, ctypes.c_void_p, ctypes.POINTER(wintypes.UINT), ctypes.c_void_p)
    _patch(device5, _DEVICE5_ENUMERATE_META_COMMANDS, none)
    hand_out = _hook(_create_device, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p)
    jump = b"\x48\xb8" + struct.pack("<Q", _address(hand_out)) + b"\xff\xe0"  # mov rax, hand_out; jmp rax
    _write(_address(d3d12.D3D12CreateDevice), jump)
    if vendor:
        _report_vendor(adapter, *vendor)


def adapter() -> dict[str, str]:
    """The adapter that DirectML runs on.

    `adapter` (its name), `vendor_id` and `device_id` (PCI ids, hexadecimal), `driver_version`, and `vulkan_driver`
    (name and version) are those of the Vulkan device that computes; where Vulkan does not tell, DXGI's, without the
    last two.
    `dxgi_vendor_id` is what DirectML is told, and chooses its kernels by; without an X server that is 0.
    """
    described = _describe(_first_adapter())
    seen = {"dxgi_vendor_id": f"{described.vendor_id:#06x}"}
    try:
        return {**seen, **_vulkan_device()}
    except OSError:
        ids = {"vendor_id": f"{described.vendor_id:#06x}", "device_id": f"{described.device_id:#06x}"}
        return {**seen, "adapter": described.description, **ids}


def _first_adapter() -> ctypes.c_void_p:
    factory, found = ctypes.c_void_p(), ctypes.c_void_p()
    create = ctypes.WinDLL("dxgi.dll").CreateDXGIFactory1
    _expect("CreateDXGIFactory1", create(ctypes.byref(_guid(IID_DXGI_FACTORY1)), ctypes.byref(factory)))
    enumerate_adapters = _method(factory, _FACTORY_ENUM_ADAPTERS, wintypes.UINT, ctypes.c_void_p)
    _expect("IDXGIFactory::EnumAdapters", enumerate_adapters(factory, 0, ctypes.byref(found)))
    return found


def _describe(adapter: ctypes.c_void_p) -> _AdapterDesc:
    described = _AdapterDesc()
    get = _method(adapter, _ADAPTER_GET_DESC, ctypes.c_void_p)
    _expect("IDXGIAdapter::GetDesc", get(adapter, ctypes.byref(described)))
    return described


def _report_vendor(adapter: ctypes.c_void_p, vendor: int, device: int) -> None:
    for slot in (_ADAPTER_GET_DESC, _ADAPTER_GET_DESC1):
        original = _method(adapter, slot, ctypes.c_void_p)

        def describe(this: int, address: int, original: Any = original) -> int:
            result = int(original(this, address))
            if result >= 0:
                described = _AdapterDesc.from_address(address)
                described.vendor_id, described.device_id = vendor, device
            return result

        _patch(adapter, slot, _hook(describe, ctypes.c_void_p, ctypes.c_void_p))


class _InstanceCreateInfo(ctypes.Structure):
    """VkInstanceCreateInfo."""

    _fields_ = (
        ("type", ctypes.c_int32),
        ("next", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
        ("application", ctypes.c_void_p),
        ("layer_count", ctypes.c_uint32),
        ("layers", ctypes.c_void_p),
        ("extension_count", ctypes.c_uint32),
        ("extensions", ctypes.c_void_p),
    )


class _ApplicationInfo(ctypes.Structure):
    """VkApplicationInfo."""

    _fields_ = (
        ("type", ctypes.c_int32),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("version", ctypes.c_uint32),
        ("engine", ctypes.c_char_p),
        ("engine_version", ctypes.c_uint32),
        ("api_version", ctypes.c_uint32),
    )


class _DriverProperties(ctypes.Structure):
    """VkPhysicalDeviceDriverProperties."""

    _fields_ = (
        ("type", ctypes.c_int32),
        ("next", ctypes.c_void_p),
        ("id", ctypes.c_int32),
        ("name", ctypes.c_char * 256),
        ("info", ctypes.c_char * 256),
        ("conformance", ctypes.c_uint8 * 4),
    )


class _DeviceProperties(ctypes.Structure):
    """VkPhysicalDeviceProperties2, its limits as plain bytes."""

    _fields_ = (
        ("type", ctypes.c_int32),
        ("next", ctypes.c_void_p),
        ("api_version", ctypes.c_uint32),
        ("driver_version", ctypes.c_uint32),
        ("vendor_id", ctypes.c_uint32),
        ("device_id", ctypes.c_uint32),
        ("device_type", ctypes.c_int32),
        ("name", ctypes.c_char * 256),
        ("rest", ctypes.c_uint8 * 2048),
    )


_VULKAN_1_2 = (1 << 22) | (2 << 12)


def _vulkan_device() -> dict[str, str]:
    """What Vulkan says of its first device and the driver. Raises OSError when there is no Vulkan 1.1."""
    vulkan = ctypes.WinDLL("vulkan-1.dll")
    application = _ApplicationInfo(api_version=_VULKAN_1_2)
    info = _InstanceCreateInfo(type=1, application=ctypes.addressof(application))
    instance = ctypes.c_void_p()
    _expect("vkCreateInstance", vulkan.vkCreateInstance(ctypes.byref(info), None, ctypes.byref(instance)))
    try:
        count, device = ctypes.c_uint32(1), ctypes.c_void_p()
        vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), ctypes.byref(device))
        if not device:
            raise OSError("Vulkan has no device")
        driver = _DriverProperties(type=1000196000)
        properties = _DeviceProperties(type=1000059001, next=ctypes.addressof(driver))
        vulkan.vkGetPhysicalDeviceProperties2(device, ctypes.byref(properties))
        name, version = driver.name.decode(errors="replace"), driver.info.decode(errors="replace")
        return {
            "adapter": properties.name.decode(errors="replace"),
            "vendor_id": f"{properties.vendor_id:#06x}",
            "device_id": f"{properties.device_id:#06x}",
            "driver_version": version,
            "vulkan_driver": f"{name} {version}".strip(),
        }
    finally:
        vulkan.vkDestroyInstance(instance, None)


def _guid(text: str) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(uuid.UUID(text).bytes_le, 16)


def _expect(what: str, result: int) -> None:
    if result < 0:
        raise OSError(f"{what} failed with {result & 0xFFFFFFFF:#010x}")


def _hook(function: Callable[..., int], *types: Any) -> Any:
    """A Python function that native code can call: it answers an HRESULT, `types` are those of its arguments."""
    hook = ctypes.WINFUNCTYPE(ctypes.c_long, *types)(function)
    _hooks.append(hook)
    return hook


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _table(com_object: ctypes.c_void_p) -> int:
    """The address of a COM object's table of functions."""
    return ctypes.cast(com_object, ctypes.POINTER(ctypes.c_void_p))[0] or 0


def _method(com_object: ctypes.c_void_p, slot: int, *types: Any) -> Any:
    """A method of a COM object that answers an HRESULT; `types` are those of its arguments after `this`."""
    function = ctypes.c_void_p.from_address(_table(com_object) + 8 * slot).value or 0
    return ctypes.WINFUNCTYPE(ctypes.c_long, ctypes.c_void_p, *types)(function)


def _patch(com_object: ctypes.c_void_p, slot: int, function: Any) -> None:
    """Put a function into a slot, for all objects of the same class."""
    _write(_table(com_object) + 8 * slot, struct.pack("<Q", _address(function)))


def _write(address: int, data: bytes) -> None:
    """Write over code or read-only data."""
    protect, before = ctypes.windll.kernel32.VirtualProtect, wintypes.DWORD()
    place, length = ctypes.c_void_p(address), ctypes.c_size_t(len(data))
    if not protect(place, length, _PAGE_EXECUTE_READWRITE, ctypes.byref(before)):
        raise OSError(f"VirtualProtect failed at {address:#x}")
    ctypes.memmove(address, data, len(data))
    protect(place, length, before, ctypes.byref(before))
