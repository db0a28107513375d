"""Conditions over the facts of a case: what is printed is read as the same."""

from __future__ import annotations

from functools import cache

import pytest

from epcheck.conformance.preparation import case_facts
from epcheck.conformance.records.case_condition import Term, format_condition, holds, parse_condition
from epcheck.conformance.records.facts import Facts, describe_case
from epcheck.generators import suite

OPERATORS = ("Slice", "TopK", "Conv", "Einsum", "Pad", "QLinearConv", "Transpose", "Where")


@cache
def facts_of(case_id: str) -> Facts:
    return describe_case(case_facts.of(suite.case_by_id(case_id).build()))


@pytest.mark.parametrize("operator", OPERATORS)
def test_each_term_about_the_facts_of_a_case_is_read_as_it_is_printed(operator: str) -> None:
    for case in list(suite.cases([operator]))[::40]:
        for fact, value in facts_of(case.id).items():
            operators = (
                ("=",) if isinstance(value, bool) else ("=", "!=") if isinstance(value, str) else ("=", ">=", "<")
            )
            for sign in operators:
                for other in (value, not value) if isinstance(value, bool) else (value,):
                    term = Term(fact, sign, other)
                    assert parse_condition(str(term)) == (term,), term


def test_a_condition_holds_where_all_its_terms_do() -> None:
    facts = facts_of("Slice-13/float32/whole_axis_step_minus_1[runtime]")
    for text, expected in {
        "a value of steps < 0": True,
        "no value of steps < 0": False,
        "a value of steps < 0 and dtype = float32": True,
        "a value of steps < 0 and dtype ≠ float32": False,
        "dtype = float16 or float32": True,
        "dtype ≠ float16 or float32": False,
        "dtype = float16 or float64": False,
        "rank of data ≥ 1 and rank of data < 2": True,
        "steps is present": True,
        "a value of nothing < 0": False,
        "any input contains NaN": False,
        "no input contains NaN": True,
    }.items():
        assert holds(parse_condition(text), facts) == expected, text


def test_a_condition_without_a_term_is_none() -> None:
    with pytest.raises(ValueError, match="a term of the condition is empty"):
        parse_condition("dtype = float16 and ")


def test_no_terms_are_always() -> None:
    assert format_condition(()) == "always"
    assert holds((), {})
