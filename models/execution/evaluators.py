"""Evaluators: the target that is asked about a model, and the one that it is compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from epcheck.conformance.scheduling import stream
from epcheck.conformance.targets.config import notice_of
from epcheck.conformance.targets.target import Target
from epcheck.models.execution.session import Level

BASELINE = "cpu"
"""What a model is compared with where no baseline is named. The suite compares the CPU provider with onnx's
ReferenceEvaluator, case by case; that is wrong about too many operators to say what is right about a whole model."""


@dataclass(frozen=True)
class Evaluators:
    """A candidate, and the baseline where there is one. vulkan: the ICD file that was chosen for the lab.
    configuration: the notice of the `epcheck.toml` that defined them, empty where it was named or there is none."""

    candidate: Target
    baseline: Target | None
    vulkan: Path | None = None
    configuration: str = ""

    @property
    def targets(self) -> tuple[Target, ...]:
        """The candidate, and the baseline where there is one."""
        return (self.candidate,) if self.baseline is None else (self.candidate, self.baseline)

    @property
    def compares_with_itself(self) -> bool:
        """Whether candidate and baseline are the same target, at different levels of graph optimisation."""
        return self.baseline is not None and self.baseline.name == self.candidate.name

    def unlike(self, level: Level) -> tuple[Target | None, Level]:
        """The baseline, and its level of graph optimisation: a target that is compared with itself is not optimised,
        so that it shows what the optimiser changes, and is called so. Where the candidate is not optimised, it is the
        baseline that is."""
        if self.baseline is None or not self.compares_with_itself:
            return self.baseline, level
        if level == "disabled":
            return replace(self.baseline, name=f"{self.baseline.name} with all optimisations"), "all"
        return replace(self.baseline, name=f"{self.baseline.name} without optimisation"), "disabled"


def choose(
    target: str | Target | None, baseline: str | Target | None, vulkan: Path | None = None, config: Path | None = None
) -> Evaluators:
    """The evaluators of these specifications or targets; by default the best of this machine, and the CPU provider.

    vulkan: as in `target.resolve`. config: another `epcheck.toml`. Raises one of stream.REASONS.
    """
    named = BASELINE if baseline is None else baseline
    names = (target,) if isinstance(target, str) else () if target is None else (BASELINE,)
    candidates, against = stream.choose(names, "none" if isinstance(named, Target) else named, vulkan, config)
    candidate = target if isinstance(target, Target) else candidates[0]
    return Evaluators(candidate, named if isinstance(named, Target) else against, vulkan, notice_of(config))
