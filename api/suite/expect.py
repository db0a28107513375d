"""What a run found, written down as expected for now."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck.api.option import Option
from epcheck.conformance.records.facts import describe_case
from epcheck.conformance.records.terms import DEPENDENT, DIFFERS, FAILURE, FLAKY, PASS
from epcheck.conformance.targets import condition, expectation_file
from epcheck.conformance.targets.expectation import ExpectationError
from epcheck.conformance.targets.expectation_file import Found, FoundFault, Tolerance
from epcheck.generators.case_pattern import matches
from epcheck.reports import latest
from epcheck.reports.diff.compared_runs import open_single
from epcheck.reports.runs.causes import find_causes_of_run
from epcheck.reports.runs.run_folder import StoreError, read_records, replacing

DEFAULT_FILE = Path("expectations.toml")


@dataclass(frozen=True)
class ExpectOptions:
    """Which failures of which run, and why they are tolerated. patterns: empty takes all of them. when: names of facts
    (`condition.NAMES`) that have to be as in the run for the entries to apply."""

    run: Annotated[Path, Option("A run folder, its file in a store, or 'latest'.", flags=("--from",), metavar="RUN")]
    reason: Annotated[str, Option("Why these failures are expected.")]
    file: Annotated[Path, Option("TOML file of expectations.", folder=False)] = DEFAULT_FILE
    link: Annotated[str, Option("Link to an issue.")] = ""
    target: Annotated[str | None, Option("Target of the run, if it has several.")] = None
    patterns: Annotated[
        tuple[str, ...],
        Option("Only failures of these cases (glob or substring); repeat for more.", flags=("-k",)),
    ] = ()
    when: Annotated[
        tuple[str, ...],
        Option(f"Only where this fact is as in the run: {', '.join(condition.NAMES)}; repeat.", metavar="FACT"),
    ] = ()
    conditions: Annotated[
        bool,
        Option(
            "An entry for each cause that has a condition, instead of globs over its cases.", flags=("--conditions",)
        ),
    ] = False
    write: Annotated[bool, Option("Write the file. Without it, only show the diff.", flags=("--write",))] = False


@dataclass(frozen=True)
class Expected:
    """diff: what changes in the file, as a unified diff; empty where nothing does. added: failures that are newly
    expected. covered: those that the file expects already. written: whether the file was changed."""

    file: Path
    diff: str
    added: int
    covered: int
    written: bool


def expect(options: ExpectOptions) -> Expected:
    """Expect the failures of a run from now on; with `write` the file is changed.

    A glob is written only where every case that it matches fails. With `conditions` an entry has the condition of a
    cause, and the statuses of all cases of its operators where that holds, `pass` among them where some are right.
    Raises StoreError when the run cannot be read, ExpectationError when the file cannot, or there is no reason, and
    ConditionError for a fact that cannot be named or that the run does not have.
    """
    folder = latest() if str(options.run) == "latest" else options.run
    if options.conditions and folder.is_file():
        raise StoreError(f"{folder}: a run in a store keeps no facts for --conditions; name the folder of the run")
    compared = open_single(folder, options.target)
    facts, rows = compared.run.targets.get(compared.target, {}), compared.rows
    tolerance = Tolerance(options.reason, options.link, condition.of_facts(options.when, facts))
    wrong = [row for row in rows if row.reading in (FAILURE, FLAKY)]
    variants = _find_variants(folder, compared.target) if any(row.status in DEPENDENT for row in wrong) else {}
    failures = [
        Found(row.case_id, row.status, variants.get(row.case_id, ()))
        for row in wrong
        if not options.patterns or any(matches(row.case_id, p) for p in options.patterns)
    ]
    taken = {found.case_id for found in failures}
    others = [row.case_id for row in rows if row.case_id not in taken]
    file, existing = options.file, _read(options.file)
    faults = tuple(_find_faults(folder, compared.target, taken)) if options.conditions else ()
    found = expectation_file.baseline(existing, str(file), failures, others, tolerance, facts, faults)
    diff = expectation_file.diff(existing, found.text, str(file)) if found.added else ""
    if written := bool(found.added and options.write):
        with replacing(file) as opened:
            opened.write(found.text.encode("utf-8"))
    return Expected(file, diff, found.added, found.covered, written)


def _find_variants(folder: Path, target: str) -> Mapping[str, tuple[str, ...]]:
    """Case -> the variants that differ, of each case that depends on them; nothing of a run in a store, which keeps
    none. Raises StoreError."""
    if folder.is_file():
        return {}
    return {
        record.case_id: tuple(result.variant for result in record.variants if result.state == DIFFERS)
        for record in read_records(folder)
        if record.status in DEPENDENT and record.candidate.target == target
    }


def _find_faults(folder: Path, target: str, failing: Collection[str]) -> Iterator[FoundFault]:
    """The causes of failures that have a condition, and the statuses of the cases for which it holds. Raises
    StoreError."""
    found = find_causes_of_run(folder)
    of_cause: dict[str, set[str]] = {}
    for (_, case_id), cause in found.of_case.items():
        if case_id in failing:
            of_cause.setdefault(cause.key, set()).add(case_id)
    causes = [cause for cause in found.of(target) if cause.terms and cause.key in of_cause]
    statuses = {cause.key: set(cause.statuses) for cause in causes}
    for record in read_records(folder) if causes else ():
        of_operator = [cause for cause in causes if record.case.operator_key in cause.operators]
        if of_operator and record.status == PASS and record.candidate.target == target:
            facts = describe_case(record.case)
            for cause in of_operator:
                if cause.matches(facts):
                    statuses[cause.key].add(PASS)
    for cause in causes:
        globs = tuple(f"{operator}-*" for operator in cause.operators)
        yield FoundFault(globs, cause.condition, tuple(sorted(statuses[cause.key])), frozenset(of_cause[cause.key]))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8") if file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ExpectationError(f"expectations '{file}' cannot be read: {error}") from None
