"""The real DirectML.dll, called without ONNX Runtime."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import psutil
import pytest

from epcheck.conformance.directml import probing
from epcheck.conformance.directml.client import CallRefusedError, DirectMLClient, WorkerLostError
from epcheck.conformance.records import terms
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets.specification import direct_of, resolve
from epcheck.conformance.targets.target import Target
from epcheck.generators import suite
from epcheck.generators.directml import AxisDirection, DataType, Slice1, TensorDesc, TopK1
from epcheck.generators.directml.descriptions.elementwise.elementwise import ElementWiseAdd
from epcheck.generators.directml.descriptions.movement.filling import FillValueConstant
from epcheck.generators.directml.neighbours import neighbours
from epcheck.generators.directml.probes import Probe, examples, probes
from epcheck.reports.page.device_claims import claims

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the lab is for Linux")

FLOATS = TensorDesc(DataType.FLOAT32, (1, 1, 2, 3))
ADD = ElementWiseAdd(FLOATS, FLOATS, FLOATS)
VALUES = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)


def patient(specification: str) -> Target:
    """A target that may take its time on a machine with other work."""
    return replace(resolve(specification), startup_s=300.0, deadline_s=300.0)


@pytest.fixture(scope="module")
def directml(installed_lab: None) -> Iterator[DirectMLClient]:  # noqa: ARG001
    """A worker with the real DirectML, in the lab of this machine."""
    with DirectMLClient(patient("directml")) as found:
        yield found


@pytest.mark.usefixtures("installed_lab")
def test_a_client_that_is_left_leaves_no_process() -> None:
    before = {child.pid for child in psutil.Process().children()}
    with DirectMLClient(patient("directml")) as client:
        assert lives(client)
        assert {child.pid for child in psutil.Process().children()} - before
    assert {child.pid for child in psutil.Process().children()} - before == set()


def lives(directml: DirectMLClient) -> bool:
    (total,) = directml.dispatch(ADD, VALUES, VALUES)
    return total.tolist() == [[[[0, 2, 4], [6, 8, 10]]]]


@pytest.mark.parametrize("probe", list(probes()), ids=lambda probe: probe.id)
def test_a_call_gives_its_exact_result(directml: DirectMLClient, probe: Probe) -> None:
    assert probing.run_probe(directml, probe).wrong == ""


def test_the_pages_examples_give_the_pages_numbers(directml: DirectMLClient) -> None:
    results = {probe.id: directml.dispatch(probe.description, *probe.feeds) for probe in examples()}
    assert results["example/SLICE1/example_1"][0].tolist() == [[[[2, 4], [10, 12]]]]
    assert results["example/SLICE1/example_2"][0].tolist() == [[[[14, 16], [6, 8]]]]
    values, indices = results["example/TOP_K1/example_3"]
    assert values.tolist() == [[[[3, 2, 2], [5, 5, 4], [6, 6, 6]]]]
    assert indices.tolist() == [[[[3, 1, 2], [2, 3, 1], [0, 1, 2]]]]


def test_the_device_claims_what_is_documented(directml: DirectMLClient) -> None:
    assert lives(directml)
    found = claims(directml.facts)
    assert found is not None
    assert found.level == found.documented_level == "DML_FEATURE_LEVEL_6_4"
    assert len(found.data_types) == 13
    assert found.differences == ()


def test_an_invalid_description_is_a_clean_error_and_the_worker_lives_on(directml: DirectMLClient) -> None:
    assert lives(directml)
    before = directml.worker.pid
    with pytest.raises(CallRefusedError, match="IDMLDevice::CreateOperator answered 80070057 E_INVALIDARG") as error:
        directml.dispatch(ElementWiseAdd(FLOATS, TensorDesc(DataType.INT32, FLOATS.sizes), FLOATS), VALUES, VALUES)
    assert error.value.stage == "create"
    assert lives(directml)
    assert directml.worker.pid == before


EIGHT_GIB = FillValueConstant(TensorDesc(DataType.FLOAT64, (1, 1, 1 << 15, 1 << 15)), DataType.FLOAT64, "1")
"""It is valid, and has no inputs: what is too large is the output alone."""


def test_a_tensor_that_the_device_cannot_hold_is_a_clean_error_and_the_worker_lives_on(
    directml: DirectMLClient,
) -> None:
    assert lives(directml)
    before = directml.worker.pid
    assert directml.accepts(EIGHT_GIB) == ""
    refused = r"CreateCommittedResource of 8589934592 bytes answered 8007000E E_OUTOFMEMORY"
    with pytest.raises(CallRefusedError, match=refused) as error:
        directml.dispatch(EIGHT_GIB)
    assert error.value.stage == "run"
    with pytest.raises(CallRefusedError, match=r"CreateCommittedResource of \d{13} bytes answered 8007000E"):
        directml.dispatch(ADD, VALUES, VALUES, options={"OutputTensor": {"offset": 1 << 40}})
    assert lives(directml)
    assert directml.worker.pid == before


def test_a_removed_device_is_told_and_its_worker_replaced(directml: DirectMLClient) -> None:
    assert lives(directml)
    before = directml.worker.pid
    with pytest.raises(WorkerLostError, match=r"the device was lost \(removed: .*887A0005 DXGI_ERROR_DEVICE_REMOVED"):
        directml.dispatch(ADD, VALUES, VALUES, options={"ATensor": {"bound_bytes": 4}})
    assert lives(directml)
    assert directml.worker.pid != before


SLICE = Slice1(TensorDesc(DataType.INT32, (8,)), TensorDesc(DataType.INT32, (3,)), (0,), (7,), (-3,))
ROW = TensorDesc(DataType.FLOAT16, (1, 1, 2, 7))
BEST = TensorDesc(DataType.FLOAT16, (1, 1, 2, 3))
TOP = TopK1(ROW, BEST, TensorDesc(DataType.UINT32, (1, 1, 2, 3)), 3, 3, AxisDirection.DECREASING)


@pytest.mark.parametrize("valid", [SLICE, TOP], ids=["SLICE1", "TOP_K1"])
def test_validate_and_directml_refuse_the_same_descriptions(directml: DirectMLClient, valid: Slice1 | TopK1) -> None:
    found = list(probing.borders(directml, valid))
    assert len(found) > len(list(neighbours(valid))) // 2
    assert {border.what for border in found if border.judgement == probing.AGREE_REFUSED}
    assert [border for border in found if border.judgement.startswith("only")] == []


def records(candidate: str, *case_ids: str, explained: bool = False) -> dict[str, Record]:
    taken: list[Record] = []
    target = patient(candidate)
    below = {target.name: direct_of(target)} if explained else {}
    cases = [suite.case_by_id(case_id) for case_id in case_ids]
    run_plan(Plan(cases, (target,), below=below, jobs=1), taken.append)
    return {entry.case_id: entry for entry in taken}


@pytest.mark.usefixtures("directml")
def test_cases_run_on_the_target_directml() -> None:
    slice_, quantised, none = (
        "Slice-13/int64/negative_step_past_both_ends[runtime]",
        "QLinearConv-10/uint8-int8-uint8/per_tensor[initializer]",
        "Slice-13/float32/refused_step_0[runtime]",
    )
    found = records("directml", slice_, quantised, none)
    assert {case_id: entry.status for case_id, entry in found.items()} == {
        slice_: terms.PASS, quantised: terms.PASS, none: terms.UNPLACED,
    }  # fmt: skip
    assert "the node is to be refused before anything is called" in found[none].reason


@pytest.mark.usefixtures("directml")
def test_a_failure_of_the_provider_is_explained_by_directml() -> None:
    refused, wrong = (
        "Slice-13/float32/axes_omitted_steps[initializer]",
        "TopK-1/float32/all_nan_largest_whole_axis[runtime]",
    )
    found = records("dml", refused, wrong, explained=True)
    blamed = {
        case_id: (entry.direct.blame, entry.direct.opinion.status) for case_id, entry in found.items() if entry.direct
    }
    assert blamed == {refused: (terms.LOWERING, terms.PASS), wrong: (terms.BELOW, terms.MISMATCH)}
