"""Packs: many cases in one session, and the verdicts of sessions of their own."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from epcheck.conformance.judging import claim
from epcheck.conformance.preparation import model_parts, pack, prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.outcome import DONE, PLACED, Outcome
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling.grouping import Grouping
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import CPU, DML, Target
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.generators import suite
from epcheck.generators.case import Case
from tests.whole_suite import whole_suite


def prepared(case_id: str) -> PreparedCase:
    return prepared_case.of(suite.case_by_id(case_id).build())


SLICE = prepared("Slice-13/float32/inner_forward[symbolic]")
TOPK = prepared("TopK-11/float32/defaults[initializer]")
OTHER = prepared("Slice-13/int64/inner_backward_by_2[runtime]")


CPU_ALONE = Target("cpu", (), (), provider=CPU)


def records(
    target: Target, cases: list[Case], pack: bool = True, idle_workers: IdleWorkers | None = None
) -> dict[str, Record]:
    found: list[Record] = []
    run_plan(Plan(cases, (target,), pack=pack), found.append, idle_workers=idle_workers)
    return {item.case_id: item for item in found}


def verdicts(found: dict[str, Record]) -> dict[str, tuple[str, str, str, str]]:
    """Case id -> what is judged; the reason without the name of the target, with which it begins."""
    return {
        case_id: (r.status, r.blame, r.reading, r.reason.removeprefix(r.candidate.target))
        for case_id, r in found.items()
    }


def test_a_pack_holds_disjoint_subgraphs() -> None:
    model = onnx.ModelProto.FromString(pack.model([SLICE, OTHER]))
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == ["Slice", "Slice"]
    names = [{*node.input, *node.output} - {""} for node in model.graph.node]
    assert not names[0] & names[1]
    first, second = pack.prefixes([SLICE, OTHER])
    assert {f"{first}data", f"{second}data"} <= {value.name for value in model.graph.input}
    assert [value.name for value in model.graph.output] == [f"{first}output", f"{second}output"]


def test_symbolic_dimensions_of_two_cases_are_two() -> None:
    again = prepared("Slice-13/float32/inner_backward_by_2[symbolic]")
    graph = onnx.ModelProto.FromString(pack.model([SLICE, again])).graph
    dims = [value.type.tensor_type.shape.dim[0].dim_param for value in graph.input]
    assert dims == [f"{SLICE.prefix}data_0", f"{again.prefix}data_0"]


def test_a_single_case_is_its_own_pack() -> None:
    assert (pack.model([SLICE]), pack.prefixes([SLICE])) == (SLICE.model, ("",))


def test_only_cases_of_the_same_opset_have_the_same_shell() -> None:
    assert SLICE.shell == OTHER.shell != TOPK.shell


def test_a_pack_of_many_is_as_long_as_its_length_says() -> None:
    """Lengths of one, two and three bytes in protobuf's own notation."""
    cases = [
        prepared_case.of(case.build()) for case in suite.cases(["Slice"], ["float32"], ["Slice-13/*[initializer]"])
    ]
    for count in (2, 40, len(cases)):
        assert len(onnx.ModelProto.FromString(pack.model(cases[:count])).graph.node) == count


def test_names_in_the_graphs_of_attributes_are_a_cases_own_as_well() -> None:
    first, second = (prepared(f"If-16/float32/then_{name}[initializer]") for name in ("sequence", "nested"))
    model = onnx.ModelProto.FromString(pack.model([first, second]))
    onnx.checker.check_model(model, full_check=True)
    nodes = [node for node in model.graph.node if node.op_type == "If"]
    for case, node in zip((first, second), nodes, strict=True):
        branches = [attribute.g for attribute in node.attribute]
        inner = [name for g in branches for n in g.node for name in (n.name, *n.input, *n.output)]
        inner += [value.name for g in branches for value in (*g.output, *g.initializer)]
        assert len(branches) == 2
        assert inner
        assert all(name.startswith(case.prefix) for name in inner)


@pytest.mark.parametrize("field", ["value_info", "functions", "value_info of a subgraph"])
def test_a_model_with_names_elsewhere_is_not_taken_apart(field: str) -> None:
    model = onnx.ModelProto.FromString(SLICE.model)
    match field:
        case "value_info":
            model.graph.value_info.add().name = "output"
        case "functions":
            model.functions.add().name = "f"
        case _:
            model.graph.node[0].attribute.add().g.value_info.add().name = "output"
    assert model_parts.parts(model.SerializeToString(), "a/")[1] == b""


@pytest.mark.parametrize("prefix", ["a/", "0123456789ab/", model_parts.STAND_IN])
@pytest.mark.parametrize("kept", [True, False])
def test_a_prefix_stands_before_every_name_whatever_was_kept(prefix: str, kept: bool) -> None:
    """Another prefix came first; or one that a name holds, which is none that could be kept."""
    model = onnx.ModelProto.FromString(prepared("If-16/float32/then_nested[initializer]").model)
    if not kept:
        model.graph.node[0].input[0] = model.graph.input[0].name = f"x{model_parts.STAND_IN}"
    model_parts.parts(model.SerializeToString(), "another 13 b/")
    shell, graph = model_parts.parts(model.SerializeToString(deterministic=True), prefix)
    made = onnx.ModelProto.FromString(model_parts.join_graphs(shell, [graph])).graph
    first, before = made.node[0], model.graph.node[0]
    assert [*first.input, *first.output] == [prefix + name for name in (*before.input, *before.output)]
    ends = (*made.input, *made.output, *made.initializer)
    assert [value.name for value in ends] == [
        prefix + value.name for value in (*model.graph.input, *model.graph.output, *model.graph.initializer)
    ]
    bodies = [attribute.g for attribute in first.attribute]
    assert [node.name for body in bodies for node in body.node] == [
        prefix + node.name for attribute in before.attribute for node in attribute.g.node
    ]


def test_each_case_gets_its_own_part_of_the_outcome() -> None:
    floats, integers = np.array([1.0], np.float32), np.array([2], np.int64)
    mine, yours = (f"{case.prefix}output" for case in (SLICE, OTHER))
    whole = Outcome(DONE, unwritten=(yours,), repeat_differs=(mine,), create_s=0.5, run_s=0.25)
    nodes = [(DML, "Slice", f"{SLICE.prefix}node"), (CPU, "Slice", f"{OTHER.prefix}node")]
    tensors = [[mine, "float32", [1]], [yours, "int64", [1]]]
    answer = pack.SessionOutputs(tensors, floats.tobytes() + integers.tobytes(), nodes)
    first, second = pack.unpack([SLICE, OTHER], whole, answer)
    assert (first.outputs, first.unwritten, first.repeat_differs) == ({"output": floats}, (), ("output",))
    assert (second.outputs, second.unwritten, second.repeat_differs) == ({"output": integers}, ("output",), ())
    assert first.assignment == ((DML, "Slice"),)
    assert second.assignment == ((CPU, "Slice"),)
    assert (first.create_s, first.run_s, first.shared) == (0.25, 0.125, 2)


@pytest.mark.parametrize(
    ("providers", "assignment"),
    [
        ((DML, DML), ((DML, pack.INLINED),)),
        ((DML, CPU), ()),
    ],
)
def test_nodes_of_inlined_functions_have_no_name_and_tell_where_they_are_alike(
    providers: tuple[str, str], assignment: tuple[tuple[str, str], ...]
) -> None:
    """Nobody can say whose they are; where all went to one provider, nobody has to."""
    nodes = [(provider, operator, "") for provider, operator in zip(providers, ("Tanh", "Cast"), strict=True)]
    named = (DML, "Slice", f"{OTHER.prefix}node")
    answer = pack.SessionOutputs([], b"", [*nodes, named])
    first, second = pack.unpack([SLICE, OTHER], Outcome(DONE), answer)
    assert (first.assignment, second.assignment) == (assignment, ((DML, "Slice"),))
    placed, _ = pack.unpack([SLICE, OTHER], Outcome(PLACED), answer)
    assert placed.assignment == ()


def answered(*bodies: bytes) -> pack.SessionOutputs:
    """What a session of SLICE and OTHER answers with these bytes for their outputs."""
    nodes = [(CPU, "Slice", f"{case.prefix}node") for case in (SLICE, OTHER)]
    return pack.SessionOutputs([*SLICE.expected[0], *OTHER.expected[0]], b"".join(bodies), nodes)


def test_cases_that_answer_exactly_what_is_expected_share_an_outcome() -> None:
    right = [case.expected[1] for case in (SLICE, OTHER)]
    first, second = pack.unpack([SLICE, OTHER], Outcome(DONE), answered(*right))
    assert first.exact
    assert first is second


def test_a_session_of_its_own_is_as_exact_but_its_names_have_no_prefix() -> None:
    ((_, dtype, shape),), right = SLICE.expected
    answer = pack.SessionOutputs([["output", dtype, shape]], right, [(CPU, "Slice", "node")])
    (outcome,) = pack.unpack([SLICE], Outcome(DONE), answer)
    assert (outcome.exact, outcome.outputs["output"].tobytes()) == (True, right)
    (of_another_name,) = pack.unpack([SLICE], Outcome(DONE), replace(answer, tensors=[["other", dtype, shape]]))
    assert not of_another_name.exact


def test_one_other_bit_is_not_exactly_what_is_expected() -> None:
    right, other = (case.expected[1] for case in (SLICE, OTHER))
    wrong = bytes([other[0] ^ 1]) + other[1:]
    first, second = pack.unpack([SLICE, OTHER], Outcome(DONE), answered(right, wrong))
    assert (first.exact, second.exact) == (True, False)
    assert second.outputs["output"].tobytes() == wrong
    second, first = pack.unpack([OTHER, SLICE], Outcome(DONE), replace(
        answered(), tensors=[*OTHER.expected[0], *SLICE.expected[0]], body=wrong + right))  # fmt: skip
    assert (first.exact, second.exact) == (True, False)


@pytest.mark.parametrize("change", [("uint64", None), (None, [1, 1])])
def test_another_dtype_or_shape_is_not_exactly_what_is_expected(change: tuple[str | None, list[int] | None]) -> None:
    answer = answered(*(case.expected[1] for case in (SLICE, OTHER)))
    name, dtype, shape = answer.tensors[1]
    other = replace(answer, tensors=[answer.tensors[0], [name, change[0] or dtype, change[1] or shape]])
    if np.prod(other.tensors[1][2]) * np.dtype(other.tensors[1][1]).itemsize == len(OTHER.expected[1]):
        first, second = pack.unpack([SLICE, OTHER], Outcome(DONE), other)
        assert (first.exact, second.exact) == (True, False)
    else:
        with pytest.raises(ValueError, match="belong to no case"):
            list(pack.unpack([SLICE, OTHER], Outcome(DONE), other))


def test_an_empty_output_more_than_the_cases_have_belongs_to_none() -> None:
    """Its bytes, of which there are none, do not tell."""
    cases = [
        prepared("Slice-13/float32/steps_omitted[initializer]"),
        prepared("Slice-13/float32/steps_omitted[runtime]"),
    ]
    tensors = [each for case in cases for each in case.expected[0]]
    body = b"".join(case.expected[1] for case in cases)
    answer = pack.SessionOutputs([*tensors, ["more", "float32", [0]]], body, None)
    with pytest.raises(ValueError, match="1 of its outputs belong to no case"):
        list(pack.unpack(cases, Outcome(DONE), answer))


def test_an_output_under_another_s_name_is_nobody_s() -> None:
    answer = answered(*(case.expected[1] for case in (SLICE, OTHER)))
    strange = replace(answer, tensors=[answer.tensors[0], ["elsewhere/output", *answer.tensors[1][1:]]])
    first, second = pack.unpack([SLICE, OTHER], Outcome(DONE), strange)
    assert (first.exact, second.exact, second.outputs) == (True, False, {})


@pytest.mark.parametrize("shape", [[-1], ["x"], [1 << 40]])
def test_tensors_that_do_not_describe_the_body_are_no_answer(shape: list[object]) -> None:
    answer = answered(*(case.expected[1] for case in (SLICE, OTHER)))
    name, dtype, _ = answer.tensors[1]
    with pytest.raises(ValueError, match=r"has the shape|is larger than the body"):
        list(
            pack.unpack(
                [SLICE, OTHER], Outcome(DONE), replace(answer, tensors=[answer.tensors[0], [name, dtype, shape]])
            )
        )


def test_an_unsteady_session_is_exactly_nothing() -> None:
    right = [case.expected[1] for case in (SLICE, OTHER)]
    unsteady = Outcome(DONE, repeat_differs=(f"{SLICE.prefix}output",))
    first, second = pack.unpack([SLICE, OTHER], unsteady, answered(*right))
    assert (first.exact, first.repeat_differs, second.repeat_differs) == (False, ("output",), ())


@pytest.mark.parametrize(
    ("case_id", "shared"),
    [
        ("Slice-13/float32/inner_forward[runtime]", True),
        ("Slice-13/float32/refused_step_0[runtime]", False),
        ("TopK-11/float32/defaults[initializer]", True),
        ("TopK-24/float32/defaults[initializer]", False),  # DirectML's provider does not claim it
    ],
)
def test_what_is_predicted_to_fail_stays_alone(case_id: str, shared: bool) -> None:
    dml = Target("dml", (), (), provider=DML)
    case = prepared(case_id)
    assert bool(Grouping().group(case, dml, claim.predicted_status(case, dml, ()), {})) is shared


def group(case: PreparedCase, status: str) -> bytes:
    return Grouping().group(case, CPU_ALONE, status, {})


def test_cases_that_will_end_alike_share_and_those_that_end_a_worker_do_not() -> None:
    good, wrong, crashed = (group(SLICE, status) for status in ("pass", "mismatch", "crash"))
    assert good
    assert wrong
    assert wrong != good
    assert crashed == b""


def test_cases_with_empty_outputs_keep_to_themselves() -> None:
    empty = prepared("Slice-13/float32/empty_start_after_end[runtime]")
    assert group(empty, "pass") not in (b"", group(SLICE, "pass"))


@pytest.mark.slow
def test_packing_changes_no_verdict_on_cpu() -> None:
    """With everything that is wrong with the CPU provider and no expectation to predict it.

    One run with and without packs: what takes longest, the preparation of the cases, is done once for both.
    """
    shipped = resolve("cpu")
    cpu = replace(shipped, expectations=())
    alone = replace(cpu, name="alone", pack=1)
    found: dict[str, dict[str, Record]] = {cpu.name: {}, alone.name: {}}
    cases = [case for case in _distinct_cases(shipped) if not _is_unsteady(shipped, case)]
    run_plan(Plan(cases, (cpu, alone)), lambda r: found[r.candidate.target].update({r.case_id: r}))
    packed, apart = found.values()
    assert packed.keys() == apart.keys() == {case.id for case in cases}
    assert verdicts(packed) == verdicts(apart)
    assert {r.candidate.shared for r in apart.values()} == {1}
    shared = [r.candidate.shared for r in packed.values() if r.status == "pass"]
    assert sum(count > 1 for count in shared) > 3000
    assert all(r.candidate.shared == 1 for r in packed.values() if r.status != "pass")


@pytest.mark.usefixtures("installed_lab")
def test_packing_changes_no_verdict_on_directml() -> None:
    dml = replace(resolve("dml"), expectations=())
    cases = list(_steady_sample(resolve("dml")))
    with closing(IdleWorkers(keep=8)) as idle_workers:
        packed = records(dml, cases, idle_workers=idle_workers)
        assert verdicts(packed) == verdicts(records(dml, cases, pack=False, idle_workers=idle_workers))
    proofs = {
        (r.case.operator, r.candidate.assignment)
        for r in packed.values()
        if r.candidate.shared > 1 and r.status == "pass"
    }
    assert proofs >= {(name, ((DML, name),)) for name in ("Slice", "TopK", "QLinearConv")}
    assert {provider for _, nodes in proofs for provider, _ in nodes or ()} == {DML}


def _steady_sample(dml: Target) -> Iterator[Case]:
    """Every fortieth case of three operators, and some of all others that are right when they run once."""
    for case in whole_suite():
        number = zlib.crc32(case.id.encode())
        if case.operator in ("Slice", "TopK", "QLinearConv"):
            if number % 40 == 0:
                yield case
        elif number % 601 == 0 and not _wrong_statuses(dml, case):
            yield case


def _distinct_cases(cpu: Target) -> Iterator[Case]:
    """Of each operator every sample that the CPU provider is known to get wrong, each way it does, every
    sixteenth of the others, every version, every dtype and every binding.

    What a pack does to a case depends on its names and its shell (the sample with attributes and subgraphs, the
    binding, the version), and on the bytes of its outputs (the dtype); it knows nothing of a combination of them.
    """
    seen: set[tuple[str, ...]] = set()
    for case in whole_suite():
        name = case.operator_key
        parts = {(name, "version", str(case.since_version)), (name, "dtype", case.dtype), (name, "", case.binding)}
        if zlib.crc32(f"{name}/{case.sample}".encode()) % 16 == 0:
            parts.add((name, case.sample))
        parts |= {(name, case.sample, status) for status in _wrong_statuses(cpu, case)}
        if not parts <= seen:
            yield case
        seen |= parts


def _wrong_statuses(target: Target, case: Case) -> set[str]:
    """The statuses that are expected of the case in a run without variants and uses."""
    return {expected.status for expected in target.match_globs(case.id)} - set(terms.DEPENDENT)


def _is_unsteady(target: Target, case: Case) -> bool:
    """Whether the answer is known to be what the memory holds."""
    return any(e.status in ("flaky", "order-dependent") for e in target.match_globs(case.id))


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
    target = replace(resolve(f"python:faulty_in_packs:{function}"), pack=16)
    cases = list(suite.cases(["Slice"], ["float32"], ["Slice-13/float32/*_by_*[initializer]"]))
    found = records(target, cases)
    wrong = {case_id for case_id, item in found.items() if item.status != "pass"}
    assert wrong == {f"Slice-13/float32/{way}_by_3_over_7[initializer]" for way in ("forward", "backward")}
    assert {found[case_id].status for case_id in wrong} == {status}
    assert {found[case_id].candidate.attempts for case_id in wrong} == {2}
    assert len(found) == len(cases)
    assert max(item.candidate.shared for item in found.values()) > 1
