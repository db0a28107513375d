"""Evaluators: the target that is asked about a model, and the one that says what is right."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from epcheck.conformance.scheduling import stream
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import Target
from epcheck.models.execution.session import Level

LARGE_BYTES = 256 << 20
"""From this size on only one session of a model is in memory at a time, and neither an oracle is asked nor, unless it
is named, a callable: it takes the model in one piece, with its weights."""


@dataclass(frozen=True)
class Evaluators:
    """A candidate, and the baseline where there is one. named: whether that was asked for by name."""

    candidate: Target
    baseline: Target | None
    named: bool

    def for_size(self, size: int) -> Evaluators:
        """The same for a model of so many bytes: of a large one the CPU provider says what is right, where by default
        a callable would."""
        if self.named or size <= LARGE_BYTES or self.baseline is None or self.baseline.provider:
            return self
        return replace(self, baseline=resolve("cpu"))

    def unlike(self, level: Level) -> tuple[Target | None, Level]:
        """The baseline, and its level of graph optimisation: a target that is compared with itself is not optimised,
        so that it shows what the optimiser changes, and is called so."""
        if self.baseline is None or self.baseline.name != self.candidate.name:
            return self.baseline, level
        return replace(self.baseline, name=f"{self.baseline.name} without optimisation"), "disabled"


def choose(target: str | Target | None, baseline: str | Target | None, vulkan: Path | None = None) -> Evaluators:
    """The evaluators of these specifications or targets; by default the best of this machine, and the CPU provider.

    vulkan: as in `target.resolve`. Raises one of stream.REASONS.
    """
    named = baseline is not None
    if isinstance(target, Target):
        against = baseline if isinstance(baseline, Target) else stream.choose(("cpu",), baseline or "cpu", vulkan)[1]
        return Evaluators(target, against, named)
    names = (target,) if target else ()
    (candidate,), against = stream.choose(names, None if isinstance(baseline, Target) else baseline, vulkan)
    return Evaluators(candidate, baseline if isinstance(baseline, Target) else against, named)
