"""Names of files under Wine, where the machine's root is drive Z."""

from __future__ import annotations

from pathlib import Path, PurePosixPath


def windows_path(path: Path) -> str:
    """The name by which a program in the lab knows a file of this machine: `Z:\\\\tmp\\\\model.onnx`."""
    return "Z:" + str(PurePosixPath(path.absolute())).replace("/", "\\")
