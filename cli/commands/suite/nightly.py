"""`epcheck nightly`: one command for a scheduler. It runs, keeps the run in the store, and says if it got worse."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from epcheck import reports
from epcheck.api.request import Request, selection
from epcheck.cli.commands.runs.diff import exit_code
from epcheck.cli.commands.suite.run import run_suite
from epcheck.cli.terminal import comparison, failure
from epcheck.cli.terminal.plain import safe
from epcheck.conformance.cluster.node import ClusterError
from epcheck.conformance.lab import LabError
from epcheck.conformance.records import record
from epcheck.conformance.records.record import Run
from epcheck.conformance.targets.environments import RuntimeInstallError
from epcheck.conformance.targets.target import TargetError, default_baseline
from epcheck.reports.diff import assessment, difference, drift
from epcheck.reports.diff.assessment import Assessment
from epcheck.reports.diff.compared_runs import open_pair, read_compared_run
from epcheck.reports.diff.difference import ComparedRun
from epcheck.reports.diff.write import write_html, write_json, write_junit, write_markdown
from epcheck.reports.store import maintenance
from epcheck.reports.store.store import Store, default_store, open_store
from epcheck.reports.trend.flaky_cases import flaky_cases
from epcheck.reports.trend.last_good import read_last_good

app = typer.Typer(add_completion=False)

MACHINE_FAILED = (ClusterError, LabError, RuntimeInstallError, TargetError)
"""What keeps a run from beginning that is no mistake in what was asked."""

PAGE, MARKDOWN, JSON, JUNIT = "nightly.html", "nightly.md", "nightly.json", "nightly.junit.xml"
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Environment variable: the file to which a step of GitHub Actions appends Markdown for the page of the workflow."""


@dataclass(frozen=True)
class Night:
    """A night as it ended. folder: the run's. verdicts: one for each candidate. troubles: files of the store that could
    not be counted, in sentences."""

    folder: Path
    run: Run
    verdicts: tuple[Assessment, ...]
    troubles: tuple[str, ...]

    @property
    def title(self) -> str:
        """One line: when, and how each target did."""
        told = ", ".join(f"{one.target} {one.result}" for one in self.verdicts)
        return f"epcheck, night of {self.run.started[:10]}: {told}"


def run_night(
    request: Request,
    store: Path,
    console: Console | None = None,
    root: Path = reports.DEFAULT_ROOT,
    against: Path | None = None,
    factor: float = drift.FACTOR,
) -> Night:
    """Run a request, compare each candidate with the last good run of its class in the store, and keep the run there.

    request: with at least one candidate. against: a run's folder or file to compare with instead. A machine that cannot
    run leaves a run without records, whose status says why: the night is not run, and the store knows it. Raises
    StoreError, and what `run_suite` raises for what was asked wrongly.
    """
    store.mkdir(parents=True, exist_ok=True)
    try:
        folder = run_suite(request, None, console, root).folder
    except MACHINE_FAILED as error:
        folder = _not_run(request, root, f"failed: {error}")
    run = reports.read_run(folder)
    opened = open_store(store)
    verdicts: tuple[Assessment, ...] = ()
    for target in run.candidates:
        found, opened = _verdict(opened, run, folder, target, against, factor)
        verdicts += (found,)
    run = replace(run, worse=tuple(one.target for one in verdicts if one.result == assessment.WORSE))
    reports.write_run(folder, run)
    reports.write_outcomes(folder)
    maintenance.add(store, folder)
    return Night(folder, run, verdicts, tuple(trouble.sentence for trouble in opened.problems))


def write_night(night: Night, out: Path | None = None) -> tuple[Path, ...]:
    """Write the page, Markdown, JSON and JUnit XML of a night into a folder (default: the run's), and the Markdown to
    where a step of GitHub Actions shows it. Raises StoreError."""
    folder = out or night.folder
    folder.mkdir(parents=True, exist_ok=True)
    writers = {PAGE: write_html, MARKDOWN: write_markdown, JSON: write_json, JUNIT: write_junit}
    for name, write in writers.items():
        write(folder / name, night.title, night.verdicts)
    if summary := os.environ.get(STEP_SUMMARY):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write((folder / MARKDOWN).read_text(encoding="utf-8"))
    return tuple(folder / name for name in writers)


def _verdict(
    opened: Store, run: Run, folder: Path, target: str, against: Path | None, factor: float
) -> tuple[Assessment, Store]:
    """The verdict of a target, and the history without the files that turned out to be damaged."""
    newer = read_compared_run(folder, target, run)
    older: ComparedRun | None
    if against is not None:
        older, _ = open_pair(against, folder, None, target)
    else:
        older, opened = read_last_good(opened, run, target)
    if older is None:
        return assessment.assess_first(difference.summarize_compared(newer)), opened
    flaky = flaky_cases(opened, run, target)
    return assessment.assess(difference.compare(older, newer, flaky, factor)), opened


def _not_run(request: Request, root: Path, status: str) -> Path:
    """The folder of a run that did not begin."""
    folder = reports.new_run_folder(root)
    chosen = request.baseline or default_baseline(request.candidates)
    baseline = None if chosen == "none" else chosen
    now = record.now()
    run = Run(
        run_id=folder.name,
        started=now,
        finished=now,
        command=("epcheck", *sys.argv[1:]),
        candidates=request.candidates,
        baseline=baseline,
        targets={},
        planned=sum(1 for _ in request.cases()) * len(request.candidates),
        selection=selection(request, request.candidates, baseline),
        versions={"epcheck": version("epcheck"), "onnx": version("onnx"), "python": sys.version.split()[0]},
        status=status,
    )
    with reports.create(folder, run) as journal:
        journal.close(run)
    reports.write_all(folder)
    return folder


@app.command()
def nightly(
    target: Annotated[list[str], typer.Option("--target", "-t", help="Candidate; repeat for more.")],
    baseline: Annotated[str | None, typer.Option(help="Target to compare with; 'none' for the oracles alone.")] = None,
    op: Annotated[list[str] | None, typer.Option("--op", help="Operator; repeat for more.")] = None,
    dtype: Annotated[list[str] | None, typer.Option("--dtype", help="numpy dtype name; repeat for more.")] = None,
    pattern: Annotated[
        list[str] | None, typer.Option("-k", help="Glob or substring of case ids; repeat for more.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many cases.")] = None,
    thin: Annotated[bool, typer.Option("--thin", help="A few cases of each operator version and dtype.")] = False,
    expect: Annotated[list[Path] | None, typer.Option(help="A further TOML file of expectations.")] = None,
    reference: Annotated[bool, typer.Option(help="Ask onnx.reference about every case, too.")] = True,
    vulkan: Annotated[Path | None, typer.Option(metavar="ICD.json", help="Vulkan driver of the lab.")] = None,
    config: Annotated[Path | None, typer.Option(help="Another epcheck.toml.")] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Workers of each target.")] = None,
    store: Annotated[
        Path | None, typer.Option(help="Where runs are kept, and looked for.", show_default="epcheck-store")
    ] = None,
    root: Annotated[Path, typer.Option(help="Where run folders are made.")] = reports.DEFAULT_ROOT,
    out: Annotated[
        Path | None, typer.Option(help="Where the night's files go.", show_default="the run's folder")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Compare with this run, not with the last good one.")
    ] = None,
    factor: Annotated[
        float, typer.Option(min=1.0, help="How many times larger an error in ULP has to be to be told.")
    ] = drift.FACTOR,
) -> None:
    """Run the suite, keep the run in the store, and say whether it is worse than the last good one.

    Exit code: 0 as good as before (or the first night), 1 new failures, 2 it could not run, 130 interrupted.
    """
    console = Console(emoji=False)
    with failure.one_sentence():
        request = Request(
            candidates=tuple(dict.fromkeys(target)),
            baseline=baseline,
            reference=reference,
            operators=tuple(op or ()),
            dtypes=tuple(dtype or ()),
            patterns=tuple(pattern or ()),
            limit=limit,
            thin=thin,
            expect=tuple(expect or ()),
            config=config,
            vulkan=vulkan,
            jobs=jobs,
        )
        night = run_night(request, store or default_store(), console, root, against, factor)
        written = write_night(night, out)
        _show(console, night, written)
        code = failure.INTERRUPTED if night.run.status == "interrupted" else exit_code(night.verdicts)
        if code == failure.CANNOT:
            failure.say(
                " ".join(f"{one.target}: {one.sentences}" for one in night.verdicts if one.result == assessment.NOT_RUN)
            )
    raise typer.Exit(code)


def _show(console: Console, night: Night, written: Sequence[Path]) -> None:
    for one in night.verdicts:
        comparison.show(console, one)
    for trouble in night.troubles:
        console.print(f"[yellow]store[/] {safe(trouble)}", soft_wrap=True, highlight=False)
    console.print(f"Report: {safe(str(written[0]))}", soft_wrap=True, highlight=False)
