"""Running other programs in tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def checked_run(command: list[str], folder: Path) -> str:
    """What the command prints; the test fails when it does. This process's virtual environment is not handed on."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", env=environment, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout
