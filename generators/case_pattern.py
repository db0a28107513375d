"""Patterns of case ids: globs, and substrings."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import cache


def matches(case_id: str, pattern: str) -> bool:
    """A glob against the whole id ('[' is literal, since ids contain it), or a plain substring of it."""
    return any_matches((pattern,), case_id)


def any_matches(patterns: tuple[str, ...], case_id: str) -> bool:
    """Whether at least one of the patterns `matches`."""
    return _compile(patterns).fullmatch(case_id) is not None


@cache
def _compile(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(_translate(pattern) for pattern in patterns) or r"(?!)", re.DOTALL)


def _translate(pattern: str) -> str:
    if any(wildcard in pattern for wildcard in "*?"):
        return translate(pattern.replace("[", "[[]"))
    return f".*{re.escape(pattern)}.*"
