"""LinearAttention-27: attention whose keys and values are summed up in a state of fixed size.

Source: the page. query [B, T, H_q d_k], key [B, T, H_kv d_k], value [B, T, H_kv d_v]; the state S [B, H_kv, d_k, d_v]
begins with past_state, or zeros. For each position, exp(g) taking the place of 1 where there is a decay, and beta (v -
S^T k) that of v under a delta rule: S = exp(g) S + k v^T, output = scale S^T q. decay is [B, T, H_kv d_k] or [B, T,
H_kv], beta [B, T, H_kv] or [B, T, 1]; a query head reads the state of head h // (H_q / H_kv). scale 0 is 1 / sqrt(d_k);
chunk_size is a hint. What the page requires is refused where it is missing. Whether a decay or beta that the rule does
not use must be refused it does not say, so no case has one. Nor does it say which type present_state has without a
past_state: there T and S are one.

Bound: the running error of the recurrence (`estimate`), each step in the less precise of the types T and S. A chunked
form adds the same products in another order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.bounds.estimate import EXP_ULPS, Estimate, Precision, exact
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.families.contrib_twin import make_twin
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = ("LinearAttention", "com.microsoft::LinearAttention")

Shape = tuple[int, ...]
RULES = ("linear", "gated", "delta", "gated_delta")
GATED, DELTA = frozenset({"gated", "gated_delta"}), frozenset({"delta", "gated_delta"})


@dataclass(frozen=True, kw_only=True)
class LinearAttentionSample(Sample):
    """sizes: B, T, H_q, H_kv, d_k, d_v. rule: None leaves update_rule out, which then is gated_delta.

    decay: 'key' for one number for each element of a key, 'head' for one for each head, 'strong' for a state that is
    forgotten. beta: 'head', or 'one' for all heads. extra: further attributes. shapes: of inputs that do not belong
    together, by name. omitted: inputs that the rule needs, left out.
    """

    sizes: Shape = (2, 5, 2, 2, 4, 3)
    rule: str | None = "linear"
    past: bool = False
    decay: str = "head"
    beta: str = "head"
    scale: float | None = None
    extra: tuple[tuple[str, Attribute], ...] = ()
    shapes: tuple[tuple[str, Shape], ...] = ()
    omitted: tuple[str, ...] = ()


def samples() -> Iterator[LinearAttentionSample]:
    plain = LinearAttentionSample(name="")
    for rule in RULES:
        yield replace(plain, name=rule, rule=rule, every_dtype=True)
        yield replace(plain, name=f"{rule}_past_state", rule=rule, past=True, every_dtype=True)
        yield replace(plain, name=f"{rule}_decoding", rule=rule, past=True, sizes=(2, 1, 4, 2, 8, 8), every_dtype=True)
        yield replace(plain, name=f"{rule}_first_token", rule=rule, sizes=(1, 1, 2, 2, 4, 4))
        yield replace(plain, name=f"{rule}_grouped_queries", rule=rule, sizes=(1, 4, 6, 2, 4, 3), past=True)
        yield replace(plain, name=f"{rule}_length_70", rule=rule, sizes=(1, 70, 2, 1, 4, 4))
    yield replace(plain, name="defaults", rule=None, every_dtype=True)
    for decay in ("key", "strong"):
        for rule in sorted(GATED):
            yield replace(plain, name=f"{rule}_decay_{decay}", rule=rule, decay=decay, past=True)
    yield replace(plain, name="decay_of_one_key_element", rule="gated", decay="key", sizes=(2, 3, 2, 2, 1, 3))
    for rule in sorted(DELTA):
        yield replace(plain, name=f"{rule}_beta_one", rule=rule, beta="one", past=True)
    for name, scale in (("0", 0.0), ("1", 1.0), ("0_25", 0.25), ("minus_2", -2.0)):
        yield replace(plain, name=f"scale_{name}", scale=scale, every_dtype=name == "0_25")
    for size in (1, 2, 3, 64, 1000):
        yield replace(
            plain, name=f"chunk_size_{size}", rule="gated_delta", sizes=(1, 7, 2, 2, 4, 3), past=True,
            extra=(("chunk_size", size),),
        )  # fmt: skip
    yield from _shapes(plain)
    yield from map(expect_refusal, _list_refused(plain))


def _shapes(plain: LinearAttentionSample) -> Iterator[LinearAttentionSample]:
    shapes: dict[str, Shape] = {
        "one_of_each": (1, 1, 1, 1, 1, 1), "one_head": (2, 3, 1, 1, 4, 4), "one_shared_head": (1, 3, 8, 1, 4, 4),
        "wide_values": (1, 2, 2, 2, 2, 67), "wide_keys": (1, 2, 2, 2, 67, 2), "many_heads": (1, 2, 32, 16, 2, 3),
        "many_batches": (19, 2, 2, 2, 3, 2), "length_1025": (1, 1025, 1, 1, 2, 2), "no_batch": (0, 3, 2, 2, 4, 3),
        "no_position": (2, 0, 2, 2, 4, 3),
    }  # fmt: skip
    for name, sizes in shapes.items():
        for rule in ("linear", "gated_delta"):
            yield replace(plain, name=f"{name}_{rule}", sizes=sizes, rule=rule, past=name == "no_position")


def _list_refused(plain: LinearAttentionSample) -> Iterator[LinearAttentionSample]:
    yield replace(plain, name="heads_no_multiple", sizes=(1, 2, 3, 2, 4, 3))
    yield replace(plain, name="fewer_query_heads", sizes=(1, 2, 1, 2, 4, 3))
    yield replace(plain, name="update_rule", rule="gated_linear", omitted=("decay", "beta"))
    for rule in sorted(GATED):
        yield replace(plain, name=f"{rule}_without_decay", rule=rule, omitted=("decay",))
    for rule in sorted(DELTA):
        yield replace(plain, name=f"{rule}_without_beta", rule=rule, omitted=("beta",))
    full = replace(plain, rule="gated_delta", past=True)
    others: dict[str, tuple[str, Shape]] = {
        "query_of_rank_4": ("query", (2, 5, 2, 4)), "query_not_divisible": ("query", (2, 5, 9)),
        "key_of_other_length": ("key", (2, 4, 8)), "key_of_other_size": ("key", (2, 5, 10)),
        "past_state_of_rank_3": ("past_state", (4, 4, 3)), "past_state_of_other_heads": ("past_state", (2, 1, 4, 3)),
        "past_state_transposed": ("past_state", (2, 2, 3, 4)), "decay_of_other_size": ("decay", (2, 5, 3)),
        "beta_of_other_size": ("beta", (2, 5, 3)), "value_of_other_batch": ("value", (1, 5, 6)),
    }  # fmt: skip
    for name, (key, shape) in others.items():
        is_of_other_rank = len(shape) != (4 if key == "past_state" else 3)
        yield replace(full, name=name, rank=len(shape) if is_of_other_rank else None, shapes=((key, shape),))


def bindings(sample: LinearAttentionSample, _: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """All inputs are data: there is no initializer. Two types only where past_state tells the second."""
    if dtypes == ("float32", "float32"):
        every = (graph.RUNTIME, graph.SYMBOLIC, graph.CONSTANT) if sample.every_dtype else (graph.RUNTIME,)
        return (graph.RUNTIME, graph.SYMBOLIC) if sample.refused else every
    two = len(set(dtypes)) > 1
    return (graph.RUNTIME,) if sample.every_dtype and (sample.past or not two) else ()


def node(sample: LinearAttentionSample, context: CaseContext) -> Node:
    """query, key and value; past_state of type S, decay and beta where the rule has them. Both outputs.

    Keys are normalised and beta lies in (0, 1), as the page asks for the delta rules, so that the state stays small.
    """
    rng, (data_type, state_type) = context.rng, context.dtypes
    batch, length, q_heads, heads, d_k, d_v = sample.sizes
    rule = "gated_delta" if sample.rule is None else sample.rule
    key = rng.uniform(-1, 1, (batch, length, heads, d_k))
    key = key / np.maximum(np.sqrt((key * key).sum(-1, keepdims=True)), 0.1)
    values: dict[str, Array] = {
        "query": rng.uniform(-2, 2, (batch, length, q_heads * d_k)),
        "key": key.reshape(batch, length, heads * d_k),
        "value": rng.uniform(-2, 2, (batch, length, heads * d_v)),
    }
    if sample.past:
        values["past_state"] = rng.uniform(-2, 2, (batch, heads, d_k, d_v))
    if rule in GATED:
        least = -30.0 if sample.decay == "strong" else -1.0
        size = heads if sample.decay == "head" else heads * d_k
        values["decay"] = rng.uniform(least, 0, (batch, length, size))
    if rule in DELTA:
        values["beta"] = rng.uniform(0.05, 0.95, (batch, length, 1 if sample.beta == "one" else heads))
    values |= {name: rng.uniform(-1, 0, shape) for name, shape in sample.shapes}
    operands: list[Operand | None] = []
    for name in ("query", "key", "value", "past_state", "decay", "beta"):
        dtype = state_type if name == "past_state" else data_type
        present = name in values and name not in sample.omitted
        operands.append(Operand(name, np.asarray(values[name]).astype(dtype)) if present else None)
    while operands[-1] is None:
        operands.pop()
    settings = {"update_rule": sample.rule, "scale": sample.scale}
    attributes: dict[str, Attribute] = {"q_num_heads": q_heads, "kv_num_heads": heads}
    attributes |= {name: value for name, value in settings.items() if value is not None} | dict(sample.extra)
    return Node("LinearAttention", "", context.since_version, tuple(operands), ("output", "present_state"), attributes)


def _sizes(node: Node) -> Shape:
    """B, T, H_q, H_kv, d_k, d_v of a node that breaks no rule."""
    batch, length, size = node.array("query").shape
    q_heads, heads = node.integer("q_num_heads", 1), node.integer("kv_num_heads", 1)
    return batch, length, q_heads, heads, size // q_heads, node.array("value").shape[2] // heads


def _broken_rule(node: Node) -> str | None:
    q_heads, heads = node.integer("q_num_heads", 1), node.integer("kv_num_heads", 1)
    if q_heads < heads or q_heads % heads:
        return f"q_num_heads {q_heads} must be a multiple of kv_num_heads {heads}"
    rule = node.text("update_rule", "gated_delta")
    if rule not in RULES:
        return f"there is no update_rule '{rule}'"
    for name, rules in (("decay", GATED), ("beta", DELTA)):
        if rule in rules and node.value(name) is None:
            return f"update_rule '{rule}' requires {name}"
    shapes = {operand.name: operand.value.shape for operand in node.inputs if operand is not None}
    if any(len(shapes[name]) != 3 or shapes[name][2] % count for name, count in
           (("query", q_heads), ("key", heads), ("value", heads))):  # fmt: skip
        return f"the last of three dimensions must be that of all heads; the shapes are {shapes}"
    batch, length, _, _, d_k, d_v = _sizes(node)
    allowed: dict[str, tuple[Shape, ...]] = {
        "key": ((batch, length, heads * d_k),),
        "value": ((batch, length, heads * d_v),),
        "past_state": ((batch, heads, d_k, d_v),),
        "decay": ((batch, length, heads), (batch, length, heads * d_k)),
        "beta": ((batch, length, heads), (batch, length, 1)),
    }
    wrong = (name for name, shape in shapes.items() if name in allowed and shape not in allowed[name])
    return next((f"{name} has the shape {shapes[name]} instead of {allowed[name][0]}" for name in wrong), None)


def truth(node: Node) -> Truth:
    """The recurrence, one position after the other, in float64."""
    if broken := _broken_rule(node):
        return Refusal(broken)
    dtype, past = node.array("query").dtype, node.value("past_state")
    state_dtype = dtype if past is None else past.dtype
    precision = Precision(max(dtype, state_dtype, key=lambda kind: float(np.finfo(kind).eps)))
    batch, length, q_heads, heads, d_k, d_v = _sizes(node)
    number = node.number("scale", 0.0)
    scale = exact(np.array(number if number else 1 / np.sqrt(d_k)))
    query = exact(node.array("query").reshape(batch, length, q_heads, d_k))
    state = exact(np.zeros((batch, heads, d_k, d_v)) if past is None else past)
    results = [exact(np.zeros((batch, 0, q_heads, d_v)))]
    for position in range(length):
        state = _step(precision, node, state, position)
        shared = Estimate(*(np.repeat(part, q_heads // heads, 1) for part in (state.value, state.error)))
        read = precision.dot(query[:, position, :, None, :], shared)
        scaled = precision.multiply(read, scale, roundings=3).reshape(batch, 1, q_heads, d_v)
        results.append(scaled)
    value, error = (np.concatenate([getattr(r, part) for r in results], 1) for part in ("value", "error"))
    output = Estimate(value, error).reshape(batch, length, q_heads * d_v)
    return Outputs((
        Precision(dtype).output("output", output),
        Precision(state_dtype).output("present_state", state),
    ))  # fmt: skip


def _step(precision: Precision, node: Node, state: Estimate, position: int) -> Estimate:
    """The state after one more position."""
    rule = node.text("update_rule", "gated_delta")
    batch, _, _, heads, d_k, d_v = _sizes(node)
    key = exact(node.array("key")[:, position].reshape(batch, heads, d_k, 1))
    value = exact(node.array("value")[:, position].reshape(batch, heads, 1, d_v))
    if rule in GATED:
        decay = node.array("decay")
        gate = exact(decay[:, position].reshape(batch, heads, decay.shape[2] // heads, 1))
        kept = np.exp(gate.value)
        off = kept * (2 * EXP_ULPS + 2 * np.abs(gate.value)) * precision.unit + precision.tiny
        state = precision.multiply(state, Estimate(np.broadcast_to(kept, (batch, heads, gate.value.shape[2], 1)), off))
    if rule in DELTA:
        beta = exact(node.array("beta")[:, position, :, None, None])
        found = precision.dot(key.transpose(0, 1, 3, 2), state)
        value = precision.multiply(precision.add(value, Estimate(-found.value, found.error)), beta)
    return precision.add(state, precision.multiply(key, value))


def _is_no_inverse(sample: LinearAttentionSample, _dtypes: tuple[str, ...]) -> bool:
    """The page of com.microsoft has an attention of fewer heads of query than of key, which ONNX's has not."""
    query_heads, heads = sample.sizes[2:4]
    return query_heads >= heads


LINEAR_ATTENTION = Operator("LinearAttention", samples, bindings, node, truth, NO_KERNEL, varied=("T", "S"))

OPERATORS = (LINEAR_ATTENTION, make_twin(LINEAR_ATTENTION, 27, _is_no_inverse))
