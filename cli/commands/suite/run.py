"""`epcheck run`: the suite on a provider, judged, stored and reported."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from epcheck import reports
from epcheck.api.place import Place, place_of
from epcheck.api.request import Request as Request
from epcheck.api.request import request_of, selection
from epcheck.cli.commands.suite.repro import archive
from epcheck.cli.terminal import display, failure
from epcheck.conformance.cluster.node import ClusterError, Line
from epcheck.conformance.records import record
from epcheck.conformance.records.record import Run, Share
from epcheck.conformance.scheduling import shard
from epcheck.conformance.scheduling.plan import Facts
from epcheck.conformance.scheduling.shard import Shard, ShardError
from epcheck.conformance.scheduling.supervisor import TargetDown
from epcheck.conformance.targets import expectation
from epcheck.conformance.workers.process import WarmWorkers
from epcheck.generators.case import Case
from epcheck.generators.suite import Source
from epcheck.reports import Reported, StoreError

app = typer.Typer(add_completion=False)


def run_suite(
    request: Request,
    folder: Path | None = None,
    console: Console | None = None,
    root: Path = reports.DEFAULT_ROOT,
    warm: WarmWorkers | None = None,
) -> Reported:
    """Run a request and leave a run folder with journal, Parquet, HTML, JUnit and JSON.

    folder: an interrupted run to take up again; its own request is used, except for `may_differ` and, where one is
    given, `scheduler`. root: where new run folders are made. console: where progress goes; None is silent. warm: keeps
    workers for the next run of this process. An interrupted run (KeyboardInterrupt) and a failed one (TargetDown,
    ClusterError) are closed and reported like any other; what ended them is in the status of the run that is returned.
    Raises TargetError, SelectionError, ShardError, ExpectationError, LabError, RuntimeInstallError, ClusterError before
    anything ran, and StoreError also when the disk is full: what was recorded is kept, and can be taken up again.
    """
    show = display.Display(console)
    interrupted = None if folder is None else reports.read_run(folder)
    if interrupted is not None:
        request = request_of(interrupted, request)
    whole = tuple(request.cases())
    cases, share = _share(request, whole)
    if request.shard:
        show.say(_of_the_whole(request.shard, cases, whole))
    if interrupted is not None:
        _check_same_shard(interrupted, share)
    with place_of(request, show, warm) as place:
        if folder is None:
            run = _describe(request, cases, share, place)
            folder = reports.new_run_folder(root)
            run = replace(run, run_id=folder.name)
            journal, done = reports.create(folder, run), frozenset[tuple[str, str]]()
        else:
            resumed = reports.resume(folder)
            journal, done = resumed.journal, resumed.done
            run = replace(resumed.run, status="running", finished="")
        started = time.monotonic()

        def greeted(facts: Facts) -> None:
            nonlocal run
            _check_same_candidates(run, facts, request.may_differ)
            run = replace(run, targets=_with(run.targets, facts))
            reports.write_run(folder, run)

        def take(line: Line) -> None:
            text, reading = line
            journal.append_line(text.encode("ascii") + b"\n")
            show.take(reading)

        status = "complete"
        with journal, show.progress(run.planned, len(done)), failure.terminable(failure.DEAF_S):
            try:
                place.run(cases, done, take, greeted)
            except KeyboardInterrupt:
                status = "interrupted"
            except (TargetDown, ClusterError) as error:
                status = f"failed: {error}"
            except StoreError as error:
                with contextlib.suppress(StoreError):  # there may still be room for the sentence
                    reports.write_run(folder, replace(run, status=f"failed: {error}", finished=record.now()))
                raise
            stale = _stale(request, place, whole)
            finished = replace(
                run,
                notes=tuple(dict.fromkeys((*run.notes, *place.notes))),
                status=status,
                finished=record.now(),
                duration_s=run.duration_s + time.monotonic() - started,
                stale=() if request.shard else stale,
                share=replace(share, stale=stale),
            )
            journal.close(finished)
            return reports.write_all(folder, archive)


def exit_code(reported: Reported, strict: bool) -> int:
    """What a run says: 0 good, 1 conformance failures (strict: also fixed or stale expectations), 2 it could not run
    to its end, 130 it was interrupted."""
    run, readings = reported.run, reported.summary.by_reading.keys()
    if run.status == "interrupted":
        return failure.INTERRUPTED
    if run.status != "complete":
        return failure.CANNOT
    bad = {record.FAILURE, record.FIXED} if strict else {record.FAILURE}
    return failure.FAILURES if readings & bad or (strict and run.stale) else failure.GOOD


def _share(request: Request, whole: tuple[Case, ...]) -> tuple[tuple[Case, ...], Share]:
    """The cases to run, and what they are of the whole selection."""
    share = Share(len(whole), shard.digest(case.id for case in whole))
    if request.shard is None:
        if request.balance:
            raise ShardError("--balance tells how shards are cut; name one too, for example --shard 1/4")
        return whole, share
    index, count = request.shard.index, request.shard.count
    shards = shard.cut(whole, count, _seconds(request.balance) if request.balance else {})
    return shards[index - 1], replace(share, index=index, count=count, cut=shard.digest_of_cut(shards))


def _seconds(balance: Path) -> dict[str, float]:
    reports.read_run(balance)  # a folder without a run is told apart from one without a journal
    return shard.recorded_seconds(reports.read_records(balance))


def _of_the_whole(part: Shard, cases: Sequence[Case], whole: Sequence[Case]) -> str:
    return f"Shard {part} of the selection: {len(cases):,} of {len(whole):,} cases"


def _check_same_shard(run: Run, share: Share) -> None:
    """Refuse to go on with a shard that holds other cases now. Raises StoreError."""
    if run.share and run.share.cut != share.cut:
        raise StoreError(
            f"run {run.run_id}: its shard {run.share.index}/{run.share.count} cannot be cut again as it was: the suite "
            f"or the run given to --balance has changed; start a new run"
        )


def _describe(request: Request, cases: Sequence[Case], share: Share, place: Place) -> Run:
    return Run(
        run_id="",
        started=record.now(),
        command=("epcheck", *sys.argv[1:]),
        candidates=place.candidates,
        baseline=place.baseline,
        targets={},
        planned=len(cases) * len(place.candidates),
        selection=selection(request, place.candidates, place.baseline),
        share=share,
        versions={"epcheck": version("epcheck"), "onnx": version("onnx"), "python": sys.version.split()[0]},
    )


def _check_same_candidates(run: Run, facts: Facts, may_differ: Collection[str]) -> None:
    """Refuse to go on with other candidates than those that the records are of. Raises StoreError."""
    for name in run.candidates:
        different = record.differing_facts(run.targets.get(name, facts[name]), facts[name], may_differ)
        if different:
            raise StoreError(
                f"run {run.run_id}: target '{name}' is not what it was: {record.tell_apart(different)}; start a new "
                f"run, or say {record.allowing(different)}"
            )


def _with(before: Facts, facts: Facts) -> dict[str, dict[str, str]]:
    return {name: record.joined_facts([before.get(name, said), said]) for name, said in facts.items()}


def _stale(request: Request, place: Place, whole: Sequence[Case]) -> tuple[str, ...]:
    if not request.whole_suite:
        return ()
    ids = [case.id for case in whole]
    known = list(place.expectations())
    unmatched = set(expectation.stale([one for _, one in known], ids))
    return tuple(dict.fromkeys(f"{name}: {one.case}" for name, one in known if one in unmatched))


@app.command()
def command(
    target: Annotated[
        list[str] | None,
        typer.Option("--target", "-t", help="Candidate; repeat to compare several. Default: the best."),
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="Target to compare with; 'none' for the oracles alone.")] = None,
    op: Annotated[list[str] | None, typer.Option("--op", help="Operator; repeat for more.")] = None,
    dtype: Annotated[list[str] | None, typer.Option("--dtype", help="numpy dtype name; repeat for more.")] = None,
    pattern: Annotated[
        list[str] | None, typer.Option("-k", help="Glob or substring of case ids; repeat for more.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many cases.")] = None,
    source: Annotated[Source, typer.Option(help="Our generators' cases, or onnx's own node tests.")] = Source.SUITE,
    thin: Annotated[bool, typer.Option("--thin", help="A few cases of each operator version and dtype.")] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Call DirectML directly for every failure of its provider, to place blame."),
    ] = False,
    expect: Annotated[list[Path] | None, typer.Option(help="A further TOML file of expectations.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fixed and stale expectations fail the run, too.")] = False,
    reference: Annotated[bool, typer.Option(help="Ask onnx.reference about every case, too.")] = True,
    root: Annotated[Path, typer.Option(help="Where run folders are made.")] = reports.DEFAULT_ROOT,
    resume: Annotated[
        str | None, typer.Option(metavar="RUN|latest", help="Take up an interrupted run; its own selection is used.")
    ] = None,
    vulkan: Annotated[Path | None, typer.Option(metavar="ICD.json", help="Vulkan driver of the lab.")] = None,
    config: Annotated[Path | None, typer.Option(help="Another epcheck.toml.")] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Workers of each target. Default: cores; 1 for a GPU.")
    ] = None,
    pack: Annotated[bool, typer.Option(help="Let cases share sessions; the verdicts are the same without.")] = True,
    cache: Annotated[bool, typer.Option(help="Use what earlier runs prepared and baselines said in them.")] = True,
    part: Annotated[
        str | None, typer.Option("--shard", metavar="K/N", help="Run the Kth of N parts; `epcheck merge` joins them.")
    ] = None,
    balance: Annotated[
        Path | None, typer.Option(metavar="RUN", help="With --shard: equal shards by this run's times, not by count.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="tcp://HOST:PORT", help="Run on the machines of a Dask cluster.")
    ] = None,
    may_differ: Annotated[
        list[str] | None,
        typer.Option(metavar="FACT", help="A fact in which machines of one target may differ; repeat for more."),
    ] = None,
) -> None:
    """Run the suite on a provider, judge it and write the report.

    Exit code: 0 as it should be, 1 conformance failures, 2 bad input or it could not run, 130 interrupted.
    """
    console = Console(emoji=False)
    with failure.one_sentence():
        request = Request(
            candidates=tuple(target or ()),
            baseline=baseline,
            reference=reference,
            operators=tuple(op or ()),
            dtypes=tuple(dtype or ()),
            patterns=tuple(pattern or ()),
            limit=limit,
            expect=tuple(expect or ()),
            config=config,
            vulkan=vulkan,
            jobs=jobs,
            pack=pack,
            cache=cache,
            shard=Shard.parse(part) if part is not None else None,
            balance=balance,
            scheduler=scheduler,
            may_differ=tuple(may_differ or ()),
            source=source,
            thin=thin,
            explain=explain,
        )
        again = None if resume is None else reports.latest(root) if resume == "latest" else Path(resume)
        reported = run_suite(request, again, console, root)
        display.summary(console, reported)
        code = exit_code(reported, strict)
        if code == failure.CANNOT:
            failure.say(f"the run {reported.run.status}")
    raise typer.Exit(code)
