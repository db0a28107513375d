"""The result of many models on many targets, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from epcheck.models.gate.limits import PASS, GateLimits
from epcheck.models.validation.document import document as of_validation
from epcheck.models.validation.faults import Fault, list_faults
from epcheck.models.validation.formatting import quote_command
from epcheck.models.validation.page import group_by_reason
from epcheck.models.validation.validation import CONTINUE, RIGHT, UNJUDGED, Validation

PASSES, FAILS, CANNOT_TELL = "passes", "fails", "cannot tell"
"""Results of a model on a target, and of all together."""

SCHEMA = 1
"""Version of the document: it grows when a field changes its meaning."""


@dataclass(frozen=True)
class CheckedModel:
    """A model on a target. name: of the model, as the user would find it. validation: None where the file or the target
    cannot be used, or nothing of it is known; trouble: why. broken: a sentence for each limit that it breaks.
    unjudged_passes: whether a model that nobody can judge passes. missing: steps that were left out and decide whether
    it passes. is_begun: whether anything was done."""

    name: str
    path: Path
    target: str
    validation: Validation | None
    trouble: str = ""
    broken: tuple[str, ...] = ()
    unjudged_passes: bool = False
    missing: tuple[str, ...] = ()
    is_begun: bool = True

    @property
    def is_finished(self) -> bool:
        """Whether nothing was left out."""
        return self.is_begun and (self.validation is None or not self.validation.left_out)

    @property
    def command(self) -> str:
        """The command line that validates it once more."""
        strict = ("--strict-nodes",) if self.has_wrong_nodes and self.result == FAILS else ()
        if self.validation is not None:
            return quote_command("validate", self.validation, (*self.validation.validate_args, *strict))
        return f'epcheck validate "{self.path}" --target "{self.target}"'

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong with it, and what to do: nodes, then limits that it breaks."""
        found = self.validation
        if found is None:
            remedy = "name a model and a target that can be used" if self.is_begun else CONTINUE
            return (Fault(self.trouble, "", (), remedy, self.command),)
        known = (found.headline, found.nodes_beyond_bounds)
        limits = tuple(Fault(sentence, "", (), self._suggest_for_limit(found), self.command)
                       for sentence in self.broken if sentence not in known)  # fmt: skip
        return (*list_faults(found), *limits)

    @staticmethod
    def _suggest_for_limit(found: Validation) -> str:
        """What places the most nodes, where some are not on the provider."""
        groups = group_by_reason(found.placement) if found.placement is not None else ()
        return next((f"for {group.what}: {group.what_to_do}" for group in groups if group.what_to_do),
                    "correct the model, or the limit in epcheck.toml")  # fmt: skip

    @property
    def has_wrong_nodes(self) -> bool:
        """Whether nodes are wrong alone, although the outputs are not wrong."""
        found = self.validation
        return found is not None and found.status in (RIGHT, UNJUDGED) and bool(found.wrong_nodes)

    @property
    def result(self) -> str:
        """One of the three results."""
        if self.validation is None:
            return CANNOT_TELL
        if self.broken:
            return FAILS
        if self.missing:
            return CANNOT_TELL
        return CANNOT_TELL if self.validation.status == UNJUDGED and not self.unjudged_passes else PASSES

    @property
    def status(self) -> str:
        """Of the validation, with `wrong node` where one is wrong next to outputs that are not; `unusable` where there
        is none, `left out` where nothing was done."""
        status = self.validation.status if self.validation else "unusable" if self.is_begun else "left out"
        return f"{status}, wrong node" if self.has_wrong_nodes else status

    @property
    def words(self) -> str:
        """The result in a sentence or more."""
        if self.validation is None:
            return self.trouble
        return "; ".join(self.broken) or self.validation.headline


@dataclass(frozen=True)
class Gate:
    """Every model on every target, in the order in which they were given. configuration: as of a Validation.
    stopped: why not all was done; empty where it was."""

    checked: tuple[CheckedModel, ...]
    limits: GateLimits
    configuration: str = ""
    stopped: str = ""

    @property
    def result(self) -> str:
        """`fails` where any does, else `cannot tell` where any is so."""
        results = {checked.result for checked in self.checked}
        return next((result for result in (FAILS, CANNOT_TELL) if result in results), PASSES)

    @property
    def validation(self) -> Validation:
        """That of one model on one target. Raises ValueError where there are several, and where it cannot be used."""
        (checked,) = self.checked
        if checked.validation is None:
            raise ValueError(checked.trouble)
        return checked.validation

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(checked.name for checked in self.checked))

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(checked.target for checked in self.checked))

    def of(self, model: str, target: str) -> CheckedModel:
        """That model on that target."""
        return next(checked for checked in self.checked if (checked.name, checked.target) == (model, target))

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        counts = {result: sum(checked.result == result for checked in self.checked)
                  for result in (PASSES, FAILS, CANNOT_TELL)}  # fmt: skip
        models, targets = len(self.models), len(self.targets)
        what = f"{models} model{'s' if models > 1 else ''} on {targets} target{'s' if targets > 1 else ''}"
        unfinished = sum(not checked.is_finished for checked in self.checked)
        left = f"; {self.stopped}: {unfinished} not finished" if unfinished else ""
        return f"{what}: {counts[PASSES]} pass, {counts[FAILS]} fail, {counts[CANNOT_TELL]} undecided{left}"


def document(gate: Gate) -> dict[str, Any]:
    """The gate as a JSON document: for each model and target its result, and the document of its validation."""
    results = [
        {
            "model": checked.name, "path": str(checked.path), "target": checked.target, "result": checked.result,
            "words": checked.words, "broken": list(checked.broken), "finished": checked.is_finished,
            "faults": [asdict(fault) for fault in checked.faults],
            "validation": of_validation(checked.validation) if checked.validation else None,
        }
        for checked in gate.checked
    ]  # fmt: skip
    return {"schema": SCHEMA, "result": gate.result, "headline": gate.headline, "limits": asdict(gate.limits),
            "configuration": gate.configuration, "stopped": gate.stopped, "results": results}  # fmt: skip


def passes_unjudged(limits: GateLimits) -> bool:
    """Whether a model that nobody can judge passes."""
    return limits.unjudged == PASS
