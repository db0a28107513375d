"""Records that are asked for one case at a time, while the cases that follow are already under way."""

from __future__ import annotations

from epcheck.conformance.scheduling.stream import REASONS, CaseStream, CaseStreamError, choose
from epcheck.conformance.targets.variants import Axis, VariantError, parse_axes

__all__ = ["REASONS", "Axis", "CaseStream", "CaseStreamError", "VariantError", "check_targets", "parse_axes"]


def check_targets(candidate: str | None, baseline: str | None) -> None:
    """Raise one of REASONS where a specification names no target of this machine; None is not looked at."""
    choose((candidate,) if candidate else (), baseline)
