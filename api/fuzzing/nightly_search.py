"""The searches for faults of a night: on each candidate, with a folder for each, so that its examples are replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from epcheck.api.fuzzing.fuzz import FuzzOptions, fuzz
from epcheck.api.fuzzing.result import FuzzResult
from epcheck.api.progress import Progress
from epcheck.conformance.records.repro_command import folder_name
from epcheck.generators.error import EpcheckError
from epcheck.reports.faults.fault_search import FaultSearch, FoundFault

NODES, GRAPHS = "nodes", "graphs"


@dataclass(frozen=True)
class Budget:
    """minutes, graph_minutes: for nodes and for graphs on each target; None searches none."""

    minutes: float | None
    graph_minutes: float | None


def searches(targets: Sequence[str], common: FuzzOptions, budget: Budget, progress: Progress) -> Iterator[FaultSearch]:
    """The searches of all targets. common: what is the same for all; in its folder each target has one of its own. What
    keeps a search from being made is part of it."""
    for target in targets:
        for what, minutes in ((NODES, budget.minutes), (GRAPHS, budget.graph_minutes)):
            if minutes is not None:
                out = common.out / folder_name(target)
                own = replace(common, target=target, graphs=what == GRAPHS, minutes=minutes, out=out)
                yield _search(own, what, progress)


def _search(options: FuzzOptions, what: str, progress: Progress) -> FaultSearch:
    try:
        return _of_result(fuzz(options, progress=progress), what)
    except EpcheckError as error:
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
        result.out.as_posix(), faults,
    )  # fmt: skip
