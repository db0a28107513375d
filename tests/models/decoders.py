"""Decoders of two layers with a cache, as Optimum and ONNX Runtime GenAI's model builder export them, and faults that a
decoder, or the runtime that runs it, may have."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parents[2]))  # a worker is given the folder of this module alone

from epcheck.models.zoo.graph_builder import GraphBuilder, fan_in_std
from epcheck.models.zoo.layers import attend, merge_heads, split_heads
from tests.models.in_process_targets import session

VOCABULARY, POSITIONS, WIDTH, HEADS, KEY_HEADS, SIZE, LAYERS = 61, 64, 64, 4, 2, 16, 2

PAST, NEW = "past_sequence_length", "sequence_length"


def plain_decoder(dtype: str = "float32", window: int = 0) -> onnx.ModelProto:
    """Attention in its parts, caches by Concat, as Optimum exports it. window: the tokens that a token sees, itself
    among them; 0 for all."""
    net = GraphBuilder("plain", opset=17, dtype=dtype)
    ids, mask, past = _inputs(net, f"{PAST} + {NEW}")
    positions = net.input("position_ids", "int64", ("batch", NEW))
    moved = net.add("Add", positions, net.constant(np.array([[0]], np.int64), "moved"), named="positions")
    rotations = [net.add("Unsqueeze", net.add("Gather", table, moved), net.constant([1])) for table in _tables(net, 2)]
    bias = _causal_bias(net, mask, past[0][0], window)

    def attention(query: str, key: str, value: str, at: int) -> str:
        parts = [split_heads(net, part, heads, SIZE)
                 for part, heads in ((query, HEADS), (key, KEY_HEADS), (value, KEY_HEADS))]  # fmt: skip
        query, key = (_rotate(net, part, rotations) for part in parts[:2])
        keys = net.add("Concat", past[at][0], key, axis=2, named=f"present.{at}.key")
        values = net.add("Concat", past[at][1], parts[2], axis=2, named=f"present.{at}.value")
        heads = [_repeat(net, part) for part in (keys, values)]
        return merge_heads(net, attend(net, query, *heads, SIZE, bias), WIDTH)

    return _close(net, ids, attention, f"{PAST} + {NEW}")


def group_query_decoder(dtype: str = "float32", window: int = -1, rotates: bool = True) -> onnx.ModelProto:
    """com.microsoft::GroupQueryAttention, as the model builder emits it. rotates: the operator rotates its heads; for
    DirectML the builder has nodes of RotaryEmbedding in front of it, and position_ids."""
    net = GraphBuilder("group_query", opset=17, domains=("com.microsoft",), dtype=dtype)
    ids, mask, past = _inputs(net, "total_sequence_length")
    positions = "" if rotates else net.input("position_ids", "int64", ("batch", NEW))
    cosine, sine = _tables(net, 1)
    sums = net.add("Sub", net.add("ReduceSum", mask, net.constant([1]), keepdims=0), net.constant([1]))
    lengths = net.add("Cast", sums, to=TensorProto.INT32)
    total = net.add("Cast", net.add("Gather", net.add("Shape", mask), net.constant(np.int64(1))), to=TensorProto.INT32)

    def turn(part: str, width: int) -> str:
        turned = net.add("RotaryEmbedding", part, positions, cosine, sine, domain="com.microsoft")
        return net.describe(turned, dtype, ("batch", NEW, width))

    def attention(query: str, key: str, value: str, at: int) -> str:
        if not rotates:
            query, key = (turn(part, width) for part, width in ((query, WIDTH), (key, KEY_HEADS * SIZE)))
        caches = ("", "") if not rotates else (cosine, sine)
        output, *_ = net.add_all(
            "GroupQueryAttention", query, key, value, *past[at], lengths, total, *caches,
            named=("", f"present.{at}.key", f"present.{at}.value"), domain="com.microsoft", num_heads=HEADS,
            kv_num_heads=KEY_HEADS, do_rotary=int(rotates), local_window_size=window,
        )  # fmt: skip
        return net.describe(output, dtype, ("batch", NEW, WIDTH))

    return _close(net, ids, attention, "total_sequence_length")


def _inputs(net: GraphBuilder, total: str) -> tuple[str, str, list[list[str]]]:
    ids = net.input("input_ids", "int64", ("batch", NEW))
    mask = net.input("attention_mask", "int64", ("batch", total))
    shape = ("batch", KEY_HEADS, PAST, SIZE)
    past = [[net.input(f"past_key_values.{at}.{part}", net.dtype.name, shape) for part in ("key", "value")]
            for at in range(LAYERS)]  # fmt: skip
    return ids, mask, past


def _close(net: GraphBuilder, ids: str, attention: Any, total: str) -> onnx.ModelProto:
    """The layers around the attention, and the outputs."""
    x = net.add("Gather", net.weight("embed", (VOCABULARY, WIDTH), 1.0), ids)
    for at in range(LAYERS):
        widths = (WIDTH, KEY_HEADS * SIZE, KEY_HEADS * SIZE)
        parts = [net.add("MatMul", x, net.weight("weight", (WIDTH, width), fan_in_std(WIDTH))) for width in widths]
        attended = attention(*parts, at)
        x = net.add("Add", x, net.add("MatMul", attended, net.weight("weight", (WIDTH, WIDTH), fan_in_std(WIDTH))))
        hidden = net.add("Tanh", net.add("MatMul", x, net.weight("weight", (WIDTH, WIDTH), fan_in_std(WIDTH))))
        x = net.add("Add", x, hidden)
    net.add("MatMul", x, net.weight("lm_head", (WIDTH, VOCABULARY), fan_in_std(WIDTH)), named="logits")
    net.output("logits", net.dtype.name, ("batch", NEW, VOCABULARY))
    for at in range(LAYERS):
        for part in ("key", "value"):
            net.output(f"present.{at}.{part}", net.dtype.name, ("batch", KEY_HEADS, total, SIZE))
    return net.model()


def _tables(net: GraphBuilder, times: int) -> list[str]:
    """Cosine and sine of the angles at each position, [POSITIONS, times * SIZE / 2]."""
    angles = np.arange(POSITIONS)[:, None] / 100.0 ** (np.arange(0, SIZE, 2)[None] / SIZE)
    both = np.concatenate([angles] * times, axis=1)
    tables = {"cos_cache": np.cos(both), "sin_cache": np.sin(both)}
    return [net.constant(table.astype(net.dtype), name) for name, table in tables.items()]


def _rotate(net: GraphBuilder, x: str, rotations: list[str]) -> str:
    start, half, end, axis = (net.constant([value]) for value in (0, SIZE // 2, SIZE, 3))
    turned = net.add("Concat", net.add("Neg", net.add("Slice", x, half, end, axis)),
                     net.add("Slice", x, start, half, axis), axis=-1)  # fmt: skip
    return net.add("Add", net.add("Mul", x, rotations[0]), net.add("Mul", turned, rotations[1]))


def _repeat(net: GraphBuilder, x: str) -> str:
    """Each head of the keys for two heads of the queries."""
    expanded = net.add("Tile", net.add("Unsqueeze", x, net.constant([2])), net.constant([1, 1, 2, 1, 1]))
    return net.add("Reshape", expanded, net.constant([0, HEADS, -1, SIZE]))


def _causal_bias(net: GraphBuilder, mask: str, key: str, window: int) -> str:
    """0 where a token may look, the lowest number where it may not, [batch, 1, new, past + new]."""
    step, zero = net.constant(np.int64(1)), net.constant(np.int64(0))
    total = net.add("Gather", net.add("Shape", mask), step)
    past = net.add("Gather", net.add("Shape", key), net.constant(np.int64(2)))
    keys = net.add("Range", zero, total, step)
    queries = net.add("Unsqueeze", net.add("Range", past, total, step), net.constant([1]))
    seen = net.add("LessOrEqual", keys, queries)
    if window:
        edge = net.add("Sub", queries, net.constant(np.array([window], np.int64), "window"))
        seen = net.add("And", seen, net.add("Greater", keys, edge))
    real = net.add("Cast", mask, to=TensorProto.BOOL, named="is_real")
    both = net.add("And", seen, net.add("Unsqueeze", real, net.constant([1, 2])))
    low = net.constant(np.array(np.finfo(net.dtype).min), "low")
    return net.add("Where", both, net.constant(np.zeros((), net.dtype), "zero"), low)


def append_in_front(model: onnx.ModelProto) -> None:
    """The cache of the last layer's keys takes new tokens in front."""
    for node in model.graph.node:
        if f"present.{LAYERS - 1}.key" in node.output:
            node.input[0], node.input[1] = node.input[1], node.input[0]


def skip_a_position(model: onnx.ModelProto) -> None:
    """A token behind a cache has the position after its own."""
    (node,) = (node for node in model.graph.node if "positions" in node.output)
    node.input[1] = "past_at_most_1"
    added = [
        helper.make_node("Shape", ["past_key_values.0.key"], ["past_shape"]),
        helper.make_node("Gather", ["past_shape", "two"], ["past_length"]),
        helper.make_node("Min", ["past_length", "one_token"], ["past_at_most_1"]),
    ]
    nodes = [*added, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(
        numpy_helper.from_array(np.array(value, np.int64), name) for name, value in (("two", 2), ("one_token", 1))
    )


def ignore_padding(model: onnx.ModelProto) -> None:
    """Every token is seen, whatever the attention mask says."""
    (node,) = (node for node in model.graph.node if "is_real" in node.output)
    (reader,) = (each for each in model.graph.node if "is_real" in each.input)
    reader.input[0] = "always_real"
    nodes = [*model.graph.node]
    nodes.insert(
        nodes.index(node) + 1, helper.make_node("Equal", ["attention_mask", "attention_mask"], ["always_real"])
    )
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def widen_window(model: onnx.ModelProto) -> None:
    """Every token sees a token more than the window has."""
    for tensor in model.graph.initializer:
        if tensor.name == "window":
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) + 1, tensor.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "local_window_size":
                attribute.i += 1


def drop_the_past(model: onnx.ModelProto) -> None:
    """The last cache has the new tokens alone; attention sees all."""
    for node in model.graph.node:
        if node.output[0] == f"present.{LAYERS - 1}.value":
            node.output[0] = "all_values"
            new = node.input[1]
        node.input[:] = ["all_values" if name == f"present.{LAYERS - 1}.value" else name for name in node.input]
    model.graph.node.append(helper.make_node("Identity", [new], [f"present.{LAYERS - 1}.value"]))


def refuse_a_past(model: onnx.ModelProto) -> None:
    """A token behind a cache has a position that the tables do not have."""
    skip_a_position(model)
    tensor = next(tensor for tensor in model.graph.initializer if tensor.name == "one_token")
    tensor.CopyFrom(numpy_helper.from_array(np.array(POSITIONS, np.int64), tensor.name))
    node = next(node for node in model.graph.node if "past_at_most_1" in node.output)
    node.op_type = "Mul"


def _run_changed(change: Callable[[onnx.ModelProto], None], content: bytes, feeds: dict[str, Any]) -> Any:
    """The changed decoder; parts of it as they are."""
    model = onnx.load_model_from_string(content)
    if {"input_ids", "past_key_values.0.key"} <= feeds.keys():
        change(model)
    return session(model, feeds)


def appends_in_front(content: bytes, feeds: dict[str, Any]) -> Any:
    return _run_changed(append_in_front, content, feeds)


def skips_a_position(content: bytes, feeds: dict[str, Any]) -> Any:
    return _run_changed(skip_a_position, content, feeds)


def ignores_padding(content: bytes, feeds: dict[str, Any]) -> Any:
    return _run_changed(ignore_padding, content, feeds)


def widens_window(content: bytes, feeds: dict[str, Any]) -> Any:
    return _run_changed(widen_window, content, feeds)


def pair_tokens(model: onnx.ModelProto) -> None:
    """The second half of the vocabulary has the logits of the first."""
    (head,) = (tensor for tensor in model.graph.initializer if tensor.name == "lm_head")
    weights = numpy_helper.to_array(head)
    half = VOCABULARY // 2
    head.CopyFrom(numpy_helper.from_array(np.concatenate([weights[:, :half]] * 2 + [weights[:, -1:]], 1), head.name))


def prefers_the_later(content: bytes, feeds: dict[str, Any]) -> Any:
    """The logits of the second half of the vocabulary are larger by a rounding error."""
    outputs = session(onnx.load_model_from_string(content), feeds)
    if "logits" in outputs:
        outputs["logits"][..., VOCABULARY // 2 :] += np.float32(1e-6)
    return outputs


def favours_a_token(content: bytes, feeds: dict[str, Any]) -> Any:
    """Where ten tokens or more are cached, the least likely token becomes the likeliest."""
    outputs = session(onnx.load_model_from_string(content), feeds)
    if "logits" in outputs and "past_key_values.0.key" in feeds and feeds["past_key_values.0.key"].shape[2] >= 10:
        logits = outputs["logits"]
        logits[..., np.argmin(logits[0, -1])] = 2 * logits.max()
    return outputs
