"""What a worker says where a way of running does not apply."""

from __future__ import annotations

DECLINED = "epcheck: this way of running does not apply: "
"""Prefix of messages about the test setup, not the provider."""


class NotApplicableError(Exception):
    """The case cannot be run in this way; the message says why."""

    def __init__(self, why: str) -> None:
        super().__init__(DECLINED + why)
