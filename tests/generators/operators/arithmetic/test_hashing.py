"""MurmurHash3 and the n-gram hashes: published values, and values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operators.arithmetic.hashing import hash_bytes
from epcheck.generators.truth import Outputs, Refusal, Truth

DTYPES = {"cumulative_sequence_length": np.int32, "segment_ids": np.int32, "past_segment_ids": np.int32,
          "capture_count": np.int32}  # fmt: skip
SMALL: dict[str, Attribute] = {"max_ngram_size": 2, "n_head_per_ngram": 1, "pad_id": 1}


@pytest.mark.parametrize(
    ("key", "seed", "expected"),
    [(b"test", 0, 0xBA6BD213), (b"test", 0x9747B28C, 0x704B81DC), (b"aaaa", 0x9747B28C, 0x5A97808A)],
)
def test_the_hash_is_the_published_one(key: bytes, seed: int, expected: int) -> None:
    assert hash_bytes(key, seed) == expected
    x = np.frombuffer(key, "<i4")
    node = Node("MurmurHash3", "com.microsoft", 1, (Operand("X", x),), ("Y",), {"seed": seed})
    answer = registry.operator_of("com.microsoft::MurmurHash3").truth(node)
    assert isinstance(answer, Outputs)
    assert answer.outputs[0].value.dtype == np.uint32
    assert answer.outputs[0].value.tolist() == [expected]


def truth(name: str, attributes: dict[str, Attribute], outputs: tuple[str, ...], **inputs: Any) -> Truth:
    operands = tuple(Operand(key, np.array(value, DTYPES.get(key, np.int64))) for key, value in inputs.items())
    node = Node(name, "com.microsoft", 1, operands, outputs, {**SMALL, **attributes})
    return registry.operator_of(f"com.microsoft::{name}").truth(node)


def values(*arguments: Any, **inputs: Any) -> list[Any]:
    answer = truth(*arguments, multipliers=[3, 5], vocab_sizes=[7], **inputs)
    assert isinstance(answer, Outputs), answer
    return [output.value.tolist() for output in answer.outputs]


def test_a_token_is_mixed_with_the_one_before() -> None:
    both = ("hash_ids", "present_ids")
    assert values("NGramHashMapping", {}, both, input_ids=[[2, 4]]) == [[[[6 ^ 5], [12 ^ 10]]], [[4]]]
    assert values("NGramHashMapping", {}, both[:1], input_ids=[[2]], past_ids=[[4]], head_offsets=[100]) == [
        [[[100 + (6 ^ 20) % 7]]]
    ]


def test_history_ends_at_the_end_of_a_sequence_and_of_a_segment() -> None:
    ids = {"input_ids": [[2, 0, 4]]}
    plain = values("NGramHashMapping", {}, ("hash_ids",), **ids, eos_token_id=0)
    reset = values("NGramHashMapping", {"reset_on_eos": 1}, ("hash_ids",), **ids, eos_token_id=0)
    assert plain == [[[[6], [10 % 7], [12 % 7]]]]
    assert reset == plain  # of two tokens, the one before an end is an end
    ids = {"input_ids": [[2, 3, 4]]}
    assert values("NGramHashMapping", {}, ("hash_ids",), **ids, segment_ids=[[0, 0, 1]])[0][0][2] == [(12 ^ 5) % 7]


def test_requests_are_apart_and_their_states_are_captured() -> None:
    found = values("VarlenNGramHashMapping", {"state_update_capacity": 2},
                   ("hash_ids", "present_ids", "", "state_update"), input_ids=[2, 4, 6],
                   cumulative_sequence_length=[0, 2, 3], capture_count=[1, 9])  # fmt: skip
    assert found == [[[6 ^ 5], [12 ^ 10], [(18 ^ 5) % 7]], [[4], [6]], [[[2], [1]], [[6], [1]]]]


@pytest.mark.parametrize(
    ("attributes", "inputs", "why"),
    [
        ({"max_ngram_size": 1}, {}, "must be at least 2"),
        ({}, {"vocab_sizes": [0]}, "above 0"),
        ({}, {"multipliers": [3]}, "2 multipliers"),
        ({}, {"past_ids": [[1, 2]]}, "1 ids of each request"),
    ],
)
def test_the_rules(attributes: dict[str, Attribute], inputs: dict[str, Any], why: str) -> None:
    whole = {"input_ids": [[1]], "multipliers": [3, 5], "vocab_sizes": [7], **inputs}
    answer = truth("NGramHashMapping", attributes, ("hash_ids",), **whole)
    assert isinstance(answer, Refusal)
    assert why in answer.reason
