"""The family of an operator, by which reports group operators: they import no generator, so a caller says it."""

from __future__ import annotations

from collections.abc import Callable

Family = Callable[[str], str]
"""Operator key -> the family it belongs to."""


def no_family(_operator: str) -> str:
    """For a matrix that is not divided."""
    return ""
