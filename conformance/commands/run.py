"""`epcheck run`: the suite on a provider, judged, stored and reported."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from epcheck import reports
from epcheck.conformance import expectation, lab, record, runner, shard
from epcheck.conformance import target as targets
from epcheck.conformance.cache import Cache, default_path
from epcheck.conformance.commands import display, failing
from epcheck.conformance.lane import TargetDown
from epcheck.conformance.process import WarmWorkers
from epcheck.conformance.record import Record, RecordError, Run, Share
from epcheck.conformance.shard import Shard, ShardError
from epcheck.conformance.target import Target, TargetError
from epcheck.generators import suite
from epcheck.generators.case import Case
from epcheck.reports import StoreError


@dataclass(frozen=True)
class Request:
    """What to run. Empty tuples select everything; candidates and baseline are target specifications.

    baseline: None chooses: `cpu`, or `reference` when the candidate is `cpu` itself. reference: run
    ReferenceEvaluator on every case as a further oracle. expect: further expectation files. jobs: workers of each
    target at most; None for as many as there are cores, and one for a GPU. pack: let cases share sessions; without it
    the verdicts are the same. cache: use what earlier runs prepared, and what baseline and reference said in them.
    shard: run this part of the selection only. balance: the folder of an earlier run, by whose times shards are cut.
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

    @property
    def whole_suite(self) -> bool:
        """Whether every case is selected, so that an expectation without a case is stale."""
        return not (self.operators or self.dtypes or self.patterns) and self.limit is None


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


def run_suite(
    request: Request,
    folder: Path | None = None,
    console: Console | None = None,
    root: Path = reports.DEFAULT_ROOT,
    warm: WarmWorkers | None = None,
) -> Path:
    """Run a request and leave a run folder with journal, Parquet, HTML, JUnit and JSON; returns the folder.

    folder: an interrupted run to take up again; its own request is used. root: where new run folders are made.
    console: where progress goes; None is silent. warm: keeps workers for the next run of this process.
    An interrupted run (KeyboardInterrupt) and a failed one
    (TargetDown) are closed and reported like any other; what ended them is in `read_run(folder).status`.
    Raises TargetError, SelectionError, ShardError, ExpectationError, LabError, RuntimeInstallError before anything
    ran, and StoreError also when the disk is full: what was recorded is kept, and the run can be taken up again.
    """
    show = display.Display(console)
    interrupted = None if folder is None else reports.read_run(folder)
    if interrupted is not None:
        request = _request_of(interrupted)
    whole = tuple(suite.cases(request.operators, request.dtypes, request.patterns, request.limit))
    cases, share = _share(request, whole)
    if request.shard:
        show.say(_of_the_whole(request.shard, cases, whole))
    if interrupted is not None:
        _check_same_shard(interrupted, share)
    candidates, baseline, reference = _targets(request, show)
    if folder is None:
        run = _describe(request, cases, share, candidates, baseline)
        folder = reports.new_run_folder(root)
        run = replace(run, run_id=folder.name)
        journal, done = reports.create(folder, run), frozenset[tuple[str, str]]()
    else:
        resumed = reports.resume(folder)
        journal, done = resumed.journal, resumed.done
        run = replace(resumed.run, status="running", finished="")
    plan = runner.Plan(cases, candidates, baseline, reference, done, request.jobs, request.pack)
    started = time.monotonic()

    def greeted(facts: runner.Facts) -> None:
        nonlocal run
        run = replace(run, targets={name: dict(said) for name, said in facts.items()})
        reports.write_run(folder, run)

    def take(item: Record) -> None:
        journal.append(item)
        show.take(item)

    status, notes = "complete", tuple[str, ...]()
    remembered = Cache(default_path() if request.cache else None)
    with journal, show.progress(run.planned, len(done)), failing.terminable(failing.DEAF_S), closing(remembered):
        try:
            notes = runner.run(plan, take, greeted, remembered, warm)
        except KeyboardInterrupt:
            status = "interrupted"
        except TargetDown as error:
            status = f"failed: {error}"
        except StoreError as error:
            with contextlib.suppress(StoreError):  # there may still be room for the sentence
                reports.write_run(folder, replace(run, status=f"failed: {error}", finished=_now()))
            raise
        stale = _stale(request, candidates, whole)
        trouble = (remembered.trouble,) if remembered.trouble else ()
        finished = replace(
            run,
            notes=(*run.notes, *notes, *trouble),
            status=status,
            finished=_now(),
            duration_s=run.duration_s + time.monotonic() - started,
            stale=() if request.shard else stale,
            share=replace(share, stale=stale),
        )
        journal.close(finished)
    reports.write_html(folder)
    reports.write_junit(folder)
    reports.write_json(folder)
    return folder


def exit_code(folder: Path, strict: bool) -> int:
    """What a run's folder says: 0 good, 1 conformance failures (strict: also fixed or stale expectations), 2 it could
    not run to its end, 130 it was interrupted."""
    run = reports.read_run(folder)
    if run.status == "interrupted":
        return failing.INTERRUPTED
    if run.status != "complete":
        return failing.CANNOT
    readings = {item.reading for item in reports.read_records(folder)}
    bad = {record.FAILURE, record.FIXED} if strict else {record.FAILURE}
    return failing.FAILURES if readings & bad or (strict and run.stale) else failing.GOOD


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


def _targets(request: Request, show: display.Display) -> tuple[tuple[Target, ...], Target | None, Target | None]:
    config = targets.load_config(request.config)
    specifications = tuple(dict.fromkeys(request.candidates)) or (_best(show),)
    extra = tuple(e for path in request.expect for e in expectation.load(path))
    candidates = tuple(
        replace(found, expectations=(*found.expectations, *extra))
        for found in (_resolve(s, config, request, show) for s in specifications)
    )
    chosen = request.baseline or targets.default_baseline(specifications)
    baseline = None if chosen == "none" else _resolve(chosen, config, request, show)
    reference = targets.resolve("reference") if request.reference else None
    return candidates, baseline, reference


def _resolve(specification: str, config: dict[str, Any], request: Request, show: display.Display) -> Target:
    if sys.platform != "win32" and specification.partition("@")[0] == "dml" and not lab.status().installed:
        obstacle = lab.can_install()
        if obstacle:
            raise TargetError(f"target '{specification}': {obstacle}")
        _install_lab(show)
    with show.lab_progress() as progress:
        return targets.resolve(specification, config, progress, request.vulkan)


def _best(show: display.Display) -> str:
    """The best candidate this machine offers; says which and why when it is not DirectML."""
    choice = targets.best()
    if choice.install_lab:
        try:
            _install_lab(show)
        except lab.LabError as error:
            choice = targets.Choice("cpu", f"the DirectML lab cannot be installed: {error}")
    if choice.specification == "cpu":
        show.say(f"Candidate: the CPU provider against the oracles, because {choice.reason}")
    else:
        show.say(f"Candidate: {choice.specification} ({choice.reason.removesuffix(', which is installed first')})")
    return choice.specification


def _install_lab(show: display.Display) -> None:
    show.say(f"Installing the DirectML lab into {lab.default_folder()}: 1 GB, about 1.5 minutes, once, without root")
    with show.lab_progress() as progress:
        lab.install(progress=progress)


def _describe(
    request: Request, cases: Sequence[Case], share: Share, candidates: tuple[Target, ...], baseline: Target | None
) -> Run:
    return Run(
        run_id="",
        started=_now(),
        command=("epcheck", *sys.argv[1:]),
        candidates=tuple(t.name for t in candidates),
        baseline=baseline.name if baseline else None,
        targets={},
        planned=len(cases) * len(candidates),
        selection=record.to_json(
            _Selection(
                candidates=tuple(t.name for t in candidates),
                baseline=baseline.name if baseline else "none",
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
            )
        ),
        share=share,
        versions={"epcheck": version("epcheck"), "onnx": version("onnx"), "python": sys.version.split()[0]},
    )


def _request_of(run: Run) -> Request:
    try:
        chosen = record.from_json(_Selection, run.selection)
        part = Shard.parse(chosen.shard) if chosen.shard else None
    except (RecordError, ShardError) as error:
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
    )


def _stale(request: Request, candidates: tuple[Target, ...], whole: Sequence[Case]) -> tuple[str, ...]:
    if not request.whole_suite:
        return ()
    ids = [case.id for case in whole]
    return tuple(f"{t.name}: {e.case}" for t in candidates for e in expectation.stale(t.expectations, ids))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="run")(command)


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
) -> None:
    """Run the suite on a provider, judge it and write the report.

    Exit code: 0 as it should be, 1 conformance failures, 2 bad input or it could not run, 130 interrupted.
    """
    console = Console(emoji=False)
    with failing.one_sentence():
        request = Request(
            tuple(target or ()), baseline, reference, tuple(op or ()), tuple(dtype or ()), tuple(pattern or ()), limit,
            tuple(expect or ()), config, vulkan, jobs, pack, cache,
            Shard.parse(part) if part is not None else None, balance,
        )  # fmt: skip
        again = None if resume is None else reports.latest(root) if resume == "latest" else Path(resume)
        folder = run_suite(request, again, console, root)
        display.summary(console, folder)
        code = exit_code(folder, strict)
        if code == failing.CANNOT:
            failing.say(f"the run {reports.read_run(folder).status}")
    raise typer.Exit(code)
