"""A claim table from what a provider said of many nodes: each is taken or declined.

A dtype is claimed where the provider takes a node that has it, and claimed in part where it also declines one. To take
a node and then fail is not to decline it: where another node with the dtype is taken, it is a failure in a run. So a
table of this kind promises no more than the provider has done, and what it lacks is worth a look: a person compares it
with the provider's documentation.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from epcheck.generators.case import Case
from epcheck.generators.claims.table import Row
from epcheck.generators.schema import NUMPY_NAMES

_ONNX_NAMES = {numpy_name: name for name, numpy_name in NUMPY_NAMES.items()}

LONGEST = 160
"""Characters of a reason that a note keeps."""

Types = tuple[tuple[str, str], ...]
"""(type constraint, numpy dtype name), in the order of the schema."""


@dataclass(frozen=True)
class Asked:
    """One node. why_not: why the provider does not take it, in words; empty where it does. fails: it did not decline
    the node, but the session, or the process, failed."""

    case: Case
    types: Types
    why_not: str = ""
    fails: bool = False

    @property
    def is_declined(self) -> bool:
        """Whether the provider left the node to others, as it may."""
        return bool(self.why_not) and not self.fails


def samples(cases: Iterable[Case], each: int) -> Iterator[Case]:
    """Of each operator version and dtypes, `each` of its cases, evenly spread; those that must be refused are for the
    caller to leave out."""
    key = lambda case: (case.operator_key, case.since_version, case.dtype)  # noqa: E731
    for _, group in itertools.groupby(cases, key):
        found = list(group)
        step = max(1.0, len(found) / each)
        yield from (found[int(index * step)] for index in range(min(each, len(found))))


def rows(asked: Iterable[Asked]) -> list[Row]:
    """A row for each operator version of which a node is taken, in the order of a table."""
    by_version: dict[tuple[str, str, int], list[Asked]] = {}
    for node in asked:
        case = node.case
        by_version.setdefault((case.domain or "ai.onnx", case.operator, case.since_version), []).append(node)
    ordered = sorted(by_version.items(), key=lambda item: (item[0][0], item[0][1], -item[0][2]))
    return [row for key, nodes in ordered if (row := _row(key, nodes)) is not None]


def _row(key: tuple[str, str, int], nodes: list[Asked]) -> Row | None:
    taken = [node.types for node in nodes if not node.why_not]
    if not taken:
        return None
    claimed: dict[str, dict[str, None]] = {}
    for constraint, dtype in itertools.chain.from_iterable(taken):
        claimed.setdefault(constraint, {})[dtype] = None
    within = [node for node in nodes if node.why_not and _is_within(node.types, claimed)]
    declined = [node for node in within if node.is_declined]
    partial = _blame_constraints(nodes, [node.types for node in declined])
    notes = [_note("declines", declined, nodes), _note("fails on", [node for node in within if node.fails], nodes)]
    domain, name, since_version = key
    return Row(
        domain, name, since_version, _name_dtypes(claimed), _name_dtypes(partial), "; ".join(filter(None, notes))
    )


def _note(does: str, these: list[Asked], nodes: list[Asked]) -> str:
    """`declines 1 of 12 nodes, for example float32/size_0[runtime]: Abs was assigned to CPUExecutionProvider`."""
    if not these:
        return ""
    example = min(f"{node.case.id.partition('/')[2]}: {node.why_not}" for node in these)
    return f"{does} {len(these)} of {len(nodes)} nodes, for example {example[:LONGEST]}"


def _is_within(types: Types, claimed: Mapping[str, Iterable[str]]) -> bool:
    """Whether each dtype is claimed, taken alone."""
    return all(dtype in claimed.get(constraint, ()) for constraint, dtype in types)


def _blame_constraints(nodes: list[Asked], declined: list[Types]) -> dict[str, dict[str, None]]:
    """For each declined node the constraint and dtype that are taken least often, so that few others are suspected."""
    all_of, taken_of = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for node in nodes:
        all_of.update(node.types)
        taken_of.update(() if node.why_not else node.types)
    found: dict[str, dict[str, None]] = {}
    for types in declined:
        if types:
            constraint, dtype = min(types, key=lambda pair: taken_of[pair] / all_of[pair])
            found.setdefault(constraint, {})[dtype] = None
    return found


def _name_dtypes(dtypes: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Constraint -> the names that ONNX has for these dtypes, sorted."""
    return {constraint: sorted(_ONNX_NAMES.get(name, name) for name in names) for constraint, names in dtypes.items()}
