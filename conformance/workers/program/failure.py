"""Exceptions as answers."""

from __future__ import annotations

from . import jail

MAX_MESSAGE = 4000
"""Characters of an exception's message that are sent."""

FORBIDDEN = (
    " (the worker may write only to folders of its own, and opens no socket: `jail` and `writable` of its target in "
    "epcheck.toml change that)"
)

REFUSALS = ("ermission denied", "peration not permitted", "ead-only file system")
"""What the system's error says where the jail refuses something."""


def failure(error: BaseException) -> dict[str, str]:
    """An exception as an answer has it: its type, and its message, cut after MAX_MESSAGE characters."""
    message = str(error)
    cut = f" ... ({len(message)} characters)" if len(message) > MAX_MESSAGE else ""
    if jail.entered and any(words in message for words in REFUSALS):
        cut += FORBIDDEN
    return {"error": type(error).__name__, "message": message[:MAX_MESSAGE] + cut}
