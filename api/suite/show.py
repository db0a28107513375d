"""One case: what it asks, what targets made of it in a run, and what a target makes of it now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck import reports
from epcheck.api.models.examining.examination import examine
from epcheck.api.option import SELECT, Option, ask_if_meant, find_nearest
from epcheck.api.option_types import Root
from epcheck.api.progress import SILENT, Progress
from epcheck.api.suite.option_types import Baseline
from epcheck.api.suite.repro import DEADLINE_S
from epcheck.api.suite.shown_case import ShownCase, describe
from epcheck.conformance.records import strict_json
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.repro_command import repro_command
from epcheck.conformance.records.terms import FAILING, FAILURE
from epcheck.conformance.scheduling.stream import CaseStream, CaseStreamError
from epcheck.conformance.targets.target import TargetError
from epcheck.conformance.test_data import repro
from epcheck.generators import suite
from epcheck.generators.case import Case
from epcheck.reports import StoreError


@dataclass(frozen=True)
class ShowOptions:
    """Which case, of which run, and on which target it is run. run: the folder of a run, or its id under `root`; None
    for the newest under `root`, if it has the case. target: None runs it on none. source: the folder of a harvested
    case; None for any other."""

    case_id: Annotated[str, Option("A case id, as in `epcheck list` and the report.", argument=True)]
    target: Annotated[
        str | None, Option("Run the case on this target now.", flags=("--target", "-t"), metavar="TARGET", panel=SELECT)
    ] = None
    run: Annotated[
        str | None,
        Option(
            "Show what this run recorded: its folder, or its id under --root.", metavar="RUN",
            default="the newest, if it has the case", panel=SELECT,
        ),
    ] = None  # fmt: skip
    source: Annotated[Path | None, Option("Folder of a harvested case.", metavar="FOLDER", panel=SELECT)] = None
    baseline: Baseline = None
    root: Root = reports.DEFAULT_ROOT


@dataclass(frozen=True)
class Shown:
    """case: what it asks. run: the folder whose records these are; None for none. records: one for each candidate of
    the run. now: of the target on which it was run. repro: the command that reproduces it, of the target now, else of
    the first candidate that fails."""

    case: ShownCase
    run: Path | None
    records: tuple[Record, ...]
    now: Record | None
    repro: str

    @property
    def conforms(self) -> bool:
        """Whether it is no failure now."""
        return self.now is None or self.now.reading != FAILURE


def show(options: ShowOptions, *, progress: Progress = SILENT) -> Shown:
    """What a case asks, what a run recorded of it, and what a target makes of it now.

    Raises SelectionError for an unknown id, ReproError where the case cannot be built, StoreError for a run that is
    none or lacks the case, and TargetError for a target that is none or cannot be started.
    """
    case = suite.case_by_id(options.case_id, options.source)
    if options.source is None:
        shown = _describe(case)
    else:
        shown = examine(_describe_stranger, case, options.source, SILENT.say, DEADLINE_S)
    run = _find_run(options)
    records = tuple(_read_records(run, case.id)) if run else ()
    if run and options.run and not records:
        raise StoreError(f"run {run} has no record of '{case.id}'; leave out --run to see the case alone")
    now = _run_now(case, options, progress) if options.target else None
    failing = [record for record in records if record.reading in FAILING]
    record = next(iter((*((now,) if now else ()), *failing, *records)), None)
    command = record.case.repro if record else repro_command(case.id, folder=case.folder)
    return Shown(shown, run if records else None, records, now, command)


def _describe_stranger(case: Case, _say: Callable[[str], None]) -> ShownCase:
    return _describe(case)


def _describe(case: Case) -> ShownCase:
    return describe(repro.build_case(case))


def _find_run(options: ShowOptions) -> Path | None:
    """The folder of the run that is asked for; None where none is and there is none. Raises StoreError."""
    if options.run is None:
        try:
            return reports.latest(options.root)
        except StoreError:
            return None
    for folder in (Path(options.run), options.root / options.run):
        if folder.is_dir():
            reports.read_run(folder)
            return folder
    known = [path.name for path in options.root.glob("*") if path.is_dir()]
    meant = ask_if_meant(find_nearest(options.run, known)) or "Name the folder of a run."
    raise StoreError(f"no run '{options.run}' here or in {options.root}. {meant}")


def _read_records(run: Path, case_id: str) -> Iterator[Record]:
    """The records of one case, in little time: no line without its id is read as a record. Raises StoreError."""
    wanted = strict_json.dumps(case_id).encode("ascii")
    return (item for item in reports.read_records(run, lambda line: wanted in line) if item.case_id == case_id)


def _run_now(case: Case, options: ShowOptions, progress: Progress) -> Record:
    try:
        with progress.working() as say:
            say(f"running it on {options.target}")
            with CaseStream(options.target, options.baseline, jobs=1) as stream:
                return stream.record(case)
    except CaseStreamError as error:
        raise TargetError(str(error)) from None
