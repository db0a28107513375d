"""Expectations written from what a run found, to be read as a diff before they are kept."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff

from epcheck.conformance.targets import case_globs, expectation
from epcheck.conformance.targets.expectation import Expectation, ExpectationError
from epcheck.generators import suite
from epcheck.generators.suite import matches


@dataclass(frozen=True)
class Found:
    """A failure that a run found, or that it did not find: a case, and the status of the candidate in it."""

    case_id: str
    status: str


@dataclass(frozen=True)
class Baseline:
    """text: the whole file as it would be. added: cases that it newly expects. covered: failures that the file expects
    already."""

    text: str
    added: int
    covered: int


def baseline(
    existing: str, source: str, failures: Sequence[Found], others: Collection[str], reason: str, link: str = ""
) -> Baseline:
    """The file `existing` with an entry more for each operator and status of the failures.

    source: the file's name, for errors. others: ids of cases that do not fail, which no new glob may match, nor any
    other case of the suite. reason: why the failures are tolerated for now. Raises ExpectationError when the file is
    not valid, or there is no reason.
    """
    if not reason.strip():
        raise ExpectationError("an expectation needs a reason; say with --reason why these failures are tolerated")
    known = expectation.parse(existing, source)
    new = [one for one in failures if not is_expected(one, known)]
    ids = {status: {one.case_id for one in failures if one.status == status} for status in {f.status for f in failures}}
    by_entry: dict[tuple[str, str], list[str]] = {}
    for one in sorted(new, key=lambda found: (found.case_id, found.status)):
        by_entry.setdefault((expectation.head(one.case_id), one.status), []).append(one.case_id)
    texts = [existing.rstrip() + "\n"] if existing.strip() else []
    for (head, status), case_ids in by_entry.items():
        around = [case_id for case_id in _around(head, (*others, *_all(ids))) if case_id not in ids[status]]
        texts.append(_entry(case_globs.globs(case_ids, around), status, reason, link))
    text = "\n".join(texts)
    expectation.parse(text, f"{source}, with what is added")
    return Baseline(text, len(new), len(failures) - len(new))


def is_expected(found: Found, known: Iterable[Expectation]) -> bool:
    """Whether one of the expectations covers it. One with a bound is not asked: a status alone does not tell."""
    return any(e.status == found.status and e.bound is None and matches(found.case_id, e.case) for e in known)


def diff(existing: str, written: str, source: str) -> str:
    """What would change in the file, as a unified diff; empty when nothing would."""
    lines = unified_diff(existing.splitlines(keepends=True), written.splitlines(keepends=True), source, source)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _all(ids: Mapping[str, Collection[str]]) -> Iterator[str]:
    return (case_id for of_status in ids.values() for case_id in of_status)


def _around(head: str, recorded: Iterable[str]) -> list[str]:
    """Every case of the run and of the suite that a glob for the operator could match by mistake; an id without a
    wildcard is looked for anywhere in an id, so operators whose names end alike are among them."""
    alike = [key for key in suite.all_operators() if f"{key}-".endswith(head)]
    known = [case.id for key in alike for case in suite.cases([key])]
    return [*known, *(case_id for case_id in recorded if expectation.head(case_id).endswith(head))]


def _entry(patterns: Sequence[str], status: str, reason: str, link: str) -> str:
    lines = ["[[expect]]", f"case = {_listed(patterns)}", f"status = {_text(status)}", f"reason = {_text(reason)}"]
    return "\n".join([*lines, *([f"link = {_text(link)}"] if link else []), ""])


def _listed(values: Sequence[str]) -> str:
    """Strings as TOML: one alone, or a list with one on each line."""
    if len(values) == 1:
        return _text(values[0])
    return "".join(["[\n", *(f"    {_text(value)},\n" for value in values), "]"])


def _text(value: str) -> str:
    """A string of TOML, whose escapes are those of JSON but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
