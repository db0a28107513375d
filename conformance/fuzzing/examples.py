"""The example database: a file with one line for each node, or graph, that failed once. It is replayed first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from epcheck.conformance.records import atomic_file
from epcheck.generators.error import EpcheckError
from epcheck.generators.serialization.node_json import DocumentError


class ExamplesError(EpcheckError, ValueError):
    """The example database cannot be read; the message names the file and the line."""


Example = TypeVar("Example")


def read(path: Path, decode: Callable[[str], Example]) -> list[Example]:
    """The nodes or graphs of a database; none where there is no file. decode: of a line, raises DocumentError. Raises
    ExamplesError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise ExamplesError(f"{path}: the example database cannot be read: {error}") from None
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(decode(line))
        except DocumentError as error:
            raise ExamplesError(f"{path}, line {number}: {error}; correct or delete the line") from None
    return found


def write(path: Path, lines: Iterable[str]) -> None:
    """Replace the database by these lines, each once. Raises OSError."""
    atomic_file.write_text(path, "".join(f"{line}\n" for line in dict.fromkeys(lines)))
