"""A decoder with a cache of keys and values, as language models are exported: the past goes in and comes out longer.

Root-mean-square normalisation, rotary positions, fewer heads for keys than for queries, a gated feed-forward.
"""

from __future__ import annotations

import numpy as np
import onnx

from epcheck.models.zoo.architecture import Architecture
from epcheck.models.zoo.graph_builder import GraphBuilder, fan_in_std
from epcheck.models.zoo.layers import attend, merge_heads, split_heads

VOCABULARY, POSITIONS, WIDTH, HEADS, KEY_HEADS, LAYERS = 89, 64, 32, 4, 2, 3
SIZE = WIDTH // HEADS
PAST, NEW = "past_sequence_length", "sequence_length"
TOTAL = f"{PAST} + {NEW}"
LOWEST = float(np.finfo(np.float32).min)
CACHE = ("batch", KEY_HEADS, PAST, SIZE)


def build() -> onnx.ModelProto:
    """input_ids, position_ids [batch, new], attention_mask [batch, past + new], a key and a value [batch, 2, past, 8],
    for each layer -> logits [batch, new, 89], the keys and values with the new ones behind."""
    net = GraphBuilder("decoder", opset=17)
    ids = net.input("input_ids", "int64", ("batch", NEW))
    mask = net.input("attention_mask", "int64", ("batch", TOTAL))
    positions = net.input("position_ids", "int64", ("batch", NEW))
    past = [
        tuple(net.input(f"past_key_values.{index}.{part}", "float32", CACHE) for part in ("key", "value"))
        for index in range(LAYERS)
    ]
    x = net.add("Gather", net.weight("embed_tokens.weight", (VOCABULARY, WIDTH), 0.7), ids)
    with net.scope("rotary"):
        cosine, sine = _rotations(net, positions)
    with net.scope("mask"):
        bias = _causal_bias(net, mask, past[0][0])
    for index in range(LAYERS):
        with net.scope(f"layers.{index}"):
            x = _layer(net, x, (cosine, sine), bias, past[index], f"present.{index}")
    net.add("MatMul", _rms_norm(net, x), net.weight("lm_head.weight", (WIDTH, VOCABULARY), fan_in_std(WIDTH, 2.0)),
            named="logits")  # fmt: skip
    net.output("logits", "float32", ("batch", NEW, VOCABULARY))
    for index in range(LAYERS):
        for part in ("key", "value"):
            net.output(f"present.{index}.{part}", "float32", ("batch", KEY_HEADS, TOTAL, SIZE))
    return net.model()


def _add_projection(net: GraphBuilder, x: str, sizes: tuple[int, int], name: str, gain: float = 1.0) -> str:
    with net.scope(name):
        return net.add("MatMul", x, net.weight("weight", sizes, fan_in_std(sizes[0], gain)))


def _rms_norm(net: GraphBuilder, x: str) -> str:
    """In its parts, as it is exported."""
    mean = net.add("ReduceMean", net.add("Pow", x, net.constant(2.0)), axes=[-1], keepdims=1)
    root = net.add("Sqrt", net.add("Add", mean, net.constant(1e-6)))
    normalised = net.add("Mul", x, net.add("Div", net.constant(1.0), root))
    return net.add("Mul", normalised, net.weight("norm.weight", (WIDTH,), 0.1, mean=1.0))


def _rotations(net: GraphBuilder, positions: str) -> tuple[str, str]:
    """Cosine and sine of the angles at the positions, [batch, 1, new, SIZE]."""
    angles = np.arange(POSITIONS)[:, None] / 10000.0 ** (np.arange(0, SIZE, 2)[None] / SIZE)
    both = np.concatenate([angles, angles], axis=1)
    cosine, sine = (
        net.add("Gather", net.constant(table.astype(np.float32), name), positions)
        for name, table in (("cos_cached", np.cos(both)), ("sin_cached", np.sin(both)))
    )
    heads = net.constant([1])
    return net.add("Unsqueeze", cosine, heads), net.add("Unsqueeze", sine, heads)


def _rotate_heads(net: GraphBuilder, x: str, rotations: tuple[str, str]) -> str:
    start, half, end, axis = (net.constant([value]) for value in (0, SIZE // 2, SIZE, 3))
    first, second = net.add("Slice", x, start, half, axis), net.add("Slice", x, half, end, axis)
    turned = net.add("Concat", net.add("Neg", second), first, axis=-1)
    return net.add("Add", net.add("Mul", x, rotations[0]), net.add("Mul", turned, rotations[1]))


def _causal_bias(net: GraphBuilder, mask: str, key: str) -> str:
    """0 where a position may look, the lowest float32 where it may not, [batch, 1, new, past + new]."""
    step, zero = net.constant(np.int64(1)), net.constant(np.int64(0))
    total = net.add("Gather", net.add("Shape", mask), step, axis=0)
    past = net.add("Gather", net.add("Shape", key), net.constant(np.int64(2)), axis=0)
    keys = net.add("Range", zero, total, step)
    queries = net.add("Unsqueeze", net.add("Range", past, total, step), net.constant([1]))
    causal = net.add("LessOrEqual", keys, queries)
    real = net.add("Unsqueeze", net.add("Cast", mask, to=onnx.TensorProto.BOOL), net.constant([1, 2]))
    return net.add("Where", net.add("And", causal, real), net.constant(0.0), net.constant(LOWEST))


def _repeat_heads(net: GraphBuilder, x: str) -> str:
    """Each head of the keys for as many heads of the queries as share it."""
    shape = net.add("Shape", x)
    front = net.add("Slice", shape, net.constant([0]), net.constant([2]), net.constant([0]))
    back = net.add("Slice", shape, net.constant([2]), net.constant([4]), net.constant([0]))
    sizes = net.add("Concat", front, net.constant([HEADS // KEY_HEADS]), back, axis=0)
    expanded = net.add("Expand", net.add("Unsqueeze", x, net.constant([2])), sizes)
    first = net.add("Slice", shape, net.constant([0]), net.constant([1]), net.constant([0]))
    return net.add("Reshape", expanded, net.add("Concat", first, net.constant([HEADS]), back, axis=0))


def _attention(
    net: GraphBuilder, x: str, rotations: tuple[str, str], bias: str, past: tuple[str, ...], present: str
) -> str:
    width = KEY_HEADS * SIZE
    query = _rotate_heads(
        net, split_heads(net, _add_projection(net, x, (WIDTH, WIDTH), "q_proj"), HEADS, SIZE), rotations
    )
    key = _rotate_heads(
        net, split_heads(net, _add_projection(net, x, (WIDTH, width), "k_proj"), KEY_HEADS, SIZE), rotations
    )
    value = split_heads(net, _add_projection(net, x, (WIDTH, width), "v_proj"), KEY_HEADS, SIZE)
    keys = net.add("Concat", past[0], key, axis=2, named=f"{present}.key")
    values = net.add("Concat", past[1], value, axis=2, named=f"{present}.value")
    attended = attend(net, query, _repeat_heads(net, keys), _repeat_heads(net, values), SIZE, bias)
    return _add_projection(net, merge_heads(net, attended, WIDTH), (WIDTH, WIDTH), "o_proj")


def _layer(
    net: GraphBuilder, x: str, rotations: tuple[str, str], bias: str, past: tuple[str, ...], present: str
) -> str:
    with net.scope("self_attn"):
        x = net.add("Add", x, _attention(net, _rms_norm(net, x), rotations, bias, past, present))
    with net.scope("mlp"):
        normalised = _rms_norm(net, x)
        gate = _add_projection(net, normalised, (WIDTH, 2 * WIDTH), "gate_proj")
        open_gate = net.add("Mul", gate, net.add("Sigmoid", gate))
        hidden = net.add("Mul", open_gate, _add_projection(net, normalised, (WIDTH, 2 * WIDTH), "up_proj"))
        return net.add("Add", x, _add_projection(net, hidden, (2 * WIDTH, WIDTH), "down_proj"))


ARCHITECTURES = (
    Architecture(
        "decoder",
        "decoder of a language model with a cache of keys and values, which may be empty",
        build,
        {"batch": (1, 2), NEW: (1, 5), PAST: (0, 6)},
    ),
)
