"""Feeds of a model: generated from a seed, or read from the user's files.

for dims in feeds.combinations(model, {"batch": (1, 4)}):
    inputs = feeds.generate(model, seed=0, dims=dims)

for found in feeds.read(path, model):        # an .npz, or a folder of ONNX test data
    print(found.name, found.inputs)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import helper

from epcheck.generators.array import Array
from epcheck.generators.operator import random_source
from epcheck.models.feeds import audio, constants, roles, shapeless
from epcheck.models.feeds import dims as dimensions
from epcheck.models.feeds.decoder import GROUP_QUERY
from epcheck.models.feeds.dims import DimsError, combinations
from epcheck.models.feeds.feed_files import FeedError, FeedSet, has_inputs, read, save
from epcheck.models.feeds.roles import (
    Fixed,
    Known,
    Lengths,
    Mask,
    Normal,
    OneOf,
    Positions,
    Real,
    Role,
    Sound,
    Whole,
    Words,
)
from epcheck.models.feeds.uses import Uses
from epcheck.models.graph import skeleton
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.skeleton import Shape

__all__ = ["DimsError", "Feed", "FeedError", "FeedSet", "combinations", "generate", "has_inputs", "read", "save"]

MAX_BYTES = 1 << 30
"""Largest size of all feeds together, in bytes."""

SEQUENCE_LENGTH = 2
"""Tensors in a generated sequence."""

OTHER_WORDS = ("apple", "", "Größe", "two words")
"""Strings that a vocabulary may lack: a plain, an empty, a non-ASCII one, and one with a space."""


def generate(
    model: onnx.ModelProto, seed: int = 0, dims: Mapping[str, int] | None = None, max_bytes: int = MAX_BYTES
) -> dict[str, Feed]:
    """Graph input name -> value, for every input that must be fed, of its dtype and shape and with sensible values.

    Token ids stay below the rows of the embedding that they index, masks are 1 up to a length and 0 behind it, position
    ids count, images are between 0 and 1 (or 255), sound is a second long, numbers of steps, ends and counts fit: see
    `roles`. An input without a shape has one that its readers take. The same model, seed and dims give the same values
    on every machine. An optional is there for even seeds, None for odd ones.
    dims: dynamic dimension -> size; the others have `dims.of_inputs`.
    Raises DimsError for a dimension that is not there, FeedError for an input that cannot be made, or when all would
    have more than max_bytes, before anything is allocated.
    """
    sizes = dimensions.resolve(model, dims or {})
    inputs, uses, history = dict(dimensions.tensor_types(model)), Uses(model), _history(sizes)
    shapes = {name: _shape(name, tensor, sizes) for name, tensor in inputs.items()}
    for name, tensor in inputs.items():
        if not tensor.HasField("shape"):
            shapes[name] = shapeless.shape_of(name, list(uses.of(name)), constants.shapes(model))
    _check_size(model, shapes, max_bytes)
    inferred = skeleton.infer_shapes(skeleton.without_weights(model, shapes))
    sound = audio.inputs_of_sound(model, inputs)
    known = Known({**constants.shapes(model), **inferred}, constants.arrays(model), sound, dict(shapes))
    has_lengths = any(node.op_type == GROUP_QUERY for node in model.graph.node)  # no truth beyond those of a mask
    made: dict[str, Feed] = {}
    weights = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in weights:
            continue
        dtype = _dtype(value)
        role = roles.of_input(value.name, dtype, shapes[value.name], list(uses.of(value.name)), known)
        if isinstance(role, Mask) and has_lengths:
            role = Mask(role.kept, role.kept)
        rng = random_source(f"feeds/{seed}/{value.name}")
        draw = partial(_draw_values, role, shapes[value.name], dtype, rng, history)
        made[value.name] = _value(value.type, seed, draw)
    return made


def _shape(name: str, tensor: onnx.TypeProto.Tensor, sizes: Mapping[str, int]) -> tuple[int, ...]:
    named = (dimensions.name_of(name, axis, dim) for axis, dim in enumerate(tensor.shape.dim))
    return tuple(sizes[n] if n else dim.dim_value for n, dim in zip(named, tensor.shape.dim, strict=True))


def _dtype(value: onnx.ValueInfoProto) -> np.dtype[Any] | None:
    """None for strings."""
    element = dimensions.tensor_type(value.type).elem_type
    if element == onnx.TensorProto.UNDEFINED:
        kind = value.type.WhichOneof("value") or "value without a type"
        raise FeedError(f"input '{value.name}' is a {kind.removesuffix('_type').replace('_', ' ')}, for which no value "
                        "can be generated; name feeds with --feeds")  # fmt: skip
    return None if element == onnx.TensorProto.STRING else helper.tensor_dtype_to_np_dtype(element)


def _check_size(model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]], max_bytes: int) -> None:
    total = 0
    for name, tensor in dimensions.tensor_types(model):
        if any(size < 0 for size in shapes[name]):
            raise FeedError(f"input '{name}' has the shape {list(shapes[name])}, which is not valid")
        width = 64 if tensor.elem_type in (onnx.TensorProto.STRING, onnx.TensorProto.UNDEFINED) else (
            helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize)  # fmt: skip
        total += math.prod(shapes[name]) * width
        if total > max_bytes:
            raise FeedError(
                f"input '{name}' of shape {list(shapes[name])} makes the feeds larger than {max_bytes} bytes"
            )


def _history(sizes: Mapping[str, int]) -> int:
    """How many positions lie before the first: the size of the dimension of past keys and values."""
    return max((size for name, size in sizes.items() if "past" in name and name.isidentifier()), default=0)


def _value(kind: onnx.TypeProto, seed: int, draw: Callable[[], Array]) -> Feed:
    match kind.WhichOneof("value"):
        case "sequence_type":
            return [draw() for _ in range(SEQUENCE_LENGTH)]
        case "optional_type" if seed % 2:
            return None
        case "optional_type":
            return _value(kind.optional_type.elem_type, seed, draw)
    return draw()


def _draw_values(
    role: Role, shape: Shape, dtype: np.dtype[Any] | None, rng: np.random.Generator, history: int
) -> Array:
    sizes = tuple(size or 0 for size in shape)
    if dtype is None:
        words = np.array((*role.known, *OTHER_WORDS) if isinstance(role, Words) else OTHER_WORDS)
        return words[rng.integers(0, len(words), sizes)]
    if dtype.kind == "c":
        return (rng.standard_normal(sizes) + 1j * rng.standard_normal(sizes)).astype(dtype)
    return np.asarray(_numbers(role, sizes, rng, history)).astype(dtype)


def _numbers(role: Role, shape: tuple[int, ...], rng: np.random.Generator, history: int) -> Array:
    match role:
        case Whole(low, high):
            return rng.integers(low, max(low, high) + 1, shape)
        case Real(low, high):
            return low + (high - low) * rng.random(shape, np.float32)
        case Normal(std):
            return std * rng.standard_normal(shape, np.float32)
        case OneOf(values):
            return np.full(shape, rng.choice(values))
        case Lengths(longest):
            lengths = rng.integers(-(-longest // 2), longest + 1, shape)
            lengths.reshape(-1)[:1] = longest
            return lengths
        case Sound(axis):
            return _tones(shape, axis, rng)
        case Mask(kept, dropped):
            return np.where(_first(shape, rng), kept, dropped)
        case Positions(rows):
            counted = np.arange(history, history + (shape[-1] if shape else 1))
            return np.broadcast_to(counted if rows is None else np.minimum(counted, rows - 1), shape)
        case Fixed(values):
            count = math.prod(shape)
            return np.array((*values[:1] * (count - len(values)), *values[max(0, len(values) - count) :])).reshape(
                shape
            )
    raise TypeError(f"no numbers are {role}")


def _first(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """True up to a random place of the last axis, at least once. Of several rows the first is full; a single row ends
    before its last element, so that a mask is never all that there is."""
    if not shape:
        return np.array(True)
    size = max(shape[-1], 1)
    lengths = rng.integers(1, size + 1, (*shape[:-1], 1))
    lengths.reshape(-1)[:1] = size if lengths.size > 1 else max(1, min(int(lengths.reshape(-1)[0]), size - 1))
    return np.arange(shape[-1]) < lengths


def _tones(shape: tuple[int, ...], axis: int, rng: np.random.Generator) -> Array:
    """Three tones below a quarter of the sampling rate, of other heights for each sample of a batch, and noise, without
    which the logarithm of a spectrum would be that of rounding errors."""
    time = np.moveaxis(np.broadcast_to(np.arange(shape[axis]), (*shape[:axis], *shape[axis + 1 :], shape[axis])), -1,
                       axis)  # fmt: skip
    sizes = (*shape[:axis], 1, *shape[axis + 1 :])
    found = 0.05 * rng.standard_normal(shape)
    for strength in (0.4, 0.2, 0.1):
        found += strength * np.sin(rng.uniform(0.02, 1.5, sizes) * time + rng.uniform(0, 6, sizes))
    return found
