"""The end of a worker whose parent has ended."""

from __future__ import annotations

import os
import sys
import threading


class ParentWatch:
    """Ends the process with its parent: a runner that was killed cannot end a worker that hangs, and a worker that
    hangs does not see its input end. Does nothing on Windows, where a process keeps the id of its parent for ever."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        if sys.platform != "win32":  # where Wine cannot tell the parent, either
            self._parent = os.getppid()
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the watch: a process that has threads must not fork."""
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while os.getppid() == self._parent:
            if self._stopped.wait(1):
                return
        os._exit(1)
