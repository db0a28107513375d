"""The example database: a file with one line of JSON for each node that failed once. It is replayed first."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from epcheck.conformance.records import atomic_file
from epcheck.generators.error import EpcheckError
from epcheck.generators.written import document
from epcheck.generators.written.document import DocumentError, WrittenNode


class ExamplesError(EpcheckError, ValueError):
    """The example database cannot be read; the message names the file and the line."""


def read(path: Path) -> list[WrittenNode]:
    """The nodes of a database; none where there is no file. Raises ExamplesError."""
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
            found.append(document.decode(line))
        except DocumentError as error:
            raise ExamplesError(f"{path}, line {number}: {error}; mend or delete the line") from None
    return found


def write(path: Path, nodes: Iterable[WrittenNode]) -> None:
    """Replace the database by these nodes, each once. Raises OSError."""
    lines = dict.fromkeys(map(document.encode, nodes))
    atomic_file.write_text(path, "".join(f"{line}\n" for line in lines))
