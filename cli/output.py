"""The forms in which a command gives its result: for people, as one JSON document, or as the verdict alone."""

from __future__ import annotations

from typing import Annotated

from epcheck.api.option import OUTPUT, Option
from epcheck.api.progress import SILENT, Progress
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Terminal

AsJson = Annotated[bool, Option("Print one JSON document, and nothing else.", flags=("--json",), panel=OUTPUT)]
Quiet = Annotated[bool, Option("Print the verdict alone.", flags=("--quiet", "-q"), panel=OUTPUT)]


def choose_progress(quiet: bool, json: bool = False) -> Progress:
    """What shows the progress: nothing, stderr beside a document, or the terminal."""
    return SILENT if quiet else TerminalProgress(Terminal(stderr=json))
