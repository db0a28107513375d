"""A control group of a container: how much memory all of its processes take together, and how many there are.

Only where we may make one: root with version 1, and whoever has a part of the tree of version 2 to himself, as sessions
of systemd have. Elsewhere the runner measures memory.
https://docs.kernel.org/admin-guide/cgroup-v1/memory.html, https://docs.kernel.org/admin-guide/cgroup-v2.html
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT, OWN = Path("/sys/fs/cgroup"), "epcheck-"
MOST_PROCESSES = 8192
"""With their threads; a driver may start some for each core."""

PATIENCE, AGAIN_S = 10, 0.002
"""How often the removal of a group is tried, and after how many seconds each."""


def join_groups(process: int, policy: Mapping[str, Any]) -> list[Path]:
    """Have a process, and what it starts from now on, in groups of its own; those that could be made.

    policy: group_bytes: memory of all processes together.
    """
    groups: list[Path] = []
    if not policy.get("group_bytes"):
        return groups
    for parent, limits in _parents(policy["group_bytes"]):
        group = parent / f"{OWN}{os.getpid()}"
        try:
            _remove_left(parent)
            group.mkdir()
            for name, value in limits.items():
                (group / name).write_text(str(value))
            (group / "cgroup.procs").write_text(str(process))
            groups.append(group)
        except OSError:
            remove_groups([group])
    return groups


def remove_groups(groups: list[Path]) -> None:
    """Their processes have ended; the system may take a moment to forget them."""
    for group in groups:
        for _ in range(PATIENCE):
            with contextlib.suppress(OSError):
                group.rmdir()
            if not group.exists():
                break
            time.sleep(AGAIN_S)


def _parents(most_bytes: int) -> Iterator[tuple[Path, dict[str, int]]]:
    """Where groups can be made, and the files that limit them."""
    limits = {"memory": {"memory.limit_in_bytes": most_bytes}, "pids": {"pids.max": MOST_PROCESSES}}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, kinds, path = line.split(":", 2)
            for kind in kinds.split(","):
                folder = ROOT / kind / path.lstrip("/")
                if kind in limits and os.access(folder, os.W_OK):
                    yield folder, limits[kind]
            if number == "0":
                of_both = {"memory.max": most_bytes, "pids.max": MOST_PROCESSES}
                for folder in (ROOT / path.lstrip("/"), *(ROOT / path.lstrip("/")).parents):
                    if _delegates(folder):
                        yield folder, of_both
                        break


def _delegates(folder: Path) -> bool:
    """Whether it is of version 2, ours, and gives its groups both limits."""
    with contextlib.suppress(OSError):
        controllers = (folder / "cgroup.subtree_control").read_text().split()
        return {"memory", "pids"} <= set(controllers) and os.access(folder, os.W_OK)
    return False


def _remove_left(parent: Path) -> None:
    """Those of guards that were killed."""
    for group in parent.glob(f"{OWN}*"):
        if not Path("/proc", group.name[len(OWN) :]).exists():
            remove_groups([group])
