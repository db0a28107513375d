"""Designed cases: their files are read as they are written, and what they add is pairs and triples that no case has."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators import suite
from epcheck.generators.operator_index import family_folder
from epcheck.generators.registry import all_operators
from epcheck.generators.sources import designs
from epcheck.generators.sources.designs import FILE, Design, parse_line, read_designs
from epcheck.generators.truth import Outputs, Selection
from tests.generators.designing import Coverage, draw_designs
from tests.generators.node_aspects import describe_aspects

DESIGNED = [key for key, operator in all_operators().items() if read_designs(operator)]


def test_every_operator_but_those_with_graphs_as_attributes_has_designs() -> None:
    undesigned = {key for key in all_operators() if key not in DESIGNED}
    folders = {family_folder(key) for key in undesigned}
    assert {folder.name for folder in folders if folder} <= {"sequence"}


def test_a_line_is_read_as_it_is_written() -> None:
    design = Design(
        "com.microsoft::Gelu", 1, ("float16",), "runtime", "a", {"shape": [2, 3]}, {"data": "every_value"}, "ties"
    )
    line = 'com.microsoft::Gelu-1/float16/a[runtime] {"shape":[2,3],"data of":"every_value","data are":"ties"}'
    assert design.to_line() == line
    assert parse_line(line) == design
    assert design.name.startswith("design_a_with_data_shape_ties_data_")


def test_every_line_of_a_file_is_that_of_its_design_and_has_an_id_of_its_own() -> None:
    for folder in {family_folder(key) for key in DESIGNED}:
        assert folder is not None
        lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
        assert [parse_line(line).to_line() for line in lines] == lines
    for key in DESIGNED:
        cases = [case.id for case in designs.cases(all_operators()[key])]
        assert len(set(cases)) == len(cases)


@pytest.mark.parametrize("operator", ["Slice", "TopK", "QLinearConv", "Cast", "LSTM", "com.microsoft::MatMulNBits"])
def test_a_design_has_a_truth(operator: str) -> None:
    with np.errstate(all="ignore"):
        for case in list(suite.cases([operator], patterns=["/design_"]))[::4]:
            assert case.kind == designs.KIND
            assert isinstance(case.build().truth, Outputs | Selection), case.id


def test_a_pair_and_a_triple_count_once() -> None:
    coverage = Coverage()
    few = frozenset({"a", "b", "c"})
    assert coverage.gain(few) == 24 * 3 + 1
    coverage.add(few)
    assert coverage.gain(few) == 0
    assert coverage.gain(frozenset({"a", "b", "d"})) == 24 * 2 + 1


def test_the_same_seed_draws_the_same_designs() -> None:
    operator = all_operators()["Transpose"]
    first, again = (list(draw_designs(operator, 20, "7")) for _ in range(2))
    assert first == again
    assert len({design.make_case(operator).id for design, _ in first}) == 20


def test_aspects_of_a_node_are_words() -> None:
    built = suite.case_by_id("Slice-13/int8/axes_negative[runtime]").build()
    aspects = describe_aspects(built.node, ("int8",), "runtime", built.truth)
    assert {"dtype 0 int8", "binding runtime", "axes has one below 0", "axes does not ascend"} <= aspects
    assert {"data has 2 dimensions", "data has up to 63 elements", "output 0 has 2 dimensions"} <= aspects
