"""Which process of a command a signal goes to: any by chance, or one of a kind."""

from __future__ import annotations

import time

import psutil

from benchmarks.attacks.attacked import Attacked, marked

POLL_S = 0.02
COMMAND = "command"
KINDS = (COMMAND, "worker", "fork server", "preparer", "examination", "wine server", "other")
"""Of processes. A fork server is what the next three are forks of; a target that does not fork has none."""

OF_WORDS = {"preparer_pool:": "preparer", "examining.examiner": "examination", "worker.py": "worker"}


def kind_of(name: str, command: str, parent: str) -> str:
    """The kind of a process by its name, its command line and that of its parent. A fork has that of its server."""
    if name.startswith("wineserver"):
        return "wine server"
    if "--fork-server" in command and parent != command:
        return "fork server"
    return next((kind for word, kind in OF_WORDS.items() if word in command), "other")


def kind(process: psutil.Process) -> str:
    """The same of one that runs. Raises psutil.Error."""
    parent = process.parent()
    return kind_of(process.name(), " ".join(process.cmdline()), " ".join(parent.cmdline()) if parent else "")


def of_kind(command: Attacked, wanted: str) -> list[psutil.Process]:
    """The processes of a command that are of a kind, as soon as there are any; none where it ends before.

    All that carry its mark are looked at: Wine's server is nobody's child.
    """
    ours = psutil.Process(command.pid)
    if wanted == COMMAND:
        return [ours]
    while ours.status() != psutil.STATUS_ZOMBIE:
        found = []
        for process in marked(command.mark):
            try:
                if process != ours and kind(process) == wanted:
                    found.append(process)
            except psutil.Error:
                continue
        if found:
            return found
        time.sleep(POLL_S)
    return []
