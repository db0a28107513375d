"""The faults of a run: one for each fault group, shown by its smallest case."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from epcheck import reports
from epcheck.api.bug_reports.fault import BugReportError, Fault
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.repro_command import folder_name
from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import EXPECTED, FAILING, FAILURE
from epcheck.conformance.targets.target import CPU
from epcheck.conformance.test_data import repro
from epcheck.generators import schema, suite
from epcheck.reports.bug_report.issue import Answer, Issue, is_provider, title
from epcheck.reports.causes.cause import Cause
from epcheck.reports.runs.causes import find_causes_of_run
from epcheck.reports.runs.fingerprint import fingerprint, provider_of, release_of

LISTED = 10
"""Cases of a fault group that are listed."""

LINE = 300
"""Characters of a message in a table."""

SHOWN = 5
"""Wrong elements of an output that are listed."""


@dataclass(frozen=True)
class Chosen:
    """Which fault groups. cases: ids or parts of ids, each for its group; none for every group that failed. expected:
    those that expectations cover as well. most: at most. target: of this candidate alone; empty for all."""

    cases: Sequence[str] = ()
    expected: bool = False
    most: int = 20
    target: str = ""


@dataclass(frozen=True)
class _Group:
    """The record that shows a cause, the cause, its cases, and records of the same case on other candidates."""

    record: Record
    cause: Cause
    cases: tuple[str, ...]
    others: tuple[Record, ...]


def faults(folder: Path, chosen: Chosen, out: Path) -> Iterator[Fault]:
    """The fault groups of a run, the largest first. Raises StoreError, BugReportError, ReproError and OSError."""
    run = reports.read_run(folder)
    if chosen.target not in ("", *run.candidates):
        raise BugReportError(f"run '{folder}' has no candidate '{chosen.target}'; it has {', '.join(run.candidates)}")
    groups = _groups(folder, run, chosen)
    if not groups:
        raise BugReportError(_nothing(folder, chosen))
    for group in groups[: chosen.most]:
        yield _fault(run, group, out)


def _nothing(folder: Path, chosen: Chosen) -> str:
    if chosen.cases:
        return f"run '{folder}' has no case '{chosen.cases[0]}' that is wrong; see the run's report"
    if chosen.expected:
        return f"run '{folder}' has no case that is wrong: nothing to report"
    return f"run '{folder}' has no failure: nothing to report; --expected includes expected deviations"


def _groups(folder: Path, run: Run, chosen: Chosen) -> list[_Group]:
    cases = chosen.cases
    causes = find_causes_of_run(folder)
    members: dict[str, list[str]] = {}
    named: dict[str, str] = {}
    for (_, case_id), cause in sorted(causes.of_case.items()):
        members.setdefault(cause.key, []).append(case_id)
        if _is_named(case_id, cases):
            named.setdefault(cause.key, case_id)
    every = [cause for target in run.candidates for cause in causes.of(target) if _counts(cause, chosen)]
    every = [cause for cause in every if not cases or cause.key in named]
    picked = list(
        {(cause.title, cause.operators): cause for cause in reversed(every)}.values()
    )  # of several targets one
    picked.sort(key=lambda cause: -cause.cases)
    shown = {cause.key: named.get(cause.key, cause.smallest) if cases else cause.smallest for cause in picked}
    records = _records_of(folder, set(shown.values()))
    found = []
    for cause in picked:
        of_case = records[shown[cause.key]]
        record = next(r for r in of_case if r.candidate.target == cause.target)
        others = tuple(other for other in of_case if other is not record)
        found.append(_Group(record, cause, tuple(members[cause.key]), others))
    return found


def _counts(cause: Cause, chosen: Chosen) -> bool:
    if chosen.target not in ("", cause.target):
        return False
    if chosen.cases:
        return cause.reading in FAILING
    return cause.reading == FAILURE or (chosen.expected and cause.reading == EXPECTED)


def _is_named(case_id: str, cases: Sequence[str]) -> bool:
    """Whether a case is meant: by its id, or by a part of it."""
    return any(name == case_id or name in case_id for name in cases)


def _records_of(folder: Path, wanted: Collection[str]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in reports.read_records(folder):
        if record.case_id in wanted:
            found.setdefault(record.case_id, []).append(record)
    return found


def _fault(run: Run, group: _Group, out: Path) -> Fault:
    record, target = group.record, group.record.candidate.target
    provider = provider_of(run, target)
    name = f"{folder_name(record.case_id)[:60]}-{group.cause.key}"
    folder = out / name / "repro"
    runs_sessions = provider if is_provider(provider) else CPU  # a callable is asked by `epcheck replay`
    judged = replace(repro.judged(built := repro.build_case(suite.case_by_id(record.case_id))), provider=runs_sessions)
    folder.parent.mkdir(parents=True, exist_ok=True)
    repro.write_folder(folder, built.model, built.feeds, judged)
    case = record.case
    operator = f"{case.operator_key}-{case.since_version}"
    issue = Issue(
        title=title(provider, f"{operator} ({case.dtype}): {_what(record)}"),
        summary=_summary(record, group.cause, provider, operator),
        expected=f"{record.case.expects}, as {operator} is defined",
        message=_message(record),
        facts=tuple(_facts(record, group)),
        answers=tuple(_answers_in(run, record, group.others)),
        provider=provider,
        fingerprint=fingerprint(run, target),
        archive="",
        folder="",
        notes=tuple(_notes(record)),
        link=_link(record),
    )
    return Fault(name, folder, target, issue, group.cases)


def _what(record: Record) -> str:
    return record.candidate.differences[0].reason if record.candidate.differences else record.status


def _message(record: Record) -> str:
    """The runtime's own words, or the differences in ours."""
    words = record.candidate.message or "; ".join(f"{d.output}: {d.reason}" for d in record.candidate.differences)
    return words or record.status


def _summary(record: Record, cause: Cause, provider: str, operator: str) -> str:
    more = ""
    if cause.cases > 1:
        listed = ", ".join(cause.operators)
        more = (f" {cause.cases:,} cases of {listed} fail for the same reason; this is the smallest, or the case that "
                "was asked for.")  # fmt: skip
    return f"{provider} is not right on a model of a single {operator} node: {_first_line(_message(record))}.{more}"


def _link(record: Record) -> str:
    """The page of the operator in the ONNX standard; empty for operators of other domains."""
    case = record.case
    is_known = not case.domain and schema.knows(case.operator)
    return f"https://onnx.ai/onnx/operators/onnx__{case.operator}.html" if is_known else ""


def _facts(record: Record, group: _Group) -> Iterator[tuple[str, str]]:
    case = record.case
    yield "case", case.case_id
    yield "opset", str(case.opset)
    yield "attributes", ", ".join(f"{name} = {value}" for name, value in case.attributes.items()) or "none"
    for value in case.values:
        yield f"{value.where} {value.name}", f"{value.dtype}{list(value.shape)} {value.preview}"
    for difference in record.candidate.differences:
        for wrong in difference.first[:SHOWN]:
            place = f"{difference.output}[{', '.join(map(str, wrong.at))}]"
            yield place, f"expected {wrong.expected}, got {wrong.got}"
    yield "condition", group.cause.condition
    yield "evidence", group.cause.evidence
    yield "nearest case that passes", group.cause.right
    yield "dtypes of the group", ", ".join(group.cause.dtypes)
    if record.direct is not None and record.direct.blame:
        yield "DirectML called without the provider", f"{record.direct.blame}: {record.direct.opinion.status}"
    listed = ", ".join(group.cases[:LISTED])
    if len(group.cases) > 1:
        yield "cases of the group", listed + (f" and {len(group.cases) - LISTED:,} more"
                                              if len(group.cases) > LISTED else "")  # fmt: skip


def _answers_in(run: Run, record: Record, others: Sequence[Record]) -> Iterator[Answer]:
    """What the targets of the run make of the case: each once, and without the paths of this machine."""
    opinions = [record.candidate, *((record.baseline,) if record.baseline else ()), *(o.candidate for o in others)]
    seen: dict[str, Opinion] = {}
    for opinion in opinions:
        seen.setdefault(opinion.target, opinion)
    for target, opinion in seen.items():
        words = opinion.differences[0].reason if opinion.differences else _first_line(opinion.message)
        yield Answer(_describe_target(run, target), opinion.status, words)
    yield from (Answer(f"oracle {name}", answer) for name, answer in record.oracles.items())


def _describe_target(run: Run, target: str) -> str:
    """A target as strangers know it: its name, or provider and release where that is a path."""
    if not any(sign in target for sign in "/\\"):
        release = run.targets.get(target, {}).get("onnxruntime", "")
        return f"{target} ({release})" if release and "@" not in target else target
    return f"{provider_of(run, target)} {release_of(run.targets.get(target, {}))}".strip()


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:LINE].rstrip(".")


def _notes(record: Record) -> Iterator[str]:
    if record.expectation is not None:
        yield f"Known to epcheck: {record.expectation.reason} {record.expectation.link}".strip()
