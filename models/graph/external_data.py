"""The external data of a changed model: all in one file, which our own process writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx

from epcheck.conformance.test_data import model_file

ALIGNMENT = 4096
"""Of each tensor in a file of external data, in bytes, so that a runtime can map it."""


@dataclass(frozen=True)
class DataPart:
    """External data of a changed model: bytes of a file in the folder of the original, and where they go. file: its
    path in that folder. target: the offset in the one file of external data that the changed model has."""

    file: str
    offset: int
    length: int
    target: int


def pack(model: onnx.ModelProto, path: Path, name: str) -> tuple[bytes, tuple[DataPart, ...]]:
    """A changed model of the file `path` as bytes, whose external data is all in one file of that name, and what goes
    there. Raises ModelFileError."""
    packed = onnx.ModelProto()
    packed.CopyFrom(model)
    tensors = list(model_file.external_tensors(packed))
    folder, at = path.parent.resolve(), 0
    parts = []
    for tensor, place in zip(tensors, model_file.external_data(packed, path), strict=True):
        file = place.file.relative_to(folder).as_posix()
        parts.append(DataPart(file, place.offset, place.length, at))
        entries = {"location": name, "offset": str(at), "length": str(place.length)}
        del tensor.external_data[:]
        tensor.external_data.extend(onnx.StringStringEntryProto(key=k, value=v) for k, v in entries.items())
        at += -(-place.length // ALIGNMENT) * ALIGNMENT
    return packed.SerializeToString(), tuple(parts)
