"""What the search for wrong nodes and reduction ask of a target: to run a model on values (`ModelSessions.run`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, get_args

import onnx

from epcheck.models.execution.model_source import LARGE_BYTES
from epcheck.models.execution.session import Level, ModelSessions
from epcheck.models.graph.feed import Feed

LEVELS: tuple[Level, ...] = get_args(Level)
"""Graph optimisation levels of ONNX Runtime, each with what the one before does."""


class RunResult(Protocol):
    """What became of one session; a `ModelOutcome` is one. stage: `done`, `create`, `run`, `crash` or `timeout`.
    during, message: in which step it failed, and why, in words; empty for `done`."""

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


class Runner(Protocol):
    """Runs a model in a session whose process may end without ending ours."""

    def __call__(self, model: onnx.ModelProto, feeds: Mapping[str, Feed], *, level: Level = "all") -> RunResult: ...


def make_runner(
    sessions: ModelSessions, folder: Path | None = None, instead_of: ModelSessions | None = None, once: bool = False
) -> Runner:
    """Ask a target. folder: where the model's external data is, if it has any. instead_of: sessions whose worker is
    ended before, where there is memory for one of the two only. once: whether a model is run once, not twice."""

    def ask(model: onnx.ModelProto, feeds: Mapping[str, Feed], *, level: Level = "all") -> RunResult:
        if instead_of is not None:
            instead_of.end_worker()
        return sessions.run(model, feeds, level=level, folder=folder, once=once)

    return ask


def make_runners(
    candidate: ModelSessions, baseline: ModelSessions, folder: Path | None, size: int, once: bool = False
) -> tuple[Runner, Runner]:
    """Ask both about a model of `size` bytes: a large one is never in two sessions at once. once: as above."""
    apart = size > LARGE_BYTES
    return (
        make_runner(candidate, folder, instead_of=baseline if apart else None, once=once),
        make_runner(baseline, folder, instead_of=candidate if apart else None, once=once),
    )
