"""What is wrong as Markdown for ONNX Runtime's issue form, with a zip file that reproduces it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from epcheck.api.bug_reports import from_model, from_run
from epcheck.api.bug_reports.fault import BugReportError as BugReportError
from epcheck.api.bug_reports.fault import Fault
from epcheck.api.bug_reports.writer import BugReport as BugReport
from epcheck.api.bug_reports.writer import write
from epcheck.api.models.parsing import only_target
from epcheck.api.models.reduce import ReduceOptions
from epcheck.api.option import Group, Option
from epcheck.api.progress import SILENT, Progress
from epcheck.api.suite.replay import ReplayOptions, replay
from epcheck.conformance.targets.target import Target
from epcheck.generators.error import EpcheckError
from epcheck.reports.bug_report.issue import Answer

MODEL = Group(
    ("target", "baseline", "feeds", "seed", "dims", "level", "vulkan"),
    {"target": Option("For a model: the target it fails on. For a run: only this candidate.", flags=("--target", "-t"),
                      parse=only_target, many=True)},
)  # fmt: skip


@dataclass(frozen=True)
class ReportBugOptions:
    """What is reported, and who is asked.

    subject: a run's folder, or a model. cases: of a run: ids, or parts of ids; each stands for its fault group. None
    reports every group that failed. expected: groups of deviations that expectations cover as well. also: targets that
    are asked as well, other providers and releases. again: run each repro once more on the target at fault. model: of a
    model: on what it fails; its `model` and `out` are not used. Of a run its `target` chooses the candidate. out: where
    a folder is made for each report.
    """

    subject: Annotated[Path, Option("A run folder, or a model that fails.", argument=True)]
    cases: Annotated[
        tuple[str, ...], Option("For a run: case ids, or parts of them.", argument=True, metavar="[CASE]...")
    ] = ()
    expected: Annotated[
        bool, Option("For a run: include deviations that expectations cover.", flags=("--expected",))
    ] = False
    also: Annotated[tuple[str, ...], Option("Also run the repro on this provider or release; repeat for more.")] = ()
    again: Annotated[bool, Option("Run each repro on the failing target once more.")] = True
    most: Annotated[int, Option("Report at most N fault groups, largest first.", minimum=1)] = 20
    model: Annotated[ReduceOptions, MODEL] = field(default_factory=ReduceOptions)
    out: Annotated[Path, Option("Folder for the reports.")] = Path("bug-reports")


def report_bug(options: ReportBugOptions, *, progress: Progress = SILENT) -> tuple[BugReport, ...]:
    """Write a report for each fault group: `issue.md`, the folder `repro`, and the same as `repro.zip` of at most
    `written.MOST_BYTES`.

    Raises BugReportError where nothing is wrong or a case is not in the run; StoreError, ReproError, ReduceError,
    ModelFileError, TargetError, TargetDown; OSError.
    """
    with progress.working() as say:
        faults = list(_faults(options, say))
        return tuple(write(_ask_targets(fault, options, say), options.out) for fault in faults)


def _faults(options: ReportBugOptions, say: Callable[[str], None]) -> Iterator[Fault]:
    if not options.subject.exists():
        raise BugReportError(f"no such file or folder: {options.subject}; name a run folder or a model")
    if options.subject.is_dir():
        asked = options.model.target
        target = asked.name if isinstance(asked, Target) else asked or ""
        yield from from_run.faults(
            options.subject, from_run.Chosen(options.cases, options.expected, options.most, target), options.out
        )
        return
    if options.cases:
        raise BugReportError(f"'{options.subject}' is not a run folder, so it has no case '{options.cases[0]}'")
    say("reducing the model")
    yield from_model.fault(options.subject, options.model, options.out)


def _ask_targets(fault: Fault, options: ReportBugOptions, say: Callable[[str], None]) -> Fault:
    """The fault with what other targets say of its repro."""
    found: list[Answer] = []
    for target in (*((fault.target,) if options.again else ()), *options.also):
        say(f"asking {target}")
        name = f"{target}, the repro alone" if target == fault.target else target
        found += [Answer(name, *answer) for answer in _replay_folder(fault.repro, target)]
    return fault.with_answers(found)


def _replay_folder(folder: Path, target: str) -> Sequence[tuple[str, str]]:
    """(status, reason) of each data set of a folder on a target; why it cannot be asked, where that is so."""
    try:
        return [(r.status, r.reason) for r in replay(ReplayOptions(folder, (target,), baseline="none"))]
    except EpcheckError as error:
        return [("not asked", str(error))]
