"""What a user may choose when a model is validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from epcheck.conformance.targets.target import Target
from epcheck.models.accuracy.thresholds import Override
from epcheck.models.execution.session import DEADLINE_S, Level

SEEDS = (0, 1)
"""Seeds of generated feeds where none are chosen."""


@dataclass(frozen=True)
class ValidateOptions:
    """How a model is validated. Every field has a default.

    target: the candidate, a specification as on the command line or a target; None for the best one of this machine.
    baseline: the target to compare with, likewise; None for the CPU provider, "none" for no comparison.
    feeds: an .npz or a folder of ONNX test data; None to generate feeds.
    dims: dynamic dimension -> the sizes to try for it. Every combination is tried, with every seed.
    seeds: of generated feeds.
    level: of graph optimisation: disabled, basic, extended or all.
    override: thresholds to use in place of those of `accuracy.thresholds`.
    culprit: whether to look for the node at fault where an output is wrong.
    deadline_s: seconds for each step of a session: its creation, its first run, its second run.
    vulkan: the ICD file of the Vulkan driver that the lab uses in place of its own.
    """

    target: str | Target | None = None
    baseline: str | Target | None = None
    feeds: Path | None = None
    dims: Mapping[str, Sequence[int]] = field(default_factory=dict)
    seeds: Sequence[int] = SEEDS
    level: Level = "all"
    override: Override = field(default_factory=Override)
    culprit: bool = True
    deadline_s: float = DEADLINE_S
    vulkan: Path | None = None
