"""A run whose records are asked for one case at a time, while the cases that follow are already under way."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from epcheck.conformance import target as targets
from epcheck.conformance.expectation import ExpectationError
from epcheck.conformance.lab import LabError
from epcheck.conformance.lane import TargetDown
from epcheck.conformance.record import Record
from epcheck.conformance.runner import Session
from epcheck.conformance.runtime import RuntimeInstallError
from epcheck.conformance.target import Target, TargetError
from epcheck.generators.case import Case

REASONS = (TargetError, ExpectationError, LabError, RuntimeInstallError)
"""Why a target cannot be had."""


class LiveRunError(ValueError):
    """The run cannot start; one sentence says why."""


def choose(candidates: tuple[str, ...], baseline: str | None) -> tuple[tuple[Target, ...], Target | None]:
    """The targets of these specifications, with `epcheck.toml`; an empty tuple and None choose as `epcheck run` does,
    but install nothing.

    Raises one of REASONS.
    """
    config = targets.load_config()
    names = tuple(dict.fromkeys(candidates)) or ("cpu" if targets.why_no_dml() else "dml",)
    chosen = baseline or targets.default_baseline(names)
    against = None if chosen == "none" else targets.resolve(chosen, config)
    return tuple(targets.resolve(name, config) for name in names), against


class LiveRun:
    """One candidate and one baseline; `record(case)` gives the verdict."""

    def __init__(self, candidate: str | None = None, baseline: str | None = None) -> None:
        """candidate, baseline: target specifications; None chooses as `epcheck run` does, but installs nothing.

        Raises LiveRunError.
        """
        try:
            (self.candidate,), against = choose((candidate,) if candidate else (), baseline)
            self._records: dict[str, Record] = {}
            self._submitted: set[str] = set()
            self._session = Session((self.candidate,), against, None, self._take)
            self._session.__enter__()
        except (*REASONS, TargetDown) as error:
            raise LiveRunError(str(error)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers."""
        self._session.__exit__(kind, error, trace)

    def record(self, case: Case, ahead: Iterable[Case] = ()) -> Record:
        """The record of a case, waiting for it if need be; cases `ahead` are queued as far as there is room.

        Raises LiveRunError when a target goes down for good.
        """
        self._submit(case)
        for following in ahead:
            if not self._session.has_room():
                break
            self._submit(following)
        try:
            while case.id not in self._records:
                self._session.turn()
        except TargetDown as error:
            raise LiveRunError(str(error)) from error
        self._submitted.discard(case.id)
        return self._records.pop(case.id)

    def _submit(self, case: Case) -> None:
        if case.id not in self._submitted:
            self._submitted.add(case.id)
            self._session.submit(case)

    def _take(self, record: Record) -> None:
        self._records[record.case_id] = record
