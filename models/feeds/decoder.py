"""A decoder with a cache of keys and values: which of its inputs and outputs are what, and what a call feeds it.

Names: `OnnxConfigWithPast` and `TextDecoderOnnxConfig` of Optimum (optimum/exporters/onnx), and the model builder of
ONNX Runtime GenAI (src/python/py/models/builders/base.py), which keeps to them. Padding: transformers' `generate` pads
prompts in front and numbers positions from the first real token; ONNX Runtime GenAI pads them behind (`PadInputs` in
src/models/model.cpp), for GroupQueryAttention takes the length of each sequence from the sum of its attention mask.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.generators.error import EpcheckError
from epcheck.models.graph import values
from epcheck.models.graph.attributes import read_integer
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.values import UNKNOWN, Type

IDS, MASK, POSITIONS, BRANCH, LOGITS = "input_ids", "attention_mask", "position_ids", "use_cache_branch", "logits"

PAST = re.compile(r"past_key_values\.(\d+)\.(key|value)")

FED = ("int64", "int32", "float32", "float16", "float64", "bool")
"""Element types of inputs. A cache of bfloat16 cannot be fed, and one of integers is quantised."""

GROUP_QUERY = "GroupQueryAttention"
"""The operator of com.microsoft that writes its present into the buffer of its past where both are one."""


class NotADecoderError(EpcheckError, ValueError):
    """A model that has no cache of keys and values as exporters name it; the message says what is missing."""


@dataclass(frozen=True)
class Cache:
    """The keys or the values of a layer: an input [batch, heads, past, size], an output with the new tokens behind."""

    past: str
    present: str
    heads: int
    size: int
    dtype: str


@dataclass(frozen=True)
class Decoder:
    """The inputs and outputs of a decoder. dtypes: of each input but the caches, as numpy names them; those of MASK,
    POSITIONS and BRANCH may be missing. batch: 1, or None for a dynamic one. window: of the sliding attention that
    the model states, in tokens; 0 for none. has_group_query: whether GroupQueryAttention keeps every cache."""

    dtypes: Mapping[str, str]
    caches: tuple[Cache, ...]
    batch: int | None
    window: int
    has_group_query: bool

    @property
    def has_positions(self) -> bool:
        """Whether padding does not move what a token's position is."""
        return POSITIONS in self.dtypes or self.has_group_query

    def make_caches(self, rows: int, length: int) -> dict[str, Feed]:
        """Input -> zeros [rows, heads, length, size]: an empty cache, or a buffer for all tokens."""
        return {each.past: np.zeros((rows, each.heads, length, each.size), each.dtype) for each in self.caches}


@dataclass(frozen=True)
class Batch:
    """Sequences that are decoded together. tokens: integers [rows, length]. prompts: how many tokens of each row are
    its prompt; shorter prompts are padded to the longest."""

    tokens: Array
    prompts: tuple[int, ...]


def find_decoder(model: onnx.ModelProto) -> Decoder:
    """The decoder that a model is. Raises NotADecoderError."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = {value.name: values.of(value.type) for value in model.graph.input if value.name not in weights}
    outputs = {value.name: values.of(value.type) for value in model.graph.output}
    past = {name: found for name in inputs if (found := PAST.fullmatch(name))}
    pairs = {name: f"present.{found[1]}.{found[2]}" for name, found in past.items()}
    if any(PAST.fullmatch(name.removesuffix("_float")) for name in inputs.keys() - past.keys()):
        raise NotADecoderError(_say_unlike("its caches are bfloat16, which no session takes; export it in float16"))
    named = [IDS, *pairs] if past else [IDS, "past_key_values.0.key"]
    missing = [name for name in named if name not in inputs]
    missing += [name for name in (LOGITS, *pairs.values()) if name not in outputs]
    if missing:
        raise NotADecoderError(_say_unlike(f"it has no '{missing[0]}'"))
    others = inputs.keys() - {IDS, MASK, POSITIONS, BRANCH} - pairs.keys()
    if others:
        raise NotADecoderError(_say_unlike(f"it reads '{min(others)}', which no decoder alone has"))
    for name, rank, axis in ((IDS, 2, 1), *((name, 4, 2) for name in pairs)):
        shape = inputs[name].shape
        if shape is None or len(shape) != rank or shape[axis] is not None:
            raise NotADecoderError(_say_unlike(f"'{name}' has the shape {inputs[name]}, whose axis {axis} has to be "
                                               f"dynamic, of {rank}"))  # fmt: skip
    if (shape := outputs[LOGITS].shape) is not None and (len(shape) != 3 or shape[1] is not None):
        raise NotADecoderError(
            _say_unlike(f"'{LOGITS}' has the shape {outputs[LOGITS]}, not [batch, sequence, tokens]")
        )
    if unfit := next((name for name, type_ in inputs.items() if type_.dtype not in FED), ""):
        raise NotADecoderError(_say_unlike(f"'{unfit}' is {inputs[unfit].dtype}, which is none of {', '.join(FED)}"))
    dtypes = {name: type_.dtype for name, type_ in inputs.items() if name not in pairs}
    keepers = [node for node in model.graph.node if node.op_type == GROUP_QUERY]
    caches = tuple(_find_cache(model, keepers, name, present, inputs[name]) for name, present in pairs.items())
    windows = [size for node in keepers if (size := read_integer(node, "local_window_size", -1)) > 0]
    kept = {name for node in keepers for name in node.input[3:5]}
    batch = next((shape[0] for type_ in inputs.values() if (shape := type_.shape) and shape[0] is not None), None)
    if batch not in (None, 1):
        raise NotADecoderError(_say_unlike(f"its batch is always {batch}"))
    return Decoder(dtypes, caches, batch, min(windows, default=0), pairs.keys() <= kept)


def find_open_sizes(model: onnx.ModelProto, decoder: Decoder) -> dict[str, tuple[int]]:
    """Dynamic dimension -> its only size, of the heads and the size of a head in caches: the model builder leaves the
    latter open, for a cache that may be quantised."""
    types = {value.name: value.type.tensor_type.shape.dim for value in model.graph.input}
    pairs = ((dim.dim_param, size) for each in decoder.caches
             for dim, size in ((types[each.past][1], each.heads), (types[each.past][3], each.size)))  # fmt: skip
    return {name: (size,) for name, size in pairs if name}


def _say_unlike(why: str) -> str:
    return (f"the model is no decoder with a cache: {why}; --generate takes a model with input_ids, "
            "past_key_values.N.key and .value, logits, present.N.key and .value, as Optimum and ONNX Runtime GenAI "
            "export it")  # fmt: skip


def _find_cache(
    model: onnx.ModelProto, keepers: Sequence[onnx.NodeProto], past: str, present: str, declared: Type
) -> Cache:
    """The cache of an input; its sizes from the node that keeps it, where the model builder leaves them open."""
    assert declared.shape is not None
    heads, size = declared.shape[1], declared.shape[3]
    node = next((node for node in keepers if past in node.input[3:5]), None)
    if node is not None and (heads is None or size is None):
        query, key = (values.of_graph(model.graph).get(name, UNKNOWN).shape for name in node.input[:2])
        heads = read_integer(node, "kv_num_heads", 0)
        width, count = (key, heads) if node.input[1] else (query, read_integer(node, "num_heads", 0) + 2 * heads)
        size = width[-1] // count if width and width[-1] and count else None
    if not heads or not size:
        raise NotADecoderError(_say_unlike(f"the heads of '{past}' and their size are not known: {declared}"))
    return Cache(past, present, heads, size, declared.dtype)


def find_positions(decoder: Decoder, batch: Batch, end: int) -> Array:
    """The position in its sequence of each place in front of `end`, [rows, end]; -1 where padding is."""
    longest, places = max(batch.prompts), np.arange(end)
    lengths = np.array(batch.prompts)[:, np.newaxis]
    moved = places - (longest - lengths)
    behind = np.where(places >= longest, moved, np.where(places < lengths, places, -1))
    return np.asarray(behind if decoder.has_group_query else np.maximum(moved, -1))


def feed_call(decoder: Decoder, batch: Batch, start: int, width: int) -> dict[str, Feed]:
    """What a call that computes the places from `start` on is fed, but for the caches. width: how many places."""
    found = find_positions(decoder, batch, start + width)
    here = np.maximum(found[:, start:], 0)
    tokens = np.where(found[:, start:] < 0, 0, np.take_along_axis(batch.tokens, here, 1))
    made = {IDS: tokens, MASK: found >= 0, POSITIONS: here, BRANCH: np.array([start > 0])}
    return {name: made[name].astype(dtype) for name, dtype in decoder.dtypes.items()}


def find_misfits(
    decoder: Decoder, outputs: Mapping[str, Feed], rows: int, width: int, length: int
) -> Iterator[tuple[str, str]]:
    """(name, how) of each output that has another shape than a call gives. width: places that it computes. length: of
    the caches that it gives."""
    wanted = {LOGITS: (rows, width), **{each.present: (rows, each.heads, length, each.size) for each in decoder.caches}}
    for name, shape in wanted.items():
        value = outputs.get(name)
        own = value.shape if isinstance(value, np.ndarray) else ()
        if own[: len(shape)] != shape or len(own) != len(shape) + (name == LOGITS):
            open_end = ", ..." if name == LOGITS else ""
            yield name, f"its shape is {list(own)}, where [{', '.join(map(str, shape))}{open_end}] is expected"


def read_row(
    decoder: Decoder, batch: Batch, outputs: Mapping[str, Array], row: int, places: tuple[int, int]
) -> dict[str, Array]:
    """What a call made of one sequence, without padding: logits [tokens, vocabulary] and caches [heads, past + tokens,
    size]. places: the first, and the one behind the last, of the call."""
    start, end = places
    is_real = find_positions(decoder, batch, end)[row] >= 0
    count = int(is_real.sum())
    where = np.arange(count) if decoder.has_group_query else np.flatnonzero(is_real)
    found = {LOGITS: outputs[LOGITS][row, is_real[start:]]}
    return found | {each.present: outputs[each.present][row][:, where] for each in decoder.caches}
