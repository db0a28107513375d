"""The samples of com.microsoft's attention operators, where they apply, and their nodes.

No row of a mask is empty: what softmax gives there depends on the filter value's rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import spread

DOMAIN = "com.microsoft"
QUANTIZED = ("uint8", "int8", "float32")
"""The dtypes of QAttention that every provider of it has: there every sample has a case."""


@dataclass(frozen=True, kw_only=True)
class AttentionSample(Sample):
    """What varies; B = batch, S = sequence, L = kv_sequence, N = heads, H = head, T = past + L.

    kv_sequence: None is `sequence`. value_head: None is `head`. layout: of MultiHeadAttention's query, key and value,
    see `_draw_projections`. mask: see `_mask`. past: None leaves past and present out. attention_bias: its first two
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


def _list_biased() -> Iterator[AttentionSample]:
    for batch, heads in ((True, True), (False, True), (True, False), (False, False)):
        name = f"attention_bias_{'b' if batch else '1'}_{'n' if heads else '1'}"
        yield AttentionSample(name=name, attention_bias=(batch, heads), every_dtype=batch and heads)
    yield AttentionSample(name="attention_bias_and_mask", attention_bias=(True, True), mask="raw_2d", sequence=5)
    yield AttentionSample(name="attention_bias_and_scale", attention_bias=(True, True), attributes=(("scale", 2.0),))
    yield AttentionSample(name="bias_absent", bias=False, every_dtype=True)


def attention_samples() -> Iterator[AttentionSample]:
    yield from _common()
    yield from _list_biased()
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
    yield from _list_biased()
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


def _trim_operands(operands: list[Operand | None]) -> tuple[Operand | None, ...]:
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
    return Node("Attention", DOMAIN, 1, _trim_operands(operands), outputs, _attributes(sample))


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
    return Node("QAttention", DOMAIN, 1, _trim_operands(operands), outputs, _attributes(sample))


def _integers(context: CaseContext, dtype: np.dtype[Any], shape: tuple[int, ...], zero_point: bool) -> Array:
    """Of the whole range; unsigned ones without a zero point, which have one sign, are smaller."""
    info = np.iinfo(dtype)
    largest = info.max if zero_point or info.min else info.max // 5
    return context.rng.integers(info.min, largest, shape, dtype=dtype, endpoint=True)


def _zero_point(context: CaseContext, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    middle = 128 if dtype.kind == "u" else 0
    return np.asarray(context.rng.integers(middle - 20, middle + 20, shape), dtype)


def multi_head_node(sample: AttentionSample, context: CaseContext) -> Node:
    """query, key, value: `_draw_projections`; bias [2 N H + N H']; key_padding_mask: `_mask`; attention_bias
    [B or 1, N or 1, S, T]; past_key [B, N, P, H], past_value [B, N, P, H']."""
    dtype, value_head = context.dtype, sample.value_head or sample.head
    width = sample.heads * (2 * sample.head + value_head)
    past = [
        None
        if sample.past is None
        else Operand(name, _normal(context, dtype, (sample.batch, sample.heads, sample.past, h)))
        for name, h in (("past_key", sample.head), ("past_value", value_head))
    ]
    operands = [
        *_draw_projections(sample, context),
        Operand("bias", _normal(context, dtype, (width,), 0.5), parameter=True) if sample.bias else None,
        Operand("key_padding_mask", _mask(sample, context.rng)) if sample.mask else None,
        _attention_bias(sample, context),
        *past,
    ]
    outputs = ("output",) if sample.past is None else ("output", "present_key", "present_value")
    attributes = {name: value for name, value in _attributes(sample).items() if name != "qkv_hidden_sizes"}
    return Node("MultiHeadAttention", DOMAIN, 1, _trim_operands(operands), outputs, attributes)


def _draw_projections(
    sample: AttentionSample, context: CaseContext
) -> tuple[Operand | None, Operand | None, Operand | None]:
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
