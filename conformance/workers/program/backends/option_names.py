"""Names of options that nobody reads: ONNX Runtime takes any, and most providers pass over those they do not know.

A name that is read stands in the library that reads it, so one that stands in no library is misspelt.
"""

from __future__ import annotations

import difflib
import mmap
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnxruntime

LIBRARIES = re.compile(r"onnxruntime.*\.(?:so(?:\.[\d.]+)?|pyd|dll|dylib)$")
"""Files of a folder that may read options: ONNX Runtime's own and those of its providers."""

LIKE = 0.75
"""How alike a name has to be to be proposed, from 0 to 1."""

OURS = ("session.disable_cpu_ep_fallback", "session.record_ep_graph_assignment_info")
"""What epcheck sets for every release: one that does not know such a name passes over it, and has to."""

WORD = 8
"""Bytes. A compiler may compare a short text in such pieces, which then stand in the code one by one."""


def find_unknown_option(provider: str, options: dict[str, str], config: dict[str, str], plugin: Any) -> str:
    """The first name that no library holds, in one sentence; empty where all are known. plugin: the registered one."""
    own = _libraries(Path(onnxruntime.__file__).parent / "capi")
    libraries = [*own, *([Path(plugin.library)] if plugin else [])]
    readers = [Path(plugin.library)] if plugin else own
    set_by_users = [name for name in config if not name.startswith("ep.") and name not in OURS]
    for names, where, what in (
        (list(options), readers, f"{provider} has no option"),
        (set_by_users, libraries, "onnxruntime has no session option"),
    ):
        unknown = [name for name in names if not any(_holds(library, name) for library in where)]
        if unknown:
            alike = difflib.get_close_matches(unknown[0], _names(where, unknown[0]), 1, LIKE)
            return f"{what} '{unknown[0]}'{f'. Did you mean {alike[0]}?' if alike else ''}"
    return ""


def _libraries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if LIBRARIES.search(path.name))


def _holds(library: Path, name: str) -> bool:
    """Whether a file holds the name, as a text that ends there or in the pieces that a compiler makes of it."""
    encoded = name.encode()
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if re.search(re.escape(encoded) + rb"(?![A-Za-z0-9_.])", content):
            return True
        if content.find(encoded) >= 0:  # the beginning of a longer name
            return False
        pieces = {encoded[start : start + WORD] for start in range(0, len(encoded) - WORD + 1, WORD)}
        pieces.add(encoded[-WORD:])
        return len(encoded) > WORD and all(content.find(piece) >= 0 for piece in pieces)


def _names(libraries: Iterable[Path], like: str) -> list[str]:
    """Words in the libraries that begin or end as `like` does, about as long."""
    found: set[str] = set()
    words, longest = re.compile(rb"[\w.]{%d,}" % max(len(like) - 2, 3)), len(like) + 3
    for library in libraries:
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            whole = words.findall(content)
            found.update(word.decode() for word in whole if len(word) <= longest and word[:1].isalpha())
    return sorted(found)
