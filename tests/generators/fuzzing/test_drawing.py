"""Drawing: the same seed gives the same nodes, every operator has some, and few draws are in vain."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.claims import DML, claims_of
from epcheck.generators.fuzzing import drawing, node_mutation
from epcheck.generators.fuzzing.drawing import Drawn, Source, Space, Tally
from epcheck.generators.fuzzing.drawn_case import case_of
from epcheck.generators.fuzzing.oracle import Open
from epcheck.generators.node import Node, Operand
from epcheck.generators.serialization.node_json import SerializedNode
from epcheck.generators.truth import Refusal

SOME = tuple(registry.operator_of(key) for key in ("Slice", "Conv", "ReduceSum", "com.microsoft::Gelu"))


def ids(seed: int, count: int) -> list[str]:
    return [case_of(drawn).id for drawn in Source(SOME, seed).draw(count)]


def test_the_same_seed_gives_the_same_nodes_and_another_others() -> None:
    assert ids(1, 40) == ids(1, 40)
    assert len(set(ids(1, 40)) & set(ids(2, 40))) < 10


def test_operators_take_turns() -> None:
    drawn = Source(SOME, 1).draw(200)
    counts = [sum(each.operator is operator for each in drawn) for operator in SOME]
    assert min(counts) >= 20


def test_a_case_is_built_with_model_feeds_and_truth() -> None:
    for drawn in Source(SOME, 3).draw(60):
        built = case_of(drawn).build()
        assert built.case.id.startswith(f"{drawn.operator.key}-{drawn.node.since_version}/")
        assert "/fuzz_" in built.case.id
        assert built.truth is drawn.truth
        assert built.model


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(registry.all_operators()))
def test_every_operator_has_nodes_that_its_oracle_judges(key: str) -> None:
    """At least four in 300 draws; most have many more in the first 60, where the others are not drawn."""
    space, tally, random = Space(registry.operator_of(key)), Tally(), Random(1)
    found: set[str] = set()
    draws = 0
    while draws < 60 or (draws < 300 and len(found) < 4):
        draws += 1
        if drawn := space.draw(random, tally):
            found.add(case_of(drawn).id)
    assert len(found) >= 4
    assert tally.drawn == draws >= tally.judged + tally.open + tally.valueless


def test_large_sizes_and_several_ranks_are_drawn() -> None:
    source = Source([registry.operator_of("Relu")], 1)
    shapes = [operand.value.shape for each in source.draw(400) for operand in each.node.inputs if operand is not None]
    sizes = {size for shape in shapes for size in shape}
    assert {len(shape) for shape in shapes} >= set(range(9))
    assert {15, 16, 17, 31, 33, 63, 65, 127, 129, 255, 257} & sizes
    assert max(np.prod(shape) for shape in shapes) > 1024


def test_versions_that_a_provider_does_not_take_are_drawn_rarely() -> None:
    source = Source([registry.operator_of("Relu")], 1)
    for drawn in source.draw(100):
        if drawn.dtypes == ("float32",):
            source.note_untaken(drawn)
        else:
            source.note_taken(drawn)
    assert sum(drawn.dtypes == ("float32",) for drawn in source.draw(200)) <= 20


def test_what_a_provider_does_not_claim_is_drawn_rarely() -> None:
    """Of 300 nodes all but a few; an operator of which it claims nothing gives way to the others."""
    claims = claims_of(DML)
    assert claims is not None
    wanted = [registry.operator_of(key) for key in ("Relu", "Unique")]
    drawn = Source(wanted, 1, claims=claims).draw(300)
    unclaimed = [
        each
        for each in drawn
        if claims.why_not("", each.operator.name, each.node.since_version, {"T": each.dtypes[0]}) is not None
    ]
    assert 1 <= len(unclaimed) <= 25
    assert sum(each.operator.name == "Unique" for each in drawn) <= 15


def test_a_kept_node_is_judged_again() -> None:
    (drawn,) = Source(SOME, 5).draw(1)
    again = drawing.judge_node(drawn.serialized)
    assert isinstance(again, Drawn)
    assert case_of(again).id == case_of(drawn).id
    foreign = SerializedNode(drawn.node, drawn.dtypes, drawn.binding)
    object.__setattr__(foreign, "node", type(drawn.node)("Nothing", "", 1, (), ("y",)))
    assert drawing.judge_node(foreign) == Open("the suite has no such operator")


def test_a_smaller_node_must_stay_on_its_side() -> None:
    drawn = next(d for d in Source([registry.operator_of("Transpose")], 1).draw(50) if not isinstance(d.truth, Refusal))
    refused = type(drawn.node)("Transpose", "", 13, drawn.node.inputs, drawn.node.outputs, {"perm": (0, 0)})
    assert drawing.replace_node(drawn, refused) is None


def test_the_data_of_a_node_with_small_integers_or_without_a_first_input_is_changed() -> None:
    """No index of int8 counts from the end of 1,025 elements, and an omitted first input has no shape."""
    large, indices = Operand("data", np.zeros((1025,), np.float32)), Operand("indices", np.array([5, 9], np.int8))
    node = Node("Gather", "", 13, (large, indices), ("output",))
    assert wrap(node) == {(5, 9)}
    without = Node("Resize", "", 19, (None, Operand("sizes", np.array([0, 1], np.int64))), ("Y",))
    assert wrap(without) == {(0, 1), (-2, 1), (0, -1), (-2, -1)}


def wrap(node: Node) -> set[tuple[int, ...]]:
    """What the second input becomes."""
    nodes = (node_mutation.mutate_node(node, Random(seed), "wrapped") for seed in range(40))
    return {tuple(operand.value.tolist()) for each in nodes if (operand := each.inputs[1]) is not None}
