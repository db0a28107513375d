"""Exceptions as answers."""

from __future__ import annotations

MAX_MESSAGE = 4000
"""Characters of an exception's message that are sent."""


def failure(error: BaseException) -> dict[str, str]:
    """An exception as an answer has it: its type, and its message, cut after MAX_MESSAGE characters."""
    message = str(error)
    cut = f" ... ({len(message)} characters)" if len(message) > MAX_MESSAGE else ""
    return {"error": type(error).__name__, "message": message[:MAX_MESSAGE] + cut}
