"""The command line that reproduces a case: it depends on the target that the case is to be run on.

A command that stands in a report is one command, without `cd` and `&&`, which PowerShell 5.1 does not know; names of
cases and folders are in double quotes, the only ones that cmd.exe knows.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

DEVICES = re.compile(r"(?:CON|PRN|AUX|NUL|CONIN|CONOUT|(?:COM|LPT)[0-9¹²³])(?:\.|$)", re.IGNORECASE)
"""Names that Windows takes for a device, whatever follows a dot
(https://learn.microsoft.com/windows/win32/fileio/naming-a-file)."""

OUT = " --out repro"
"""How the command line ends that writes a case."""


PLAIN = re.compile(r"[\w.:/\\+=-]+")
"""What cmd.exe and PowerShell take as it is."""


def quote_command(*words: str) -> str:
    """A command line as the shells of this system take it."""
    if sys.platform != "win32":
        return shlex.join(words)
    return " ".join(word if PLAIN.fullmatch(word) else _quote_for_windows(word) for word in words)


def _quote_for_windows(word: str) -> str:
    """In double quotes; a backslash before one is doubled, as a program of Microsoft's C runtime reads it."""
    return subprocess.list2cmdline([f" {word}"]).replace('" ', '"', 1)


def folder_name(case_id: str) -> str:
    """The case id as the name of a folder on any file system."""
    name = re.sub(r"[^\w.\-]+", "_", case_id).strip("_.-") or "case"
    return f"case_{name}" if DEVICES.match(name) else name


def repro_command(case_id: str, target: str = "", folder: str = "") -> str:
    """The command line that reproduces a case on a target, by its specification: it writes the case as a folder, whose
    script makes a session of any provider; a target that makes none runs the case itself.

    target: empty for any that the script can be called with. folder: where the case is harvested from; empty for a case
    of the suite or of onnx.
    """
    source = f' --source "{folder}"' if folder else ""
    command = f'epcheck repro "{case_id}"{source}{OUT}'
    makes_none = target.startswith(("directml", "python:")) or target == "reference"
    return on_target(command, target) if makes_none else command


def of_variant(command: str, target: str, variant: str) -> str:
    """The command line that writes a case as it runs in a variant of a target; command: that of its ordinary way."""
    return f'{command.removesuffix(OUT)} --target "{target}" --variant "{variant}"{OUT}'


def on_target(command: str, target: str) -> str:
    """The command line that runs a case on a target whose sessions the folder's script cannot make, which `command`
    writes."""
    return f'{command.removesuffix(OUT).replace("repro", "show", 1)} --target "{target}"'
