"""Rounds of cases through one session: all of a round are judged before the next one is made up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Self, TypeVar

from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling.case_scheduler import CaseScheduler
from epcheck.conformance.scheduling.plan import Facts, Plan
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.generators.case import Case

Item = TypeVar("Item")

AT_ONCE = 32
"""Cases that are handed on together while others are made up."""


class Rounds:
    """One candidate, which judges rounds of cases; placement, packing and confirmation are those of the suite."""

    def __init__(self, plan: Plan, workers: IdleWorkers | None = None) -> None:
        """plan: has one candidate; its cases are the caller's to give. workers: keeps those of this call."""
        self._session = CaseScheduler(plan, self._take, idle_workers=workers)
        self._records: dict[str, Record] = {}
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        """Start the worker. Raises TargetDown."""
        with ExitStack() as resources:
            resources.enter_context(self._session)
            while not self._session.ready:
                self._session.turn()
            self._session.choose_workers(lambda _sentence: None)
            self._resources = resources.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.__exit__(kind, error, trace)

    @property
    def facts(self) -> Facts:
        """What the workers report of themselves."""
        return self._session.facts

    def judge(self, cases: Iterable[Case]) -> list[Record]:
        """The records of the cases, in their order; of two with the same id one is run. The first run while others are
        still made up. Raises TargetDown."""
        self._records = {}
        distinct: dict[str, None] = {}
        for case in cases:
            if case.id in distinct:
                continue
            distinct[case.id] = None
            self._session.submit(case)
            if len(distinct) % AT_ONCE == 0:
                self._session.turn(more=True, wait=False)
        while self._session.under_way:
            self._session.turn()
        return [self._records[case_id] for case_id in distinct if case_id in self._records]

    def judge_drawn(self, drawn: Iterable[Item], case_of: Callable[[Item], Case]) -> list[tuple[Item, Record]]:
        """What was drawn with its record, as `judge` judges the cases that `case_of` makes."""
        by_id: dict[str, Item] = {}

        def cases() -> Iterator[Case]:
            for item in drawn:
                case = case_of(item)
                by_id.setdefault(case.id, item)
                yield case

        return [(by_id[record.case_id], record) for record in self.judge(cases())]

    def _take(self, record: Record) -> None:
        self._records[record.case_id] = record


class RoundsByLevel:
    """Rounds of one target at each level of graph optimisation, started when they are first used."""

    def __init__(self, plan_at: Callable[[str], Plan], workers: IdleWorkers | None = None) -> None:
        """plan_at: the plan for a level, as in `Rounds`."""
        self._plan_at, self._workers = plan_at, workers
        self._started: dict[str, Rounds] = {}
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.__exit__(kind, error, trace)

    def __getitem__(self, level: str) -> Rounds:
        """The rounds at a level. Raises TargetDown."""
        if level not in self._started:
            self._started[level] = self._resources.enter_context(Rounds(self._plan_at(level), self._workers))
        return self._started[level]
