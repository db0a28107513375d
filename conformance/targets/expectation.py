"""Expectations: deviations of a target that are known, explained and tolerated for now, in TOML.

    [[expect]]
    case = "TopK-*/float32/nan_*"     # a glob over case ids, or a list of globs; '[' is literal
    status = "mismatch"               # the status that is expected, one of record.STATUSES, or a list of them
    reason = "NaN loses its place ..." # why: mandatory
    link = "..."                      # where it is discussed: optional
    bound = 2.0                       # ULP: a mismatch beyond it is not covered; optional

What depends on what memory holds changes from run to run: its entry lists every status that it may have, even `pass`.

An expectation never changes how a case is judged. One that matches no case is stale, one whose case passes is `fixed`;
both fail a strict run.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import Expected
from epcheck.conformance.records.terms import MISMATCH, STATUSES
from epcheck.generators.error import EpcheckError
from epcheck.generators.suite import matches


class ExpectationError(EpcheckError, ValueError):
    """An expectation file is not valid; the message names the file, the entry and what to write."""


@dataclass(frozen=True)
class Expectation:
    """case: glob. status: what is expected. bound: the largest ULP error that is covered; None covers any."""

    case: str
    status: str
    reason: str
    link: str = ""
    bound: float | None = None

    def covers(self, opinion: Opinion) -> bool:
        """Whether the opinion is the expected deviation: the status, and a mismatch within the bound.

        What is not a finite number of ULP (a NaN, a wrong shape, an integer) is within no bound.
        """
        if opinion.status != self.status:
            return False
        if self.bound is None or self.status != MISMATCH:
            return True
        errors = [difference.max_ulp for difference in opinion.differences]
        return bool(errors) and all(error is not None and error <= self.bound for error in errors)

    def as_expected(self) -> Expected:
        """What a record keeps of it."""
        return Expected(self.case, self.status, self.reason, self.link)


FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "case": (str, list),
    "status": (str, list),
    **dict.fromkeys(("reason", "link"), str),
    "bound": (int, float),
}
LISTS = ("case", "status")
"""The fields that may be lists: an entry stands for each combination."""


def parse(text: str, source: str) -> tuple[Expectation, ...]:
    """The expectations of a TOML text; `source` names it in errors. Raises ExpectationError."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ExpectationError(f"{source} is not valid TOML: {error}") from None
    if unknown := document.keys() - {"expect"}:
        raise ExpectationError(f"{source}: unknown key '{min(unknown)}'; entries are tables named [[expect]]")
    entries = document.get("expect", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ExpectationError(f"{source}: write [[expect]] with two brackets, one table for each expectation")
    numbered = enumerate(entries, 1)
    return tuple(e for number, entry in numbered for e in _entry(entry, f"{source}, entry {number}"))


def _entry(entry: dict[str, Any], where: str) -> tuple[Expectation, ...]:
    if unknown := entry.keys() - FIELDS.keys():
        raise ExpectationError(f"{where}: unknown field '{min(unknown)}'; an expectation has {', '.join(FIELDS)}")
    for name in ("case", "status", "reason"):
        if not str(entry.get(name, "")).strip():
            raise ExpectationError(f"{where}: '{name}' is missing; every expectation says which case, what and why")
    for name, value in entry.items():
        if not isinstance(value, FIELDS[name]) or isinstance(value, bool):
            raise ExpectationError(f"{where}: '{name}' has the wrong type, {type(value).__name__}")
    if not entry.get("bound", 0) >= 0:
        raise ExpectationError(f"{where}: 'bound' is {entry['bound']}; it is a number of ULP, 0 or more")
    globs, statuses = (entry[name] if isinstance(entry[name], list) else [entry[name]] for name in LISTS)
    if not all(isinstance(glob, str) and glob.strip() for glob in globs):
        raise ExpectationError(f"{where}: 'case' is a glob or a list of globs")
    for status in statuses:
        if status not in STATUSES:
            raise ExpectationError(f"{where}: unknown status '{status}'; one of {', '.join(STATUSES)}")
    return tuple(Expectation(**{**entry, "case": glob, "status": one}) for glob in globs for one in statuses)


def load(path: Path) -> tuple[Expectation, ...]:
    """The expectations of a file. Raises ExpectationError when it cannot be read or is not valid."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExpectationError(f"expectations '{path}' cannot be read: {error}") from None
    return parse(text, str(path))


def shipped(target: str) -> tuple[Expectation, ...]:
    """The expectations that epcheck ships for a target of that name ('dml', 'cpu'), one file for each operator family,
    and one in `stack/` for what the graphics stack may be to blame for; none for others."""
    folder = files("epcheck.conformance") / "expectations" / target
    found = [*_files(folder, target), *_files(folder / "stack", f"{target}/stack")]
    found.sort(key=lambda named: named[1].name)  # a family's own file, then what its graphics stack may be to blame for
    return tuple(e for where, file in found for e in parse(file.read_text(encoding="utf-8"), where))


def _files(folder: Traversable, where: str) -> list[tuple[str, Traversable]]:
    entries = folder.iterdir() if folder.is_dir() else ()
    return [(f"{where}/{file.name}", file) for file in entries if file.name.endswith(".toml")]


def head(case_id: str) -> str:
    """What all ids of an operator begin with: `Slice-`."""
    return f"{case_id.partition('/')[0].rpartition('-')[0]}-"


_IS_ID = re.compile(r"[^/]*-\d+/[^/]*/[^/]*\[[^\[\]]*\]")
"""An id, or its end: no other part of an id has two slashes and ends so. It is looked for in the ids of one operator,
and of those whose names end alike: `Gelu-1/...` is found in `com.microsoft::Gelu-1/...`."""


def may_match(expectation: Expectation, operator_head: str) -> bool:
    """Whether the glob could match some id that begins so: there are thousands of expectations, and most are of one
    operator."""
    prefix, has_wildcard = _beginning(expectation.case)
    if not has_wildcard:
        return not _IS_ID.fullmatch(prefix) or operator_head.endswith(head(prefix))
    return operator_head.startswith(prefix) or prefix.startswith(operator_head)


@cache
def _beginning(glob: str) -> tuple[str, bool]:
    """What stands before the first wildcard, and whether there is one."""
    prefix = re.split("[*?]", glob, maxsplit=1)[0]
    return prefix, prefix != glob


def stale(expectations: Iterable[Expectation], case_ids: Iterable[str]) -> tuple[Expectation, ...]:
    """The expectations that match none of the cases."""
    by_head: dict[str, list[str]] = {}
    for case_id in case_ids:
        by_head.setdefault(head(case_id), []).append(case_id)

    def found(expectation: Expectation) -> bool:
        groups = (ids for start, ids in by_head.items() if may_match(expectation, start))
        return any(matches(case_id, expectation.case) for ids in groups for case_id in ids)

    return tuple(e for e in expectations if not found(e))
