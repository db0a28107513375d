"""Models and feeds in one file, so that every loop of the benchmark runs the same bytes. Needs numpy only.

length of the index in bytes, uint64 LE | index, JSON in UTF-8 | models and tensors as the index lists them
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class StoredCase:
    """A serialized ModelProto and what it is fed: graph input name -> array."""

    id: str
    model: bytes
    feeds: Mapping[str, Array]


def write(path: Path, cases: Iterable[StoredCase]) -> None:
    """Store the cases in their order."""
    index: list[dict[str, Any]] = []
    chunks: list[bytes] = []
    for case in cases:
        tensors = [{"name": name, "dtype": a.dtype.name, "shape": list(a.shape)} for name, a in case.feeds.items()]
        index.append({"id": case.id, "model": len(case.model), "feeds": tensors})
        chunks += [case.model, *(array.tobytes() for array in case.feeds.values())]
    head = json.dumps(index).encode()
    path.write_bytes(b"".join([LENGTH.pack(len(head)), head, *chunks]))


def read(path: Path) -> list[StoredCase]:
    """The cases of a file, in their order; arrays are read-only views of what was read."""
    content = path.read_bytes()
    (length,) = LENGTH.unpack_from(content)
    offset = LENGTH.size + length
    cases = []
    for described in json.loads(content[LENGTH.size : offset]):
        model = content[offset : offset + described["model"]]
        offset += len(model)
        feeds = {}
        for tensor in described["feeds"]:
            dtype, shape = np.dtype(tensor["dtype"]), tuple(tensor["shape"])
            count = int(np.prod(shape, dtype=np.int64))
            feeds[tensor["name"]] = np.frombuffer(content, dtype, count, offset).reshape(shape)
            offset += count * dtype.itemsize
        cases.append(StoredCase(described["id"], model, feeds))
    return cases
