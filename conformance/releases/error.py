"""What goes wrong with releases, in a sentence."""

from __future__ import annotations

from epcheck.generators.error import EpcheckError


class ReleaseError(EpcheckError, ValueError):
    """Releases cannot be listed or named; the message says which, why, and what to do."""


class UnusableReleaseError(EpcheckError, RuntimeError):
    """A release cannot be installed or does not start; the others can still be tried."""
