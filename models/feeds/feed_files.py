"""Read and write feeds: an .npz, or ONNX's test data (`test_data_set_0/input_0.pb`).

Files are not trusted: sizes are checked before memory is allocated, nothing is unpickled, and feeds that do not fit the
model are refused in a sentence.
"""

from __future__ import annotations

import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import helper, numpy_helper

from epcheck.conformance.test_data import model_file
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.generators.array import Array
from epcheck.generators.error import EpcheckError
from epcheck.models.feeds import dims as dimensions
from epcheck.models.graph.feed import Feed

MAX_BYTES = model_file.MAX_BYTES
MAX_HEADER = 10_000
"""Bytes of the header of an array, which numpy evaluates as a Python literal."""

_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError, SyntaxError, ValueError, TypeError, LookupError,
    AttributeError, OverflowError, EOFError, RuntimeError, MemoryError, OSError,
)  # fmt: skip
"""What zipfile and numpy raise for files that are not what they should be; RecursionError is a RuntimeError."""
"""Largest size of a file, packed and unpacked."""


class FeedError(EpcheckError, ValueError):
    """Feeds that do not fit the model, or a file that cannot be read; the message names what is wrong."""


@dataclass(frozen=True)
class FeedSet:
    """One set of feeds. name: of the file or the data set. expected: the outputs that are expected of these inputs, by
    name, as far as files have them."""

    name: str
    inputs: Mapping[str, Feed]
    expected: Mapping[str, Feed] = field(default_factory=dict)


def read(path: Path, model: onnx.ModelProto, expect: Path | None = None) -> tuple[FeedSet, ...]:
    """The sets of feeds at a path, checked against the model: one of an .npz or a data set, all of a folder of sets.

    An .npz has an array for each graph input, by name. A data set has `input_0.pb`, ... in the order of the inputs, and
    may have `output_0.pb`, ... in the order of the outputs. expect: an .npz or a folder that has the expected outputs,
    in the same forms; the sets of a folder are those of the same names. Raises FeedError, ModelFileError.
    """
    if path.is_dir():
        found = [FeedSet(folder.name, _data_set(folder, model), _expected_set(folder, model))
                 for folder in _folders(path)]  # fmt: skip
    else:
        found = [FeedSet(path.name, *_split_outputs(read_arrays(path), model))]
    for feeds in found:
        check(feeds.inputs, model, str(path if feeds.name == path.name else path / feeds.name))
    return tuple(found) if expect is None else tuple(_with_expected(found, expect, model))


def has_inputs(path: Path, model: onnx.ModelProto) -> bool:
    """Whether a path with expected outputs has the inputs as well."""
    if path.is_dir():
        return any((folder / "input_0.pb").exists() for folder in _folders(path))
    return not {name for name, _ in dimensions.tensor_types(model)}.isdisjoint(read_arrays(path))


def _folders(path: Path) -> list[Path]:
    """The data sets of a folder; itself where it has none."""
    return sorted((folder for folder in path.glob("test_data_set_*") if folder.is_dir()), key=_number) or [path]


def _with_expected(found: list[FeedSet], expect: Path, model: onnx.ModelProto) -> Iterator[FeedSet]:
    """The sets with the outputs that are expected of them, in place of those beside their inputs."""
    if expect.is_dir():
        known = {folder.name: _expected_set(folder, model) for folder in _folders(expect)}
    else:
        known = {expect.name: _split_outputs(read_arrays(expect), model)[1]}
    if not any(known.values()):
        listed = ", ".join(f"'{value.name}'" for value in model.graph.output)
        raise FeedError(
            f"'{expect}' has no expected output: no output_0.pb, and no array named as an output ({listed})"
        )
    alone = next(iter(known.values())) if len(known) == len(found) == 1 else {}
    for feeds in found:
        expected = known.get(feeds.name, alone)
        if not expected:
            raise FeedError(f"'{expect}' has no outputs that are expected of the feeds '{feeds.name}'; it has those of "
                            f"{', '.join(known)}")  # fmt: skip
        yield FeedSet(feeds.name, feeds.inputs, expected)


def _split_outputs(arrays: Mapping[str, Feed], model: onnx.ModelProto) -> tuple[dict[str, Feed], dict[str, Feed]]:
    """The arrays of a file without, and with the names of outputs."""
    outputs = {value.name for value in model.graph.output} - {value.name for value in model.graph.input}
    return ({name: value for name, value in arrays.items() if name not in outputs},
            {name: value for name, value in arrays.items() if name in outputs})  # fmt: skip


def _expected_set(folder: Path, model: onnx.ModelProto) -> dict[str, Feed]:
    """The outputs that a data set has."""
    files = {value.name: (folder / f"output_{at}.pb", value.type) for at, value in enumerate(model.graph.output)}
    if (folder / f"output_{len(files)}.pb").exists():
        raise FeedError(f"'{folder}' has more outputs than the model, which has {len(files)}")
    return {name: _load(file, kind) for name, (file, kind) in files.items() if file.exists()}


def save(folder: Path, model: onnx.ModelProto, inputs: Mapping[str, Feed]) -> None:
    """Write feeds as ONNX test data into an existing folder."""
    fed = (value for value in model.graph.input if value.name in inputs)
    for index, value in enumerate(fed):
        proto = _proto(value.type, inputs[value.name], value.name)
        (folder / f"input_{index}.pb").write_bytes(proto.SerializeToString(deterministic=True))


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an .npz with arrays of any name; numpy's own function takes `file` and others for its arguments."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)


def check(inputs: Mapping[str, Feed], model: onnx.ModelProto, where: str) -> None:
    """Raise FeedError unless names, dtypes, ranks and sizes are those of the model's inputs. where: the file, for the
    message."""
    types = {value.name: value.type for value in model.graph.input}
    for name in inputs:
        if name not in types:
            listed = ", ".join(f"'{known}'" for known in types)
            raise FeedError(f"{where}: the model has no input '{name}'; it has {listed or 'none'}")
    sizes: dict[str, tuple[int, str]] = {}
    for name, tensor in dimensions.tensor_types(model):
        if name not in inputs and types[name].WhichOneof("value") != "optional_type":
            raise FeedError(f"{where}: no value for the input '{name}'")
        for array in _tensors(inputs.get(name), types[name], f"{where}: input '{name}'"):
            _check_tensor(name, array, tensor, sizes, where)


def _check_tensor(
    name: str, array: Array, tensor: onnx.TypeProto.Tensor, sizes: dict[str, tuple[int, str]], where: str
) -> None:
    expected = "str" if tensor.elem_type == onnx.TensorProto.STRING else (
        helper.tensor_dtype_to_np_dtype(tensor.elem_type).name)  # fmt: skip
    got = "str" if array.dtype.kind in "UOT" else array.dtype.name
    if got != expected:
        raise FeedError(f"{where}: input '{name}' is {got}, but the model needs {expected}")
    if not tensor.HasField("shape"):
        return
    if array.ndim != len(tensor.shape.dim):
        wanted = f"rank {len(tensor.shape.dim)}"
        raise FeedError(f"{where}: input '{name}' has the shape {list(array.shape)}, but the model needs {wanted}")
    for axis, (size, dim) in enumerate(zip(array.shape, tensor.shape.dim, strict=True)):
        if dim.HasField("dim_value") and size != dim.dim_value >= 0:
            raise FeedError(f"{where}: input '{name}' has the size {size} in dimension {axis}, but the model needs "
                            f"{dim.dim_value}")  # fmt: skip
        if dim.dim_param:
            known, other = sizes.setdefault(dim.dim_param, (size, name))
            if known != size:
                raise FeedError(f"{where}: dimension '{dim.dim_param}' is {known} in the input '{other}' and {size} in "
                                f"'{name}'")  # fmt: skip


def _tensors(feed: Feed, kind: onnx.TypeProto, what: str) -> Iterator[Array]:
    """The tensors in a feed. Raises FeedError when it is not of that kind."""
    wanted = kind.WhichOneof("value")
    if wanted == "optional_type":
        if feed is not None:
            yield from _tensors(feed, kind.optional_type.elem_type, what)
    elif (wanted == "sequence_type") != isinstance(feed, list) or feed is None:
        actual = "nothing" if feed is None else "a sequence" if isinstance(feed, list) else "a tensor"
        raise FeedError(f"{what} is {actual}, but the model needs a {str(wanted).removesuffix('_type')}")
    elif isinstance(feed, list):
        for element in feed:
            yield from _tensors(element, kind.sequence_type.elem_type, what)
    else:
        yield feed


def read_arrays(path: Path) -> dict[str, Feed]:
    """The arrays of an .npz, by name. Raises FeedError for a file that cannot be read, is too large or has pickles."""
    if not path.is_file():
        raise FeedError(f"not a file or folder: {path}" if path.exists() else f"no such file or folder: {path}")
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
            if max(unpacked, path.stat().st_size) > MAX_BYTES:
                raise FeedError(f"'{path}' has {unpacked} bytes unpacked; the limit is {MAX_BYTES}")
            for entry in archive.infolist():
                _check_header(archive, entry)
        with np.load(path, allow_pickle=False, max_header_size=MAX_HEADER) as arrays:
            return {name: np.asarray(arrays[name]) for name in arrays.files}
    except FeedError:
        raise
    except _UNREADABLE as error:
        raise FeedError(f"'{path}' is not a readable .npz file: {error}") from None


def _check_header(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """Raises ValueError when an array's header asks for another number of bytes than there are: numpy would allocate
    them first. What is no array is left to numpy."""
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        read = {(1, 0): np.lib.format.read_array_header_1_0}.get(version, np.lib.format.read_array_header_2_0)
        shape, _, dtype = read(file, max_header_size=MAX_HEADER)
        wanted, found = math.prod(int(size) for size in shape) * dtype.itemsize, entry.file_size - file.tell()
    if dtype.hasobject:
        return  # which numpy refuses to unpickle
    if any(size < 0 for size in shape) or wanted != found:
        raise ValueError(f"'{entry.filename}' has {found:,} bytes of data; {list(shape)} of {dtype} needs {wanted:,}")


def _number(folder: Path) -> tuple[int, str]:
    """`test_data_set_10` after `test_data_set_9`."""
    digits = folder.name.rpartition("_")[2]
    return (int(digits) if digits.isdecimal() else 0, folder.name)


def _data_set(folder: Path, model: onnx.ModelProto) -> dict[str, Feed]:
    names = [name for name, _ in dimensions.tensor_types(model)]
    types = {value.name: value.type for value in model.graph.input}
    files = {name: folder / f"input_{index}.pb" for index, name in enumerate(names)}
    if names and not any(file.exists() for file in files.values()):
        raise FeedError(f"'{folder}' has no input_0.pb, and no test_data_set_* with one")
    if (folder / f"input_{len(names)}.pb").exists():
        raise FeedError(f"'{folder}' has more inputs than the model, which has {len(names)}")
    return {name: _load(file, types[name]) for name, file in files.items() if file.exists()}


def _load(file: Path, kind: onnx.TypeProto) -> Feed:
    wanted = kind.WhichOneof("value")
    if wanted not in ("sequence_type", "optional_type"):
        return model_file.load_tensor(file)
    if file.stat().st_size > MAX_BYTES:
        raise FeedError(f"'{file}' has {file.stat().st_size} bytes; the limit is {MAX_BYTES}")
    try:
        if wanted == "sequence_type":
            return list(numpy_helper.to_list(onnx.SequenceProto.FromString(file.read_bytes())))
        loaded: Feed = numpy_helper.to_optional(onnx.OptionalProto.FromString(file.read_bytes()))
        return loaded
    except (DecodeError, ValueError, TypeError, KeyError) as error:
        raise ModelFileError(f"'{file}' holds no {wanted.removesuffix('_type')}: {error}") from None


def _proto(kind: onnx.TypeProto, feed: Feed, name: str) -> Any:
    match kind.WhichOneof("value"):
        case "sequence_type":
            return numpy_helper.from_list(list(feed or []), name)
        case "optional_type":
            return numpy_helper.from_optional(feed, name)
    return numpy_helper.from_array(np.asarray(feed), name)
