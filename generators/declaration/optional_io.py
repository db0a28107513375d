"""What an operator may be given and asked for besides what it must have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Together = tuple[str, ...]
"""Inputs that are there together or not at all, by the names of the schema."""


def each_alone(*names: str) -> tuple[Together, ...]:
    """Inputs each of which is there or not, whatever the others are."""
    return tuple((name,) for name in names)


def nothing_undefined(_version: int, _asked: frozenset[str]) -> str:
    """Every combination of outputs is defined."""
    return ""


@dataclass(frozen=True)
class OptionalIO:
    """The optional inputs and outputs of one operator that are tried in every combination.

    base: the name of a sample of it; fields: what is different in that sample, in which every input of `inputs` is
    there. name: stands in the names of cases where an operator has several of these.
    inputs: each is left out, or not. never: those that no node has together. fields_without: input -> the fields of the
    sample where it is left out, because others depend on it; without any the operand is taken out of the node.
    outputs: optional ones, each asked for or not.
    versions: since_versions; empty for all whose schema has these names.
    taken_out: an attribute of the sample that the node has not; the shapes of undefined results are those with it.
    undefined: output -> why its elements have no truth. why_undefined: (since_version, the outputs that are asked for)
    -> why the page defines no result of that combination, so that it may be refused; empty where it does.
    """

    base: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    inputs: tuple[Together, ...] = ()
    never: tuple[Together, ...] = ()
    fields_without: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    versions: tuple[int, ...] = ()
    taken_out: str = ""
    undefined: Mapping[str, str] = field(default_factory=dict)
    why_undefined: Callable[[int, frozenset[str]], str] = nothing_undefined
