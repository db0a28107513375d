"""Files in the folder of the cache that tell what this installation has, until it changes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

PACKAGES = Path(__file__).resolve().parents[1]
"""Where the packages lie: of a checkout its root, of an installation `epcheck/`."""

WATCHED = ("cli", "api", "generators/operators")
"""Folders below PACKAGES whose files change commands, options, operators and dtypes."""


def path(name: str) -> Path | None:
    """Where the file is: in the folder of the cache, which EPCHECK_CACHE names; None when the user wants none."""
    chosen = os.environ.get("EPCHECK_CACHE", "")
    if chosen == "off":
        return None
    if chosen:
        return Path(chosen) / name
    import platformdirs

    return platformdirs.user_cache_path("epcheck") / name


def stamp() -> str:
    """Of this installation, from the times of its folders and files."""
    times = [path.stat().st_mtime_ns for name in WATCHED for path in (PACKAGES / name).rglob("*.py")]
    return f"{PACKAGES}|{sys.version_info[0]}.{sys.version_info[1]}|{len(times)}|{max(times)}"


def read(name: str) -> Any:
    """What was written, as JSON has it; None where there is nothing, or it is of another installation."""
    kept = path(name)
    if kept is None:
        return None
    try:
        data = json.loads(kept.read_text(encoding="utf-8"))
        return data["kept"] if data["stamp"] == stamp() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(name: str, data: Any) -> None:
    """data: as JSON has it. A cache that cannot be written costs time only: it is made each time."""
    target = path(name)
    if target is None:
        return
    draft = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps({"stamp": stamp(), "kept": data}), encoding="utf-8")
        draft.replace(target)
    except OSError:
        draft.unlink(missing_ok=True)
