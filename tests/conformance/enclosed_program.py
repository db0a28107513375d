"""A runner on Windows that is killed, with or without job objects.

python enclosed_program.py runner FOLDER_OF_JOB_OBJECT FOLDER enclosed|free
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

BEATS = 600


def beat(path: Path) -> None:
    """Write to the file again and again."""
    for number in range(BEATS):
        path.write_text(str(number))
        time.sleep(0.1)


def main(role: str, code: str, folder: str, how: str) -> None:
    """The runner starts a worker, that another process; then the runner is killed."""
    place, command = Path(folder), [sys.executable, __file__]
    if role == "child":
        beat(place / "child")
    elif role == "worker":
        subprocess.Popen([*command, "child", code, folder, how])
        beat(place / "worker")
    else:
        sys.path.insert(0, code)
        import job_object  # pyright: ignore[reportMissingImports]  # that of the folder

        start = [*command, "worker", code, folder, how]
        process = job_object.EnclosedProcess(start, 1 << 33) if how == "enclosed" else subprocess.Popen(start)
        while not all((place / name).exists() for name in ("child", "worker")) and process.poll() is None:
            time.sleep(0.05)
        (place / "runner").write_text("killed")
        os.kill(os.getpid(), 9)  # TerminateProcess: nothing of ours runs any more


if __name__ == "__main__":
    main(*sys.argv[1:])
