"""DirectML called directly, as far as it needs no DirectML: programs, structures in memory, blame."""

from __future__ import annotations

import ctypes
import json
from dataclasses import replace

import numpy as np
import pytest

from epcheck.conformance.judging import explain
from epcheck.conformance.judging import verdict as judge
from epcheck.conformance.judging.evidence import Evidence
from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.judging.repeats import needs_confirmation
from epcheck.conformance.preparation import directml_program, prepared_case
from epcheck.conformance.preparation.directml_program import NoProgram
from epcheck.conformance.records import record, terms
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.outcome import DONE, FAILED, Outcome
from epcheck.conformance.targets.specification import direct_of
from epcheck.conformance.targets.target import CPU, DML, Target, TargetError
from epcheck.conformance.workers.program.backends.directml import structures
from epcheck.conformance.workers.program.backends.directml.backend import view_elements
from epcheck.generators import suite
from epcheck.generators.directml import DataType, Slice1, TensorDesc
from epcheck.generators.directml.descriptions.elementwise.activation import make_fused
from epcheck.generators.directml.descriptions.elementwise.elementwise import ElementWiseAdd
from epcheck.generators.directml.descriptions.recurrent.recurrent import RecurrentNetworkDirection, Rnn
from epcheck.generators.directml.lowering import Lowering

DIRECT = Target("directml", (), (), calls_directml=True)
PLACED = Target("dml@1.20.1", ("wine",), ("onnxruntime", "--prelude", "p.py"), provider=DML, pack=8)

FLOATS = TensorDesc(DataType.FLOAT32, (2, 3))
TRANSPOSED = TensorDesc(DataType.FLOAT32, (2, 3), (1, 2))
PADDED = TensorDesc(DataType.FLOAT32, (2, 3), (4, 1))
VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


# Programs


def test_a_case_becomes_the_call_of_its_operator_with_its_arrays() -> None:
    made = directml_program.of_built(suite.case_by_id("Slice-13/float32/steps_omitted[initializer]").build())
    written = json.loads(made.text)
    assert written["call"]["type"] == 111
    assert [(t["data_type"], t["sizes"]) for t in written["inputs"]] == [(1, [6])]
    assert [(t["name"], t["dtype"], t["shape"]) for t in written["outputs"]] == [("output", "float32", [4])]
    assert [feed[:3] for feed in made.feeds] == [("0", "float32", (6,))]


def test_an_input_lies_in_its_buffer_as_its_strides_say() -> None:
    assert directml_program.lay_out(FLOATS, VALUES).tolist() == [0, 1, 2, 3, 4, 5]
    assert directml_program.lay_out(TRANSPOSED, VALUES).tolist() == [0, 3, 1, 4, 2, 5]
    assert directml_program.lay_out(PADDED, VALUES).tolist() == [0, 1, 2, 0, 3, 4, 5]


def test_a_repeated_element_lies_in_its_buffer_once() -> None:
    row = TensorDesc(DataType.FLOAT32, (2, 3), (0, 1))
    assert directml_program.lay_out(row, np.broadcast_to(VALUES[0], (2, 3))).tolist() == [0, 1, 2]


def test_a_case_without_an_operator_says_why() -> None:
    empty = prepared_case.of(suite.case_by_id("Slice-13/float32/size_0_axis_sliced_backward[initializer]").build())
    program = json.loads(directml_program.of(empty).text)
    assert program["declined"].startswith("no DirectML operator is called for it: the provider calls none, or several")
    with pytest.raises(NoProgram, match="to be refused"):
        directml_program.of_built(suite.case_by_id("Slice-13/float32/refused_step_0[runtime]").build())


def test_a_description_that_writes_other_outputs_than_the_node_has_no_program() -> None:
    lowering = Lowering(ElementWiseAdd(FLOATS, FLOATS, FLOATS), (VALUES, VALUES))
    with pytest.raises(NoProgram, match="writes 1 outputs, the node has 2"):
        directml_program.of_lowering(lowering, {"a": VALUES, "b": VALUES})
    with pytest.raises(NoProgram, match="writes 6 elements for the 3 of a"):
        directml_program.of_lowering(lowering, {"a": VALUES[0]})


def test_a_case_s_output_that_is_only_turned_is_answered_as_it_is_stored() -> None:
    buffer = np.array([0, 3, 1, 4, 2, 5], np.float32)
    tensor = {"sizes": [2, 3], "strides": [1, 2]}
    assert view_elements(tensor, buffer).tolist() == VALUES.tolist()
    assert view_elements({**tensor, "as_stored": True}, buffer).ravel().tolist() == [0, 3, 1, 4, 2, 5]


def test_gaps_in_an_output_are_left_out() -> None:
    buffer = np.array([0, 1, 2, -1, 3, 4, 5, -1], np.float32)
    assert view_elements({"sizes": [2, 3], "strides": [4, 1], "as_stored": True}, buffer).tolist() == VALUES.tolist()


# Structures


def uints(address: int, count: int) -> list[int]:
    return list((ctypes.c_uint32 * count).from_address(address))


def test_a_call_becomes_the_struct_that_directml_h_declares() -> None:
    desc = Slice1(FLOATS, TensorDesc(DataType.FLOAT32, (1, 2)), (0, 1), (2, 2), (-2, 1))
    written = json.loads(directml_program.to_create(desc).text)
    made = structures.Structures(written["call"], written["inputs"], written["outputs"])
    assert made.root.type == 111
    source, target_, count = (ctypes.c_uint64 * 3).from_address(made.root.desc)
    assert count & 0xFFFFFFFF == 2
    offsets, sizes, strides = (ctypes.c_uint64 * 6).from_address(made.root.desc)[3:]
    assert (uints(offsets, 2), uints(sizes, 2)) == ([0, 1], [2, 2])
    assert list((ctypes.c_int32 * 2).from_address(strides)) == [-2, 1]
    for address, expected in ((source, ([2, 3], 24)), (target_, ([1, 2], 8))):
        tagged = structures.Tagged.from_address(address)
        tensor = structures.BufferTensorDesc.from_address(tagged.desc)
        assert (tagged.type, tensor.data_type, tensor.strides) == (1, 1, None)
        assert (uints(tensor.sizes, tensor.dimension_count), tensor.total_size) == expected


def test_nested_operators_stand_in_an_array_and_optional_tensors_are_null() -> None:
    x, w = TensorDesc(DataType.FLOAT32, (1, 1, 1, 1)), TensorDesc(DataType.FLOAT32, (1, 1, 1, 1))
    desc = Rnn(x, w, w, None, None, None, x, None, (make_fused("Tanh"),), RecurrentNetworkDirection.BACKWARD)
    written = json.loads(directml_program.to_create(desc).text)
    made = structures.Structures(written["call"], written["inputs"], written["outputs"])
    words = (ctypes.c_uint64 * 11).from_address(made.root.desc)
    assert list(words[3:6]) == [0, 0, 0]
    assert words[7] == 0
    assert words[8] & 0xFFFFFFFF == 1
    activation = structures.Tagged.from_address(words[9])
    assert activation.type == 51
    assert list((ctypes.c_uint64 * 2).from_address(activation.desc)) == [0, 0]
    assert words[10] & 0xFFFFFFFF == 1


@pytest.mark.parametrize(
    ("desc", "size"),
    [
        (TensorDesc(DataType.INT8, (3,)), 4),
        (TensorDesc(DataType.FLOAT16, (2, 3), (8, 1)), 24),
        (TensorDesc(DataType.INT64, (5,), (0,)), 8),
    ],
)
def test_the_total_size_of_a_tensor_is_that_of_dml_calc_buffer_tensor_size(desc: TensorDesc, size: int) -> None:
    strides = None if desc.strides is None else list(desc.strides)
    tensor = {"data_type": desc.data_type.value, "sizes": list(desc.sizes), "strides": strides}
    assert structures.total_bytes(tensor) == size


# Targets and verdicts


def test_the_direct_target_has_the_worker_of_the_provider_s() -> None:
    direct = direct_of(PLACED)
    assert (direct.name, direct.arguments) == ("directml@1.20.1", ("directml", "--prelude", "p.py"))
    assert (direct.provider, direct.pack, direct.calls_directml) == (None, 1, True)


def test_only_directml_s_provider_has_directml_below_it() -> None:
    with pytest.raises(TargetError, match="target 'cpu' has no DirectML below it"):
        direct_of(Target("cpu", (), (), provider=CPU))


PREPARED = prepared_case.of(suite.case_by_id("TopK-11/float64/defaults[initializer]").build())


def verdict(case: prepared_case.PreparedCase, outcome: Outcome) -> record.Record:
    return judge.verdict(case, DIRECT, Evidence(opinion(case, DIRECT, outcome)))


def test_what_the_page_refuses_may_be_refused() -> None:
    refused = Outcome(FAILED, "create", "IDMLDevice::CreateOperator answered 80070057 E_INVALIDARG")
    found = verdict(PREPARED, refused)
    assert (found.status, found.claimed, found.reading) == ("refused", False, "ok")


def test_what_the_page_takes_must_not_be_refused() -> None:
    refused = Outcome(FAILED, "create", "IDMLDevice::CreateOperator answered 80070057 E_INVALIDARG")
    found = verdict(prepared_case.of(suite.case_by_id("Slice-13/float32/steps_omitted[initializer]").build()), refused)
    assert (found.status, found.claimed, found.blame, found.reading) == ("refused", True, "candidate", "failure")


def test_a_node_that_is_no_single_operator_is_unplaced_and_no_failure() -> None:
    declined = Outcome(FAILED, "create", f"{directml_program.DECLINED}: the provider calls none, or several")
    found = verdict(PREPARED, declined)
    assert (found.status, found.reading) == ("unplaced", "ok")
    assert not needs_confirmation(PREPARED, DIRECT, found.candidate)


# Blame one level deeper


WRONG = Opinion("dml", terms.MISMATCH, message="y: 1 of 2 elements are wrong")


@pytest.mark.parametrize(
    ("direct", "same_bits", "blame"),
    [
        (Opinion("directml", terms.PASS), False, terms.LOWERING),
        (replace(WRONG, target="directml"), True, terms.BELOW),
        (Opinion("directml", terms.REFUSED, message="80070057 E_INVALIDARG"), False, terms.UNSUPPORTED),
        (Opinion("directml", terms.CRASH, message="exit code 5"), False, terms.DIFFERENTLY),
        (Opinion("directml", terms.UNPLACED, message="not called"), False, terms.NOT_CALLED),
    ],
)
def test_directml_s_own_answer_places_the_blame(direct: Opinion, same_bits: bool, blame: str) -> None:
    assert explain.find_blame(WRONG, direct, same_bits).blame == blame


def test_two_refusals_are_one_fault() -> None:
    refused = Opinion("dml", terms.REFUSED, message="80004005")
    assert explain.find_blame(refused, replace(refused, target="directml"), False).blame == terms.BELOW


def test_the_verdict_says_what_directml_does_and_the_record_keeps_it() -> None:
    direct = explain.find_blame(WRONG, Opinion("directml", terms.PASS), False)
    found = judge.verdict(PREPARED, PLACED, Evidence(WRONG, direct=direct))
    assert found.reason.endswith("; directml is right, so the provider's lowering is to blame")
    assert record.decode(record.encode(found)).direct == direct


def test_outputs_of_a_direct_call_are_judged_like_any_other() -> None:
    case = prepared_case.of(suite.case_by_id("Slice-13/float32/steps_omitted[initializer]").build())
    ((_, dtype, shape),), data = case.expected
    outputs = {"output": np.frombuffer(data, dtype).reshape(shape)}
    assert verdict(case, Outcome(DONE, outputs=outputs)).status == "pass"
    assert verdict(case, Outcome(DONE, outputs={"output": outputs["output"] + 1})).status == "mismatch"
