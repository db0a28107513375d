"""The files that a call about a model was asked for: written by our own process, not by the one that examined it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


CHUNK = 1 << 24
"""Bytes that are copied at a time."""


def write_parts(path: Path, folder: Path, parts: Sequence[tuple[str, int, int, int]]) -> None:
    """Write a file of external data. parts: (file in the folder, offset, bytes, offset in the new file), of regular
    files in that folder alone, whatever the names say. Raises ModelFileError."""
    sources = {name: (folder / name).resolve() for name, *_ in parts}
    for name, source in sources.items():
        if not source.is_relative_to(folder.resolve()) or not source.is_file():
            raise ModelFileError(f"external data at '{name}' is in no regular file of the model's folder")
        if path.resolve() == source:
            raise ModelFileError(f"'{path}' has the external data of the model itself; name another output")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file.replacing(path) as target:
            for name, offset, length, place in parts:
                with sources[name].open("rb") as file:
                    file.seek(offset)
                    target.seek(place)
                    while length > 0 and (content := file.read(min(CHUNK, length))):
                        target.write(content)
                        length -= len(content)
                if length:
                    raise ModelFileError(f"external data at '{name}' ends before it should")
    except (OSError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"'{path}' cannot be written: {getattr(error, 'strerror', None) or error}") from None
