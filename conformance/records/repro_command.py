"""The command line that reproduces a case: it depends on the target that the case is to be run on.

Names of cases and folders stand in double quotes, since those are all that Windows' cmd.exe knows.
"""

from __future__ import annotations

import re

OUT = " --out repro"
"""How the command line ends that writes a case."""


def folder_name(case_id: str) -> str:
    """The case id as the name of a folder on any file system."""
    return re.sub(r"[^\w.\-]+", "_", case_id).strip("_.-") or "case"


def repro_command(case_id: str, target: str = "", folder: str = "") -> str:
    """The command line that reproduces a case on a target, by its specification: it writes the case as a folder, whose
    script makes a session of any provider; a target that makes none replays the folder.

    target: empty for any that the script can be called with. folder: where the case is harvested from; empty for a case
    of the suite or of onnx.
    """
    source = f' --source "{folder}"' if folder else ""
    command = f'epcheck repro "{case_id}"{source}{OUT}'
    if target.startswith("directml"):
        return on_target(command, case_id, target, has_model=False)
    return on_target(command, case_id, target) if target.startswith("python:") or target == "reference" else command


def of_variant(command: str, target: str, variant: str) -> str:
    """The command line that writes a case as it runs in a variant of a target; command: that of its ordinary way."""
    return f'{command.removesuffix(OUT)} --target "{target}" --variant "{variant}"{OUT}'


def on_target(command: str, case_id: str, target: str, has_model: bool = True) -> str:
    """The command line that runs a case on a target whose sessions the folder's script cannot make: after `command`,
    which writes the folder, the one that replays it. has_model: whether the target takes models; DirectML itself takes
    the operator of the case, which the folder does not have."""
    if not has_model:
        return f'{command.removesuffix(OUT).replace("repro", "show", 1)} --target "{target}"'
    return f'{command} && epcheck replay "{OUT.split()[-1]}/{folder_name(case_id)}" --target "{target}"'
