"""A node for some of whose elements the standard defines nothing, and what is known of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from epcheck.generators.array import Array
from epcheck.generators.node import Attribute

PREFIX = "undefined_"
"""What the names of the samples begin with."""


@dataclass(frozen=True)
class Answer:
    """One output. value: the truth where there is one. undefined: bool of its shape, where there is none; True
    for all of it. moved: the operator only moves data, so that an undefined element is one of an input, or 0."""

    value: Array
    undefined: Array | bool = True
    moved: bool = False


@dataclass(frozen=True)
class UndefinedSample:
    """operator: its key. dtype: as in the case's id. why: what is undefined, and who says so. inputs: in the order of
    the schema, None for an omitted one. answers: in the order of the schema's outputs. version: since_version; None for
    the one that is tried in every way (`claims.established_version`)."""

    operator: str
    name: str
    dtype: str
    why: str
    inputs: tuple[Array | None, ...]
    answers: tuple[Answer, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    version: int | None = None

    @property
    def sample(self) -> str:
        """The name in case ids: `undefined_divisor_0`."""
        return f"{PREFIX}{self.name}"


Samples = Iterator[UndefinedSample]
