"""The files that a call about a model was asked for: written by our own process, not by the one that examined it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from epcheck.conformance.records import atomic_file
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.reports.text import visible


def page_bytes(page: str) -> bytes:
    """A page as its file has it: characters that are invisible or turn the direction of writing are written out, since
    names of a stranger's model are on it."""
    return visible(page).encode()


def write_files(files: Mapping[Path, bytes]) -> None:
    """Write each content to its path, whose folder is made if need be; a file is there whole or not at
    all. Raises ModelFileError."""
    for path, content in files.items():
        try:
            if path.exists() and not path.is_file():  # a pipe, or /dev/stdout
                path.write_bytes(content)
            else:
                atomic_file.write_bytes(path, content)
        except OSError as error:
            raise ModelFileError(f"'{path}' cannot be written: {error.strerror or error}") from None
