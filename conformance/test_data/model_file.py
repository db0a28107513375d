"""Models and tensors from files that a stranger may have made: read whole, checked first, no path leaves the folder.

A model that `load` lets pass is embedded: it refers to no file any more, so that nothing which reads it later, here or
in a worker, can be made to open one. One that is too large for that is parsed, and the places of its external
data are checked: a runtime maps them itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import helper, numpy_helper

from epcheck.conformance.test_data import weights_in_file
from epcheck.conformance.test_data.model_checks import complaint
from epcheck.generators.array import Array, is_of_ml_dtypes
from epcheck.generators.error import EpcheckError

MAX_BYTES = (1 << 31) - 1
"""Of a file, and of a model with its external data: what protobuf can serialize."""

MAPPED_BYTES = 1 << 16
"""From this size on the external data of a tensor is mapped, and not read or embedded, where it need not be."""


_PACKED = {n for name, n in onnx.TensorProto.DataType.items() if name.endswith(("INT4", "INT2", "4E2M1"))}
"""Element types that share bytes: numpy's size is not the file's."""


class ModelFileError(EpcheckError, ValueError):
    """A file is not what it should be; the message names it and says why."""


@dataclass(frozen=True)
class DataLocation:
    """Where a tensor's external data is: bytes `offset` to `offset + length` of a file inside the model's folder."""

    tensor: str
    file: Path
    offset: int
    length: int


def load(path: Path) -> onnx.ModelProto:
    """The model of a file, its external data (onnx.proto, TensorProto.external_data) embedded.

    Raises ModelFileError: for what is no model or too large, and for external data that is not in a regular file
    inside the model's folder (after every `..` and symbolic link), beyond that file's end, or of another size than the
    tensor; sizes are checked before anything is allocated.
    """
    return embed_data(parse(path), path)


def embed_data(model: onnx.ModelProto, path: Path, below: float = math.inf) -> onnx.ModelProto:
    """The model of the file `path`, with its external data put into it; the same object. below: bytes of a tensor from
    which on it stays where it is. Raises as `load`."""
    budget = MAX_BYTES - model.ByteSize()
    for tensor in external_tensors(model):
        place = _locate_data(tensor, path)
        if place.length >= below:
            continue
        budget -= place.length
        if budget < 0:
            raise ModelFileError(f"'{path}': tensor '{tensor.name}' makes the model larger than {MAX_BYTES} bytes")
        tensor.raw_data = _read(place.file, place.offset, place.length)
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
    return model


def parse(path: Path) -> onnx.ModelProto:
    """The model of a file as it stands there, its external data neither read nor checked. Weights inside of a large
    file stay there, and are external data (`weights_in_file`). Raises ModelFileError."""
    model = _large(path)
    if model is None:
        try:
            model = onnx.load_model_from_string(_read(path))
        except DecodeError:
            raise ModelFileError(f"'{path}' is not an ONNX model: its bytes cannot be parsed") from None
    if not model.graph.node:
        raise ModelFileError(f"'{path}' is not an ONNX model: its graph has no node")
    names = Counter(node.name for node in model.graph.node if node.name and node.op_type != "Constant")
    if names and (most := names.most_common(1)[0])[1] > 1:
        raise ModelFileError(f"'{path}' is not loadable by ONNX Runtime: {most[1]} nodes of its graph are called "
                             f"{most[0]!r}; give each a name of its own")  # fmt: skip
    if why := complaint(model, _tensors(model)):
        raise ModelFileError(f"'{path}' is not a valid ONNX model: {why}")
    return model


def _large(path: Path) -> onnx.ModelProto | None:
    """The model of a large file without the weights in it; None for any other file."""
    try:
        if path.is_file() and weights_in_file.LARGE_FILE <= path.stat().st_size <= MAX_BYTES:
            return weights_in_file.parse(path)
    except (OSError, ValueError):  # for the plain way to say, or to read
        pass
    return None


def external_data(model: onnx.ModelProto, path: Path) -> tuple[DataLocation, ...]:
    """Where the model of the file `path` has its external data; nothing is read. Raises ModelFileError as `load`."""
    return tuple(_locate_data(tensor, path) for tensor in external_tensors(model))


def bytes_of(model: onnx.ModelProto, path: Path) -> int:
    """Bytes of the file `path`, which was parsed as `model`, and of its external data. Raises ModelFileError."""
    return path.stat().st_size + sum(place.length for place in in_other_files(model, path))


def in_other_files(model: onnx.ModelProto, path: Path) -> tuple[DataLocation, ...]:
    """Where the model of the file `path` has data in other files. Raises ModelFileError as `load`."""
    file = path.resolve()
    return tuple(place for place in external_data(model, path) if place.file != file)


def external_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """The tensors whose data is in other files."""
    return (tensor for tensor in _tensors(model) if tensor.data_location == onnx.TensorProto.EXTERNAL)


def array_of(tensor: onnx.TensorProto, folder: Path) -> Array:
    """The values of a tensor of a model that `parse` has read. folder: that of the model, where external data lies;
    from MAPPED_BYTES on it is mapped, read-only, as long as the array or a view on it is held.

    Raises ModelFileError, for external data as `load`.
    """
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        place = _locate_data(tensor, folder / "model.onnx")
        if place.length >= MAPPED_BYTES and tensor.data_type not in (*_PACKED, onnx.TensorProto.STRING):
            return _map(place, helper.tensor_dtype_to_np_dtype(tensor.data_type), tuple(tensor.dims))
        content = _read(place.file, place.offset, place.length)
        tensor = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, raw_data=content)
    try:
        array: Array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError) as error:
        raise ModelFileError(f"tensor '{tensor.name}' cannot be read: {error}") from None
    return array


def load_tensor(path: Path) -> Array:
    """The array of a file with a serialized TensorProto, as ONNX's test data has them.

    Raises ModelFileError, also for element types that numpy itself does not have: no runtime takes them from numpy.
    """
    content = _read(path)
    try:
        tensor = onnx.load_tensor_from_string(content)
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise ModelFileError(f"'{path}' has external data, which test data must not have")
        if any(dim < 0 for dim in tensor.dims):
            raise ValueError(f"its dimensions are {list(tensor.dims)}")
        array: Array = numpy_helper.to_array(tensor)
    except ModelFileError:
        raise
    except (DecodeError, ValueError, TypeError, KeyError) as error:
        raise ModelFileError(f"'{path}' is not a valid tensor: {error}") from None
    if array.dtype.kind not in "biufc" or is_of_ml_dtypes(array.dtype):
        raise ModelFileError(
            f"'{path}' holds {onnx.TensorProto.DataType.Name(tensor.data_type)}, which is not supported"
        )
    return array


def _read(path: Path, offset: int = 0, length: int | None = None) -> bytes:
    try:
        if not path.is_file():  # opening a pipe would wait for ever
            raise ModelFileError(
                f"not a regular file: {path}" if path.exists() else f"no such file: {path}; check the path"
            )
        size = path.stat().st_size
        wanted = size - offset if length is None else length
        if wanted > MAX_BYTES:
            raise ModelFileError(f"'{path}' has {size} bytes; the limit is {MAX_BYTES}")
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(wanted)
    except (OSError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _map(place: DataLocation, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    try:
        return np.memmap(place.file, dtype, "r", place.offset, shape).view(np.ndarray)
    except (OSError, ValueError) as error:
        raise ModelFileError(f"'{place.file}' cannot be mapped: {error}") from None


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every tensor of a model: of its graph, functions and training graphs, and of the graphs in attributes."""
    pending: list[onnx.GraphProto | onnx.FunctionProto] = [model.graph, *model.functions]
    pending += [graph for info in model.training_info for graph in (info.initialization, info.algorithm)]
    while pending:
        graph = pending.pop()
        sparse = []
        if isinstance(graph, onnx.GraphProto):
            yield from graph.initializer
            sparse += graph.sparse_initializer
        defaults: Sequence[onnx.AttributeProto] = getattr(graph, "attribute_proto", ())
        for attribute in (*defaults, *(a for node in graph.node for a in node.attribute)):
            yield from (attribute.t, *attribute.tensors)
            sparse += [attribute.sparse_tensor, *attribute.sparse_tensors]
            pending += [g for g in (attribute.g, *attribute.graphs) if g.ByteSize()]
        for pair in sparse:
            yield from (pair.values, pair.indices)


def _locate_data(tensor: onnx.TensorProto, model: Path) -> DataLocation:
    """Where a tensor's external data is, checked."""
    where = f"'{model}': tensor '{tensor.name}'"
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location, folder = entries.get("location", ""), model.parent.resolve()
    if not location or "\0" in location or "\\" in location or ":" in location or location.startswith("/"):
        raise ModelFileError(f"{where} has its data at '{location}', which is not a path inside the model's folder")
    try:
        file = (folder / location).resolve()
        if not file.is_relative_to(folder):
            raise ModelFileError(f"{where} has its data at '{location}', outside the model's folder")
        if not file.is_file():
            raise ModelFileError(f"{where} has its data at '{location}', but there is no such file")
        rest = file.stat().st_size
    except (OSError, RuntimeError):  # a name that is too long; links in a circle, until Python 3.13
        raise ModelFileError(f"{where} has its data at '{location[:80]}', where no file can be") from None
    try:
        offset = int(entries.get("offset") or 0)
        length = int(entries["length"]) if entries.get("length") else rest - offset
        size = math.prod(tensor.dims) * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    except (KeyError, ValueError):
        raise ModelFileError(f"{where} does not say where its data is, or of what type") from None
    if offset < 0 or length < 0 or offset + length > rest:
        raise ModelFileError(f"{where} has its data at bytes {offset} to {offset + length} of '{location}', "
                             f"which has {rest}")  # fmt: skip
    if any(dim < 0 for dim in tensor.dims) or (length != size and tensor.data_type not in _PACKED):
        raise ModelFileError(f"{where} has {length} bytes of data, but its dimensions {list(tensor.dims)} need {size}")
    return DataLocation(tensor.name, file, offset, length)
