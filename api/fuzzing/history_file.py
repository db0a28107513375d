"""The history of searches of a target, as a file of the store: the next night goes where nothing ran before."""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from epcheck.conformance.records import atomic_file, strict_json, typed_json
from epcheck.conformance.records.repro_command import folder_name
from epcheck.generators.error import EpcheckError
from epcheck.generators.fuzzing.history import KEY_BYTES, MOST_NODES, SearchHistory

SCHEMA = 1

MOST_BYTES = 1 << 24
"""Of the file: more than MOST_NODES and all operators need."""


class HistoryError(EpcheckError, ValueError):
    """The history cannot be read; the message names the file."""


@dataclass(frozen=True)
class HistoryDocument:
    """nodes: the keys one after the other, in base64. The other fields are those of SearchHistory."""

    schema: int
    searches: int
    turns: Mapping[str, int]
    nodes: str


def path_in(store: Path, target: str) -> Path:
    """Where a store has the history of a target."""
    return store / f"searches-{folder_name(target)}.json"


def read(path: Path) -> SearchHistory:
    """The history; an empty one where there is no file. Raises HistoryError."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise HistoryError(f"{path}: it has more than {MOST_BYTES:,} bytes")
        found = typed_json.loads(HistoryDocument, path.read_bytes())
        keys = base64.b64decode(found.nodes, validate=True)
    except FileNotFoundError:
        return SearchHistory()
    except (OSError, ValueError, RecursionError, binascii.Error) as error:
        if isinstance(error, HistoryError):
            raise
        raise HistoryError(f"{path}: it cannot be read: {error}") from None
    if found.schema != SCHEMA or len(keys) % KEY_BYTES:
        raise HistoryError(f"{path}: no history of searches of schema {SCHEMA}")
    nodes = [keys[place : place + KEY_BYTES] for place in range(0, len(keys), KEY_BYTES)]
    return SearchHistory(found.searches, Counter(found.turns), dict.fromkeys(nodes[-MOST_NODES:]))


def write(path: Path, history: SearchHistory) -> None:
    """Replace the file. Raises OSError."""
    keys = base64.b64encode(b"".join(history.nodes)).decode("ascii")
    fields = {"schema": SCHEMA, "searches": history.searches, "turns": dict(history.turns), "nodes": keys}
    atomic_file.write_text(path, strict_json.dumps(fields) + "\n")
