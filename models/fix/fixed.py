"""The result of `fix`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from epcheck.models.fix.difference import NodeDifference
from epcheck.models.graph.external_data import DataPart
from epcheck.models.validation import document as validation_document
from epcheck.models.validation.names import shorten_words
from epcheck.models.validation.validation import RIGHT, Validation
from epcheck.models.validation.validation import UNJUDGED as NOT_JUDGED

NOTHING, FIXED, REMAINS, UNJUDGED = "nothing", "fixed", "remains", "unjudged"
"""Statuses of a fix."""

SCHEMA = 1
"""Version of the document: it grows when a field changes its name or its meaning."""


@dataclass(frozen=True)
class FixStep:
    """One change. words: what was done, as a sentence without its point. nodes: in words. kept: whether it is in the
    fixed model. result: what it did, or why it was left out."""

    words: str
    nodes: tuple[str, ...]
    kept: bool
    result: str


@dataclass(frozen=True)
class Fixed:
    """A model and what became of it. before, after: the validations of both, `after` on the truth of the original; the
    same where nothing was changed. steps: what was tried on the whole model, in its order. differences: of the fixed
    model from the original. model: serialized; None where nothing was changed. data: its external data. error_before,
    error_after: of a quantised model whose scales were corrected: its outputs against those in floating point, root
    mean square over root mean square. written: its file."""

    path: Path
    before: Validation
    after: Validation
    steps: tuple[FixStep, ...]
    differences: tuple[NodeDifference, ...]
    model: bytes | None = field(default=None, repr=False, compare=False)
    data: tuple[DataPart, ...] = ()
    error_before: float | None = None
    error_after: float | None = None
    written: Path | None = None

    @property
    def kept(self) -> tuple[FixStep, ...]:
        """The changes that the fixed model has."""
        return tuple(step for step in self.steps if step.kept)

    @property
    def left_out(self) -> tuple[FixStep, ...]:
        """The changes that it does not have."""
        return tuple(step for step in self.steps if not step.kept)

    @property
    def status(self) -> str:
        """`nothing`: the model is right as it is, and no change was found that places a node. `fixed`: it was changed,
        and is right. `remains`: it is not right, or a change was left out. `unjudged`: nobody can tell."""
        if self.after.status == NOT_JUDGED:
            return UNJUDGED
        if self.after.status != RIGHT or self.left_out:
            return REMAINS
        return FIXED if self.kept else NOTHING

    @property
    def headline(self) -> str:
        """The result in one sentence, with long names cut."""
        return shorten_words(self.statement)

    @property
    def statement(self) -> str:
        """The result in one sentence."""
        name, where = self.path.name, self.after.provider or self.after.target
        nodes = f"before: {describe_placement(self.before)}; after: {describe_placement(self.after)}"
        count = len(self.kept)
        changed = f"{count} change{'' if count == 1 else 's'}"
        match self.status:
            case "nothing":
                return f"{name}: nothing to fix on {where}: it is right, and no change was found that places a node"
            case "fixed":
                return f"{name} is fixed on {where} with {changed}; {nodes}"
            case "remains":
                left = f", {len(self.left_out)} left out" if self.left_out else ""
                return f"{name} is not wholly fixed on {where}: {changed} made{left}; {nodes}"
        return f"{name}: cannot decide whether the fixed model is right: {self.after.statement}"

    @property
    def remaining(self) -> Iterator[str]:
        """What validate reports of the fixed model: the nodes at fault, and those that are not on the provider."""
        for culprit in self.after.culprits:
            yield culprit.words
        for node in self.after.placement.elsewhere if self.after.placement else ():
            why = node.what_to_do or node.reason
            yield f"{node.scope}{node.name} ({node.operator}) is on {node.provider}{f': {why}' if why else ''}"


def describe_placement(found: Validation) -> str:
    """Status and placement of a validation, as a part of a sentence."""
    if found.placement is None:
        return found.status
    count = sum(bool(node.provider) for node in found.placement.nodes)
    return f"{found.status}, {found.placement.count(found.placement.provider)} of {count} nodes on the provider"


def document(fixed: Fixed) -> dict[str, Any]:
    """The fix as a JSON document, with the documents of both validations. Scalars may be infinite."""
    return {
        "schema": SCHEMA, "status": fixed.status, "headline": fixed.statement, "path": str(fixed.path),
        "written": None if fixed.written is None else str(fixed.written),
        "steps": [asdict(step) for step in fixed.steps],
        "differences": [asdict(each) for each in fixed.differences], "remaining": list(fixed.remaining),
        "error_before": fixed.error_before, "error_after": fixed.error_after,
        "before": validation_document.document(fixed.before), "after": validation_document.document(fixed.after),
    }  # fmt: skip
