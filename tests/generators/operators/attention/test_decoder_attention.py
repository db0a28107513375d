"""DecoderMaskedMultiHeadAttention: values worked out by hand, and where the cache of keys has its elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from epcheck.generators import registry
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operators.attention.decoder_attention import read_keys, write_keys
from epcheck.generators.truth import Outputs, Refusal, Truth

KEY = "com.microsoft::DecoderMaskedMultiHeadAttention"
NAMES = ("query", "key", "value", "mask_index", "attention_bias", "past_key", "past_value", "past_sequence_length",
         "beam_width", "cache_indirection", "bias")  # fmt: skip


def truth(attributes: dict[str, Attribute], outputs: int, **inputs: Any) -> Truth:
    operands = tuple(Operand(name, np.asarray(inputs[name])) if name in inputs else None for name in NAMES)
    names = ("output", "present_key", "present_value")[:outputs]
    return registry.operator_of(KEY).truth(
        Node("DecoderMaskedMultiHeadAttention", "com.microsoft", 1, operands, names, {"num_heads": 1, **attributes})
    )


def values(*arguments: Any, **inputs: Any) -> list[Any]:
    answer = truth(*arguments, **inputs)
    assert isinstance(answer, Outputs), answer
    return [output.value for output in answer.outputs]


def heads(*rows: float) -> Any:
    """A cache of one head of 4 elements, each row a token."""
    return np.repeat(np.float32(rows), 4).reshape(1, 1, len(rows), 4)


def test_equal_scores_average_what_the_cache_and_the_token_hold() -> None:
    token = np.zeros((1, 1, 4), np.float32)
    cache = {"past_key": heads(0, 0, 9), "past_value": heads(3, 5, 100), "past_sequence_length": np.int32([2])}
    output, key, value = values(
        {"past_present_share_buffer": 1}, 3, query=token, key=token + 1, value=token + 7, **cache
    )
    assert output.tolist() == [[[5, 5, 5, 5]]]  # of 3, 5 and 7
    assert key[0, 0, :, 0].tolist() == [0, 0, 1]
    assert value[0, 0, :, 0].tolist() == [3, 5, 7]


def test_a_mask_and_a_bias_are_added_to_the_scores() -> None:
    query = np.zeros((1, 1, 4), np.float32)
    across = {"key": heads(1, 2), "value": heads(3, 5)}
    (output,) = values({}, 1, query=query, mask_index=np.int32([[1, 0]]), **across)
    assert output.tolist() == [[[3, 3, 3, 3]]]
    bias = np.float32([1] * 4 + [0] * 8)
    (output,) = values({"scale": 0.25}, 1, query=query, bias=bias, **across)  # scores of 1 and 2
    share = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(output[0, 0], 3 * (1 - share) + 5 * share, rtol=1e-6)


def test_16_bytes_of_a_head_stand_together() -> None:
    keys = np.arange(2 * 8, dtype=np.float32).reshape(1, 1, 2, 8)  # two tokens of 8 elements
    stored = write_keys(keys, 4)
    assert stored.reshape(-1).tolist() == [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15]
    assert read_keys(stored).tolist() == keys.tolist()


def test_a_beam_reads_the_tokens_of_another() -> None:
    token = np.zeros((2, 1, 4), np.float32)
    cache = np.concatenate([heads(2, 0), heads(8, 0)])
    beams = {"beam_width": np.int32([2]), "cache_indirection": np.int32([[[1, 0], [0, 0]]])}
    found = values({"past_present_share_buffer": 1}, 1, query=token, key=token, value=token, past_key=0 * cache,
                   past_value=cache, past_sequence_length=np.int32([1]), **beams)  # fmt: skip
    assert found[0][:, 0, 0].tolist() == [4, 1]


def test_a_query_has_one_token() -> None:
    two = np.zeros((1, 2, 4), np.float32)
    answer = truth({}, 1, query=two, key=two, value=two)
    assert isinstance(answer, Refusal)
    assert "one token" in answer.reason
