"""Files that are replaced as a whole: a reader finds the old content or the new one, never a part of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file beside `path`, which takes its place in one step when the block ends without an exception.

    Raises OSError. Whatever was at `path` is then still there, and nothing else is left behind.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Replace the file `path` by this text in UTF-8; its folder is made if need be. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text.encode("utf-8"))
