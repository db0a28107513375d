"""What bisection and reduction ask of a target: run this model on these values. `ModelSessions.run` answers so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import onnx

from epcheck.models.execution.evaluators import LARGE_BYTES
from epcheck.models.execution.session import Level, ModelSessions
from epcheck.models.graph.feed import Feed

LEVELS: tuple[Level, ...] = ("disabled", "basic", "extended", "all")
"""Graph optimisation levels of ONNX Runtime, each with what the one before does."""


class Answered(Protocol):
    """What became of one session: `stage` is done, create, run, crash or timeout; `during` what, in words, and
    `message` why not done."""

    @property
    def stage(self) -> str: ...
    @property
    def during(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def outputs(self) -> Mapping[str, Feed]: ...
    @property
    def repeat_differs(self) -> Sequence[str]: ...


class Ask(Protocol):
    """Run a model in a session of its own, which may end its process without ending ours."""

    def __call__(self, model: onnx.ModelProto, feeds: Mapping[str, Feed], *, level: Level = "all") -> Answered: ...


def asker(sessions: ModelSessions, folder: Path | None = None, instead_of: ModelSessions | None = None) -> Ask:
    """Ask a target. folder: where the model's external data is, if it has any. instead_of: sessions that end before,
    where there is memory for one of the two only."""

    def ask(model: onnx.ModelProto, feeds: Mapping[str, Feed], *, level: Level = "all") -> Answered:
        if instead_of is not None:
            instead_of.end_worker()
        return sessions.run(model, feeds, level=level, folder=folder)

    return ask


def askers(candidate: ModelSessions, baseline: ModelSessions, folder: Path | None, size: int) -> tuple[Ask, Ask]:
    """Ask both about a model of so many bytes: of a large one never two sessions are there at once."""
    apart = size > LARGE_BYTES
    return (
        asker(candidate, folder, instead_of=baseline if apart else None),
        asker(baseline, folder, instead_of=candidate if apart else None),
    )
