"""The result of a validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from epcheck.models.accuracy.verdict import Verdict
from epcheck.models.execution.model_outcome import CREATE, STEPS
from epcheck.models.execution.session import Level
from epcheck.models.inspection.inspect import Inspection
from epcheck.models.placement.placement import Placement
from epcheck.models.wrong_nodes.culprit import Culprit

RIGHT, WRONG, FAILS, REFUSED = "right", "wrong", "fails", "refused"
"""Statuses of a validation."""


@dataclass(frozen=True)
class Step:
    """One trial on one target.

    stage, during, message, unwritten, repeat_differs: as in the model outcome. create_s, run_s: seconds, None where the
    step was not reached.
    """

    trial: str
    target: str
    stage: str
    during: str
    message: str
    create_s: float | None
    run_s: float | None
    unwritten: tuple[str, ...]
    repeat_differs: tuple[str, ...]


@dataclass(frozen=True)
class Validation:
    """Everything that was found out about a model on a target.

    facts: target -> what its worker reports of itself: releases, device, driver. placement: None for a callable, which
    has no provider. truth: a sentence about the oracle: what it computed, or why it did not. culprit: the node at
    fault, None where it was not looked for. again: arguments of `epcheck reduce` that show the same failure, empty
    where nothing fails. seconds: phase -> how long it took.
    """

    path: Path
    target: str
    baseline: str | None
    provider: str | None
    level: Level
    facts: Mapping[str, Mapping[str, str]]
    inspection: Inspection
    placement: Placement | None
    steps: tuple[Step, ...]
    verdicts: tuple[Verdict, ...]
    truth: str
    culprit: Culprit | None
    again: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """`refused`: the model does not load. `fails`: a run ends with an error, or any step in a crash or a timeout.
        `wrong`: an output is not right, is not written, or changes in the second run. `right`: none of these."""
        if any(step.stage == CREATE for step in self._candidate_steps):
            return REFUSED
        if any(step.during for step in self._candidate_steps):
            return FAILS
        is_steady = not any(step.unwritten or step.repeat_differs for step in self._candidate_steps)
        return RIGHT if is_steady and all(verdict.right for verdict in self.verdicts) else WRONG

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        name, where = self.path.name, self.provider or self.target
        match self.status:
            case "refused":
                return f"{name} does not load on {where}"
            case "fails" if self._ends_in_creation:
                return f"{name} does not load on {where}: session creation does not survive it"
            case "fails":
                return f"{name} loads on {where}, but does not run"
            case "wrong":
                return f"{name} runs on {where}, but its outputs are not right"
        if self.placement is None or not self.placement.elsewhere:
            return f"{name} runs on {where} and is right"
        elsewhere, placed = len(self.placement.elsewhere), sum(bool(node.provider) for node in self.placement.nodes)
        return f"{name} runs and is right; {elsewhere} of its {placed} nodes are not on {where}"

    @property
    def _candidate_steps(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.target == self.target)

    @property
    def _ends_in_creation(self) -> bool:
        return any(step.during == STEPS[CREATE] for step in self._candidate_steps)
