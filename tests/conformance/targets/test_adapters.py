"""Which adapter a target of DirectML is on: `dml:1`, `dml:nvidia`."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from epcheck.conformance.targets.adapters import Adapter, find_adapter
from epcheck.conformance.targets.config import is_reserved
from epcheck.conformance.targets.specification import describe_target, direct_of, resolve
from epcheck.conformance.targets.target import Target, TargetError

ARC = Adapter(0, "Intel(R) Arc(TM) A770")
NVIDIA = Adapter(1, "NVIDIA RTX 4090")
BASIC = Adapter(2, "Microsoft Basic Render Driver", is_software=True)
NPU = Adapter(None, "Intel(R) AI Boost")
MACHINE = (ARC, NVIDIA, BASIC, NPU)
LISTED = (
    "0: Intel(R) Arc(TM) A770, 1: NVIDIA RTX 4090, 2: Microsoft Basic Render Driver (software), NPU: Intel(R) AI Boost"
)


@pytest.mark.parametrize(
    ("wanted", "found"), [("0", ARC), ("1", NVIDIA), ("nvidia", NVIDIA), ("*arc(tm)*", ARC), ("Boost", NPU)]
)
def test_an_adapter_is_meant_by_its_number_or_its_name(wanted: str, found: Adapter) -> None:
    assert find_adapter("dml", MACHINE, wanted) == found


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("5", f"this machine has no adapter 5; it has {LISTED}"),
        ("radeon", f"this machine has no adapter whose name matches 'radeon'; it has {LISTED}"),
        ("intel", f"'intel' means several adapters; write the number of one: {LISTED}"),
        ("2", f"DirectML's provider takes no adapter of software; this machine has {LISTED}"),
    ],
)
def test_an_adapter_that_cannot_be_meant_is_one_sentence_with_those_there_are(wanted: str, words: str) -> None:
    with pytest.raises(TargetError) as error:
        find_adapter("dml:x", MACHINE, wanted)
    assert str(error.value) == f"target 'dml:x': {words}"


def test_of_several_npus_none_can_be_chosen_and_without_dxgi_there_is_nothing() -> None:
    with pytest.raises(TargetError, match="of several NPUs DirectML's provider chooses one itself"):
        find_adapter("dml:boost", (*MACHINE, NPU._replace(name="Another NPU")), "boost")
    with pytest.raises(TargetError, match="this machine has no adapter 0; it has none"):
        find_adapter("dml:0", (), "0")


@pytest.mark.parametrize("specification", ["cpu:0", "dml:", "directml: @1.20.1", "cpu:nvidia@1.20.1"])
def test_a_target_without_adapters_and_an_adapter_without_a_name_are_refused(specification: str) -> None:
    with pytest.raises(TargetError, match="write dml:ADAPTER, its number or a part of its name, as dml:1"):
        resolve(specification)


def test_a_name_with_an_adapter_is_nobody_s_table_and_has_the_provider() -> None:
    assert is_reserved("dml:1")
    assert is_reserved("directml:nvidia@1.20.1")
    assert not is_reserved("mine:1")
    assert describe_target("dml:1@1.20.1", {}).provider == "DmlExecutionProvider"


def test_directml_below_a_provider_is_called_on_the_same_adapter() -> None:
    target = Target("dml:nvidia@1.20.1", (), ("onnxruntime",), provider="DmlExecutionProvider")
    second = direct_of(replace(target, options={"device_id": "1"}))
    assert (second.name, second.arguments) == ("directml:nvidia@1.20.1", ("directml", "--adapter", "1"))
    assert direct_of(target).arguments == ("directml",)
    with pytest.raises(TargetError, match="is on an NPU"):
        direct_of(replace(target, options={"device_filter": "npu"}))


@pytest.mark.usefixtures("installed_lab")
@pytest.mark.skipif(sys.platform == "win32", reason="which adapters there are depends on the machine")
def test_the_adapter_of_the_lab_is_its_first_and_only_one() -> None:
    assert resolve("dml:0").options == {"device_id": "0"}
    with pytest.raises(TargetError, match=r"^target 'dml:5': this machine has no adapter 5; it has 0: \S[^,]*$"):
        resolve("dml:5")
    with pytest.raises(TargetError, match=r"^target 'directml:radeon': this machine has no adapter whose name matches"):
        resolve("directml:radeon")
