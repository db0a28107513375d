"""The suite: every operator that has a module in `operators/`, and the selection of cases from it."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from functools import cache
from typing import Any

from epcheck.generators import operators
from epcheck.generators.case import Case
from epcheck.generators.operator import Operator, is_built_by


class SelectionError(ValueError):
    """A selection names something that the suite does not have; the message lists what it has."""


@cache
def all_operators() -> dict[str, Operator[Any]]:
    """`Operator.key` -> operator, for every `Operator` that a module of `operators/` declares in its `OPERATORS`."""
    found: dict[str, Operator[Any]] = {}
    for module in sorted(pkgutil.iter_modules(operators.__path__), key=lambda m: m.name):
        for operator in importlib.import_module(f"{operators.__name__}.{module.name}").OPERATORS:
            found[operator.key] = operator
    return found


def cases(
    names: Sequence[str] = (), dtypes: Sequence[str] = (), patterns: Sequence[str] = (), limit: int | None = None
) -> Iterator[Case]:
    """The selected cases in the suite's stable order.

    names: operators, as ONNX spells them; `com.microsoft::Gelu` for one of another domain. dtypes: numpy names; a case
    matches when one of its varied dtypes does.
    patterns: globs or substrings of the case id; a case matches when one of them does. limit: at most so many.
    Raises SelectionError for an unknown operator or dtype, or when nothing is left.
    """
    known = all_operators()
    for name in names:
        if name not in known:
            raise SelectionError(f"unknown operator '{name}'; the suite has: {', '.join(known)}")
    wanted = set(dtypes)
    if unknown := wanted - (available := _dtypes()):
        raise SelectionError(f"unknown dtype '{min(unknown)}'; the suite has: {', '.join(sorted(available))}")
    selected = (
        case
        for name in dict.fromkeys(names or known)
        for case in known[name].cases()
        if (not wanted or wanted & {case.dtype, *case.dtype.split("-")})
        and (not patterns or any(matches(case.id, pattern) for pattern in patterns))
    )
    count = 0
    for case in selected:
        if limit is not None and count >= limit:
            return
        count += 1
        yield case
    if not count and limit != 0:
        raise SelectionError("the selection leaves no case; `epcheck list` prints the ids of all")


def is_own(case: Case) -> bool:
    """Whether the case is built by this package alone, so that its id and the package's code say what it is."""
    return is_built_by(case, __package__)


def matches(case_id: str, pattern: str) -> bool:
    """A glob against the whole id ('[' is literal, since ids contain it), or a plain substring of it."""
    return any_matches((pattern,), case_id)


def any_matches(patterns: tuple[str, ...], case_id: str) -> bool:
    """Whether at least one of the patterns `matches`."""
    return _compiled(patterns).fullmatch(case_id) is not None


@cache
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(_expression(pattern) for pattern in patterns) or r"(?!)", re.DOTALL)


def _expression(pattern: str) -> str:
    if any(wildcard in pattern for wildcard in "*?"):
        return translate(pattern.replace("[", "[[]"))
    return f".*{re.escape(pattern)}.*"


def case_by_id(case_id: str) -> Case:
    """The case of exactly that id. Raises SelectionError, naming close ids, when there is none."""
    close: list[str] = []
    for operator in all_operators().values():
        for case in operator.cases():
            if case.id == case_id:
                return case
            if case.sample in case_id and len(close) < 3:
                close.append(case.id)
    hint = f"; similar: {', '.join(close)}" if close else "; `epcheck list` prints the ids of all"
    raise SelectionError(f"unknown case '{case_id}'{hint}")


@cache
def _dtypes() -> frozenset[str]:
    labels = {case.dtype for operator in all_operators().values() for case in operator.cases()}
    return frozenset(labels | {name for label in labels for name in label.split("-")})
