"""The texts of a bound's sources are for people: with other texts every decision is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from epcheck.conformance.comparison import bounds
from epcheck.conformance.comparison.excused import FLUSHED
from epcheck.conformance.comparison.precision import Precision
from epcheck.conformance.judging.evidence import Evidence
from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.judging.verdict import verdict
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.outcome import DONE, Outcome
from epcheck.conformance.targets.target import CPU, DML, Target
from epcheck.generators import suite
from epcheck.generators.array import Array
from epcheck.generators.bounds.bounds import HIGHAM, WEBNN
from epcheck.generators.bounds.elementary import SINCOS, VULKAN
from epcheck.generators.graphs.graph_truth import TRAVELLED
from epcheck.generators.truth import Output, Outputs, Ulp

CASES = (
    "Sin-22/float32/ordinary[runtime]",
    "Tan-7/float16/quadrants[runtime]",
    "Atan-22/float32/ordinary[runtime]",
    "Exp-13/float16/denormals[runtime]",
    "Erf-13/float32/ordinary[runtime]",
    "Sigmoid-13/float32/whole_range[runtime]",
    "Gelu-20/float16/none_tail[runtime]",
    "com.microsoft::QuickGelu-1/float32/ordinary[runtime]",
    "Pow-15/float32/to_the_7[runtime]",
    "Mod-13/float32/same_shape[initializer]",
    "Softmax-13/float32/defaults[runtime]",
    "Softmax-13/float16/very_negative[runtime]",
    "MatMul-13/float32/matrices[initializer]",
    "Elu-6/float32/graph_fusion_conv_elu[runtime]",
    "HardSigmoid-6/float32/graph_fusion_conv_hardsigmoid[runtime]",
    "Tanh-13/float32/graph_apart_conv_read_twice_tanh[runtime]",
)
TARGETS = (
    Target("dml", (), (), provider=DML),
    Target("cpu", (), (), provider=CPU),
    Target("tf32", (), (), provider=DML, float32_precision=Precision("tf32", "its page")),
)
SHARES = (0.05, 0.3, -0.9, 1.5)
"""Of what a bound allows: how far the answers are from the truth."""

CHANGES: tuple[Callable[[str], str], ...] = (
    lambda text: f"{text}.",
    lambda text: text.replace("specification", "document"),
    lambda _: "",
    lambda _: SINCOS.text,
    lambda _: HIGHAM.text,
    lambda _: TRAVELLED.text,
)
"""What a text may become: one with a full stop, with another word, none, and that of another source."""


def outputs_of(case: PreparedCase) -> tuple[Output, ...]:
    assert isinstance(case.truth, Outputs)
    return case.truth.outputs


def reword(output: Output, change: Callable[[str], str]) -> Output:
    """The output whose bound has the same sources in other words."""
    assert isinstance(output.bound, Ulp)
    citations = [
        replace(citation, text=change(citation.text), purpose=change(citation.purpose))
        for citation in output.bound.citations
    ]
    return replace(output, bound=replace(output.bound, citations=tuple(citations)))


def answers(case: PreparedCase) -> list[dict[str, Array]]:
    """Zeros, and outputs that are off by the SHARES of what is allowed."""
    zeros = {output.name: np.zeros_like(output.value) for output in outputs_of(case)}
    return [zeros, *({output.name: moved(output, share) for output in outputs_of(case)} for share in SHARES)]


def moved(output: Output, share: float) -> Array:
    allowed = bounds.absolute(output)
    assert allowed is not None
    with np.errstate(all="ignore"):
        return np.asarray(output.value + share * np.nan_to_num(allowed)).astype(output.value.dtype)


def opinions(case: PreparedCase, outputs: list[dict[str, Array]]) -> Iterator[tuple[Target, Opinion]]:
    """Each target's, where it answers with each of these."""
    for target in TARGETS:
        nodes = tuple((target.provider, name) for name in (case.op_type, *case.beside))
        for answer in outputs:
            yield target, opinion(case, target, Outcome(DONE, outputs=answer, assignment=nodes))


def decisions(case: PreparedCase, outputs: list[dict[str, Array]]) -> list[object]:
    """All that is decided of the answers, without the words."""
    decided: list[object] = []
    for target, judged in opinions(case, outputs):
        record = verdict(case, target, Evidence(judged))
        floors = [replace(entry, floor=str(entry.floor == FLUSHED.text)) for entry in judged.excused]
        differences = [replace(difference, reason="") for difference in judged.differences]
        decided.append((record.status, record.reading, record.blame, floors, differences))
    return decided


@pytest.mark.parametrize("case_id", CASES)
def test_other_texts_decide_nothing(case_id: str) -> None:
    built = suite.case_by_id(case_id).build()
    assert isinstance(built.truth, Outputs)
    case = prepared_case.of(built)
    outputs = answers(case)
    expected = decisions(case, outputs)
    for change in CHANGES:
        truth = replace(built.truth, outputs=tuple(reword(output, change) for output in built.truth.outputs))
        other = prepared_case.of(replace(built, truth=truth))
        assert decisions(other, outputs) == expected


def test_the_cases_have_every_decision() -> None:
    floors: set[str] = set()
    statuses: dict[str, set[str]] = {target.name: set() for target in TARGETS}
    for case in (prepared_case.of(suite.case_by_id(case_id).build()) for case_id in CASES):
        for target, judged in opinions(case, answers(case)):
            floors |= {entry.floor for entry in judged.excused}
            statuses[target.name].add(judged.status)
    assert floors == {FLUSHED.text, VULKAN.text, SINCOS.text, WEBNN.text}
    assert statuses == {target.name: {terms.PASS, terms.MISMATCH} for target in TARGETS}
