"""com.microsoft::GroupQueryAttention and ONNX's Attention-23, 24, 25: fewer heads of key and value than of query.

The DML EP makes GroupQueryAttention DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC (for float16 between casts); it does not
have ONNX's Attention.

Sources: ONNX Runtime's docs/ContribOperators.md and, for shapes and the lengths' meaning, its
group_query_attention_helper.h; the Attention pages of ONNX. `head_sink` has a score for each head that only the
denominator of softmax gets; `smooth_softmax` is a score of 0. Where sequences have different lengths, the rows of the
caches beyond each, and the output rows of padding, have no truth. local_window_size counts the token itself, as kernels
do since release 1.23 (ONNX Runtime's pull request 25927). Not generated: quantised caches. Bounds: `estimate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
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
from epcheck.generators.truth import Output, Outputs, Refusal, Truth, Undefined

DECLARES = (
    "com.microsoft::GroupQueryAttention",
    "Attention",
)

DOMAIN = "com.microsoft"


@dataclass(frozen=True, kw_only=True)
class GroupSample(Sample):
    """B = batch, S = sequence, N = heads, G = kv_heads, H = head. past: P, tokens of the past; None leaves it out.

    packed: key and value in the query. rotary: pairs of elements that are rotated, 0 for none. lengths: of the past, or
    without one of the prompts, in each batch; empty where all are the longest. bias: the first two dimensions of
    attention_bias. sink: head_sink is an input.
    """

    batch: int = 2
    sequence: int = 5
    heads: int = 4
    kv_heads: int = 2
    head: int = 8
    past: int | None = None
    packed: bool = False
    rotary: int = 0
    lengths: tuple[int, ...] = ()
    bias: tuple[int, int] | None = None
    sink: bool = False
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
    yield from _list_of_decoders()
    yield from _list_windows()


def _list_of_decoders() -> Iterator[GroupSample]:
    """What decoders have beside: sequences of different lengths, scores that only the denominator gets, a bias."""
    smooth, rotary = ("smooth_softmax", 1), ("do_rotary", 1)
    for name, sequence, past in (("prompt", 5, None), ("token", 1, 6)):
        at = GroupSample(name="", sequence=sequence, past=past)
        yield replace(at, name=f"{name}_smooth_softmax", attributes=(smooth,), every_dtype=True)
        yield replace(at, name=f"{name}_head_sink", sink=True, every_dtype=True)
        yield replace(at, name=f"{name}_head_sink_softcap", sink=True, attributes=(("softcap", 1.5),))
        yield replace(at, name=f"{name}_packed_rotary", packed=True, head=16, rotary=8, attributes=(rotary,))
        yield replace(at, name=f"{name}_packed_rotary_smooth_softmax", packed=True, head=16, rotary=8,
                      attributes=(rotary, smooth), every_dtype=True)  # fmt: skip
        for label, bias in (("shared", (1, 1)), ("of_heads", (1, 4)), ("of_batches", (2, 1)), ("whole", (2, 4))):
            yield replace(at, name=f"{name}_bias_{label}", bias=bias, every_dtype=label == "whole")
        yield replace(at, name=f"{name}_bias_smooth_softmax", bias=(2, 4), attributes=(smooth,))
        yield replace(at, name=f"{name}_lengths_differ", batch=3, lengths=(5, 2, 4), every_dtype=True)
        yield replace(at, name=f"{name}_lengths_rise", batch=3, lengths=(1, 3, 5))
        yield replace(at, name=f"{name}_lengths_differ_packed_rotary", batch=3, lengths=(2, 5, 1), packed=True, head=16,
                      rotary=8, attributes=(rotary,))  # fmt: skip
        yield replace(at, name=f"{name}_lengths_differ_smooth_softmax", batch=2, lengths=(3, 5), attributes=(smooth,))


def _list_windows() -> Iterator[GroupSample]:
    """local_window_size: the token alone, some of those before it, all of them, more than there are."""
    rotary = ("do_rotary", 1)
    for name, sequence, past, batch, sizes in (
        ("prompt", 5, None, 2, (1, 2, 4, 5, 9)),
        ("token", 1, 6, 2, (1, 2, 3, 7, 9)),
        ("further_prompt", 3, 4, 1, (1, 2, 4, 6)),
    ):
        for size in sizes:
            yield GroupSample(
                name=f"{name}_window_{size}", batch=batch, sequence=sequence, past=past, every_dtype=size == 2,
                attributes=(("local_window_size", size),),
            )  # fmt: skip
    window = ("local_window_size", 3)
    for name, sequence, past in (("prompt", 5, None), ("token", 1, 6)):
        at = GroupSample(name="", sequence=sequence, past=past, attributes=(window,))
        yield replace(at, name=f"{name}_window_one_kv_head", kv_heads=1)
        yield replace(at, name=f"{name}_window_softcap", attributes=(window, ("softcap", 1.5)))
        yield replace(at, name=f"{name}_window_smooth_softmax", attributes=(window, ("smooth_softmax", 1)))
        yield replace(at, name=f"{name}_window_head_sink", sink=True)
        yield replace(at, name=f"{name}_window_bias", bias=(2, 4))
        yield replace(at, name=f"{name}_window_rotary", head=16, rotary=8, attributes=(window, rotary))
        yield replace(at, name=f"{name}_window_packed_rotary", packed=True, head=16, rotary=8,
                      attributes=(window, rotary))  # fmt: skip
        yield replace(at, name=f"{name}_window_lengths_differ", batch=3, lengths=(5, 2, 4))
    yield GroupSample(name="prompt_window_8_of_40", batch=1, sequence=40, attributes=(("local_window_size", 8),))
    yield GroupSample(name="token_window_8_of_41", sequence=1, past=40, attributes=(("local_window_size", 8),))


def group_bindings(sample: GroupSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    return spread(sample, first=dtypes == ("float32",), newest=True)


def _normal(context: CaseContext, shape: tuple[int, ...], size: float = 1.0) -> Array:
    return (size * context.rng.standard_normal(shape)).astype(context.dtype)


def group_node(sample: GroupSample, context: CaseContext) -> Node:
    """query [B, S, N H], packed [B, S, (N + 2 G) H]; key, value [B, S, G H]; past_key, past_value [B, G, P, H];
    seqlens_k int32 [B], P + S - 1 each; total_sequence_length int32, P + S; cos_cache, sin_cache [., rotary];
    attention_bias [B or 1, N or 1, S, P + S]; head_sink [N]."""
    batch, sequence, head = sample.batch, sample.sequence, sample.head
    lengths = np.array(sample.lengths or (sequence if sample.past is None else sample.past,) * batch, np.int32)
    totals = lengths + (0 if sample.past is None else sequence)
    total = (sample.past or 0) + sequence if not sample.lengths else int(totals.max())
    width = sample.heads + 2 * sample.kv_heads if sample.packed else sample.heads
    state = [
        None if sample.packed else Operand(name, _normal(context, (batch, sequence, sample.kv_heads * head)))
        for name in ("key", "value")
    ]
    past = [
        None if sample.past is None else Operand(n, _normal(context, (batch, sample.kv_heads, total - sequence, head)))
        for n in ("past_key", "past_value")
    ]
    operands: list[Operand | None] = [
        Operand("query", _normal(context, (batch, sequence, width * head))),
        *state,
        *past,
        Operand("seqlens_k", (totals - 1).astype(np.int32), parameter=True),
        Operand("total_sequence_length", np.array(total, np.int32), parameter=True),
    ]
    if sample.rotary:
        angle = context.rng.uniform(0, 2 * np.pi, (total + 3, sample.rotary))
        operands += [
            Operand("cos_cache", np.cos(angle).astype(context.dtype), parameter=True),
            Operand("sin_cache", np.sin(angle).astype(context.dtype), parameter=True),
        ]
    if sample.bias or sample.sink:
        operands += [None] * (10 - len(operands))
        bias = None if sample.bias is None else _normal(context, (*sample.bias, sequence, total))
        operands.append(None if bias is None else Operand("attention_bias", bias, parameter=True))
    if sample.sink:
        operands.append(Operand("head_sink", _normal(context, (sample.heads,)), parameter=True))
    attributes: dict[str, Attribute] = {
        "num_heads": sample.heads,
        "kv_num_heads": sample.kv_heads,
        **dict(sample.attributes),
    }
    outputs = ("output", "present_key", "present_value")
    return Node("GroupQueryAttention", DOMAIN, context.since_version, tuple(operands), outputs, attributes)


def group_truth(node: Node) -> Truth:
    """Every query's token attends the past, the tokens before it and itself; of these the last local_window_size."""
    precision = Precision(node.array("query").dtype)
    split = _split_query(node)
    sequence, totals = split[0].value.shape[2], node.array("seqlens_k").reshape(-1).astype(np.int64) + 1
    stored = node.value("past_key")
    past = np.zeros_like(totals) if stored is None else totals - sequence
    if node.integer("do_rotary", 0):
        at = (past[:, None] + np.arange(sequence))[:, None]
        caches = [exact(node.array(name)[at]) for name in ("cos_cache", "sin_cache")]
        interleaved = bool(node.integer("rotary_interleaved", 0))
        split[:2] = [rotate_heads(precision, part, caches[0], caches[1], interleaved) for part in split[:2]]
    if stored is not None:
        split[1] = _append_tokens(stored, split[1], past)
        split[2] = _append_tokens(node.array("past_value"), split[2], past)
    total = split[1].value.shape[2]
    here = (past[:, None] + np.arange(sequence))[:, None, :, None]
    window = node.integer("local_window_size", -1)
    is_seen = (np.arange(total) <= here) & ((np.arange(total) > here - window) | (window < 0))
    bias = np.where(is_seen, 0.0, -np.inf)
    if (added := node.value("attention_bias")) is not None:
        bias = bias + added.astype(np.float64)
    attended, bias = _add_sinks(node, split, bias)
    scale = node.number("scale", 0.0) or split[0].value.shape[-1] ** -0.5
    output, _ = attention(precision, *attended, scale=scale, bias=exact(bias), softcap=node.number("softcap", 0.0))
    padded = (np.arange(sequence) >= (totals - past)[:, None])[..., None]
    beyond = (np.arange(total) >= totals[:, None])[:, None, :, None]
    return Outputs(
        (
            _leave_open(precision.output("output", join_heads(output)), padded),
            _leave_open(precision.output("present_key", split[1]), beyond),
            _leave_open(precision.output("present_value", split[2]), beyond),
        )
    )


def _split_query(node: Node) -> list[Estimate]:
    """The heads of query, key and value, [B, N, S, H] and [B, G, S, H]."""
    heads, kv_heads = node.integer("num_heads", 1), node.integer("kv_num_heads", 1)
    query, key, value = exact(node.array("query")), node.value("key"), node.value("value")
    if key is None or value is None:
        head = query.value.shape[-1] // (heads + 2 * kv_heads)
        at = heads * head, (heads + kv_heads) * head
        parts = [query[..., : at[0]], query[..., at[0] : at[1]], query[..., at[1] :]]
    else:
        parts = [query, exact(key), exact(value)]
    return [split_heads(part, count) for part, count in zip(parts, (heads, kv_heads, kv_heads), strict=True)]


def _append_tokens(stored: Array, new: Estimate, past: Array) -> Estimate:
    """The cache [B, G, P + S, H] with the new tokens after the past of each batch."""
    joined = concatenate((exact(stored), new), 2)
    for batch, length in enumerate(past):
        place = np.s_[batch, :, length : length + new.value.shape[2]]
        joined.value[place], joined.error[place] = new.value[batch], new.error[batch]
    return joined


def _add_sinks(node: Node, split: list[Estimate], bias: Array) -> tuple[list[Estimate], Array]:
    """A key and a value of zeros whose score is that of the sink, where there is one."""
    sink, heads = node.value("head_sink"), node.integer("num_heads", 1)
    if sink is None and node.integer("smooth_softmax", 0) != 1:
        return split, bias
    scores = np.zeros(heads) if sink is None else sink.astype(np.float64)
    nothing = [exact(np.zeros((*part.value.shape[:2], 1, part.value.shape[3]))) for part in split[1:]]
    bias = np.broadcast_to(bias, (bias.shape[0], heads, *bias.shape[2:]))
    column = np.broadcast_to(scores[None, :, None, None], (*bias.shape[:3], 1))
    joined = [concatenate(pair, 2) for pair in zip(split[1:], nothing, strict=True)]
    return [split[0], *joined], np.concatenate([bias, column], 3)


def _leave_open(output: Output, where: Array) -> Output:
    """The output, with elements that the page leaves unspecified."""
    if not where.any():
        return output
    return replace(output, undefined=Undefined(np.broadcast_to(where, output.value.shape).copy()))


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
