"""The adapters of a Windows machine, as DXGI and DXCore list them, and the one that a provider uses.

Places of methods and layouts of structures are those of dxgi.h, dxcore_interface.h and d3d12.h. Which adapter
DirectML's provider uses follows from its options (onnxruntime/core/providers/dml/dml_provider_factory.cc): `device_id`,
a place in DXGI's list, takes precedence over `device_filter` and `performance_preference`, for which it asks DXCore.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .com import CallFailed, Object, Pointer, at, expect, guid

DML = "DmlExecutionProvider"

IID_DEVICE = "189819f1-1db6-4b57-be54-1821339b85f7"
IID_FACTORY1 = "770aae78-f26f-4dba-a829-253c83d1b387"
IID_DXGI_DEVICE = "54ec77fa-1377-44e6-8c32-88fd5f44c84c"
ENUM_ADAPTERS1, CHECK_INTERFACE_SUPPORT, GET_DESC1 = 12, 9, 10
SOFTWARE = 2
"""DXGI_ADAPTER_FLAG_SOFTWARE."""

BASIC_RENDER_DRIVER = (0x1414, 0x8C)
"""Vendor and device of Microsoft's adapter without hardware, which DirectML's provider refuses, too."""

IID_ADAPTER_FACTORY = "78ee5945-c36e-4b13-a669-005dd11c0f06"
IID_ADAPTER_LIST = "526c7776-40e9-459b-b711-f32ad76dfc28"
IID_ADAPTER = "f0db4c7f-fe5a-42a2-bd62-f2a6cf6fc83e"
GENERIC_ML = "b71b0d41-1088-422f-a27c-0250b7d3a988"
CORE_COMPUTE = "248e2800-a793-4724-abaa-23a6de1be090"
CREATE_ADAPTER_LIST, GET_ADAPTER, GET_ADAPTER_COUNT = 3, 3, 4
GET_PROPERTY = 6
INSTANCE_LUID, DRIVER_VERSION, DRIVER_DESCRIPTION, HARDWARE_ID, IS_HARDWARE = 0, 1, 2, 3, 11
"""DXCoreAdapterProperty."""

CHECK_FEATURE_SUPPORT, FEATURE_LEVELS = 13, 2
"""A method of ID3D12Device, and D3D12_FEATURE_FEATURE_LEVELS."""

LEVELS = {
    0x100: "1_0_generic", 0x1000: "1_0_core", 0xB000: "11_0", 0xB100: "11_1", 0xC000: "12_0", 0xC100: "12_1",
    0xC200: "12_2",
}  # fmt: skip
"""D3D_FEATURE_LEVEL, those that compute (d3dcommon.h)."""

LEAST_LEVELS = (0xB000, 0x1000, 0x100)
"""With which a device is made: a GPU's, and those of NPUs."""


class Adapter(NamedTuple):
    """An adapter. place: that in DXGI's list, which is DirectML's `device_id`; None where DXGI has none of it, as
    of an NPU. luid: how the system calls it until it starts again. driver_version: of its user-mode driver, `31.0.1.2`;
    empty where the system does not say."""

    place: int | None
    name: str
    vendor_id: int
    device_id: int
    luid: int
    driver_version: str = ""
    is_software: bool = False


class _Desc1(ctypes.Structure):
    """DXGI_ADAPTER_DESC1."""

    _fields_ = (
        ("description", ctypes.c_uint16 * 128),
        ("vendor_id", ctypes.c_uint32),
        ("device_id", ctypes.c_uint32),
        ("subsystem_id", ctypes.c_uint32),
        ("revision", ctypes.c_uint32),
        ("dedicated_video_memory", ctypes.c_size_t),
        ("dedicated_system_memory", ctypes.c_size_t),
        ("shared_system_memory", ctypes.c_size_t),
        ("luid_low", ctypes.c_uint32),
        ("luid_high", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
    )


class _Levels(ctypes.Structure):
    """D3D12_FEATURE_DATA_FEATURE_LEVELS."""

    _fields_ = (("count", ctypes.c_uint32), ("asked", ctypes.c_void_p), ("highest", ctypes.c_uint32))


def adapter_facts(providers: Sequence[tuple[str, Mapping[str, str]]], hardware: Any = None) -> dict[str, str]:
    """Facts of the adapter that the first provider uses: `adapter`, `vendor_id`, `device_id`, `driver_version`, `luid`,
    `d3d_feature_level`, those that the system tells; none where it is not certain which adapter that is.

    hardware: of a plugin's provider, the OrtHardwareDevice that it uses; no Direct3D device is made for it, and no
    feature level is known.
    """
    if hardware is None and all(name != DML for name, _ in providers):
        return {}
    with contextlib.ExitStack() as held:
        known = _list_all(held)
        listed = [each for each, _ in known]
        found = of_hardware(listed, hardware) if hardware is not None else of_options(listed, providers)
        facts = shared_facts(found)
        if len(found) == 1 and hardware is None:
            level = feature_level(dict(known)[found[0]])
            facts.update({"d3d_feature_level": level} if level else {})
        return facts


def open_device(providers: Sequence[tuple[str, Mapping[str, str]]]) -> Object | None:
    """The ID3D12Device of the adapter that these providers use; None where it is not certain which that is. Raises
    CallFailed, or OSError where there is no Direct3D 12."""
    with contextlib.ExitStack() as held:
        known = _list_all(held)
        found = of_options([each for each, _ in known], providers)
        return create_device(dict(known)[found[0]]) if len(found) == 1 else None


def list_adapters() -> list[Adapter]:
    """All adapters, DXGI's first, in its order."""
    with contextlib.ExitStack() as held:
        return [each for each, _ in _list_all(held)]


def _list_all(held: contextlib.ExitStack) -> list[tuple[Adapter, Object]]:
    """All adapters with their objects, which `held` releases."""
    dxgi, dxcore = list(_dxgi_adapters(held)), list(_dxcore_adapters(held))
    objects = {each.luid: adapter for each, adapter in (*dxcore, *dxgi)}
    return [(each, objects[each.luid]) for each in merge([each for each, _ in dxgi], [each for each, _ in dxcore])]


def merge(dxgi: Sequence[Adapter], dxcore: Sequence[Adapter]) -> tuple[Adapter, ...]:
    """DXGI's adapters, with the driver of DXCore's where DXGI does not tell it, and then what DXCore alone lists."""
    drivers = {each.luid: each.driver_version for each in dxcore}
    listed = {each.luid for each in dxgi}
    completed = (each._replace(driver_version=each.driver_version or drivers.get(each.luid, "")) for each in dxgi)
    return (*completed, *(each for each in dxcore if each.luid not in listed))


def of_options(known: Sequence[Adapter], providers: Sequence[tuple[str, Mapping[str, str]]]) -> tuple[Adapter, ...]:
    """The adapter that DirectML's provider uses with its options; none where that is not certain."""
    index = _index_of(providers)
    if index is not None:
        return tuple(each for each in known if each.place == index)
    options = next((options for name, options in providers if name == DML), None)
    if options is None:
        return ()
    kinds = {"npu": (False,), "any": (True, False)}.get(options.get("device_filter", "gpu"), (True,))
    fitting = tuple(each for each in known if not each.is_software and (each.place is not None) in kinds)
    return fitting if len(fitting) == 1 else ()


def _index_of(providers: Sequence[tuple[str, Mapping[str, str]]]) -> int | None:
    """The `device_id` of DirectML's provider; None for none."""
    text = next((options.get("device_id", "") for name, options in providers if name == DML), "")
    return int(text) if text.isascii() and text.isdigit() else None


def of_hardware(known: Sequence[Adapter], hardware: Any) -> tuple[Adapter, ...]:
    """The adapters that an OrtHardwareDevice may be: that of its LUID or of its place in DXGI's list, where ONNX
    Runtime states one (onnxruntime/core/platform/windows/device_discovery.cc), otherwise all with its vendor and
    device."""
    if str(hardware.type).rpartition(".")[2].lower() == "cpu":
        return ()
    metadata = dict(hardware.metadata)
    luid, index = (_number(metadata.get(name, "")) for name in ("LUID", "DxgiAdapterNumber"))
    alike = [each for each in known if (each.vendor_id, each.device_id) == (hardware.vendor_id, hardware.device_id)]
    exact = [each for each in alike if luid is not None and each.luid == luid]
    exact = exact or [each for each in alike if index is not None and each.place == index]
    return tuple(exact or alike)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def shared_facts(found: Sequence[Adapter]) -> dict[str, str]:
    """The facts of an adapter, or those that several have in common; none of no adapter."""
    stated = [
        {
            "adapter": each.name,
            "vendor_id": f"{each.vendor_id:#06x}",
            "device_id": f"{each.device_id:#06x}",
            "driver_version": each.driver_version,
            "luid": f"{each.luid >> 32:#010x}_{each.luid & 0xFFFFFFFF:#010x}",
        }
        for each in found
    ]
    first = stated[0] if stated else {}
    return {name: value for name, value in first.items() if value and all(each[name] == value for each in stated)}


def format_version(packed: int) -> str:
    """A LARGE_INTEGER with a version, four numbers of 16 bits: `31.0.101.4502`; empty for 0."""
    return ".".join(str(packed >> place & 0xFFFF) for place in (48, 32, 16, 0)) if packed else ""


def feature_level(adapter: Object) -> str:
    """The highest D3D_FEATURE_LEVEL of the adapter's device, `12_1`; empty where it makes none."""
    asked = (ctypes.c_uint32 * len(LEVELS))(*LEVELS)
    levels = _Levels(len(LEVELS), ctypes.addressof(asked))
    with contextlib.suppress(OSError), create_device(adapter) as device:
        device.expect(
            "ID3D12Device::CheckFeatureSupport", CHECK_FEATURE_SUPPORT, ctypes.c_int32(FEATURE_LEVELS), at(levels),
            ctypes.c_uint32(ctypes.sizeof(levels)),
        )  # fmt: skip
    return LEVELS.get(levels.highest, "")


def create_device(adapter: Object | None) -> Object:
    """The ID3D12Device of an adapter, of which a process has one; None means the first. Raises CallFailed, or OSError
    where there is no Direct3D 12."""
    create = ctypes.CDLL("d3d12.dll").D3D12CreateDevice
    create.argtypes = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p)
    create.restype = ctypes.c_int32
    made, iid, result = Pointer(), guid(IID_DEVICE), 0
    for level in LEAST_LEVELS:
        result = create(adapter.pointer if adapter else None, level, at(iid), at(made))
        if made:
            return Object(made)
    raise CallFailed("D3D12CreateDevice", result)


def _make_factory(library: str, name: str, iid: str) -> Object:
    """What a library's function makes. Raises CallFailed; OSError or AttributeError where there is no such function."""
    create = getattr(ctypes.CDLL(library), name)
    create.argtypes, create.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_int32
    made, wanted = Pointer(), guid(iid)
    expect(name, create(at(wanted), at(made)))
    return Object(made)


def _dxgi_adapters(held: contextlib.ExitStack) -> Iterator[tuple[Adapter, Object]]:
    """The adapters of DXGI with their objects; none where there is no DXGI. held: releases the objects."""
    with contextlib.suppress(OSError, AttributeError):
        factory = held.enter_context(_make_factory("dxgi.dll", "CreateDXGIFactory1", IID_FACTORY1))
        index = 0
        while True:
            made = Pointer()
            factory.expect("IDXGIFactory1::EnumAdapters1", ENUM_ADAPTERS1, ctypes.c_uint32(index), at(made))
            adapter, desc = held.enter_context(Object(made)), _Desc1()
            adapter.expect("IDXGIAdapter1::GetDesc1", GET_DESC1, at(desc))
            ids = desc.vendor_id, desc.device_id
            yield (
                Adapter(
                    index, bytes(desc.description).decode("utf-16-le", "replace").partition("\0")[0].strip(), *ids,
                    desc.luid_high << 32 | desc.luid_low, _umd_version(adapter),
                    bool(desc.flags & SOFTWARE) or ids == BASIC_RENDER_DRIVER,
                ),
                adapter,
            )  # fmt: skip
            index += 1


def _umd_version(adapter: Object) -> str:
    """The version of the user-mode driver; empty where DXGI does not tell it."""
    version, iid = ctypes.c_int64(), guid(IID_DXGI_DEVICE)
    with contextlib.suppress(CallFailed):
        adapter.expect("IDXGIAdapter::CheckInterfaceSupport", CHECK_INTERFACE_SUPPORT, at(iid), at(version))
        return format_version(version.value & 0xFFFFFFFFFFFFFFFF)
    return ""


def _dxcore_adapters(held: contextlib.ExitStack) -> Iterator[tuple[Adapter, Object]]:
    """The adapters of DXCore that compute, NPUs among them, with their objects; none where there is no DXCore. Those
    without graphics are NPUs. held: releases the objects."""
    seen: set[int] = set()
    with contextlib.suppress(OSError, AttributeError):
        factory = held.enter_context(_make_factory("dxcore.dll", "DXCoreCreateAdapterFactory", IID_ADAPTER_FACTORY))
        for attribute in (GENERIC_ML, CORE_COMPUTE):
            wanted = guid(attribute)
            with contextlib.suppress(CallFailed):
                listed = factory.make(
                    "IDXCoreAdapterFactory::CreateAdapterList", CREATE_ADAPTER_LIST, IID_ADAPTER_LIST,
                    ctypes.c_uint32(1), at(wanted),
                )  # fmt: skip
                held.enter_context(listed)
                for place in range(listed.call(GET_ADAPTER_COUNT, answer=ctypes.c_uint32)):
                    number = ctypes.c_uint32(place)
                    adapter = listed.make("IDXCoreAdapterList::GetAdapter", GET_ADAPTER, IID_ADAPTER, number)
                    described = _describe(held.enter_context(adapter))
                    if described.luid not in seen:
                        seen.add(described.luid)
                        yield described, adapter


def _describe(adapter: Object) -> Adapter:
    """Raises CallFailed where DXCore does not tell its LUID."""
    luid, version, ids = ctypes.c_uint64(), ctypes.c_uint64(), (ctypes.c_uint32 * 4)()
    is_hardware, name = ctypes.c_bool(True), ctypes.create_string_buffer(512)
    _read_property(adapter, INSTANCE_LUID, luid)
    for number, value in ((DRIVER_VERSION, version), (HARDWARE_ID, ids), (IS_HARDWARE, is_hardware)):
        with contextlib.suppress(CallFailed):
            _read_property(adapter, number, value)
    with contextlib.suppress(CallFailed):
        _read_property(adapter, DRIVER_DESCRIPTION, name)
    text = name.value.decode("utf-8", "replace").strip()
    return Adapter(None, text, ids[0], ids[1], luid.value, format_version(version.value), not is_hardware.value)


def _read_property(adapter: Object, number: int, value: Any) -> None:
    size = ctypes.c_size_t(ctypes.sizeof(value))
    adapter.expect("IDXCoreAdapter::GetProperty", GET_PROPERTY, ctypes.c_uint32(number), size, at(value))
