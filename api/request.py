"""What a run is asked to do, on the way to `run.json` and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epcheck.conformance.records import record
from epcheck.conformance.records.error import RecordError
from epcheck.conformance.records.record import Run
from epcheck.conformance.scheduling.shard import Shard, ShardError
from epcheck.generators import suite
from epcheck.generators.case import Case
from epcheck.generators.suite import Source
from epcheck.reports import StoreError


@dataclass(frozen=True)
class Request:
    """What to run. Empty tuples select everything; candidates and baseline are target specifications.

    baseline: None chooses: `cpu`, or `reference` when the candidate is `cpu` itself. reference: run
    ReferenceEvaluator on every case as a further oracle. expect: further expectation files. jobs: workers of each
    target at most; None for as many as there are cores, and one for a GPU. pack: let cases share sessions; without it
    the verdicts are the same. cache: use what earlier runs prepared, and what baseline and reference said in them.
    shard: run this part of the selection only. balance: the folder of an earlier run, by whose times shards are cut.
    scheduler: the address of a Dask scheduler, on whose machines the candidates are. may_differ: facts in which the
    machines of one candidate may differ, on a cluster or when a run is taken up again. source: whose cases. thin: a few
    of each operator version and dtypes. explain: call DirectML directly for every failure of its provider.
    """

    candidates: tuple[str, ...] = ()
    baseline: str | None = None
    reference: bool = True
    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    limit: int | None = None
    expect: tuple[Path, ...] = ()
    config: Path | None = None
    vulkan: Path | None = None
    jobs: int | None = None
    pack: bool = True
    cache: bool = True
    shard: Shard | None = None
    balance: Path | None = None
    scheduler: str | None = None
    may_differ: tuple[str, ...] = ()
    source: Source = Source.SUITE
    thin: bool = False
    explain: bool = False

    @property
    def whole_suite(self) -> bool:
        """Whether every case is selected, so that an expectation without a case is stale."""
        part = self.operators or self.dtypes or self.patterns or self.thin or self.source is not Source.SUITE
        return not part and self.limit is None

    def cases(self) -> Iterator[Case]:
        """The selected cases. Raises SelectionError."""
        return suite.cases(self.operators, self.dtypes, self.patterns, self.limit, self.source, self.thin)


@dataclass(frozen=True)
class _Selection:
    """A request as `run.json` has it, with the targets that were chosen."""

    candidates: tuple[str, ...]
    baseline: str
    reference: bool
    operators: tuple[str, ...]
    dtypes: tuple[str, ...]
    patterns: tuple[str, ...]
    limit: int | None
    expect: tuple[str, ...]
    config: str | None
    vulkan: str | None
    jobs: int | None
    pack: bool
    cache: bool
    shard: str | None = None
    balance: str | None = None
    scheduler: str | None = None
    source: str = Source.SUITE.value
    thin: bool = False
    explain: bool = False


def selection(request: Request, candidates: tuple[str, ...], baseline: str | None) -> Mapping[str, Any]:
    """The request as `run.json` has it. candidates, baseline: the targets that were chosen."""
    chosen: Mapping[str, Any] = record.to_json(
        _Selection(
            candidates=candidates,
            baseline=baseline or "none",
            reference=request.reference,
            operators=request.operators,
            dtypes=request.dtypes,
            patterns=request.patterns,
            limit=request.limit,
            expect=tuple(str(path) for path in request.expect),
            config=str(request.config) if request.config else None,
            vulkan=str(request.vulkan) if request.vulkan else None,
            jobs=request.jobs,
            pack=request.pack,
            cache=request.cache,
            shard=str(request.shard) if request.shard else None,
            balance=str(request.balance) if request.balance else None,
            scheduler=request.scheduler,
            source=request.source.value,
            thin=request.thin,
            explain=request.explain,
        )
    )
    return chosen


def request_of(run: Run, now: Request) -> Request:
    """The request of an interrupted run. now: what is asked when it is taken up again. Raises StoreError."""
    try:
        chosen = record.from_json(_Selection, run.selection)
        part = Shard.parse(chosen.shard) if chosen.shard else None
        source = Source(chosen.source)
    except (RecordError, ShardError, ValueError) as error:
        raise StoreError(f"run {run.run_id}: its selection cannot be read ({error}); start a new run") from None
    return Request(
        candidates=chosen.candidates,
        baseline=chosen.baseline,
        reference=chosen.reference,
        operators=chosen.operators,
        dtypes=chosen.dtypes,
        patterns=chosen.patterns,
        limit=chosen.limit,
        expect=tuple(Path(path) for path in chosen.expect),
        config=Path(chosen.config) if chosen.config else None,
        vulkan=Path(chosen.vulkan) if chosen.vulkan else None,
        jobs=chosen.jobs,
        pack=chosen.pack,
        cache=chosen.cache,
        shard=part,
        balance=Path(chosen.balance) if chosen.balance else None,
        scheduler=now.scheduler or chosen.scheduler,
        may_differ=now.may_differ,
        source=source,
        thin=chosen.thin,
        explain=chosen.explain,
    )
