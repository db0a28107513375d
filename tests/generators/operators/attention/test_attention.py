"""Attention and its bounds against identities, and against naive arithmetic in the dtype itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from epcheck.generators import registry, suite
from epcheck.generators.array import Array
from epcheck.generators.bounds.estimate import Precision, attention, exact
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.truth import Output, Outputs, Ulp

FLOAT32 = Precision(np.dtype(np.float32))


def outputs(key: str, node: Node) -> dict[str, Output]:
    truth = registry.all_operators()[key].truth(node)
    assert isinstance(truth, Outputs)
    return {output.name: output for output in truth.outputs}


def node(case_id: str) -> Node:
    return suite.case_by_id(case_id).build().node


def value(key: str, tested: Node, name: str = "output") -> Array:
    found = outputs(key, tested)[name].exact
    assert found is not None
    return found


def with_inputs(tested: Node, **values: Array | None) -> Node:
    kept = [o for o in tested.inputs if o is not None and o.name not in values]
    return replace(tested, inputs=(*kept, *(Operand(n, v) for n, v in values.items() if v is not None)))


def test_equal_keys_give_the_mean_of_the_values() -> None:
    rng = np.random.default_rng(1)
    query, values = rng.standard_normal((1, 2, 3, 4)), rng.standard_normal((1, 2, 5, 4))
    key = np.broadcast_to(rng.standard_normal((1, 2, 1, 4)), (1, 2, 5, 4))
    result, _ = attention(FLOAT32, exact(query), exact(key), exact(values), scale=0.5)
    assert np.allclose(result.value, values.mean(2, keepdims=True), rtol=1e-12)


def test_a_masked_key_counts_for_nothing() -> None:
    key = "com.microsoft::MultiHeadAttention"
    tested = node("com.microsoft::MultiHeadAttention-1/float32/mask_raw_2d[runtime]")
    mask = tested.array("key_padding_mask")
    changed = tested.array("value").copy()
    changed[mask == 0] = 1e3
    assert np.allclose(value(key, tested), value(key, with_inputs(tested, value=changed)), rtol=1e-12)


def test_a_length_is_a_raw_mask_of_ones_up_to_it() -> None:
    key = "com.microsoft::Attention"
    tested = node("com.microsoft::Attention-1/float32/mask_lengths[runtime]")
    raw = (np.arange(5) < tested.array("mask_index")[:, None]).astype(np.int32)
    assert np.array_equal(value(key, tested), value(key, with_inputs(tested, mask_index=raw)))


def test_a_token_attends_itself_and_what_is_before_it() -> None:
    tested = node("com.microsoft::MultiHeadAttention-1/float32/unidirectional[runtime]")
    first = value("com.microsoft::MultiHeadAttention", tested)[:, 0]
    bias = tested.array("bias")[-8:].astype(np.float64)
    assert np.allclose(first, tested.array("value")[:, 0] + bias, rtol=1e-12)


def test_quantised_attention_is_attention_of_the_dequantised() -> None:
    tested = node("com.microsoft::QAttention-1/uint8-int8-float32/per_column[runtime]")
    wide = {
        name: (tested.array(name).astype(np.float64) - tested.array(f"{name}_zero_point"))
        * tested.array(f"{name}_scale")
        for name in ("input", "weight")
    }
    plain = Node(
        "Attention",
        "com.microsoft",
        1,
        (Operand("input", wide["input"]), Operand("weights", wide["weight"]), Operand("bias", tested.array("bias"))),
        ("output",),
        tested.attributes,
    )
    assert np.allclose(value("com.microsoft::QAttention", tested), value("com.microsoft::Attention", plain), rtol=1e-9)


def test_as_many_heads_of_keys_as_of_queries_is_unidirectional_attention() -> None:
    tested = node("com.microsoft::GroupQueryAttention-1/float32/prompt_as_many_kv_heads[runtime]")
    operands = tuple(Operand(name, tested.array(name)) for name in ("query", "key", "value"))
    plain = Node("MultiHeadAttention", "com.microsoft", 1, operands, ("output",), {"num_heads": 4, "unidirectional": 1})
    key = "com.microsoft::MultiHeadAttention"
    assert np.allclose(value("com.microsoft::GroupQueryAttention", tested), value(key, plain), rtol=1e-12)


def test_an_empty_row_of_a_mask_gives_zeros() -> None:
    tested = node("Attention-24/float32/mask_bool_empty_row[initializer]")
    result = value("Attention", tested, "Y")
    assert (result[:, :, 1] == 0).all()
    assert (result[:, :, 0] != 0).all()


def test_rotation_keeps_the_length_of_a_pair() -> None:
    tested = node("RotaryEmbedding-23/float32/rank_4_interleaved[runtime]")
    x, y = tested.array("X").astype(np.float64), value("RotaryEmbedding", tested, "Y")
    before, after = (np.hypot(a[..., 0::2], a[..., 1::2]) for a in (x, y))
    assert np.allclose(before, after, rtol=1e-5)


def test_normalised_embeddings_have_mean_beta_and_deviation_gamma() -> None:
    tested = node("com.microsoft::EmbedLayerNormalization-1/float32/hidden_1030[runtime]")
    plain = with_inputs(tested, gamma=np.ones(1030, np.float32), beta=np.zeros(1030, np.float32))
    result = value("com.microsoft::EmbedLayerNormalization", plain)
    assert np.allclose(result.mean(-1), 0, atol=1e-12)
    assert np.allclose(result.std(-1), 1, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("seed", range(20))
def test_arithmetic_in_the_dtype_itself_stays_within_the_bound(dtype: type[np.floating], seed: int) -> None:
    """Every step rounded to the dtype, as the least precise implementation that is allowed does it."""
    rng = np.random.default_rng(seed)
    query, key, values = (rng.standard_normal((1, 1, 4, 6)).astype(dtype) for _ in range(3))
    precision = Precision(np.dtype(dtype))
    result, _ = attention(precision, exact(query), exact(key), exact(values), scale=0.5)
    bound = precision.output("output", result).bound
    assert isinstance(bound, Ulp)
    score = (query @ key.transpose(0, 1, 3, 2)) * dtype(0.5)
    weight = np.exp(score - score.max(-1, keepdims=True))
    naive = (weight / weight.sum(-1, keepdims=True, dtype=dtype)) @ values
    assert naive.dtype == dtype
    assert (np.abs(naive.astype(np.float64) - result.value) <= bound.floor).all()


@pytest.mark.slow
def test_the_bound_of_float32_is_small() -> None:
    for name in ("Attention", "MultiHeadAttention", "GroupQueryAttention", "QAttention"):
        for case in suite.cases([f"com.microsoft::{name}"], dtypes=["float32"]):
            truth = case.build().truth
            assert isinstance(truth, Outputs)
            for output in truth.outputs:
                assert isinstance(output.bound, Ulp)
                assert np.max(output.bound.floor) < 1e-3, case.id


def test_a_sink_takes_its_share_of_the_denominator_and_has_no_value() -> None:
    tokens = np.array([[[1.0, 0.0]]], np.float32)
    lengths = (Operand("seqlens_k", np.array([0], np.int32)), Operand("total_sequence_length", np.array(1, np.int32)))
    operands = (*(Operand(name, tokens) for name in ("query", "key", "value")), None, None, *lengths)
    names = ("output", "present_key", "present_value")
    attributes: dict[str, Attribute] = {"num_heads": 1, "kv_num_heads": 1, "scale": 1.0, "smooth_softmax": 1}
    smooth = Node("GroupQueryAttention", "com.microsoft", 1, operands, names, attributes)
    assert value("com.microsoft::GroupQueryAttention", smooth)[0, 0, 0] == pytest.approx(np.e / (np.e + 1))
    sink = Operand("head_sink", np.array([2.0], np.float32))
    inputs = (*operands, None, None, None, None, sink)
    deep = replace(smooth, inputs=inputs, attributes={**attributes, "smooth_softmax": 0})
    assert value("com.microsoft::GroupQueryAttention", deep)[0, 0, 0] == pytest.approx(np.e / (np.e + np.e**2))


def test_a_window_of_two_tokens_has_the_token_itself_and_the_one_before() -> None:
    tested = node("com.microsoft::GroupQueryAttention-1/float32/prompt_as_many_kv_heads[runtime]")
    narrow = replace(tested, attributes={**tested.attributes, "local_window_size": 2})
    key = "com.microsoft::GroupQueryAttention"
    assert np.array_equal(value(key, narrow)[:, :2], value(key, tested)[:, :2])
    last = {operand.name: Operand(operand.name, operand.value[:, -2:]) for operand in tested.inputs[:3] if operand}
    lengths = (np.full(2, 1, np.int32), np.array(2, np.int32))
    sizes = (Operand(name, size) for name, size in zip(("seqlens_k", "total_sequence_length"), lengths, strict=True))
    alone = replace(tested, inputs=(*last.values(), None, None, *sizes))
    assert np.allclose(value(key, narrow)[:, -1], value(key, alone)[:, -1], rtol=1e-12)


def test_each_batch_has_its_own_length_and_what_is_beyond_is_open() -> None:
    wanted = "com.microsoft::GroupQueryAttention-1/float32/token_lengths_differ[initializer]"
    tested = node(wanted)
    truth = registry.all_operators()["com.microsoft::GroupQueryAttention"].truth(tested)
    assert isinstance(truth, Outputs)
    output, present_key, _ = truth.outputs
    past, new = tested.array("past_key"), tested.array("key")
    assert output.undefined is None
    assert present_key.undefined is not None
    for batch, length in enumerate((5, 2, 4)):
        assert np.array_equal(present_key.value[batch, :, :length], past[batch, :, :length])
        assert np.array_equal(present_key.value[batch, :, length].ravel(), new[batch, 0])
        assert present_key.undefined.where[batch, 0, :, 0].tolist() == [at > length for at in range(6)]
