"""A run whose records are asked for one case at a time, while the cases that follow are already under way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

from epcheck.conformance.cache.cache import Cache, default_path
from epcheck.conformance.lab import LabError
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling.case_scheduler import AT_ONCE, CaseScheduler
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.targets.choice import default_baseline, why_no_dml
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.environments import RuntimeInstallError
from epcheck.conformance.targets.expectation import ExpectationError
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import Target, TargetError
from epcheck.conformance.targets.variants import Axis, variants_of
from epcheck.conformance.workers.client import TargetDown
from epcheck.generators.case import Case

REASONS = (TargetError, ExpectationError, LabError, RuntimeInstallError)
"""Why a target is unavailable."""


class CaseStreamError(ValueError):
    """The run cannot start; one sentence says why."""


def choose(
    candidates: tuple[str, ...], baseline: str | None, vulkan: Path | None = None, config: Path | None = None
) -> tuple[tuple[Target, ...], Target | None]:
    """The targets of these specifications, with `epcheck.toml`; an empty tuple and None choose as `epcheck run` does,
    but install nothing. vulkan: as in `target.resolve`. config: another `epcheck.toml`.

    Raises one of REASONS.
    """
    tables = load_config(config)
    names = tuple(dict.fromkeys(candidates)) or ("cpu" if why_no_dml() else "dml",)
    chosen = baseline or default_baseline(names)
    against = None if chosen == "none" else resolve(chosen, tables, vulkan=vulkan)
    return tuple(resolve(name, tables, vulkan=vulkan) for name in names), against


AHEAD = 4096
"""Cases under way, and records that nobody has asked for yet, at most."""


class CaseStream:
    """One candidate and one baseline; `record(case)` gives the verdict."""

    def __init__(
        self,
        candidate: str | None = None,
        baseline: str | None = None,
        cases: Iterable[Case] = (),
        jobs: int | None = None,
        variants: Sequence[Axis] = (),
    ) -> None:
        """candidate, baseline: target specifications; None chooses as `epcheck run` does, but installs nothing.
        cases: what will be asked for, about in this order; they are run ahead. jobs: as in `Plan`.
        variants: on which axes each case runs in other ways, too.

        Raises CaseStreamError.
        """
        self._records: dict[str, Record] = {}
        self._submitted: set[str] = set()
        self._upcoming = iter(cases)
        with ExitStack() as resources:
            try:
                (self.candidate,), against = choose((candidate,) if candidate else (), baseline)
                cache = resources.enter_context(closing(Cache(default_path())))
                varied = variants_of((self.candidate,), variants)
                plan = Plan((), (self.candidate,), against, jobs=jobs, variants=varied)
                self._session = resources.enter_context(CaseScheduler(plan, self._take, cache))
                while not self._session.ready:
                    self._turn()
                self._session.choose_workers(lambda _sentence: None)
            except (*REASONS, TargetDown) as error:
                raise CaseStreamError(str(error)) from error
            self._resources = resources.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers."""
        self._resources.__exit__(kind, error, trace)

    def record(self, case: Case) -> Record:
        """The record of a case, waiting for it if need be. Raises CaseStreamError when a target goes down for good."""
        if case.id not in self._submitted:
            self._submit(case)
        try:
            while case.id not in self._records:
                self._turn()
        except TargetDown as error:
            raise CaseStreamError(str(error)) from error
        self._submitted.discard(case.id)
        return self._records.pop(case.id)

    def _turn(self) -> None:
        more = False
        room = AHEAD - len(self._submitted)
        if self._session.has_room() and room > 0:
            for case in islice(self._upcoming, min(room, AT_ONCE)):
                more = True
                if case.id not in self._submitted:
                    self._submit(case)
        self._session.turn(more)

    def _submit(self, case: Case) -> None:
        self._submitted.add(case.id)
        self._session.submit(case)

    def _take(self, record: Record) -> None:
        self._records[record.case_id] = record
