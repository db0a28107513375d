"""BifurcationDetector: values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from epcheck.generators import registry
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Outputs, Refusal, Truth


def truth(source: Any, current: Any, start: int, predicted: Any = None, least: int = 1, most: int = 1) -> Truth:
    values = {"src_tokens": source, "cur_tokens": current, "prev_suffix_match_idx": [start], "pred_tokens": predicted}
    operands = tuple(Operand(n, np.array(v, np.int64)) for n, v in values.items() if v is not None)
    attributes = {"min_ngram_size": least, "max_ngram_size": most}
    node = Node("BifurcationDetector", "com.microsoft", 1, operands, ("tokens", "suffix_match_idx"), attributes)
    return registry.operator_of("com.microsoft::BifurcationDetector").truth(node)


def found(*arguments: Any, **more: Any) -> tuple[list[int], list[int]]:
    """(the tokens, what the index may be)."""
    answer = truth(*arguments, **more)
    assert isinstance(answer, Outputs), answer
    tokens, index = answer.outputs
    among = index.value if index.undefined is None else index.undefined.among
    assert among is not None
    return tokens.value.tolist(), among.tolist()


def test_a_prediction_is_taken_up_to_where_it_leaves_the_source() -> None:
    assert found([1, 5, 3, 4], [0], 0, [1, 5, 9, 9, 9]) == ([0, 1, 5, 9], [-1])
    assert found([1, 5, 3, 4], [0], 2, [3, 4, 8]) == ([0, 3, 4, 8], [-1])


def test_one_match_counts_and_two_do_not() -> None:
    assert found([1, 5, 3, 5], [0, 3], 0) == ([0, 3], [2, 3])
    assert found([1, 5, 3, 5], [0, 5], 0) == ([0, 5], [-1])
    assert found([1, 5, 3, 5], [3, 5], 0, least=1, most=2) == ([3, 5], [2, 4])


def test_the_rules() -> None:
    assert isinstance(truth([1, 2], [0], 0, [1, 2]), Refusal)
    assert isinstance(truth([1, 2], [0], 3, [1]), Refusal)
    assert isinstance(truth([1, 2], [0], 0, least=2), Refusal)
