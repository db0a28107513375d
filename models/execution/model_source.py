"""A model as a worker gets it: a path that the runtime opens itself, or bytes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import onnx

from epcheck.conformance.test_data import model_file
from epcheck.conformance.test_data.model_file import ModelFileError

LARGE_BYTES = 256 << 20
"""Above this size only one session of a model is in memory at a time, and takes as little of it as it can."""


@dataclass(frozen=True)
class ModelSource:
    """A path, or bytes where that is None. outputs: the names of the model's. folder: where the external data of bytes
    is, if they have any. size: in bytes, with external data."""

    path: Path | None
    content: bytes
    outputs: tuple[str, ...]
    folder: Path | None
    size: int

    def key(self) -> str:
        """Equal for the same model."""
        return str(self.path) if self.path else hashlib.sha256(self.content).hexdigest()


def of_path(path: Path, embedded: bool = False) -> ModelSource:
    """The model in a file, its external data checked. embedded: as bytes with all external data in them, as a callable
    takes it. Raises ModelFileError."""
    stat = _stat(path)
    source = _of_path(path.absolute(), stat.st_mtime_ns, stat.st_size)
    return _embed_data(source) if embedded else source


def of_model(model: onnx.ModelProto, folder: Path | None, embedded: bool = False) -> ModelSource:
    """A model in memory. folder: where its external data is, if it has any. embedded: as `of_path`.

    Raises ModelFileError.
    """
    outside = 0
    if folder is not None:
        outside = sum(place.length for place in model_file.external_data(model, folder / "model"))
        if embedded:
            whole = onnx.ModelProto()
            whole.CopyFrom(model)
            model, folder, outside = model_file.embed_data(whole, folder / "model"), None, 0
    elif any(True for _ in model_file.external_tensors(model)):
        raise ModelFileError("the model has external data, and no folder is given where it is")
    try:
        content = model.SerializeToString()
    except Exception as error:  # protobuf's own type depends on its version
        raise ModelFileError(f"the model cannot be serialized, probably because it is too large: {error}") from None
    return ModelSource(None, content, tuple(value.name for value in model.graph.output), folder, len(content) + outside)


def _stat(path: Path) -> Any:
    try:
        return path.stat()
    except (OSError, ValueError) as error:
        raise ModelFileError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}") from None


@lru_cache(maxsize=8)
def _of_path(path: Path, _modified_ns: int, size: int) -> ModelSource:
    """The file, its external data checked. Raises ModelFileError."""
    model = model_file.parse(path)
    size += sum(place.length for place in model_file.in_other_files(model, path))
    return ModelSource(path, b"", tuple(value.name for value in model.graph.output), None, size)


@lru_cache(maxsize=1)
def _embed_data(source: ModelSource) -> ModelSource:
    """The same model as bytes with its external data in them."""
    assert source.path is not None
    model = model_file.load(source.path)
    return ModelSource(None, model.SerializeToString(), source.outputs, None, source.size)
