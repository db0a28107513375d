"""The searches for faults of a night: on each candidate, with a folder for each, so that its examples are replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from epcheck.api.fuzzing import history_file
from epcheck.api.fuzzing.fuzz import FuzzOptions, fuzz
from epcheck.api.fuzzing.history_file import HistoryError
from epcheck.api.fuzzing.result import FuzzResult
from epcheck.api.option import OptionError
from epcheck.api.progress import Progress
from epcheck.conformance.records.repro_command import folder_name
from epcheck.generators.error import EpcheckError
from epcheck.generators.fuzzing.history import SearchHistory
from epcheck.reports.faults.fault_search import FaultSearch, FoundFault

NODES, GRAPHS = "nodes", "graphs"

SHARE, LEAST_S = 0.1, 30.0
"""Of the seconds that the run took, what a search takes that nobody asked for, and its least seconds."""

SEEDS_A_DAY = 1000


@dataclass(frozen=True)
class Budget:
    """minutes, graph_minutes: for nodes and for graphs on each target; 0 searches none. chosen: whether the user named
    the minutes for nodes; if not, a target that cannot be searched is passed over."""

    minutes: float
    graph_minutes: float
    chosen: bool = True

    @classmethod
    def of(cls, minutes: float | None, graph_minutes: float | None, run_s: float, targets: int) -> Budget:
        """The budget of a night. minutes: None for the share of the run's seconds, which the targets divide."""
        if minutes is not None:
            return cls(minutes, graph_minutes or 0.0)
        return cls(max(LEAST_S, SHARE * run_s) / targets / 60, graph_minutes or 0.0, chosen=False)


def searches(
    targets: Sequence[str], common: FuzzOptions, budget: Budget, store: Path, progress: Progress
) -> Iterator[FaultSearch]:
    """The searches of all targets. common: what is the same for all; in its folder each target has one of its own, and
    its seed is that of the date. store: has what earlier nights drew. What keeps a search from being made is part of
    it."""
    for target in targets:
        path = history_file.path_in(store, target)
        try:
            history, problem = history_file.read(path), ""
        except HistoryError as error:
            history, problem = SearchHistory(), f"{error}; the history starts again from nothing"
        seed = SEEDS_A_DAY * common.seed + history.searches % SEEDS_A_DAY
        own = replace(common, target=target, seed=seed, out=common.out / folder_name(target))
        if budget.minutes and (
            found := _search(replace(own, minutes=budget.minutes), progress, history, budget.chosen)
        ):
            history.searches += 1
            try:
                history_file.write(path, history)
            except OSError as error:
                problem = f"{path}: it cannot be written: {error.strerror or error}"
            yield replace(found, problem=problem)
        if budget.graph_minutes and (
            found := _search(replace(own, graphs=True, minutes=budget.graph_minutes), progress)
        ):
            yield found


def _search(
    options: FuzzOptions, progress: Progress, history: SearchHistory | None = None, is_chosen: bool = True
) -> FaultSearch | None:
    """The search; None where the target cannot be searched and nobody asked for it."""
    what = GRAPHS if options.graphs else NODES
    try:
        return _of_result(fuzz(options, progress=progress, history=history), what)
    except EpcheckError as error:
        if isinstance(error, OptionError) and not is_chosen:
            return None
        return FaultSearch(options.target or "", what, options.seed, 0, 0.0, 0, str(error), options.out.as_posix(), ())


def _of_result(result: FuzzResult, what: str) -> FaultSearch:
    faults = tuple(
        FoundFault(
            fault.cause.id,
            fault.cause.symptom.operator,
            fault.record.status,
            fault.record.blame,
            fault.record.reason,
            fault.known,
            fault.replayed,
            folder.as_posix(),
            fault.cause.shared,
        )
        for fault, folder in zip(result.faults, result.folders, strict=True)
    )
    return FaultSearch(
        result.target, what, result.seed, result.judged, result.rate, result.replayed, result.interrupted,
        result.out.as_posix(), faults, result.seconds, result.draws["repeated"],
    )  # fmt: skip
