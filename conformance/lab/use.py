"""Several runs may use one lab at the same time; Wine's daemons end with the last of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from epcheck.conformance.lab import module_stores
from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.install import stop
from epcheck.conformance.lab.launch import prelude, python_launch
from epcheck.conformance.lab.packages.pins import DEFAULT_RUNTIME
from epcheck.conformance.records import file_lock
from epcheck.conformance.start_process import start_process
from epcheck.conformance.windows_path import windows_path


@contextmanager
def in_use(folder: Path | None = None) -> Iterator[None]:
    """Whoever runs programs in the lab holds it meanwhile; the last to let go ends every program that is left in it,
    and removes what nobody used lately.

    The system takes the hold back from a process that dies. Nothing is raised: a lab that is missing or on a file
    system without locks is used all the same, and left running.
    """
    layout = Layout.of(folder)
    with contextlib.ExitStack() as stack:
        held = None
        with contextlib.suppress(OSError):
            held = stack.enter_context((layout.home / "in-use").open("ab"))
            file_lock.share(held.fileno())
        try:
            yield
        finally:
            with contextlib.suppress(OSError, LabError):
                if held and file_lock.try_exclusive(held.fileno()):
                    module_stores.prune(layout)
                    stop(folder)


def run_script(
    script: Path, arguments: Sequence[str] = (), folder: Path | None = None, *, runtime: str = DEFAULT_RUNTIME
) -> int:
    """Run a script with the lab's Windows Python, in which Direct3D 12 is patched as for a worker, also in the Pythons
    that it starts. Its streams are this process's. Returns its exit code, 0 to 255. Raises LabError when the lab, or
    this runtime in it, is not installed."""
    launch = python_launch(folder, runtime=runtime)
    environment = launch.env | {"EPCHECK_LAB_PRELUDE": windows_path(prelude(folder))}
    command = [*launch.argv, windows_path(script.absolute()), *arguments]
    with in_use(folder), start_process(command, env=environment) as process:
        return process.wait()
