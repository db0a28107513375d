"""Which adapter a provider uses, and how its facts are written; `tests/installs/test_windows.py` asks DXGI itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from epcheck.conformance.workers.program.backends.directml.adapters import (
    Adapter,
    adapter_facts,
    format_version,
    list_adapters,
    merge,
    of_hardware,
    of_options,
    shared_facts,
)

ARC = Adapter(0, "Intel(R) Arc(TM) A770", 0x8086, 0x56A0, 0x1_0000_C1D5, "31.0.101.4502")
NVIDIA = Adapter(1, "NVIDIA RTX 4090", 0x10DE, 0x2684, 0xD1C0, "31.0.15.8129")
BASIC = Adapter(2, "Microsoft Basic Render Driver", 0x1414, 0x8C, 0xD2FF, "10.0.26100.1", is_software=True)
NPU = Adapter(None, "Intel(R) AI Boost", 0x8086, 0x643E, 0xE001, "32.0.100.3104")
MACHINE = (ARC, NVIDIA, BASIC, NPU)


@dataclass
class Hardware:
    """As an OrtHardwareDevice."""

    vendor_id: int
    device_id: int
    type: str = "OrtHardwareDeviceType.GPU"
    metadata: dict[str, str] = field(default_factory=dict)


def used(machine: tuple[Adapter, ...] = MACHINE, **options: str) -> tuple[Adapter, ...]:
    return of_options(machine, [["DmlExecutionProvider", options]])  # type: ignore[list-item]  # as JSON has it


@pytest.mark.parametrize(
    ("packed", "text"),
    [
        (31 << 48 | 0 << 32 | 101 << 16 | 4502, "31.0.101.4502"),
        (0xFFFF << 48 | 0xFFFF, "65535.0.0.65535"),
        (0, ""),
    ],
)
def test_a_driver_s_version_is_four_numbers(packed: int, text: str) -> None:
    assert format_version(packed) == text


def test_the_facts_of_an_adapter_have_the_names_that_conditions_know() -> None:
    assert shared_facts([ARC]) == {
        "adapter": "Intel(R) Arc(TM) A770",
        "vendor_id": "0x8086",
        "device_id": "0x56a0",
        "driver_version": "31.0.101.4502",
        "luid": "0x00000001_0x0000c1d5",
    }
    assert "driver_version" not in shared_facts([ARC._replace(driver_version="")])
    assert shared_facts([]) == {}


def test_the_device_id_of_the_provider_is_the_place_in_dxgi_s_list_whatever_else_is_asked() -> None:
    assert used(device_id="1") == (NVIDIA,)
    assert used(device_id="0", device_filter="npu") == (ARC,)
    assert used(device_id="5") == ()


def test_a_filter_names_an_adapter_where_one_alone_passes_it() -> None:
    assert used(device_filter="npu") == (NPU,)
    assert used((ARC, BASIC, NPU), device_filter="gpu") == (ARC,)
    assert used((ARC, BASIC, NPU)) == (ARC,)
    assert used(device_filter="gpu") == ()
    assert used(device_filter="any", performance_preference="minimum_power") == ()


def test_another_provider_and_none_use_no_adapter_that_is_known() -> None:
    assert of_options(MACHINE, [("CPUExecutionProvider", {"device_id": "0"})]) == ()
    assert of_options(MACHINE, ()) == ()


@pytest.mark.parametrize("metadata", [{"LUID": str(0xD1C1)}, {"DxgiAdapterNumber": "3"}])
def test_the_device_of_a_plugin_is_told_from_its_twin(metadata: dict[str, str]) -> None:
    twin = NVIDIA._replace(place=3, luid=0xD1C1)
    assert of_hardware((*MACHINE, twin), Hardware(0x10DE, 0x2684, metadata=metadata)) == (twin,)


def test_of_twins_that_nothing_tells_apart_the_facts_are_what_they_share() -> None:
    twins = of_hardware((*MACHINE, NVIDIA._replace(place=3, luid=0xD1C1)), Hardware(0x10DE, 0x2684))
    assert len(twins) == 2
    assert shared_facts(twins) == {
        "adapter": "NVIDIA RTX 4090",
        "vendor_id": "0x10de",
        "device_id": "0x2684",
        "driver_version": "31.0.15.8129",
    }


def test_a_plugin_on_an_npu_has_its_facts_and_one_on_the_cpu_has_none() -> None:
    assert of_hardware(MACHINE, Hardware(0x8086, 0x643E, "OrtHardwareDeviceType.NPU")) == (NPU,)
    assert of_hardware(MACHINE, Hardware(0x8086, 0x643E, "OrtHardwareDeviceType.CPU")) == ()


def test_what_dxgi_does_not_tell_of_a_driver_dxcore_tells() -> None:
    of_dxcore = [ARC._replace(place=None, driver_version="32.0.101.8331"), NPU]
    merged = merge([ARC._replace(driver_version=""), NVIDIA], of_dxcore)
    assert merged == (ARC._replace(driver_version="32.0.101.8331"), NVIDIA, NPU)


def test_dxgi_is_not_asked_for_another_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda _: pytest.fail("a library is loaded"))
    assert adapter_facts([("CPUExecutionProvider", {})]) == {}
    assert adapter_facts(()) == {}


def test_a_system_without_dxgi_has_no_adapters(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise OSError(name)

    monkeypatch.setattr("ctypes.CDLL", missing)
    assert list_adapters() == []
    assert adapter_facts([("DmlExecutionProvider", {"device_id": "0"})]) == {}
