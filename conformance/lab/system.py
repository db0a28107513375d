"""Which systems can have a lab."""

from __future__ import annotations

import platform
import sys


def unfit() -> str | None:
    """None where a lab's programs run, else one sentence that says why not."""
    if sys.platform == "win32":
        return "the lab is for Linux; on Windows, DirectML runs without it: pip install onnxruntime-directml"
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"the lab needs Linux on x86-64; this is {platform.system()} on {platform.machine()}"
    return None
