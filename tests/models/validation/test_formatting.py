"""How failures of a validation are written."""

from __future__ import annotations

from dataclasses import replace

from epcheck.models.validation.formatting import failure, failures
from epcheck.models.validation.validation import Step

STEP = Step("seed 0", "dml", "run", "the run", "node 'Reshape' (caller: 00006FFFFC707571) tid(ec)", None, None, (), ())


def test_trials_that_fail_alike_are_shown_once() -> None:
    again = replace(STEP, trial="seed 1", message="node 'Reshape' (caller: 00006FFFFC711111) tid(ec)")
    other = replace(STEP, trial="seed 2", message="node 'Slice'")
    fine = replace(STEP, trial="seed 3", stage="done", during="", message="")
    shown = failures((STEP, again, again, other, fine))
    assert [(trials, step.message) for trials, step in shown] == [
        ("seed 0 and 2 more trials", STEP.message),
        ("seed 2", "node 'Slice'"),
    ]
    assert [failure(step) for step in (STEP, replace(STEP, stage="crash"))] == ["error in the run", "crash in the run"]
