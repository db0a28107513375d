"""What a caller may choose when a wrong node is looked for or a model is reduced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from epcheck.models.accuracy.thresholds import Threshold
from epcheck.models.execution.session import Level
from epcheck.models.graph.feed import Feed
from epcheck.models.wrong_nodes.node_check import IsolatedNode


@dataclass(frozen=True)
class Limits:
    """When to give up.

    sessions: of candidate and baseline together. seconds: of all sessions together. bytes: of the intermediate values
    that one session returns.
    """

    sessions: int = 400
    seconds: float = 1800.0
    bytes: int = 1 << 28


@dataclass(frozen=True)
class SearchOptions:
    """How a model is searched or reduced.

    level: of graph optimisation, at which the candidate is wrong. limits: when to give up. folder: where the model's
    external data is; None where it has none. thresholds: of the model's outputs; where they are not given, those of
    `accuracy.thresholds`. truth: the values of the main graph as the oracle knows them, rounded to their types; empty
    where it does not. wrong_alone: the nodes that are known to be wrong alone; None where nobody has looked.
    """

    level: Level = "all"
    limits: Limits = field(default_factory=Limits)
    folder: Path | None = None
    thresholds: Mapping[str, Threshold] | None = None
    truth: Mapping[str, Feed] = field(default_factory=dict, repr=False)
    wrong_alone: tuple[IsolatedNode, ...] | None = None
