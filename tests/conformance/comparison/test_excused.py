"""Right answers that only a published floor accepts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from epcheck.conformance.comparison import compare
from epcheck.conformance.comparison.accuracy import measure_accuracy
from epcheck.conformance.comparison.excused import FLUSHED, find_excused, in_words, published_floor
from epcheck.conformance.judging import opinion_row
from epcheck.conformance.judging.evidence import Evidence
from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.judging.verdict import verdict
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Excused, Opinion
from epcheck.conformance.records.outcome import DONE, Outcome
from epcheck.conformance.records.record import decode, encode
from epcheck.conformance.targets.target import CPU, Target
from epcheck.generators import suite
from epcheck.generators.bounds import bounds, elementary, propagation
from epcheck.generators.bounds.elementary import SINCOS
from epcheck.generators.citation import Citation, Citations, statement
from epcheck.generators.graphs.graph_truth import TRAVELLED
from epcheck.generators.sources.node_tests import TWICE
from epcheck.generators.truth import Output, Outputs, Ulp
from epcheck.reports.causes.symptom import describe_remark
from tests.conformance.judged_cases import CLAIMED, DIRECTML, ON_DML, UNCLAIMED

FLOAT32 = np.dtype(np.float32)
ENTRY = Excused("y", 2, 5, 640.0, 4.0, SINCOS.text, 0.0008, (3,), "0.1", "0.1004")


def sine(x: list[float]) -> Output:
    """The sine of x with its bound: 4 ULP, or 0.0008."""
    wide = np.array(x)
    return bounds.round_output("y", np.sin(wide), FLOAT32, elementary.bound_of("sin", wide, np.sin(wide), FLOAT32))


def found(output: Output, got: list[float]) -> tuple[Excused, ...]:
    truth, outputs = Outputs((output,)), {"y": np.array(got, FLOAT32)}
    assert compare.differences(truth, outputs) == ()
    return find_excused(truth, outputs, measure_accuracy(truth, outputs))


def test_a_sine_that_is_far_off_is_right_and_excused_by_direct3d_s_floor() -> None:
    true = np.sin([0.5, 1.0, 3.0])
    (entry,) = found(sine([0.5, 1.0, 3.0]), [true[0], true[1] + 0.0004, true[2] + 0.0005])
    assert (entry.output, entry.elements, entry.total, entry.at) == ("y", 2, 3, (2,))
    assert (entry.floor, entry.allowed, entry.bound) == (SINCOS.text, 0.0008, 4.0)
    assert entry.max_ulp == pytest.approx(0.0005 / np.spacing(np.float32(true[2])), rel=0.01)
    assert entry.got == str(np.float32(true[2] + 0.0005))
    assert "2 of 3 elements are up to" in in_words((entry,))
    assert "within 0.0008 absolute (Direct3D 11.3 functional specification, sincos)" in in_words((entry,))


def test_a_sine_within_some_ulp_needs_no_excuse() -> None:
    true = np.float32(np.sin(1.0))
    assert found(sine([1.0]), [float(true + 8 * np.spacing(true))]) == ()
    assert found(sine([1.0]), [float(true)]) == ()


def test_a_denormal_that_is_flushed_is_excused_by_direct3d() -> None:
    product = bounds.round_output("y", np.array([1e-39, 1.0]), FLOAT32, bounds.ulp(1.0, (bounds.WEBNN,), FLOAT32))
    (entry,) = found(product, [0.0, 1.0])
    assert (entry.floor, entry.elements, entry.at, entry.got) == (FLUSHED.text, 1, (0,), "0.0")


def test_the_error_of_a_sum_is_no_licence() -> None:
    bound = bounds.bound_sum(1000, FLOAT32, np.array([1000.0]))
    assert found(bounds.round_output("y", np.array([1e-3]), FLOAT32, bound), [2e-3]) == ()
    assert published_floor(bound.citations) is None


CANCELLING = replace(elementary.VULKAN, purpose="cancellation")


@pytest.mark.parametrize(
    ("citations", "floor"),
    [
        ((bounds.OPENCL, SINCOS), SINCOS),
        ((bounds.WEBNN, CANCELLING), CANCELLING),
        ((bounds.OPENCL, bounds.WEBNN), bounds.WEBNN),
        ((TWICE, bounds.OPENCL, SINCOS), SINCOS),
        ((TWICE, bounds.OPENCL, bounds.WEBNN), None),
        ((bounds.OPENCL, bounds.WEBNN.cite_row("pow")), None),
        ((bounds.WEBNN, replace(bounds.D3D, purpose="cancellation")), None),
        ((propagation.VULKAN, bounds.HIGHAM, bounds.OPENCL), None),
        ((bounds.HIGHAM, SINCOS), None),
        ((TRAVELLED, bounds.OPENCL, SINCOS), None),
        ((bounds.OPENCL, SINCOS, statement("float32 is computed in tf32")), None),
        ((statement(SINCOS.text),), None),
    ],
)
def test_who_publishes_a_floor(citations: Citations, floor: Citation | None) -> None:
    assert published_floor(citations) == floor


def test_in_large_outputs_the_worst_element_is_named_wherever_it_is() -> None:
    output = Output("y", np.zeros(100_000, FLOAT32), Ulp(4.0, (bounds.OPENCL, SINCOS), 0.0008), np.zeros(100_000))
    got = np.zeros(100_000)
    got[[7, 70_000]] = 0.0001, 0.0002
    (entry,) = found(output, got.tolist())
    assert (entry.elements, entry.at) == (2, (70_000,))


def sine_case() -> tuple[prepared_case.PreparedCase, Outcome]:
    """A case of Sin that DirectML's provider claims, and an answer that is off by 0.0004."""
    prepared = prepared_case.of(suite.case_by_id("Sin-7/float32/rank_1[runtime]").build())
    assert isinstance(prepared.truth, Outputs)
    (output,) = prepared.truth.outputs
    return prepared, Outcome(DONE, outputs={output.name: output.value + np.float32(0.0004)}, assignment=((
        "DmlExecutionProvider", "Sin"),))  # fmt: skip


def test_such_a_pass_is_noted_and_its_floor_named() -> None:
    prepared, outcome = sine_case()
    judged = opinion(prepared, DIRECTML, outcome)
    record = verdict(prepared, DIRECTML, Evidence(judged))
    assert (record.status, record.reading, record.blame) == (terms.PASS, terms.NOTED, terms.NOBODY)
    assert record.reason.startswith(
        "dml is right only within a published absolute tolerance: output: 2 of 2 elements are up to"
    )
    assert SINCOS.text in record.reason
    assert describe_remark(record) == f"right only within a published absolute tolerance: {SINCOS.text}"
    assert decode(encode(record)) == record


def test_a_provider_on_a_cpu_has_no_such_floor() -> None:
    prepared, outcome = sine_case()
    on_cpu = replace(outcome, assignment=((CPU, "Sin"),))
    assert opinion(prepared, Target("cpu", (), (), provider=CPU), on_cpu).status == terms.MISMATCH


def test_a_pass_that_is_not_claimed_keeps_its_remark() -> None:
    passed = Opinion("dml", terms.PASS, assignment=ON_DML, excused=(ENTRY,))
    assert "but it is not claimed" in verdict(UNCLAIMED, DIRECTML, Evidence(passed)).reason
    assert verdict(CLAIMED, DIRECTML, Evidence(replace(passed, excused=()))).reading == terms.OK


def test_the_cache_keeps_what_is_excused() -> None:
    kept = Opinion("dml", terms.PASS, excused=(ENTRY,))
    row = opinion_row.to_row(kept, "bits")
    assert opinion_row.from_row("dml", row) == (replace(kept, remembered=True), "bits")
