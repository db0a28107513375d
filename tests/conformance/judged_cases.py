"""Cases for the tests of judging, claimed by DirectML's provider and not, valid and to be refused; their outcomes."""

from __future__ import annotations

from dataclasses import replace

from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records.outcome import DONE, Outcome
from epcheck.conformance.targets.target import DML, Target
from epcheck.generators import suite
from epcheck.generators.array import Array
from epcheck.generators.truth import Outputs, Selection

DIRECTML = Target("dml", (), (), provider=DML)
SILENT = Target("silent", (), (), provider="SilentExecutionProvider")
"""A provider without a claim table."""
FUNCTION = Target("python:mine:function", (), ())
REFERENCE = Target("reference", (), ())


def prepared(case_id: str) -> PreparedCase:
    return prepared_case.of(suite.case_by_id(case_id).build())


BUILT = suite.case_by_id("Slice-13/float32/steps_omitted[initializer]").build()
CLAIMED = prepared_case.of(BUILT)
UNCLAIMED = prepared("TopK-24/float32/defaults[initializer]")
REFUSAL = prepared("Slice-13/float32/refused_step_0[runtime]")
UNCLAIMED_REFUSAL = prepared("TopK-24/float32/refused_k_beyond_dim[initializer]")

ON_DML = ((DML, "Slice"),)


def true_outputs(case: PreparedCase) -> dict[str, Array]:
    if isinstance(case.truth, Selection):
        return dict(zip(("Values", "Indices"), case.truth.accepted[0], strict=True))
    assert isinstance(case.truth, Outputs)
    return {output.name: output.value for output in case.truth.outputs}


RIGHT = Outcome(DONE, outputs=true_outputs(CLAIMED), assignment=ON_DML)
WRONG = replace(RIGHT, outputs={"output": true_outputs(CLAIMED)["output"] + 1})
