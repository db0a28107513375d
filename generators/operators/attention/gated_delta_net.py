"""com.microsoft::GatedDeltaNet: linear attention of packed tokens with a recurrent state, and its gates.

Source: ONNX Runtime's ContribOperators.md. What `linear` and `gated` make of a beta it does not say: they have none.
The epsilon of qk_l2_norm has no number there; keys and queries are of a length to which 1e-6 is little. Arithmetic is
float32's. Bound: the running error of the recurrence, as of LinearAttention.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds.estimate import EXP_ULPS, Estimate, Precision, concatenate, exact
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families.drawn import Drawn, DrawnSample
from epcheck.generators.node import Attribute, Node
from epcheck.generators.oracle_math.activations import sigmoid
from epcheck.generators.truth import Output, Outputs, Refusal, Truth, Undefined

DECLARES = ("com.microsoft::GatedDeltaNet",)

SINGLE = Precision(np.dtype(np.float32))
NORM_EPSILON = 1e-5
"""How much of a key or query, relative, an epsilon of 1e-6 or two of them may change."""
RULES = ("linear", "gated", "delta", "gated_delta")
BY_TOKEN = "query has 3 dimensions, or 4"
GATES = ("softplus", "sigmoid")


@dataclass(frozen=True, kw_only=True)
class DeltaSample(DrawnSample):
    """lengths: of each request. sizes: heads of keys, heads of values, and the sizes of both. per_key: decay and
    dt_bias have a number for each element of a key. packed: query holds key and value as well. four: query, key and
    value have a batch and a sequence."""

    lengths: tuple[int, ...] = (3, 1, 5)
    sizes: tuple[int, int, int, int] = (2, 4, 8, 6)
    per_key: bool = False
    packed: bool = False
    four: bool = False
    short: bool = False


def samples() -> Iterator[DeltaSample]:
    qkv, state, ragged = ("key", "value"), ("initial_state",), ("cu_seqlens",)
    needs = {"linear": (), "gated": ("decay",), "delta": ("beta",), "gated_delta": ("decay", "beta")}
    for rule in RULES:
        own: Mapping[str, Attribute] = {"update_rule": rule}
        base = (*qkv, *needs[rule], *ragged)
        yield DeltaSample(name=rule, attributes=own, present=base, outputs=2, every_dtype=rule == "gated_delta")
        yield DeltaSample(name=f"{rule}_state", attributes=own, present=(*base, *state), outputs=2, every_dtype=True)
    whole = (*qkv, "decay", "beta", *ragged, *state)
    normed: Mapping[str, Attribute] = {"qk_l2_norm": 1}
    yield DeltaSample(name="defaults", present=whole, outputs=2)
    yield DeltaSample(name="per_key", present=whole, outputs=2, per_key=True, every_dtype=True)
    yield DeltaSample(name="normed", attributes=normed, present=whole, outputs=2, every_dtype=True)
    yield DeltaSample(name="beta_sigmoid", attributes={"beta_activation": "sigmoid"}, present=whole, outputs=2,
                      every_dtype=True)  # fmt: skip
    for gate in GATES:
        for per_key in (False, True):
            name = f"gate_{gate}{'_per_key' if per_key else ''}"
            yield DeltaSample(name=name, attributes={**normed, "gate_activation": gate}, per_key=per_key, outputs=2,
                              present=(*whole, "a_log", "dt_bias"), every_dtype=not per_key)  # fmt: skip
    lower: Mapping[str, Attribute] = {"gate_activation": "kda", "gate_lower_bound": -2.0}
    yield DeltaSample(name="gate_kda_lower_bound", attributes=lower, present=(*whole, "a_log", "dt_bias"), outputs=2)
    for scale, name in ((1.0, "1"), (-0.25, "minus_quarter"), (0.0, "0")):
        yield DeltaSample(name=f"scale_{name}", attributes={"scale": scale}, present=whole, outputs=2)
    uniform = (*qkv, "decay", "beta", *state)
    yield DeltaSample(name="uniform", present=uniform, lengths=(4, 4), outputs=2)
    yield DeltaSample(name="rank_4", present=uniform, lengths=(4, 4), four=True, outputs=2)
    yield DeltaSample(
        name="packed", present=("decay", "beta", *ragged, *state), packed=True, outputs=2, every_dtype=True
    )
    for heads, values, keys, size in ((1, 1, 1, 1), (1, 8, 16, 3), (4, 4, 32, 32), (2, 2, 5, 17)):
        yield DeltaSample(name=f"heads_{heads}_{values}_sizes_{keys}_{size}", present=whole, outputs=2,
                          sizes=(heads, values, keys, size))  # fmt: skip
    for lengths in ((1,), (1, 1, 1), (33, 2), (2,) * 17):
        yield DeltaSample(name=f"requests_{len(lengths)}_of_{lengths[0]}", present=whole, lengths=lengths, outputs=2)
    for capacity in (1, 4):
        yield DeltaSample(name=f"captures_{capacity}", attributes={"state_update_capacity": capacity}, outputs=3,
                          present=(*whole, "capture_count"), every_dtype=capacity == 4)  # fmt: skip
        yield DeltaSample(name=f"captures_{capacity}_per_key", attributes={"state_update_capacity": capacity},
                          outputs=3, present=(*whole, "capture_count"), per_key=True)  # fmt: skip
    yield expect_refusal(
        DeltaSample(name="unknown_rule", attributes={"update_rule": "square"}, present=whole, outputs=2)
    )
    yield expect_refusal(DeltaSample(name="heads_do_not_divide", present=whole, sizes=(2, 3, 4, 4), outputs=2))
    yield expect_refusal(DeltaSample(name="state_of_other_sizes", present=whole, short=True, outputs=2))
    yield expect_refusal(DeltaSample(name="uniform_without_state", present=uniform[:-1], lengths=(4, 4), outputs=2))


def has(sample: DeltaSample, dtypes: tuple[str, ...]) -> bool:
    """Gates are of float32 or of the type of the query; without gates there is one of both."""
    gates = {"decay", "beta"} & set(sample.present)
    return dtypes[1] == dtypes[0] or (dtypes[1] == "float32" and bool(gates))


def draw(sample: DeltaSample, context: CaseContext) -> Mapping[str, Array]:
    """Keys of length 1 and a beta between 0 and 1, as the page asks for the delta rules."""
    rng, (dtype, of_gates) = context.rng, context.dtypes
    (heads, values, keys, size), tokens, batch = sample.sizes, sum(sample.lengths), len(sample.lengths)
    key = rng.uniform(-1, 1, (tokens, heads, keys))
    key = key / np.maximum(np.sqrt((key * key).sum(-1, keepdims=True)), 0.1)
    query, value = rng.uniform(-1, 1, (tokens, heads, keys)), rng.uniform(-2, 2, (tokens, values, size))
    if sample.packed:
        query = np.concatenate([part.reshape(tokens, -1) for part in (query, key, value)], axis=1)
    gates = (tokens, values, keys) if sample.per_key else (tokens, values)
    found: dict[str, Array] = {
        "query": query, "key": key, "value": value, "decay": rng.uniform(-1.5, 0, gates),
        "beta": rng.uniform(0.05, 0.95, (tokens, values)),
    }  # fmt: skip
    if sample.four:
        found = {name: part.reshape(batch, tokens // batch, *part.shape[1:]) for name, part in found.items()}
    state = (batch, values, size, keys - sample.short)
    return {
        **{name: part.astype(of_gates if name in ("decay", "beta") else dtype) for name, part in found.items()},
        "initial_state": rng.uniform(-1, 1, state).astype(np.float32),
        "a_log": rng.uniform(-1, 0.5, values).astype(np.float32),
        "dt_bias": rng.uniform(-1, 1, gates[1:]).astype(np.float32),
        "cu_seqlens": np.cumsum((0, *sample.lengths)).astype(np.int32),
        "capture_count": np.resize(np.array([2, 3, 9], np.int32), batch),
    }


@dataclass(frozen=True)
class _Parts:
    """What the recurrence reads, by token: q, k [T, H, d], v [T, N, e], decay [T, N, d or 1] or None, beta [T, N]."""

    query: Estimate
    key: Estimate
    value: Estimate
    decay: Estimate | None
    beta: Estimate | None


def _exp(x: Estimate) -> Estimate:
    value = np.exp(x.value)
    relative = (2 * EXP_ULPS + 2 * np.abs(x.value)) * SINGLE.unit
    return Estimate(value, value * (np.expm1(np.minimum(x.error, 1.0)) + relative) + SINGLE.tiny)


def _sigmoid(x: Estimate) -> Estimate:
    value = sigmoid(x.value)
    return Estimate(value, 0.25 * x.error + (16 + 5 * np.abs(x.value)) * SINGLE.unit * value + SINGLE.tiny)


def _norm(x: Estimate) -> Estimate:
    length = np.sqrt((x.value**2).sum(-1, keepdims=True))
    value = x.value / length
    relative = (x.value.shape[-1] + 12) * SINGLE.unit + NORM_EPSILON * np.maximum(1, 0.1 / length**2)
    return Estimate(value, np.abs(value) * relative)


def _gate(node: Node, decay: Array, values: int) -> Estimate:
    """exp(g) of each token, [T, N, d or 1]."""
    raw = exact(decay)
    kind = node.text("gate_activation", "none")
    if kind == "none":
        return _exp(raw)
    bias, slope = node.array("dt_bias").reshape(1, values, -1), _exp(exact(node.array("a_log").reshape(1, values, 1)))
    moved = SINGLE.add(raw, exact(np.broadcast_to(bias, raw.value.shape)))
    slope = Estimate(*(np.broadcast_to(part, raw.value.shape) for part in (slope.value, slope.error)))
    if kind == "softplus":
        soft = np.logaddexp(0, moved.value)
        opened = SINGLE.multiply(slope, Estimate(soft, moved.error + 2 * SINGLE.unit * (12 * soft + 1)))
        return _exp(Estimate(-opened.value, opened.error))
    bounded = _sigmoid(SINGLE.multiply(slope, moved))
    return _exp(SINGLE.multiply(bounded, exact(np.array(node.number("gate_lower_bound", -5.0)))))


def _read(node: Node, values: int, keys: int, size: int) -> _Parts:
    query, key, value = node.array("query"), node.value("key"), node.value("value")
    if key is None:
        width = (query.shape[-1] - values * size) // 2
        query, key, value = np.split(query, [width, 2 * width], axis=-1)
    assert value is not None
    q, k = (
        exact(part.reshape(-1, part.size // max(value.size // (values * size), 1) // keys, keys))
        for part in (query, key)
    )
    if node.integer("qk_l2_norm", 0):
        q, k = _norm(q), _norm(k)
    decay, beta = node.value("decay"), node.value("beta")
    rate = None if beta is None else exact(beta.reshape(-1, values))
    if rate is not None and node.text("beta_activation", "none") == "sigmoid":
        rate = _sigmoid(rate)
    tokens = value.size // (values * size)
    gate = None if decay is None else _gate(node, decay.reshape(tokens, values, -1), values)
    return _Parts(q, k, exact(value.reshape(tokens, values, size)), gate, rate)


def _share(part: Estimate, values: int) -> Estimate:
    """[H, d] for each of the value heads, H to N."""
    times = values // part.value.shape[0]
    return Estimate(np.repeat(part.value, times, 0), np.repeat(part.error, times, 0))


def _find_sizes(node: Node) -> tuple[int, int, int, int] | str:
    """(value heads, size of a key, size of a value, batch), or the rule that the node breaks."""
    query, value, state = node.array("query"), node.value("value"), node.value("initial_state")
    bounds = node.value("cu_seqlens")
    if node.text("update_rule", "gated_delta") not in RULES:
        return f"there is no update_rule '{node.text('update_rule', '')}'"
    if value is None:
        assert state is not None
        return state.shape[1], state.shape[3], state.shape[2], state.shape[0]
    if state is None and bounds is None:
        return "without cu_seqlens the batch is that of initial_state, which is then required"
    values, size, keys, heads = value.shape[-2], value.shape[-1], query.shape[-1], query.shape[-2]
    batch = len(bounds) - 1 if bounds is not None else len(state)  # type: ignore[arg-type]
    if values % heads:
        return f"{values} heads of values must be a multiple of {heads} heads of keys"
    expected = (batch, values, size, keys)
    if state is not None and state.shape != expected:
        return f"initial_state must have the shape {expected}, not {state.shape}"
    return values, keys, size, batch


def truth(node: Node) -> Truth:
    """The recurrence of the page, a token at a time."""
    sizes = _find_sizes(node)
    if isinstance(sizes, str):
        return Refusal(sizes)
    values, keys, size, batch = sizes
    parts, bounds, initial = _read(node, values, keys, size), node.value("cu_seqlens"), node.value("initial_state")
    tokens = parts.value.value.shape[0]
    ends = np.arange(batch + 1) * (tokens // batch) if bounds is None else bounds
    scale = exact(np.array(node.number("scale", 0.0) or keys**-0.5))
    rows, states, captured = [], [], []
    for request in range(batch):
        start = np.zeros((values, size, keys)) if initial is None else initial[request]
        state, kept = exact(start.transpose(0, 2, 1)), []
        for token in range(int(ends[request]), int(ends[request + 1])):
            state, update = _step(parts, state, token, values)
            kept.append(update)
            read = SINGLE.dot(_share(parts.query[token], values).reshape(values, 1, keys), state)
            rows.append(SINGLE.multiply(read, scale, roundings=3).reshape(1, values, size))
        states.append(state.transpose(0, 2, 1).reshape(1, values, size, keys))
        captured.append(kept)
    value = node.value("value")
    shape = (tokens, values, size) if value is None else value.shape
    made = [Precision(node.array("query").dtype).output("output", concatenate(tuple(rows), 0).reshape(*shape)),
            SINGLE.output("final_state", concatenate(tuple(states), 0))]  # fmt: skip
    if "state_update" in node.results:
        made.append(_pack(node, captured))
    return Outputs(tuple(made))


Update = tuple[Estimate, Estimate, Estimate]
"""The factors of a transition: decay, key and delta, each flat."""


def _step(parts: _Parts, state: Estimate, token: int, values: int) -> tuple[Estimate, Update]:
    """(the state [N, d, e] after one more token, what makes it of the one before)."""
    key, value = _share(parts.key[token], values), parts.value[token]
    gate = exact(np.ones((values, 1)))
    if parts.decay is not None:
        gate = parts.decay[token]
        state = SINGLE.multiply(state, gate.reshape(values, gate.value.shape[-1], 1))
    delta = value
    if parts.beta is not None:
        found = SINGLE.dot(key.reshape(values, 1, -1), state).reshape(*value.value.shape)
        beta = parts.beta[token].reshape(values, 1)
        delta = SINGLE.multiply(SINGLE.add(value, Estimate(-found.value, found.error)), beta)
    added = SINGLE.multiply(key.reshape(values, -1, 1), delta.reshape(values, 1, -1))
    return SINGLE.add(state, added), (gate.reshape(-1), parts.key[token].reshape(-1), delta.reshape(-1))


def _pack(node: Node, captured: list[list[Update]]) -> Output:
    """All decays of a request, then all keys, then all deltas; what is behind the captured ones is open."""
    capacity, counts = node.integer("state_update_capacity", 0), node.array("capture_count").tolist()
    rows, open_ones = [], []
    for kept, count in zip(captured, counts, strict=True):
        taken = max(min(count, capacity, len(kept)), 0)
        for part in range(3):
            width = kept[0][part].value.size
            pieces = [update[part] for update in kept[:taken]] + [exact(np.zeros((capacity - taken) * width))]
            rows.append(concatenate(tuple(pieces), 0))
            open_ones.append(np.arange(capacity * width) >= taken * width)
    whole = concatenate(tuple(rows), 0).reshape(len(captured), -1)
    made = SINGLE.output("state_update", whole)
    behind = np.concatenate(open_ones).reshape(whole.value.shape)
    return Output(made.name, made.value, made.bound, made.exact, undefined=Undefined(behind))


OPERATORS = (
    Drawn(
        "GatedDeltaNet", samples, draw, truth, ("a_log", "dt_bias"), ("T", "TG"), ("float32", "float32"), has=has
    ).declare(without_rank_dtypes=BY_TOKEN),
)
