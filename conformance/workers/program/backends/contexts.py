"""EPContext models: whether a provider compiled anything, and how what it compiled is made stale or damaged, or comes
into another place.

https://onnxruntime.ai/docs/execution-providers/EP-Context-Design.html. The `run.py` of a reproduction has a copy of
this file beside it, so it needs nothing else of epcheck.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

CONTEXT_NODE = b"EPContext"
"""The operator of a node that stands for what a provider has compiled, as it stands in a serialized model."""

VERSION = re.compile(rb"ep_sdk_version.{2,6}?(\d[\d.]*)", re.DOTALL)
"""The attribute of an EPContext node that says with which release of the provider's software it was made."""


class NoContextError(Exception):
    """There is no context, or none that can be broken in this way; the message says why."""


def with_context(compiled: bytes) -> bytes:
    """The same. Raises NoContextError where nothing in it was compiled."""
    if CONTEXT_NODE not in compiled:
        raise NoContextError("the provider makes no EPContext node of it")
    return compiled


def make_stale(path: Path) -> None:
    """Have the context say that another release made it: the numbers of the version are others, and as long."""
    content = path.read_bytes()
    found = VERSION.search(content)
    if found is None:
        raise NoContextError("the context does not say which release made it")
    start, end = found.span(1)
    other = re.sub(rb"\d", lambda digit: b"%d" % (9 - int(digit[0])), content[start:end])
    path.write_bytes(content[:start] + other + content[end:])


def damage(path: Path) -> None:
    """Cut off the second half of what the provider compiled, in the file beside the model; fill it up with zeros, as a
    download does that was interrupted."""
    beside = [other for other in path.parent.iterdir() if other != path and other.stat().st_size]
    if not beside:
        raise NoContextError("the provider keeps nothing beside the context model")
    for other in beside:
        content = other.read_bytes()
        other.write_bytes(content[: len(content) // 2].ljust(len(content), b"\0"))


def move(path: Path) -> Path:
    """Move the model and what is beside it into another folder; the model's new path."""
    folder = path.parent / "moved"
    beside = [*path.parent.iterdir()]
    folder.mkdir()
    for file in beside:
        file.rename(folder / file.name)
    return folder / path.name


def protect(path: Path) -> Path:
    """Make the model, what is beside it, and their folder read-only, as an installed application's are; the model's
    path. On Windows a folder stays writable. Raises NoContextError where the user may write nevertheless, as root."""
    for file in path.parent.iterdir():
        file.chmod(0o444)
    path.parent.chmod(0o555)
    if os.access(path, os.W_OK):
        raise NoContextError("this user may write files that are read-only")
    return path


PLACE = {"moved": move, "read_only": protect}
"""Where a context is loaded, if not where it was compiled -> what brings it there and returns the model's new path."""

BREAK = {"stale": make_stale, "damaged": damage}
"""How a context is broken -> what does it to the model's path; both must then be refused."""
