"""What went wrong, in a sentence for the person at the command line."""

from __future__ import annotations


class EpcheckError(Exception):
    """Its message is one sentence, without a trailing dot, that says what is wrong and what to do; exit code 2."""
