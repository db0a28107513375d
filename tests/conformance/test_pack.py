"""Packs: many cases in one session, and the verdicts of sessions of their own."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from epcheck.conformance import lab, runner
from epcheck.conformance import target as targets
from epcheck.conformance.outcome import DONE, Outcome
from epcheck.conformance.pack import fit_together, may_be_packed, pack, unpack
from epcheck.conformance.record import Record
from epcheck.conformance.target import Target
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase, Case


def built(case_id: str) -> BuiltCase:
    return suite.case_by_id(case_id).build()


SLICE = built("Slice-13/float32/inner_forward[symbolic]")
TOPK = built("TopK-11/float32/defaults[initializer]")
OTHER = built("Slice-13/int64/inner_backward_by_2[runtime]")


def records(target: Target, cases: list[Case]) -> dict[str, Record]:
    found: list[Record] = []
    runner.run(runner.Plan(cases, (target,)), found.append)
    return {item.case_id: item for item in found}


def verdicts(found: dict[str, Record]) -> dict[str, tuple[str, str, str, str]]:
    return {case_id: (r.status, r.blame, r.reading, r.reason) for case_id, r in found.items()}


def test_a_pack_holds_disjoint_subgraphs_and_every_feed() -> None:
    whole = pack([SLICE, OTHER])
    model = onnx.ModelProto.FromString(whole.model)
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == ["Slice", "Slice"]
    names = [{*node.input, *node.output} - {""} for node in model.graph.node]
    assert not names[0] & names[1]
    assert {"case0/data", "case1/data"} <= {value.name for value in model.graph.input} == set(whole.feeds)
    assert whole.outputs == ("case0/output", "case1/output")


def test_symbolic_dimensions_of_two_cases_are_two() -> None:
    graph = onnx.ModelProto.FromString(pack([SLICE, SLICE]).model).graph
    dims = [value.type.tensor_type.shape.dim[0].dim_param for value in graph.input]
    assert dims == ["case0/data_0", "case1/data_0"]


def test_a_single_case_is_its_own_pack() -> None:
    alone = pack([SLICE])
    assert (alone.model, alone.feeds, alone.outputs) == (SLICE.model, SLICE.feeds, ("output",))


def test_cases_of_different_opsets_do_not_fit_together() -> None:
    assert fit_together(SLICE, OTHER)
    assert not fit_together(SLICE, TOPK)


@pytest.mark.parametrize(
    ("case_id", "packed"),
    [
        ("Slice-13/float32/inner_forward[runtime]", True),
        ("Slice-13/float32/refused_step_0[runtime]", False),
        ("Slice-13/float32/empty_start_after_end[runtime]", False),
        ("TopK-11/float32/defaults[initializer]", True),
        ("TopK-11/float32/default_attributes_k_0[initializer]", False),
    ],
)
def test_refusals_and_empty_outputs_stay_alone(case_id: str, packed: bool) -> None:
    assert may_be_packed(built(case_id)) is packed


def test_each_case_gets_its_own_part_of_the_outcome() -> None:
    one, two = np.array([1.0], np.float32), np.array([2], np.int64)
    whole = Outcome(
        DONE,
        outputs={"case0/output": one, "case1/output": two},
        unwritten=("case1/output",),
        repeat_differs=("case0/output",),
        create_s=0.5,
        run_s=0.25,
    )
    nodes = [("DmlExecutionProvider", "Slice", "case0/node"), ("CPUExecutionProvider", "Slice", "case1/node")]
    first, second = unpack(pack([SLICE, OTHER]), whole, nodes)
    assert (first.outputs, first.unwritten, first.repeat_differs) == ({"output": one}, (), ("output",))
    assert (second.outputs, second.unwritten, second.repeat_differs) == ({"output": two}, ("output",), ())
    assert first.assignment == (("DmlExecutionProvider", "Slice"),)
    assert second.assignment == (("CPUExecutionProvider", "Slice"),)
    assert (first.create_s, first.run_s, first.shared) == (0.25, 0.125, 2)


def test_packing_changes_no_verdict_on_cpu() -> None:
    """Every case of the suite, with everything that is wrong with the CPU provider and no expectation to predict it."""
    cpu = replace(targets.resolve("cpu"), expectations=())
    cases = list(suite.cases())
    packed = records(replace(cpu, pack=32), cases)
    assert verdicts(packed) == verdicts(records(cpu, cases))
    shared = [r.candidate.shared for r in packed.values() if r.status == "pass"]
    assert sum(count > 1 for count in shared) > 3000
    assert all(r.candidate.shared == 1 for r in packed.values() if r.status != "pass")


def test_packing_changes_no_verdict_on_directml() -> None:
    if sys.platform != "win32" and not lab.status().installed:
        lab.install()
    dml = replace(targets.resolve("dml"), expectations=())
    cases = list(suite.cases())[::11]
    packed = records(replace(dml, pack=32), cases)
    assert verdicts(packed) == verdicts(records(dml, cases))
    proofs = {(r.case.operator, r.candidate.assignment) for r in packed.values() if r.candidate.shared > 1}
    assert proofs == {(name, ((targets.DML, name),)) for name in ("Slice", "TopK", "QLinearConv")}


FAULTY = """
import os
import numpy as np
import onnxruntime as ort

def crashes_on_7_elements(model, feeds):
    if any(array.shape == (7,) for array in feeds.values()):
        os.abort()
    return answers(model, feeds)

def refuses_7_elements(model, feeds):
    if any(array.shape == (7,) for array in feeds.values()):
        raise ValueError("seven")
    return answers(model, feeds)

def answers(model, feeds):
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    return {o.name: v for o, v in zip(session.get_outputs(), session.run(None, feeds))}
"""


@pytest.mark.parametrize(
    ("function", "status"), [("crashes_on_7_elements", "crash"), ("refuses_7_elements", "refused")]
)
def test_a_failing_pack_is_split_until_the_culprit_stands_alone(
    function: str, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "faulty_in_packs.py").write_text(FAULTY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    target = replace(targets.resolve(f"python:faulty_in_packs:{function}"), pack=16)
    cases = list(suite.cases(["Slice"], ["float32"], ["Slice-13/float32/*_by_*[initializer]"]))
    found = records(target, cases)
    wrong = {case_id for case_id, item in found.items() if item.status != "pass"}
    assert wrong == {f"Slice-13/float32/{way}_by_3_over_7[initializer]" for way in ("forward", "backward")}
    assert {found[case_id].status for case_id in wrong} == {status}
    assert {found[case_id].candidate.attempts for case_id in wrong} == {2}
    assert len(found) == len(cases)
    assert max(item.candidate.shared for item in found.values()) > 1
