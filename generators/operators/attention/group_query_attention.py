"""com.microsoft::GroupQueryAttention and ONNX's Attention-23, 24, 25: fewer heads of key and value than of query.

The DML EP makes GroupQueryAttention DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC (for float16 between casts); it does not
have ONNX's Attention.

Sources: ONNX Runtime's docs/ContribOperators.md and, for shapes and the lengths' meaning, its
group_query_attention_helper.h; the Attention pages of ONNX. Not generated: GroupQueryAttention's right padding (its
rows have no defined value), local_window_size (kernels of different releases disagree whether the token itself
counts), smooth_softmax, head_sink, quantised caches. Bounds: `estimate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epcheck.generators import graph, schema
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
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import GRAPH, NO_KERNEL, Operator, declare, spread
from epcheck.generators.operators.attention.attention.operators import list_attributes, make_parts
from epcheck.generators.operators.attention.rotary import rotate_heads
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = (
    "com.microsoft::GroupQueryAttention",
    "Attention",
)

DOMAIN = "com.microsoft"


@dataclass(frozen=True, kw_only=True)
class GroupSample(Sample):
    """B = batch, S = sequence, N = heads, G = kv_heads, H = head. past: P, tokens of the past; None leaves it out.

    packed: key and value in the query. rotary: pairs of elements that are rotated, 0 for none.
    """

    batch: int = 2
    sequence: int = 5
    heads: int = 4
    kv_heads: int = 2
    head: int = 8
    past: int | None = None
    packed: bool = False
    rotary: int = 0
    attributes: tuple[tuple[str, float], ...] = ()


def group_samples() -> Iterator[GroupSample]:
    yield GroupSample(name="prompt", every_dtype=True)
    yield GroupSample(name="prompt_sequence_1", sequence=1)
    yield GroupSample(name="prompt_sequence_33", sequence=33, batch=1)
    yield GroupSample(name="prompt_one_kv_head", kv_heads=1)
    yield GroupSample(name="prompt_as_many_kv_heads", kv_heads=4)
    yield GroupSample(name="prompt_head_size_64", head=64)
    yield GroupSample(name="prompt_batch_1", batch=1)
    yield GroupSample(name="prompt_eight_heads", heads=8, kv_heads=2)
    yield GroupSample(name="prompt_empty_past", past=0)
    yield GroupSample(name="token", sequence=1, past=4, every_dtype=True)
    yield GroupSample(name="token_batch_1", sequence=1, past=4, batch=1)
    yield GroupSample(name="token_one_kv_head", sequence=1, past=4, kv_heads=1)
    yield GroupSample(name="token_past_40", sequence=1, past=40)
    yield GroupSample(name="further_prompt", batch=1, sequence=3, past=4)
    for scale in (1.0, 0.1):
        words = {1.0: "1", 0.1: "0_1"}[scale]
        yield GroupSample(name=f"prompt_scale_{words}", attributes=(("scale", scale),))
        yield GroupSample(name=f"token_scale_{words}", sequence=1, past=4, attributes=(("scale", scale),))
    yield GroupSample(name="prompt_softcap", attributes=(("softcap", 1.5),))
    yield GroupSample(name="prompt_packed", packed=True, every_dtype=True)
    yield GroupSample(name="token_packed", packed=True, sequence=1, past=4)
    for interleaved in (0, 1):
        attributes = (("do_rotary", 1), ("rotary_interleaved", interleaved))
        suffix = "_interleaved" if interleaved else ""
        yield GroupSample(
            name=f"prompt_rotary{suffix}", head=16, rotary=8, attributes=attributes, every_dtype=not interleaved
        )
        yield GroupSample(name=f"token_rotary{suffix}", head=16, rotary=8, attributes=attributes, sequence=1, past=4)
    yield GroupSample(name="prompt_rotary_part", head=32, rotary=8, attributes=(("do_rotary", 1),))


def group_bindings(sample: GroupSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    return spread(sample, first=dtypes == ("float32",), newest=True)


def _normal(context: CaseContext, shape: tuple[int, ...], size: float = 1.0) -> Array:
    return (size * context.rng.standard_normal(shape)).astype(context.dtype)


def group_node(sample: GroupSample, context: CaseContext) -> Node:
    """query [B, S, N H], packed [B, S, (N + 2 G) H]; key, value [B, S, G H]; past_key, past_value [B, G, P, H];
    seqlens_k int32 [B], P + S - 1 each; total_sequence_length int32, P + S; cos_cache, sin_cache [., rotary]."""
    batch, sequence, head = sample.batch, sample.sequence, sample.head
    total = (sample.past or 0) + sequence
    width = sample.heads + 2 * sample.kv_heads if sample.packed else sample.heads
    state = [
        None if sample.packed else Operand(name, _normal(context, (batch, sequence, sample.kv_heads * head)))
        for name in ("key", "value")
    ]
    past = [
        None if sample.past is None else Operand(n, _normal(context, (batch, sample.kv_heads, sample.past, head)))
        for n in ("past_key", "past_value")
    ]
    operands: list[Operand | None] = [
        Operand("query", _normal(context, (batch, sequence, width * head))),
        *state,
        *past,
        Operand("seqlens_k", np.full(batch, total - 1, np.int32), parameter=True),
        Operand("total_sequence_length", np.array(total, np.int32), parameter=True),
    ]
    if sample.rotary:
        angle = context.rng.uniform(0, 2 * np.pi, (total + 3, sample.rotary))
        operands += [
            Operand("cos_cache", np.cos(angle).astype(context.dtype), parameter=True),
            Operand("sin_cache", np.sin(angle).astype(context.dtype), parameter=True),
        ]
    attributes: dict[str, Attribute] = {
        "num_heads": sample.heads,
        "kv_num_heads": sample.kv_heads,
        **dict(sample.attributes),
    }
    outputs = ("output", "present_key", "present_value")
    return Node("GroupQueryAttention", DOMAIN, context.since_version, tuple(operands), outputs, attributes)


def group_truth(node: Node) -> Truth:
    """Every query's token attends the past, the tokens before it and itself."""
    precision = Precision(node.array("query").dtype)
    heads, kv_heads = node.integer("num_heads", 1), node.integer("kv_num_heads", 1)
    query, key, value = exact(node.array("query")), node.value("key"), node.value("value")
    if key is None or value is None:
        head = query.value.shape[-1] // (heads + 2 * kv_heads)
        at = heads * head, (heads + kv_heads) * head
        parts = [query[..., : at[0]], query[..., at[0] : at[1]], query[..., at[1] :]]
    else:
        parts = [query, exact(key), exact(value)]
    split = [split_heads(part, count) for part, count in zip(parts, (heads, kv_heads, kv_heads), strict=True)]
    sequence = split[0].value.shape[2]
    past_key = node.value("past_key")
    past = 0 if past_key is None else past_key.shape[2]
    if node.integer("do_rotary", 0):
        caches = [exact(node.array(name)[past : past + sequence]) for name in ("cos_cache", "sin_cache")]
        interleaved = bool(node.integer("rotary_interleaved", 0))
        split[:2] = [rotate_heads(precision, part, caches[0], caches[1], interleaved) for part in split[:2]]
    if past_key is not None:
        split[1] = concatenate((exact(past_key), split[1]), 2)
        split[2] = concatenate((exact(node.array("past_value")), split[2]), 2)
    future = np.arange(past + sequence) > past + np.arange(sequence)[:, None]
    scale = node.number("scale", 0.0) or split[0].value.shape[-1] ** -0.5
    bias = exact(np.where(future, -np.inf, 0.0)[None, None])
    bias = Estimate(bias.value, np.zeros_like(bias.value))
    output, _ = attention(precision, *split, scale=scale, bias=bias, softcap=node.number("softcap", 0.0))
    return Outputs(
        (
            precision.output("output", join_heads(output)),
            precision.output("present_key", split[1]),
            precision.output("present_value", split[2]),
        )
    )


@dataclass(frozen=True, kw_only=True)
class OnnxSample(Sample):
    """B = batch, N = heads, G = kv_heads, S = sequence, L = kv_sequence, H = head. rank: of Q, K and V; 3, else 4.

    mask: its kind and its shape, broadcast to [B, N, S, T]; T - 2 keys where it is short, 1 in the axes that are
    shared. past: P. lengths: of nonpad_kv_seqlen. mode: of qk_matmul_output; None leaves the output out.
    """

    batch: int = 2
    heads: int = 4
    kv_heads: int = 4
    sequence: int = 3
    kv_sequence: int = 5
    head: int = 4
    value_head: int = 4
    mask: str = ""
    mask_axes: int = 2
    shared: tuple[int, ...] = ()
    short: bool = False
    past: int | None = None
    lengths: tuple[int, ...] = ()
    mode: int | None = None
    attributes: tuple[tuple[str, float], ...] = ()


def onnx_samples() -> Iterator[OnnxSample]:
    for rank in (3, 4):
        yield OnnxSample(name=f"rank_{rank}", rank=rank, every_dtype=True)
        yield OnnxSample(name=f"rank_{rank}_grouped", rank=rank, kv_heads=2, every_dtype=rank == 4)
        yield OnnxSample(name=f"rank_{rank}_one_kv_head", rank=rank, kv_heads=1)
        yield OnnxSample(name=f"rank_{rank}_causal", rank=rank, attributes=(("is_causal", 1),), every_dtype=rank == 3)
        yield OnnxSample(name=f"rank_{rank}_past", rank=rank, past=3)
        yield OnnxSample(name=f"rank_{rank}_value_head_6", rank=rank, value_head=6)
        yield OnnxSample(name=f"rank_{rank}_scale", rank=rank, attributes=(("scale", 0.2),))
        yield OnnxSample(name=f"rank_{rank}_softcap", rank=rank, attributes=(("softcap", 2.0),))
    for kind in ("bool", "float"):
        for axes in (2, 3, 4):
            yield OnnxSample(name=f"mask_{kind}_{axes}d", mask=kind, mask_axes=axes, every_dtype=axes == 2)
        yield OnnxSample(name=f"mask_{kind}_short", mask=kind, short=True)
        yield OnnxSample(name=f"mask_{kind}_causal", mask=kind, attributes=(("is_causal", 1),), sequence=5)
        yield OnnxSample(name=f"mask_{kind}_past", mask=kind, past=2)
    yield OnnxSample(name="mask_bool_empty_row", mask="empty_row")
    yield OnnxSample(name="causal_past", past=4, sequence=3, kv_sequence=3, attributes=(("is_causal", 1),))
    yield OnnxSample(name="causal_longer_query", sequence=7, kv_sequence=3, attributes=(("is_causal", 1),))
    yield OnnxSample(name="sequence_1", sequence=1)
    yield OnnxSample(name="kv_sequence_130", kv_sequence=130, batch=1, heads=1, kv_heads=1)
    yield OnnxSample(name="head_64", head=64, value_head=64)
    for mode in (0, 1, 2, 3):
        yield OnnxSample(
            name=f"qk_output_mode_{mode}", mode=mode, mask="float", attributes=(("qk_matmul_output_mode", mode),)
        )
    yield OnnxSample(name="qk_output_mode_omitted", mode=0)
    softcapped = (("qk_matmul_output_mode", 1), ("softcap", 2.0))
    yield OnnxSample(name="qk_output_after_softcap", mode=1, attributes=softcapped)
    yield OnnxSample(name="softmax_in_float", attributes=(("softmax_precision", 1),))
    yield OnnxSample(name="lengths", lengths=(2, 5))
    yield OnnxSample(name="lengths_causal", lengths=(3, 5), attributes=(("is_causal", 1),))
    yield OnnxSample(name="lengths_causal_below_query", lengths=(2, 5), attributes=(("is_causal", 1),))
    yield OnnxSample(name="left_window", attributes=(("left_window_size", 1),), sequence=5)
    yield OnnxSample(name="right_window", attributes=(("right_window_size", 1),), sequence=5)
    yield OnnxSample(name="both_windows", attributes=(("left_window_size", 1), ("right_window_size", 0)), sequence=5)
    yield from _list_combined()
    yield expect_refusal(OnnxSample(name="heads_not_divisible", heads=4, kv_heads=3))


def _list_combined() -> Iterator[OnnxSample]:
    """Three of them at once; pairs are made by rule (`parameter_spaces`)."""
    causal, softcap = ("is_causal", 1), ("softcap", 0.5)
    yield OnnxSample(name="decode_step", batch=1, sequence=1, kv_sequence=1, past=5, attributes=(causal,))
    yield OnnxSample(name="decode_step_grouped", kv_heads=2, sequence=1, kv_sequence=1, past=5, attributes=(causal,))
    for kind in ("bool", "float"):
        yield OnnxSample(name=f"causal_past_mask_{kind}", mask=kind, past=3, attributes=(causal,))
    yield OnnxSample(name="causal_past_softcap", past=3, attributes=(causal, softcap))
    yield OnnxSample(name="causal_past_grouped", past=3, kv_heads=2, attributes=(causal,))
    yield OnnxSample(name="lengths_grouped", lengths=(2, 4), kv_heads=2)
    yield OnnxSample(name="lengths_mask", lengths=(2, 4), mask="float")
    yield OnnxSample(name="lengths_0", lengths=(0, 3))
    left, right = ("left_window_size", 1), ("right_window_size", 1)
    yield OnnxSample(name="left_window_past", past=4, attributes=(left,))
    yield OnnxSample(name="left_window_causal", sequence=5, attributes=(left, causal))
    yield OnnxSample(name="left_window_lengths", lengths=(3, 5), attributes=(left,))
    yield OnnxSample(name="both_windows_of_1", sequence=5, attributes=(left, right))


def onnx_bindings(sample: OnnxSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    known = schema.schema("Attention", since_version)
    if sample.lengths and all(formal.name != "nonpad_kv_seqlen" for formal in known.inputs):
        return ()
    if any(name not in known.attributes for name, _ in sample.attributes):
        return ()
    newest = since_version == schema.since_versions("Attention")[-1]
    ways = spread(sample, first=dtypes == ("float32",), newest=newest)
    has_parameters = sample.mask or sample.lengths
    return ways if has_parameters or graph.RUNTIME not in ways else tuple(w for w in ways if w != graph.INITIALIZER)


def onnx_node(sample: OnnxSample, context: CaseContext) -> Node:
    """Q [B, N, S, H], K [B, G, L, H], V [B, G, L, H'], or of rank 3 with heads and head joined last; attn_mask bool or
    of their dtype; past_key, past_value [B, G, P, .]; nonpad_kv_seqlen int64 [B]."""
    batch = sample.batch
    shapes = (
        (sample.heads, sample.sequence, sample.head),
        (sample.kv_heads, sample.kv_sequence, sample.head),
        (sample.kv_heads, sample.kv_sequence, sample.value_head),
    )
    operands: list[Operand | None] = []
    for name, (heads, sequence, head) in zip("QKV", shapes, strict=True):
        shape = (batch, heads, sequence, head) if sample.rank != 3 else (batch, sequence, heads * head)
        operands.append(Operand(name, _normal(context, shape)))
    mask = _onnx_mask(sample, context) if sample.mask else None
    operands.append(None if mask is None else Operand("attn_mask", mask, parameter=True))
    for name, head in (("past_key", sample.head), ("past_value", sample.value_head)):
        shape = (batch, sample.kv_heads, sample.past or 0, head)
        operands.append(None if sample.past is None else Operand(name, _normal(context, shape)))
    if sample.lengths:
        operands.append(Operand("nonpad_kv_seqlen", np.array(sample.lengths, np.int64), parameter=True))
    while operands[-1] is None:
        operands.pop()
    attributes: dict[str, Attribute] = dict(sample.attributes)
    if sample.rank == 3:
        attributes |= {"q_num_heads": sample.heads, "kv_num_heads": sample.kv_heads}
    present = ("present_key", "present_value") if sample.past is not None else ("", "")
    outputs = ("Y", *present, "qk_matmul_output") if sample.mode is not None else ("Y", *filter(None, present))
    return Node("Attention", "", context.since_version, tuple(operands), outputs, attributes)


def _onnx_mask(sample: OnnxSample, context: CaseContext) -> Array:
    total = (sample.past or 0) + sample.kv_sequence - 2 * sample.short
    sizes = (sample.batch, sample.heads, sample.sequence, total)
    shape = tuple(1 if axis in sample.shared else size for axis, size in enumerate(sizes))[4 - sample.mask_axes :]
    if sample.mask == "float":
        return _normal(context, shape)
    mask = context.rng.random(shape) < 0.6
    mask[..., 0] = True
    mask[..., 1] = False
    if sample.mask == "empty_row":
        mask[..., 1, :] = False
    return mask


def onnx_truth(node: Node) -> Truth:
    """Scores of Q and K, capped, biased by the masks; a query's token that attends nothing gives zeros."""
    q, k, v = (node.array(name) for name in "QKV")
    precision = Precision(q.dtype)
    parts = [exact(part) for part in (q, k, v)]
    if q.ndim == 3:
        heads, kv_heads = node.integer("q_num_heads", 1), node.integer("kv_num_heads", 1)
        parts = [split_heads(part, count) for part, count in zip(parts, (heads, kv_heads, kv_heads), strict=True)]
    past_key, past = node.value("past_key"), 0
    if past_key is not None:
        past = past_key.shape[2]
        parts[1] = concatenate((exact(past_key), parts[1]), 2)
        parts[2] = concatenate((exact(node.array("past_value")), parts[2]), 2)
    heads, kv_heads = parts[0].value.shape[1], parts[1].value.shape[1]
    if heads % kv_heads:
        return Refusal(f"the number of heads of Q, {heads}, must be a multiple of that of K and V, {kv_heads}")
    bias = _bias(node, past, parts[0].value.shape[2], parts[1].value.shape[2])
    scale = node.number("scale", 0.0) or parts[0].value.shape[-1] ** -0.5
    softcap = node.number("softcap", 0.0)
    output, stages = attention(precision, *parts, scale=scale, bias=exact(bias), softcap=softcap)
    found = {
        "Y": join_heads(output) if q.ndim == 3 else output,
        "present_key": parts[1],
        "present_value": parts[2],
        "qk_matmul_output": stages[node.integer("qk_matmul_output_mode", 0)],
    }
    return Outputs(tuple(precision.output(name, found[name]) for name in node.results))


def _bias(node: Node, past: int, sequence: int, total: int) -> Array:
    """float64, broadcast to [B, N, S, T]: what is added to the scores."""
    bias = np.zeros((1, 1, sequence, total))
    if (mask := node.value("attn_mask")) is not None:
        added = np.where(mask, 0.0, -np.inf) if mask.dtype.kind == "b" else mask.astype(np.float64)
        missing = [(0, 0)] * (added.ndim - 1) + [(0, total - added.shape[-1])]
        bias = bias + np.pad(added, missing, constant_values=-np.inf)
    lengths = node.value("nonpad_kv_seqlen")
    first = np.array(past) if lengths is None else lengths.reshape(-1, 1, 1, 1) - sequence
    here = first + np.arange(sequence)[:, None]
    keys = np.arange(total)
    allowed = np.ones((1, 1, sequence, total), bool)
    if node.integer("is_causal", 0):
        allowed = allowed & (keys <= here)
    for name, ahead in (("left_window_size", here - keys), ("right_window_size", keys - here)):
        if (size := node.integer(name, -1)) >= 0:
            allowed = allowed & (ahead <= size)
    if lengths is not None:
        allowed = allowed & (keys < lengths.reshape(-1, 1, 1, 1))
    return np.where(allowed, bias, -np.inf)


def _why_undefined(version: int, asked: frozenset[str]) -> str:
    """Attention-25: its inference of shapes wants both states or none."""
    if version < 25 or len(asked & {"present_key", "present_value"}) != 1:
        return ""
    return f"Attention-{version} has present_key and present_value together"


OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "com.microsoft::GroupQueryAttention": (
        OptionalIO(
            "token_rotary",
            inputs=(("key", "value"), ("cos_cache", "sin_cache")),
            fields_without={"key": {"packed": True}, "cos_cache": {"rotary": 0, "attributes": ()}},
        ),
    ),
    "Attention": (
        OptionalIO(
            "mask_bool_past",
            inputs=(("attn_mask",), ("past_key", "past_value")),
            fields_without={"attn_mask": {"mask": ""}, "past_key": {"past": None}},
            outputs=("present_key", "present_value", "qk_matmul_output"),
            why_undefined=_why_undefined,
        ),
        OptionalIO(
            "mask_bool_2d",
            {"lengths": (2, 5)},
            name="lengths",
            inputs=each_alone("attn_mask", "nonpad_kv_seqlen"),
            fields_without={"attn_mask": {"mask": ""}, "nonpad_kv_seqlen": {"lengths": ()}},
        ),
    ),
}


def _make_group_parts(values: Values, rng: np.random.Generator) -> Parts:
    rotary = (("do_rotary", 1), ("rotary_interleaved", values["interleaved"])) if values["rotary"] else ()
    sample = GroupSample(
        name="",
        head=32,
        sequence=5 if values["past"] is None else 1,
        past=values["past"],
        kv_heads=values["kv_heads"],
        packed=values["packed"],
        rotary=values["rotary"],
        attributes=(*rotary, *list_attributes(values, "softcap", "scale")),
    )
    return make_parts(group_node(sample, CaseContext(1, (FLOAT32,), rng)))


def _make_onnx_parts(values: Values, rng: np.random.Generator) -> Parts:
    sample = OnnxSample(
        name="",
        rank=values["rank"],
        kv_heads=values["kv_heads"],
        sequence=values["queries"],
        past=values["past"],
        mode=values["qk_matmul_output_mode"],
        attributes=list_attributes(values, "is_causal", "softcap", "scale", "qk_matmul_output_mode"),
        **ONNX_MASKS[values["mask"]],
    )
    return make_parts(onnx_node(sample, CaseContext(25, (FLOAT32,), rng)), outputs=4)


FLOAT32 = np.dtype("float32")
ONNX_MASKS: Mapping[str, Mapping[str, Any]] = {
    "": {},
    "bool_2d": {"mask": "bool"},
    "float_2d": {"mask": "float"},
    "of_images": {"mask": "float", "mask_axes": 4, "shared": (1,)},
    "of_heads": {"mask": "bool", "mask_axes": 4, "shared": (0,)},
    "float_4d": {"mask": "float", "mask_axes": 4},
}
"""Masks -> the members of a sample: [S, T], [B, 1, S, T], [1, N, S, T] and [B, N, S, T]."""

PARAMETER_SPACES = {
    "com.microsoft::GroupQueryAttention": ParameterSpace(
        {},
        _make_group_parts,
        {
            "past": (None, 4),
            "kv_heads": (2, 1, 4),
            "packed": (False, True),
            "rotary": (0, 16, 8),
            "interleaved": (0, 1),
            "softcap": (None, 0.5),
            "scale": (None, 2.0),
        },
        is_valid=lambda values: bool(values["rotary"] or not values["interleaved"]),
    ),
    "Attention": ParameterSpace(
        {},
        _make_onnx_parts,
        {
            "rank": (4, 3),
            "kv_heads": (4, 2, 1),
            "queries": (3, 1),
            "past": (None, 5),
            "mask": tuple(ONNX_MASKS),
            "is_causal": (0, 1),
            "softcap": (None, 0.5),
            "scale": (None, 2.0),
            "qk_matmul_output_mode": (None, 0, 1, 2, 3),
        },
    ),
}

OPERATORS = declare(
    (
        Operator("GroupQueryAttention", group_samples, group_bindings, group_node, group_truth, GRAPH, ("T",), DOMAIN),
        Operator("Attention", onnx_samples, onnx_bindings, onnx_node, onnx_truth, NO_KERNEL, ("T1",)),
    ),
    optional_io=OPTIONAL_IO,
    parameter_spaces=PARAMETER_SPACES,
)
