"""The history of searches: nodes are not drawn twice, and operators that were drawn less often come first."""

from __future__ import annotations

from collections import Counter

import pytest

from epcheck.generators import registry
from epcheck.generators.fuzzing import history as histories
from epcheck.generators.fuzzing.drawing import Source
from epcheck.generators.fuzzing.drawn_case import case_of
from epcheck.generators.fuzzing.history import SearchHistory

SOME = tuple(registry.operator_of(key) for key in ("Slice", "Conv", "ReduceSum", "Relu"))


def test_a_node_that_was_judged_is_not_drawn_again() -> None:
    history = SearchHistory()
    first = Source(SOME, 1).draw(60)
    for drawn in first:
        history.add(drawn.node, drawn.binding)
        assert history.has(drawn.node, drawn.binding)
    source = Source(SOME, 1, history=history)
    again = {case_of(drawn).id for drawn in source.draw(60)}
    assert len(again) >= 30
    assert not again & {case_of(drawn).id for drawn in first}
    assert source.tally.repeated >= 40
    assert not history.has(first[0].node, "another binding")


def test_operators_that_were_drawn_less_often_come_first() -> None:
    history = SearchHistory(3, Counter({"Slice": 500, "Conv": 495, "Relu": 500}))
    source = Source(SOME, 1, history=history)
    source.draw(1)
    for _ in range(histories.LEAD + 5 - sum(history.turns.values()) + 1495):
        source._choose_space()
    assert history.turns == {"Slice": 500, "Conv": 500, "ReduceSum": histories.LEAD, "Relu": 500}
    for _ in range(8):
        source._choose_space()
    assert history.turns == {"Slice": 502, "Conv": 502, "ReduceSum": histories.LEAD + 2, "Relu": 502}


def test_without_a_history_operators_take_turns_as_before() -> None:
    assert [case_of(a).id for a in Source(SOME, 5).draw(40)] == [
        case_of(b).id for b in Source(SOME, 5, history=SearchHistory()).draw(40)
    ]


def test_the_oldest_nodes_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "MOST_NODES", 3)
    history = SearchHistory()
    drawn = list({case_of(each).id: each for each in Source(SOME, 1).draw(20)}.values())[:5]
    for each in drawn:
        history.add(each.node, each.binding)
    assert [history.has(each.node, each.binding) for each in drawn] == [False, False, True, True, True]
