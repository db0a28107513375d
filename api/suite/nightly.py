"""One call for a scheduler: run the suite, keep the run in the store, and find out whether it became worse."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Annotated

from epcheck import reports
from epcheck.api.fuzzing.fuzz import FuzzOptions
from epcheck.api.fuzzing.nightly_search import Budget, searches
from epcheck.api.option import JUDGE, OUTPUT, SELECT, Group, Option
from epcheck.api.option_types import Factor
from epcheck.api.progress import SILENT, Progress
from epcheck.api.runs.result import COMPLETE
from epcheck.api.suite.run import describe, run
from epcheck.api.suite.run_options import RunOptions
from epcheck.conformance.cluster.node import ClusterError
from epcheck.conformance.lab import LabError
from epcheck.conformance.records.run import Run
from epcheck.conformance.targets.choice import best_choice, default_baseline
from epcheck.conformance.targets.environments import RuntimeInstallError
from epcheck.conformance.targets.target import TargetError
from epcheck.conformance.workers.client import TargetDown
from epcheck.generators.operator_index import family_of
from epcheck.reports.diff import assessment, difference, drift
from epcheck.reports.diff.assessment import Assessment
from epcheck.reports.diff.compared_runs import open_pair, read_compared_run
from epcheck.reports.diff.difference import ComparedRun
from epcheck.reports.diff.write import write_html, write_json, write_junit, write_markdown
from epcheck.reports.faults.fault_search import FaultSearch
from epcheck.reports.store import maintenance
from epcheck.reports.store.store import Store, default_store, open_store
from epcheck.reports.trend.flaky_cases import flaky_cases
from epcheck.reports.trend.last_good import read_last_good

MACHINE_FAILED = (ClusterError, LabError, RuntimeInstallError, TargetDown, TargetError)
"""What keeps a run from beginning that is no mistake in the options."""

WRITERS = {
    "nightly.md": write_markdown,
    "nightly.json": write_json,
    "nightly.junit.xml": write_junit,
}
"""The files of a night beside its page, and what writes each of them."""

PAGE, MARKDOWN = "nightly.html", "nightly.md"
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Environment variable: the file to which a step of GitHub Actions appends Markdown for the page of the workflow."""

_OF_RUN = Group(
    ("targets", "baseline", "operators", "dtypes", "patterns", "limit", "source", "thin", "variants", "uses", "expect",
     "reference", "vulkan", "config", "jobs", "root"),
    {"root": Option("Parent folder of run folders.", metavar="FOLDER", after="store", panel=OUTPUT)},
)  # fmt: skip


@dataclass(frozen=True)
class NightlyOptions:
    """What to run, and what to compare it with. run: without targets, the best of this machine, as in a run. store:
    None for EPCHECK_STORE or `epcheck-store`. out: where the night's files are written; None for the run folder.
    against: a run's folder or file; None for the last good run of each target's class in the store. fuzz_minutes: for
    nodes on each target, 0 for no search; None for a tenth of the seconds of the run, and at least 30 s, for all
    targets together. fuzz_graph_minutes: for graphs; None for no search. fuzz_out: what a night found in it, the next
    one replays first."""

    run: Annotated[RunOptions, _OF_RUN]
    store: Annotated[
        Path | None,
        Option(
            "Store for the runs, and for the last good one.", metavar="FOLDER", default="epcheck-store", panel=OUTPUT
        ),
    ] = None
    out: Annotated[
        Path | None,
        Option("Folder for the night's files.", metavar="FOLDER", default="the run folder", panel=OUTPUT),
    ] = None
    against: Annotated[
        Path | None, Option("Compare with this run instead of the last good one.", metavar="RUN", panel=JUDGE)
    ] = None
    factor: Factor = drift.FACTOR
    fuzz_minutes: Annotated[
        float | None,
        Option(
            "Fuzz single nodes for this long per target; 0: not at all.",
            metavar="MINUTES",
            minimum=0,
            default="10 % of the run's time, at least 30 s in all",
            panel=SELECT,
        ),
    ] = None
    fuzz_graph_minutes: Annotated[
        float | None,
        Option("Fuzz graphs of several nodes for this long per target.", metavar="MINUTES", minimum=0.01, panel=SELECT),
    ] = None
    fuzz_out: Annotated[
        Path, Option("Folder for fuzzing examples and faults.", metavar="FOLDER", file=False, panel=OUTPUT)
    ] = Path("epcheck-fuzz")


@dataclass(frozen=True)
class Night:
    """A night as it ended. folder: the run's. assessments: one for each candidate. problems: files of the store that
    could not be counted, in sentences. searches: for faults. files: what was written, the page first."""

    folder: Path
    run: Run
    assessments: tuple[Assessment, ...]
    problems: tuple[str, ...]
    searches: tuple[FaultSearch, ...] = ()
    files: tuple[Path, ...] = field(default=())

    @property
    def title(self) -> str:
        """One line: when, and how each target did."""
        words = ", ".join(f"{found.target} {found.result}" for found in self.assessments)
        return f"epcheck, night of {self.run.started[:10]}: {words}"


def nightly(options: NightlyOptions, *, progress: Progress = SILENT) -> Night:
    """Run, compare each candidate with the last good run of its class in the store, keep the run there, and write the
    night's page, Markdown, JSON and JUnit XML.

    A machine that cannot run leaves a run without records, whose status says why: the night is not run, and the store
    knows it. Where GITHUB_STEP_SUMMARY names a file, the Markdown is appended to it. Raises StoreError, and what `run`
    raises for options that cannot be used.
    """
    chosen = replace(options.run, targets=tuple(dict.fromkeys(options.run.targets)) or (_best(progress),))
    store = options.store or default_store()
    store.mkdir(parents=True, exist_ok=True)
    try:
        folder = run(replace(chosen, store=store), progress=progress).folder
    except MACHINE_FAILED as error:
        folder = _not_run(chosen, f"failed: {error}")
    ended = reports.read_run(folder)
    opened = open_store(store)
    assessments: tuple[Assessment, ...] = ()
    for target in ended.candidates:
        found, opened = _assess_target(opened, ended, folder, target, options)
        assessments += (found,)
    ended = replace(ended, worse=tuple(found.target for found in assessments if found.result == assessment.WORSE))
    reports.write_run(folder, ended)
    reports.write_outcomes(folder)
    maintenance.add(store, folder)
    problems = tuple(problem.sentence for problem in opened.problems)
    night = Night(folder, ended, assessments, problems, _searches(chosen, ended, options, store, progress))
    return replace(night, files=_write_reports(night, options.out or folder, options.against))


def _best(progress: Progress) -> str:
    """The target of a night that names none. It is not another one in the night in which it cannot start."""
    choice = best_choice()
    progress.say(f"Candidate: {choice.specification} ({choice.reason})")
    return choice.specification


def _write_reports(night: Night, folder: Path, against: Path | None) -> tuple[Path, ...]:
    folder.mkdir(parents=True, exist_ok=True)
    write_html(folder / PAGE, night.title, night.assessments, _reports_of(night, against), night.searches)
    for name, write in WRITERS.items():
        write(folder / name, night.title, night.assessments, night.searches)
    if summary := os.environ.get(STEP_SUMMARY):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write((folder / MARKDOWN).read_text(encoding="utf-8"))
    return (folder / PAGE, *(folder / name for name in WRITERS))


def _searches(
    chosen: RunOptions, ended: Run, options: NightlyOptions, store: Path, progress: Progress
) -> tuple[FaultSearch, ...]:
    """The searches of a night that ran to its end. The seed is that of its date: each night draws something else."""
    if ended.status != COMPLETE:
        return ()
    seed = date.fromisoformat(ended.started[:10]).toordinal()
    common = FuzzOptions(
        baseline=chosen.baseline,
        operators=chosen.operators,
        seed=seed,
        out=options.fuzz_out,
        vulkan=chosen.vulkan,
        config=chosen.config,
        jobs=chosen.jobs,
    )
    run_s = (datetime.fromisoformat(ended.finished) - datetime.fromisoformat(ended.started)).total_seconds()
    budget = Budget.of(options.fuzz_minutes, options.fuzz_graph_minutes, run_s, len(chosen.targets))
    return tuple(searches(chosen.targets, common, budget, store, progress))


def _reports_of(night: Night, against: Path | None) -> dict[str, Path]:
    """Run id -> folder of the night's run and of those that it is compared with, which mostly lie beside it."""
    older = {found.difference.older.run_id for found in night.assessments if found.difference}
    beside = {run_id: against or night.folder.parent / run_id for run_id in older}
    return {**beside, night.run.run_id: night.folder}


def _assess_target(
    opened: Store, ended: Run, folder: Path, target: str, options: NightlyOptions
) -> tuple[Assessment, Store]:
    """The assessment of a target, and the store without the files that turned out to be damaged."""
    newer = read_compared_run(folder, target, ended)
    older: ComparedRun | None
    if options.against is not None:
        older, _ = open_pair(options.against, folder, None, target)
    else:
        older, opened = read_last_good(opened, ended, target)
    if older is None:
        return assessment.assess_first(difference.summarize_compared(newer)), opened
    flaky = flaky_cases(opened, ended, target)
    return assessment.assess(difference.compare_nights(older, newer, flaky, options.factor)), opened


def _not_run(options: RunOptions, status: str) -> Path:
    """The folder of a run that did not begin."""
    folder = reports.new_run_folder(options.root)
    chosen = options.baseline or default_baseline(options.targets)
    baseline = None if chosen == "none" else chosen
    described = describe(options, options.targets, baseline, sum(1 for _ in options.cases()))
    ended = replace(described, run_id=folder.name, finished=described.started, status=status)
    with reports.create(folder, ended) as journal:
        journal.close(ended)
    reports.write_all(folder, family=family_of)
    return folder
