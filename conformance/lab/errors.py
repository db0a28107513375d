"""The one exception of this package."""

from __future__ import annotations

from epcheck.generators.error import EpcheckError


class LabError(EpcheckError):
    """The lab cannot do what was asked. Its text is one sentence: what is missing or wrong, and what to do about it."""
