"""Expectations in TOML: read from files, and written from what a run found.

    link = "docs/findings.md"         # of the entries that have none of their own: optional, before the first entry
    when = { runtime = ">=1.20" }     # where the file applies at all; an entry's own `when` adds to it: optional

    [[expect]]
    case = "TopK-*/float32/nan_*"     # a glob over case ids, or a list of globs; '[' is literal
    status = "mismatch"               # the status that is expected, one of terms.STATUSES, or a list of them
    reason = "NaN loses its place ..." # why: mandatory
    link = "..."                      # where it is discussed: optional
    where = "any input contains NaN"  # a condition that a cause states: the entry is for cases of the glob where it
                                      # holds, whatever made them; optional
    variant = ["threads=*"]           # of a case that depends on its variant: a glob over those that differ, or a list
                                      # of globs; optional
    gives = ["crash", "refused"]      # the status, or statuses, that these variants may have then; optional
    bound = 2.0                       # ULP: a mismatch beyond it is not covered; optional
    when = { vendor = "0x10de" }      # on which machines it applies, see `condition`; optional

What depends on what memory holds changes from run to run: its entry lists every status that it may have, even `pass`.
What is written is shown as a diff before it is kept.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from epcheck.conformance.records import terms
from epcheck.conformance.records.case_condition import parse_condition
from epcheck.conformance.records.terms import STATUSES
from epcheck.conformance.targets import case_globs, condition, expectation
from epcheck.conformance.targets.condition import ANYWHERE, Condition, ConditionError
from epcheck.conformance.targets.expectation import Expectation, ExpectationError
from epcheck.generators import registry, suite
from epcheck.generators.case_pattern import matches

FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "case": (str, list),
    "status": (str, list),
    "variant": (str, list),
    "gives": (str, list),
    **dict.fromkeys(("reason", "link", "where"), str),
    "bound": (int, float),
    "when": dict,
}


DEPENDENT = frozenset(terms.DEPENDENT)
"""The statuses that depend on variants."""

LISTS = ("case", "status")
"""The fields that may be lists: an entry stands for each combination."""


def parse(text: str, source: str) -> tuple[Expectation, ...]:
    """The expectations of a TOML text; `source` names it in errors. Raises ExpectationError."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also of a number with thousands of digits, of brackets in brackets
        raise ExpectationError(f"{source} is not valid TOML: {error}") from None
    if unknown := document.keys() - {"expect", "link", "when"}:
        raise ExpectationError(f"{source}: unknown key '{min(unknown)}'; entries are tables named [[expect]]")
    entries, link, where = document.get("expect", []), document.get("link", ""), document.get("when", {})
    if "when" in document:
        _condition(where, source)
    if not isinstance(link, str):
        raise ExpectationError(f"{source}: 'link' has the wrong type, {type(link).__name__}")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ExpectationError(f"{source}: write [[expect]] with two brackets, one table for each expectation")
    numbered = enumerate(entries, 1)
    return tuple(e for number, entry in numbered for e in _entry(entry, link, where, f"{source}, entry {number}"))


def _condition(table: object, where: str) -> Condition:
    try:
        return condition.parse(table)
    except ConditionError as error:
        raise ExpectationError(f"{where}: {error}") from None


def _entry(own: dict[str, Any], link: str, file_when: dict[str, Any], where: str) -> tuple[Expectation, ...]:
    entry = {"link": link, **own}
    if unknown := entry.keys() - FIELDS.keys():
        raise ExpectationError(f"{where}: unknown field '{min(unknown)}'; an expectation has {', '.join(FIELDS)}")
    when = _condition(entry.pop("when"), where) if "when" in entry else ANYWHERE
    if file_when:
        when = _condition({**file_when, **own.get("when", {})}, where)
    for name in ("case", "status", "reason"):
        if not str(entry.get(name, "")).strip():
            raise ExpectationError(f"{where}: '{name}' is missing; an expectation needs case, status and reason")
    for name, value in entry.items():
        if not isinstance(value, FIELDS[name]) or isinstance(value, bool):
            raise ExpectationError(f"{where}: '{name}' has the wrong type, {type(value).__name__}")
    if not entry.get("bound", 0) >= 0:
        raise ExpectationError(f"{where}: 'bound' is {entry['bound']}; it is a number of ULP, 0 or more")
    globs, statuses = (entry[name] if isinstance(entry[name], list) else [entry[name]] for name in LISTS)
    if not all(isinstance(glob, str) and glob.strip() for glob in globs):
        raise ExpectationError(f"{where}: 'case' is a glob or a list of globs")
    variants, gives = (_list_of(entry.pop(name, []), name, where) for name in ("variant", "gives"))
    for status in (*statuses, *gives):
        if status not in STATUSES:
            raise ExpectationError(f"{where}: unknown status '{status}'; one of {', '.join(STATUSES)}")
    if variants and not DEPENDENT.issuperset(statuses):
        raise ExpectationError(f"{where}: 'variant' is for the statuses {' and '.join(sorted(DEPENDENT))} alone")
    if gives and not variants:
        raise ExpectationError(f"{where}: 'gives' is what a variant gives; write 'variant', too")
    try:
        terms = parse_condition(entry["where"]) if "where" in entry else ()
    except ValueError as error:
        raise ExpectationError(f"{where}: 'where' is '{entry['where']}': {error}") from None
    fields = {**entry, "when": when, "where": terms, "variants": variants, "gives": gives}
    return tuple(Expectation(**{**fields, "case": glob, "status": status}) for glob in globs for status in statuses)


def _list_of(value: object, name: str, where: str) -> tuple[str, ...]:
    """A text, or a list of texts, as a tuple."""
    values: list[Any] = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) and each.strip() for each in values):
        raise ExpectationError(f"{where}: '{name}' is a text or a list of texts")
    return tuple(values)


def load(path: Path) -> tuple[Expectation, ...]:
    """The expectations of a file. Raises ExpectationError when it cannot be read or is not valid."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExpectationError(f"expectations '{path}' cannot be read: {error}") from None
    return parse(text, str(path))


@cache
def load_shipped(target: str) -> tuple[Expectation, ...]:
    """The expectations that epcheck ships for a target of that name ('dml', 'cpu'), one file for each operator family,
    one in `stack/` for what the graphics stack may be to blame for, and those of graphs of several nodes in `graphs/`;
    none for others."""
    folder = files("epcheck.conformance") / "expectations" / target
    further = [entry for name in ("stack", "graphs") for entry in _files(folder / name, f"{target}/{name}")]
    found = [*_files(folder, target), *further]
    found.sort(key=lambda named: named[1].name)  # a family's own file, then what its graphics stack may be to blame for
    return tuple(e for where, file in found for e in parse(file.read_text(encoding="utf-8"), where))


def _files(folder: Traversable, where: str) -> list[tuple[str, Traversable]]:
    entries = folder.iterdir() if folder.is_dir() else ()
    return [(f"{where}/{file.name}", file) for file in entries if file.name.endswith(".toml")]


@dataclass(frozen=True)
class Found:
    """A failure that a run found, or that it did not find: a case, and the status of the candidate in it. variants:
    those that differ, where it depends on them."""

    case_id: str
    status: str
    variants: tuple[str, ...] = ()


@dataclass(frozen=True)
class FoundFault:
    """Failures with a condition in common. globs: of the operators' cases. where: the condition, in words. statuses: of
    the cases of these operators where it holds. case_ids: those that fail."""

    globs: tuple[str, ...]
    where: str
    statuses: tuple[str, ...]
    case_ids: frozenset[str]


@dataclass(frozen=True)
class Baseline:
    """text: the whole file as it would be. added: cases that it newly expects. covered: failures that the file expects
    already."""

    text: str
    added: int
    covered: int


@dataclass(frozen=True)
class Tolerance:
    """What all new entries have in common. reason: why the failures are tolerated for now. link: where they are
    discussed. when: the condition under which the entries apply."""

    reason: str
    link: str = ""
    when: Condition = ANYWHERE


def baseline(
    existing: str,
    source: str,
    failures: Sequence[Found],
    others: Collection[str],
    tolerance: Tolerance,
    facts: Mapping[str, str] | None = None,
    faults: Sequence[FoundFault] = (),
) -> Baseline:
    """The file `existing` with an entry more for each fault, and for each operator and status of the other failures.

    source: the file's name, for errors. others: ids of cases that do not fail, which no new glob may match, nor any
    other case of the suite. facts: what the target's worker reported; an entry of the file whose condition does not
    hold with them covers no failure. Raises ExpectationError when the file is not valid, there is no reason, or a
    failure has an id that would cover other cases.
    """
    if not tolerance.reason.strip():
        raise ExpectationError("an expectation needs a reason; give one with --reason")
    known = expectation.applicable(parse(existing, source), facts or {})
    new = [found for found in failures if not is_expected(found, known)]
    ids: dict[str, set[str]] = {}
    for found in failures:
        ids.setdefault(found.status, set()).add(found.case_id)
    by_entry: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    ids_of_faults = frozenset[str]().union(*(fault.case_ids for fault in faults))
    odd = next((found.case_id for found in new if not expectation.is_case_id(found.case_id)), None)
    if odd is not None:
        raise ExpectationError(f"'{odd}' is not a case id, and would cover other cases as a glob; choose cases with -k")
    others_new = (found for found in new if found.case_id not in ids_of_faults)
    for found in sorted(others_new, key=lambda found: (found.case_id, found.status)):
        key = expectation.head(found.case_id), found.status, found.variants
        by_entry.setdefault(key, []).append(found.case_id)
    texts = [existing.rstrip() + "\n"] if existing.strip() else []
    new_ids = {found.case_id for found in new}
    for fault in faults:
        if fault.case_ids & new_ids:
            texts.append(_entry_text(fault.globs, fault.statuses, tolerance, fault.where))
    for (head, status, variants), case_ids in by_entry.items():
        own = case_ids if variants else ids[status]
        around = [case_id for case_id in _find_alike_cases(head, (*others, *_all(ids))) if case_id not in own]
        patterns = case_globs.globs(case_ids, around)
        if head.removesuffix("-") not in registry.all_operators() and _alike(head):
            patterns = tuple(pattern if "*" in pattern else f"{pattern}*" for pattern in patterns)
        texts.append(_entry_text(patterns, (status,), tolerance, variants=variants))
    text = "\n".join(texts)
    parse(text, f"{source}, with what is added")
    return Baseline(text, len(new), len(failures) - len(new))


def is_expected(found: Found, known: Iterable[Expectation]) -> bool:
    """Whether one of the expectations covers it. One with a bound, a condition or variants is not asked: id and status
    alone do not tell."""
    plain = (e for e in known if e.bound is None and not e.where and not e.variants)
    return any(e.status == found.status and matches(found.case_id, e.case) for e in plain)


def diff(existing: str, written: str, source: str) -> str:
    """What would change in the file, as a unified diff; empty when nothing would."""
    lines = unified_diff(existing.splitlines(keepends=True), written.splitlines(keepends=True), source, source)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _all(ids: Mapping[str, Collection[str]]) -> Iterator[str]:
    return (case_id for of_status in ids.values() for case_id in of_status)


def _find_alike_cases(head: str, recorded: Iterable[str]) -> list[str]:
    """Every case of the run and of the suite that a glob for the operator could match by mistake; an id without a
    wildcard is looked for anywhere in an id, so operators whose names end alike are among them. Of an operator that the
    suite does not have they are not: a wildcard at the end of its ids holds them to their beginning."""
    alike = _alike(head) if head.removesuffix("-") in registry.all_operators() else []
    known = [case.id for key in alike for case in suite.cases([key])]
    return [*known, *(case_id for case_id in recorded if expectation.head(case_id).endswith(head))]


def _alike(head: str) -> list[str]:
    """The operators of the suite whose ids an id that begins with `head` could be looked for in."""
    return [key for key in registry.all_operators() if f"{key}-".endswith(head)]


def _entry_text(
    patterns: Sequence[str],
    statuses: Sequence[str],
    common: Tolerance,
    where: str = "",
    variants: Sequence[str] = (),
) -> str:
    status = _text(statuses[0]) if len(statuses) == 1 else f"[{', '.join(map(_text, statuses))}]"
    lines = ["[[expect]]", f"case = {_format_strings(patterns)}", f"status = {status}"]
    lines += [f"where = {_text(where)}"] if where else []
    lines += [f"variant = {_format_strings(variants)}"] if variants else []
    lines += [f"when = {common.when.as_toml()}"] if common.when else []
    lines += [f"reason = {_text(common.reason)}"]
    lines += [f"link = {_text(common.link)}"] if common.link else []
    return "\n".join([*lines, ""])


def _format_strings(values: Sequence[str]) -> str:
    """Strings as TOML: one alone, or a list with one on each line."""
    if len(values) == 1:
        return _text(values[0])
    return "".join(["[\n", *(f"    {_text(value)},\n" for value in values), "]"])


def _text(value: str) -> str:
    """A string of TOML, whose escapes are those of JSON but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
