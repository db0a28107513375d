"""Which nodes have their turn on which provider, and what is copied between."""

from __future__ import annotations

from epcheck.models.placement.placement import Placement
from tests.models.placed_models import CPU, DML, model, node, placed


def turns(found: Placement) -> list[tuple[str, tuple[str, ...]]]:
    return [(segment.provider, segment.nodes) for segment in found.segments]


def copies(found: Placement) -> list[tuple[str, ...]]:
    return [tuple(copy.value for copy in segment.copies) for segment in found.segments]


def test_nodes_on_one_provider_are_one_segment() -> None:
    found = placed(model(node("Relu", "x", "a"), node("Neg", "a", "y")))
    assert turns(found) == [(DML, ("a", "y")), (CPU, ())]
    assert copies(found) == [("x",), ("y",)]


def test_the_provider_changes_as_rarely_as_the_graph_allows() -> None:
    found = placed(
        model(node("Relu", "x", "a"), node("Det", "a", "b"), node("Neg", "x", "c"), node("Det", "c", "d"),
              node("Add", "b d", "y"), shape=(3, 3))
    )  # fmt: skip
    assert turns(found) == [(DML, ("a", "c")), (CPU, ("b", "d")), (DML, ("y",)), (CPU, ())]
    assert copies(found) == [("x",), ("a", "c"), ("b", "d"), ("y",)]
    assert [segment.copied_bytes for segment in found.segments] == [36, 72, 8, 4]
    assert found.segments[1].operators == {"Det-11": 2}


def test_every_copy_is_in_a_segment() -> None:
    found = placed(model(node("Relu", "x", "a"), node("Det", "a", "d"), node("Neg", "d", "y"), shape=(3, 3)))
    assert sorted(copy.value for segment in found.segments for copy in segment.copies) == ["a", "d", "x", "y"]
    assert len(found.copies) == 4


def test_a_node_that_was_folded_away_has_no_turn() -> None:
    whole = model(node("Relu", "x", "a"), node("Neg", "a", "b"), node("Abs", "b", "y"))
    found = placed(whole, [(DML, "Relu", "a"), (DML, "Abs", "y")])
    assert turns(found)[0] == (DML, ("a", "b", "y"))  # one for the provider, which has it in a fused one
    assert sum(len(segment.nodes) for segment in found.segments) == 3
