"""How a call shows what it is doing: a protocol, which `epcheck.cli.terminal` implements, and `SILENT`, which shows
nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from epcheck.conformance.records.record import Record


class InstallationStep(Protocol):
    """How far an installation is: step `index` of `total`, by name, what is being done in it, and of a download how
    many bytes have come; None where that is unknown. ended: the last report of this step. Steps that do not need each
    other are done at the same time, so their reports come mixed."""

    @property
    def step(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def message(self) -> str: ...
    @property
    def bytes_done(self) -> int | None: ...
    @property
    def bytes_total(self) -> int | None: ...
    @property
    def ended(self) -> bool: ...


class Progress(Protocol):
    """What a call reports while it works. All methods are called from the thread that made the call."""

    def say(self, sentence: str) -> None:
        """Report a fact that stays true: which candidate was chosen and why, how large a shard is."""

    def recording(self, planned: int, done: int) -> AbstractContextManager[Callable[[str], None]]:
        """Report a run of `planned` records, `done` of which an earlier run left. What is entered takes the reading of
        each new record; a record may come every tenth of a millisecond."""

    def report_failure(self, record: Record) -> None:
        """Report a case that fails or is flaky, as soon as it is recorded. There may be thousands."""

    def installing(self) -> AbstractContextManager[Callable[[InstallationStep], None] | None]:
        """Report an installation in the DirectML lab. What is entered takes each step; None takes none."""

    def working(self) -> AbstractContextManager[Callable[[str], None]]:
        """Report what is being done at the moment. What is entered takes a few words, which replace the last ones."""


class Silent:
    """Shows nothing."""

    def say(self, sentence: str) -> None:
        pass

    def recording(self, planned: int, done: int) -> AbstractContextManager[Callable[[str], None]]:  # noqa: ARG002
        return nullcontext(_ignore)

    def report_failure(self, record: Record) -> None:
        pass

    def installing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def working(self) -> AbstractContextManager[Callable[[str], None]]:
        return nullcontext(_ignore)


def _ignore(_words: str) -> None:
    pass


SILENT: Progress = Silent()
