"""Errors of records, and the base class of all errors of epcheck for packages that import the records alone."""

from __future__ import annotations

from epcheck.generators.error import EpcheckError

__all__ = ["EpcheckError", "RecordError"]


class RecordError(EpcheckError, ValueError):
    """A stored record or run is not what this version of epcheck can read; the message says where and why."""
