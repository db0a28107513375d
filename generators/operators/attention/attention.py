"""com.microsoft::Attention, ::QAttention and ::MultiHeadAttention.

The DML EP makes them DML_GEMM_OPERATOR_DESC (Attention) or DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC
(QAttention), with slices and transpositions, and DML_MULTIHEAD_ATTENTION_OPERATOR_DESC.

Sources: ONNX Runtime's docs/ContribOperators.md; where that is short, the input checks of its CPU kernels
(attention_base.h, multihead_attention_helper.h) for shapes. A mask's filter value is added to the scores, as
DirectML's page and the CPU kernel have it. No row of a mask is empty: what softmax gives there depends on the filter
value's rounding. Not generated: do_rotary, past_present_share_buffer, cache_indirection and the packed index mask of
3 * batch + 2, which only CUDA kernels define. Bounds: `estimate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.bounds.estimate import (
    Estimate,
    Precision,
    attention,
    concatenate,
    exact,
    join_heads,
    split_heads,
)
from epcheck.generators.case import CaseContext, Sample
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values
from epcheck.generators.directml.descriptions.attention.multihead_attention import (
    MultiheadAttention,
    MultiheadAttentionMaskType,
)
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.directml.tensor import DataType, TensorDesc
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import GRAPH, Operator, declare, spread
from epcheck.generators.truth import Output, Outputs, Truth

DECLARES = (
    "com.microsoft::Attention",
    "com.microsoft::QAttention",
    "com.microsoft::MultiHeadAttention",
)

DOMAIN = "com.microsoft"
MASK_FILTER_VALUE = -10000.0
QUANTIZED = ("uint8", "int8", "float32")
"""The dtypes of QAttention that every provider of it has: there every sample has a case."""


@dataclass(frozen=True, kw_only=True)
class AttentionSample(Sample):
    """What varies; B = batch, S = sequence, L = kv_sequence, N = heads, H = head, T = past + L.

    kv_sequence: None is `sequence`. value_head: None is `head`. layout: of MultiHeadAttention's query, key and value,
    see `_projected`. mask: see `_mask`. past: None leaves past and present out. attention_bias: its first two
    dimensions, 1 broadcasts. attributes: those beyond num_heads. per_column, zero_points: of QAttention.
    """

    batch: int = 2
    sequence: int = 3
    kv_sequence: int | None = None
    heads: int = 2
    head: int = 4
    value_head: int | None = None
    input_hidden: int = 6
    layout: str = "separate"
    bias: bool = True
    mask: str = ""
    past: int | None = None
    attention_bias: tuple[bool, bool] | None = None
    attributes: tuple[tuple[str, float], ...] = ()
    per_column: bool = False
    zero_points: tuple[bool, bool] = (True, True)

    @property
    def length(self) -> int:
        """L, the tokens of key and value that are not past."""
        return self.sequence if self.kv_sequence is None else self.kv_sequence


def _common() -> Iterator[AttentionSample]:
    """Sizes, attributes and masks that all three operators have."""
    yield AttentionSample(name="defaults", every_dtype=True)
    yield AttentionSample(name="one_head", heads=1)
    yield AttentionSample(name="head_size_1", head=1, heads=3)
    yield AttentionSample(name="head_size_3", head=3, heads=5)
    yield AttentionSample(name="head_size_64", head=64, heads=2, batch=1)
    yield AttentionSample(name="batch_1", batch=1)
    yield AttentionSample(name="sequence_1", sequence=1)
    yield AttentionSample(name="sequence_17", sequence=17)
    yield AttentionSample(name="sequence_130", sequence=130, batch=1, heads=1)
    yield AttentionSample(name="scale_1", attributes=(("scale", 1.0),))
    yield AttentionSample(name="scale_4", attributes=(("scale", 4.0),))
    yield AttentionSample(name="scale_minus_half", attributes=(("scale", -0.5),))
    yield AttentionSample(name="scale_small", attributes=(("scale", 1e-3),), every_dtype=True)
    for kind in ("lengths", "raw_2d", "raw_3d"):
        yield AttentionSample(name=f"mask_{kind}", mask=kind, sequence=5, every_dtype=kind == "raw_2d")
        yield AttentionSample(
            name=f"mask_{kind}_filter_minus_2", mask=kind, sequence=5, attributes=(("mask_filter_value", -2.0),)
        )
    yield AttentionSample(name="mask_raw_2d_batch_1", mask="raw_2d", batch=1, sequence=4)
    yield AttentionSample(name="mask_raw_2d_all_set", mask="raw_2d_all_set")
    yield AttentionSample(name="unidirectional", attributes=(("unidirectional", 1),), sequence=5, every_dtype=True)
    yield AttentionSample(name="unidirectional_0", attributes=(("unidirectional", 0),), sequence=5)
    yield AttentionSample(name="unidirectional_sequence_1", attributes=(("unidirectional", 1),), sequence=1)
    yield AttentionSample(name="past", past=4, every_dtype=True)
    yield AttentionSample(name="past_0", past=0)
    yield AttentionSample(name="past_sequence_1", past=7, sequence=1)
    yield AttentionSample(name="past_unidirectional", past=4, attributes=(("unidirectional", 1),))
    yield AttentionSample(name="past_mask_raw_2d", past=3, mask="raw_2d")


def _biased() -> Iterator[AttentionSample]:
    for batch, heads in ((True, True), (False, True), (True, False), (False, False)):
        name = f"attention_bias_{'b' if batch else '1'}_{'n' if heads else '1'}"
        yield AttentionSample(name=name, attention_bias=(batch, heads), every_dtype=batch and heads)
    yield AttentionSample(name="attention_bias_and_mask", attention_bias=(True, True), mask="raw_2d", sequence=5)
    yield AttentionSample(name="attention_bias_and_scale", attention_bias=(True, True), attributes=(("scale", 2.0),))
    yield AttentionSample(name="bias_absent", bias=False, every_dtype=True)


def attention_samples() -> Iterator[AttentionSample]:
    yield from _common()
    yield from _biased()
    yield AttentionSample(name="mask_end_start", mask="end_start", sequence=6)
    yield AttentionSample(name="mask_raw_4d", mask="raw_4d", sequence=4)
    yield AttentionSample(name="bias_absent_mask_lengths", bias=False, mask="lengths", sequence=5)
    for value_head in (2, 8):
        yield AttentionSample(name=f"value_head_size_{value_head}", value_head=value_head)
    yield AttentionSample(name="input_hidden_1", input_hidden=1)
    yield AttentionSample(name="input_hidden_70", input_hidden=70)


def quantized_samples() -> Iterator[AttentionSample]:
    yield from _common()
    yield AttentionSample(name="per_column", per_column=True, every_dtype=True)
    yield AttentionSample(name="no_zero_points", zero_points=(False, False))
    yield AttentionSample(name="input_zero_point_only", zero_points=(True, False))
    yield AttentionSample(name="weight_zero_point_only", zero_points=(False, True))
    yield AttentionSample(name="mask_end_start", mask="end_start", sequence=6)


def multi_head_samples() -> Iterator[AttentionSample]:
    yield from _common()
    yield from _biased()
    for layout in ("packed_kv", "packed_qkv", "cross_4d"):
        yield AttentionSample(name=layout, layout=layout, bias=False, every_dtype=True)
        yield AttentionSample(name=f"{layout}_mask_raw_2d", layout=layout, bias=False, mask="raw_2d", sequence=5)
        if layout != "packed_qkv":
            yield AttentionSample(name=f"{layout}_longer_kv", layout=layout, bias=False, kv_sequence=7)
    yield AttentionSample(name="cross_longer_kv", kv_sequence=7, every_dtype=True)
    yield AttentionSample(name="cross_shorter_kv", kv_sequence=1)
    yield AttentionSample(name="cross_mask_lengths", kv_sequence=5, mask="lengths")
    yield AttentionSample(name="cross_attention_bias", kv_sequence=5, attention_bias=(True, True))
    for value_head in (2, 8):
        yield AttentionSample(name=f"value_head_size_{value_head}", value_head=value_head)
    yield AttentionSample(name="past_bias_absent", past=4, bias=False)
    yield AttentionSample(name="past_attention_bias", past=4, attention_bias=(True, True))


def bindings(sample: AttentionSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    return spread(sample, first=dtypes in (("float32",), QUANTIZED), newest=True)


def multi_head_bindings(sample: AttentionSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """The bias is the only parameter."""
    ways = bindings(sample, since_version, dtypes)
    return ways if sample.bias or graph.RUNTIME not in ways else tuple(w for w in ways if w != graph.INITIALIZER)


def _normal(context: CaseContext, dtype: np.dtype[Any], shape: tuple[int, ...], size: float = 1.0) -> Array:
    return (size * context.rng.standard_normal(shape)).astype(dtype)


def _mask(sample: AttentionSample, rng: np.random.Generator) -> Array:
    """int32. lengths [B]: keys from there on are padding. end_start [2 B]: exclusive ends, then inclusive starts.
    raw_2d [B, T], raw_3d [B, S, T], raw_4d [B, 1, M, M] with M > T: 1 where a key is attended."""
    total = (sample.past or 0) + sample.length
    if sample.mask == "lengths":
        lengths = rng.integers(1, total, sample.batch, endpoint=True)
        lengths[0] = max(1, total - 2)
        return lengths.astype(np.int32)
    if sample.mask == "end_start":
        ends = rng.integers(3, total, sample.batch)
        return np.concatenate([ends, rng.integers(1, 3, sample.batch)]).astype(np.int32)
    if sample.mask == "raw_2d_all_set":
        return np.ones((sample.batch, total), np.int32)
    shape = {
        "raw_2d": (sample.batch, total),
        "raw_3d": (sample.batch, sample.sequence, total),
        "raw_4d": (sample.batch, 1, total + 3, total + 3),
    }[sample.mask]
    mask = (rng.random(shape) < 0.6).astype(np.int32)
    mask[..., 0] = 1
    mask[..., 1] = 0
    return mask


def _attributes(sample: AttentionSample) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {"num_heads": sample.heads, **dict(sample.attributes)}
    if sample.value_head is not None:
        hidden = sample.heads * sample.head
        attributes["qkv_hidden_sizes"] = (hidden, hidden, sample.heads * sample.value_head)
    return attributes


def _trimmed(operands: list[Operand | None]) -> tuple[Operand | None, ...]:
    while operands[-1] is None:
        operands.pop()
    return tuple(operands)


def _attention_bias(sample: AttentionSample, context: CaseContext) -> Operand | None:
    if sample.attention_bias is None:
        return None
    batch, heads = sample.attention_bias
    total = (sample.past or 0) + sample.length
    shape = (sample.batch if batch else 1, sample.heads if heads else 1, sample.sequence, total)
    return Operand("attention_bias", _normal(context, context.dtypes[-1], shape))


def _past(sample: AttentionSample, context: CaseContext) -> Operand | None:
    if sample.past is None:
        return None
    shape = (2, sample.batch, sample.heads, sample.past, sample.head)
    return Operand("past", _normal(context, context.dtypes[-1], shape))


def attention_node(sample: AttentionSample, context: CaseContext) -> Node:
    """input [B, S, I]; weights [I, 2 N H + N H']; bias of its width; mask_index: `_mask`; past [2, B, N, P, H];
    attention_bias [B or 1, N or 1, S, T]."""
    width = sample.heads * (2 * sample.head + (sample.value_head or sample.head))
    dtype = context.dtype
    weight_size = sample.input_hidden**-0.5
    operands = [
        Operand("input", _normal(context, dtype, (sample.batch, sample.sequence, sample.input_hidden))),
        Operand("weights", _normal(context, dtype, (sample.input_hidden, width), weight_size), parameter=True),
        Operand("bias", _normal(context, dtype, (width,), 0.5), parameter=True) if sample.bias else None,
        Operand("mask_index", _mask(sample, context.rng)) if sample.mask else None,
        _past(sample, context),
        _attention_bias(sample, context),
    ]
    outputs = ("output",) if sample.past is None else ("output", "present")
    return Node("Attention", DOMAIN, 1, _trimmed(operands), outputs, _attributes(sample))


def quantized_node(sample: AttentionSample, context: CaseContext) -> Node:
    """input [B, S, I] and weight [I, 3 N H] of 8 bits; their scales and zero points, those of the weight per tensor or
    per column; bias [3 N H]; mask_index, past as Attention has them."""
    first, second, floating = context.dtypes
    width = 3 * sample.heads * sample.head
    shape = (sample.batch, sample.sequence, sample.input_hidden)
    columns = (width,) if sample.per_column else ()
    operands = [
        Operand("input", _integers(context, first, shape, sample.zero_points[0])),
        Operand(
            "weight", _integers(context, second, (sample.input_hidden, width), sample.zero_points[1]), parameter=True
        ),
        Operand("bias", _normal(context, floating, (width,), 0.5), parameter=True),
        Operand("input_scale", np.array(0.0117, floating), parameter=True),
        Operand("weight_scale", np.asarray(0.004 + 0.004 * context.rng.random(columns), floating), parameter=True),
        Operand("mask_index", _mask(sample, context.rng)) if sample.mask else None,
        Operand("input_zero_point", _zero_point(context, first, ()), parameter=True) if sample.zero_points[0] else None,
        Operand("weight_zero_point", _zero_point(context, second, columns), parameter=True)
        if sample.zero_points[1]
        else None,
        _past(sample, context),
    ]
    outputs = ("output",) if sample.past is None else ("output", "present")
    return Node("QAttention", DOMAIN, 1, _trimmed(operands), outputs, _attributes(sample))


def _integers(context: CaseContext, dtype: np.dtype[Any], shape: tuple[int, ...], zero_point: bool) -> Array:
    """Of the whole range; unsigned ones without a zero point, which have one sign, are smaller."""
    info = np.iinfo(dtype)
    largest = info.max if zero_point or info.min else info.max // 5
    return context.rng.integers(info.min, largest, shape, dtype=dtype, endpoint=True)


def _zero_point(context: CaseContext, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    middle = 128 if dtype.kind == "u" else 0
    return np.asarray(context.rng.integers(middle - 20, middle + 20, shape), dtype)


def multi_head_node(sample: AttentionSample, context: CaseContext) -> Node:
    """query, key, value: `_projected`; bias [2 N H + N H']; key_padding_mask: `_mask`; attention_bias [B or 1, N or 1,
    S, T]; past_key [B, N, P, H], past_value [B, N, P, H']."""
    dtype, value_head = context.dtype, sample.value_head or sample.head
    width = sample.heads * (2 * sample.head + value_head)
    past = [
        None
        if sample.past is None
        else Operand(name, _normal(context, dtype, (sample.batch, sample.heads, sample.past, h)))
        for name, h in (("past_key", sample.head), ("past_value", value_head))
    ]
    operands = [
        *_projected(sample, context),
        Operand("bias", _normal(context, dtype, (width,), 0.5), parameter=True) if sample.bias else None,
        Operand("key_padding_mask", _mask(sample, context.rng)) if sample.mask else None,
        _attention_bias(sample, context),
        *past,
    ]
    outputs = ("output",) if sample.past is None else ("output", "present_key", "present_value")
    attributes = {name: value for name, value in _attributes(sample).items() if name != "qkv_hidden_sizes"}
    return Node("MultiHeadAttention", DOMAIN, 1, _trimmed(operands), outputs, attributes)


def _projected(sample: AttentionSample, context: CaseContext) -> tuple[Operand | None, Operand | None, Operand | None]:
    """separate: query [B, S, N H], key [B, L, N H], value [B, L, N H']. packed_kv: key [B, L, N, 2, H], no value.
    packed_qkv: query [B, S, N, 3, H] alone. cross_4d: key and value [B, N, L, H], past ones in their place."""
    batch, heads, head = sample.batch, sample.heads, sample.head
    shapes: tuple[tuple[int, ...] | None, ...] = {
        "separate": (
            (batch, sample.sequence, heads * head),
            (batch, sample.length, heads * head),
            (batch, sample.length, heads * (sample.value_head or head)),
        ),
        "packed_kv": ((batch, sample.sequence, heads * head), (batch, sample.length, heads, 2, head), None),
        "packed_qkv": ((batch, sample.sequence, heads, 3, head), None, None),
        "cross_4d": ((batch, sample.sequence, heads * head), *[(batch, heads, sample.length, head)] * 2),
    }[sample.layout]
    query, key, value = (
        None if shape is None else Operand(name, _normal(context, context.dtype, shape))
        for name, shape in zip(("query", "key", "value"), shapes, strict=True)
    )
    return query, key, value


def attention_truth(node: Node) -> Truth:
    """Attention of the projections input x weights + bias, split into heads."""
    precision = Precision(node.array("input").dtype)
    projected = precision.dot(exact(node.array("input")), exact(node.array("weights")))
    if (bias := node.value("bias")) is not None:
        projected = precision.add(projected, exact(bias))
    third = projected.value.shape[-1] // 3
    query, key, _ = node.integers("qkv_hidden_sizes", (third, third, third))
    return _attended(
        node, precision, projected[..., :query], projected[..., query : query + key], projected[..., query + key :]
    )


def quantized_truth(node: Node) -> Truth:
    """The same of (input - its zero point) (weight - its zero point) times both scales. No page says whether the
    integers are multiplied first, which is exact, or scaled first, so the bound is that of the latter."""
    precision = Precision(node.array("bias").dtype)
    dequantized = []
    for name in ("input", "weight"):
        zero_point = node.value(f"{name}_zero_point")
        wide = node.array(name).astype(np.float64) - (0 if zero_point is None else zero_point)
        dequantized.append(precision.multiply(exact(wide), exact(node.array(f"{name}_scale"))))
    projected = precision.dot(*dequantized)
    projected = precision.add(projected, exact(node.array("bias")))
    third = projected.value.shape[-1] // 3
    return _attended(
        node, precision, projected[..., :third], projected[..., third : 2 * third], projected[..., 2 * third :]
    )


def _attended(node: Node, precision: Precision, query: Estimate, key: Estimate, value: Estimate) -> Truth:
    heads = node.integer("num_heads", 1)
    query, key, value = (split_heads(part, heads) for part in (query, key, value))
    past = node.value("past")
    if past is not None:
        key, value = (concatenate((exact(past[i]), part), 2) for i, part in enumerate((key, value)))
    output = _attend(node, precision, query, key, value, node.value("mask_index"))
    if past is None:
        return Outputs((output,))
    present = concatenate((key.reshape(1, *key.value.shape), value.reshape(1, *value.value.shape)), 0)
    return Outputs((output, precision.output("present", present)))


def multi_head_truth(node: Node) -> Truth:
    """Attention of query, key and value plus their parts of the bias; what is packed is taken apart first."""
    precision, heads = Precision(node.array("query").dtype), node.integer("num_heads", 1)
    query, keys = node.array("query"), node.value("key")
    if query.ndim == 5:
        parts = [exact(query[:, :, :, i].transpose(0, 2, 1, 3)) for i in range(3)]
    elif keys is not None and keys.ndim == 5:
        parts = [split_heads(exact(query), heads), *(exact(keys[:, :, :, i].transpose(0, 2, 1, 3)) for i in range(2))]
    else:
        tensors = [node.array(name) for name in ("query", "key", "value")]
        parts = [exact(tensor) if tensor.ndim == 4 else split_heads(exact(tensor), heads) for tensor in tensors]
    if (bias := node.value("bias")) is not None:
        widths = [heads * part.value.shape[-1] for part in parts]
        pieces = np.split(bias, np.cumsum(widths)[:-1])
        parts = [
            precision.add(part, split_heads(exact(piece.reshape(1, 1, -1)), heads))
            for part, piece in zip(parts, pieces, strict=True)
        ]
    split_query, key, value = parts
    if (past_key := node.value("past_key")) is not None:
        key = concatenate((exact(past_key), key), 2)
        value = concatenate((exact(node.array("past_value")), value), 2)
    outputs = [_attend(node, precision, split_query, key, value, node.value("key_padding_mask"))]
    if past_key is not None:
        outputs += [precision.output("present_key", key), precision.output("present_value", value)]
    return Outputs(tuple(outputs))


def _attend(
    node: Node, precision: Precision, query: Estimate, key: Estimate, value: Estimate, mask: Array | None
) -> Output:
    scale = node.number("scale", 0.0) or query.value.shape[-1] ** -0.5
    bias = exact(np.zeros((1, 1, query.value.shape[2], key.value.shape[2])))
    if (added := node.value("attention_bias")) is not None:
        bias = exact(added)
    if mask is not None:
        filtered = _filtered(mask, query.value.shape[0], query.value.shape[2], key.value.shape[2])
        bias = precision.add(bias, exact(np.where(filtered, node.number("mask_filter_value", MASK_FILTER_VALUE), 0.0)))
    if node.integer("unidirectional", 0):
        bias = Estimate(np.where(_future(query, key), -np.inf, bias.value), bias.error)
    output, _ = attention(precision, query, key, value, scale=scale, bias=bias)
    return precision.output("output", join_heads(output))


def _future(query: Estimate, key: Estimate) -> Array:
    """bool [S, T]: the keys that come after the query's token, which are the last of all."""
    sequence, total = query.value.shape[2], key.value.shape[2]
    return np.asarray(np.arange(total) > np.arange(total - sequence, total)[:, None])


def _filtered(mask: Array, batch: int, sequence: int, total: int) -> Array:
    """bool [B, 1, S or 1, T]: the keys that the mask filters."""
    keys = np.arange(total)
    if mask.ndim == 1:
        ends = mask[:batch, None]
        starts = mask[batch:, None] if mask.size == 2 * batch else np.zeros_like(ends)
        return np.asarray((keys >= ends) | (keys < starts))[:, None, None]
    if mask.ndim == 2:
        return np.asarray(mask == 0)[:, None, None]
    if mask.ndim == 3:
        return np.asarray(mask == 0)[:, None]
    return np.asarray(mask[:, :, total - sequence : total, :total] == 0)


def multi_head_lower(node: Node) -> Lowering | None:
    """As DmlOperatorMultiHeadAttention.cpp does it: `unidirectional` has no counterpart. None for what it refuses: key
    and value of rank 4, a mask beside a past, an attention_bias that broadcasts; and for tensors without elements."""
    query, key, past_key = node.array("query"), node.value("key"), node.value("past_key")
    mask, bias, heads = node.value("key_padding_mask"), node.value("attention_bias"), node.integer("num_heads", 1)
    truth = multi_head_truth(node)
    assert isinstance(truth, Outputs)
    output, *present = (value.value for value in truth.outputs)
    head = query.shape[-1] if query.ndim == 5 else query.shape[2] // heads
    new = key.shape[1] if key is not None else query.shape[1]
    total = new + (0 if past_key is None else past_key.shape[2])
    whole = (query.shape[0], heads, query.shape[1], total)
    refused = (key is not None and key.ndim == 4) or (mask is not None and past_key is not None)
    if refused or (bias is not None and bias.shape != whole) or (past_key is not None and not past_key.size):
        return None
    mask_type, mask_desc = MultiheadAttentionMaskType.NONE, None
    if mask is not None and mask.ndim == 1:
        mask_type, mask = MultiheadAttentionMaskType.KEY_SEQUENCE_LENGTH, mask.reshape(1, -1)
        mask_desc = TensorDesc.of(mask)
    elif mask is not None:
        strides = (total, 0, 0, 1) if mask.ndim == 2 else (query.shape[1] * total, 0, total, 1)
        mask = np.broadcast_to(mask[:, None, None] if mask.ndim == 2 else mask[:, None], whole)
        mask_type, mask_desc = MultiheadAttentionMaskType.BOOLEAN, TensorDesc(DataType.INT32, whole, strides)
    stacked_qkv, stacked_kv = query.ndim == 5, key is not None and key.ndim == 5
    feeds = (
        None if stacked_qkv else query, None if stacked_kv else key, node.value("value"), None,
        key if stacked_kv else None, query if stacked_qkv else None, node.value("bias"), mask, bias, past_key,
        node.value("past_value"),
    )  # fmt: skip
    described = [
        None if value is None else TensorDesc.of(value) for value in (*feeds, *present, *[None] * (2 - len(present)))
    ]
    desc = MultiheadAttention(
        query_tensor=described[0],
        key_tensor=described[1],
        value_tensor=described[2],
        stacked_query_key_tensor=None,
        stacked_key_value_tensor=described[4],
        stacked_query_key_value_tensor=described[5],
        bias_tensor=described[6],
        mask_tensor=mask_desc,
        relative_position_bias_tensor=described[8],
        past_key_tensor=described[9],
        past_value_tensor=described[10],
        output_tensor=TensorDesc.of(output),
        output_present_key_tensor=described[11],
        output_present_value_tensor=described[12],
        scale=node.number("scale", head**-0.5),
        mask_filter_value=node.number("mask_filter_value", MASK_FILTER_VALUE),
        head_count=heads,
        mask_type=mask_type,
    )
    return Lowering(desc, feeds)


OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "com.microsoft::Attention": (
        OptionalIO(
            "past_mask_raw_2d",
            {"attention_bias": (True, True)},
            inputs=each_alone("bias", "mask_index", "past", "attention_bias"),
            never=(("past", "attention_bias"),),  # attention_base.h
            fields_without={
                "bias": {"bias": False},
                "mask_index": {"mask": ""},
                "past": {"past": None},
                "attention_bias": {"attention_bias": None},
            },
        ),
    ),
    "com.microsoft::QAttention": (
        OptionalIO(
            "past_mask_raw_2d",
            inputs=each_alone("mask_index", "input_zero_point", "weight_zero_point", "past"),
            fields_without={"mask_index": {"mask": ""}, "past": {"past": None}},
        ),
    ),
    "com.microsoft::MultiHeadAttention": (
        OptionalIO(
            "past_mask_raw_2d",
            {"attention_bias": (True, True)},
            inputs=(("bias",), ("key_padding_mask",), ("attention_bias",), ("past_key", "past_value")),
            fields_without={
                "bias": {"bias": False},
                "key_padding_mask": {"mask": ""},
                "past_key": {"past": None},
                "past_value": {"past": None},
                "attention_bias": {"attention_bias": None},
            },
        ),
    ),
}


def list_attributes(values: Values, *names: str) -> tuple[tuple[str, Any], ...]:
    """Those of the names that have a value other than 0 and None."""
    return tuple((name, values[name]) for name in names if values[name])


def make_parts(node: Node, outputs: int = 0) -> Parts:
    """The parts of a node. outputs: how many its operator has, where not all are asked for."""
    inputs: tuple[Array | None, ...] = tuple(None if operand is None else operand.value for operand in node.inputs)
    parameters = tuple(i for i, operand in enumerate(node.inputs) if operand is not None and operand.parameter)
    present = tuple(bool(name) for name in node.outputs)
    return Parts(inputs, node.attributes, parameters, present + (False,) * (outputs - len(present)))


def _make_space(write: Callable[[AttentionSample, CaseContext], Node]) -> ParameterSpace:
    """Every mask leaves the first key to each query, and no mask of lengths stands beside a past: what an empty row
    gives, and from where lengths count then, the pages leave open."""

    def make_values(values: Values, rng: np.random.Generator) -> Parts:
        members = {name: values[name] for name in ("bias", "mask", "past", "attention_bias", "value_head")}
        attributes = list_attributes(values, "unidirectional", "scale")
        sample = AttentionSample(name="", sequence=5, attributes=attributes, **members)
        return make_parts(write(sample, CaseContext(1, (np.dtype("float32"),), rng)))

    choices: dict[str, tuple[Any, ...]] = {
        "bias": (True, False),
        "mask": ("", "raw_2d", "raw_3d", "lengths"),
        "past": (None, 4),
        "unidirectional": (0, 1),
        "attention_bias": (None, (True, True), (False, False)),
        "scale": (None, 2.0),
        "value_head": (None, 2, 8),
    }
    return ParameterSpace({}, make_values, choices, is_valid=_is_defined)


def _is_defined(values: Values) -> bool:
    """Beside a past no lengths of keys, and values with heads as long as those of keys."""
    return values["past"] is None or (values["mask"] != "lengths" and values["value_head"] is None)


PARAMETER_SPACES = {
    "com.microsoft::Attention": _make_space(attention_node),
    "com.microsoft::MultiHeadAttention": _make_space(multi_head_node),
}

OPERATORS = declare(
    tuple(
        Operator(name, samples, ways, node, truth, lower, varied, DOMAIN)
        for name, samples, ways, node, truth, lower, varied in (
            ("Attention", attention_samples, bindings, attention_node, attention_truth, GRAPH, ("T",)),
            (
                "QAttention",
                quantized_samples,
                bindings,
                quantized_node,
                quantized_truth,
                GRAPH,
                ("T1", "T2", "T3"),
            ),
            (
                "MultiHeadAttention",
                multi_head_samples,
                multi_head_bindings,
                multi_head_node,
                multi_head_truth,
                multi_head_lower,
                ("T",),
            ),
        )
    ),
    optional_io=OPTIONAL_IO,
    parameter_spaces=PARAMETER_SPACES,
)
