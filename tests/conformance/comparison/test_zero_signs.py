"""Signs of zeros: seen where somebody defines them, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.conformance.comparison import compare, zero_signs
from epcheck.conformance.comparison.accuracy import measure_accuracy
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.records.opinion import Difference
from epcheck.generators import registry, suite
from epcheck.generators.citation import statement
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Output, Outputs, Ulp, ZeroSigns

BOUND = Ulp(4.0, (statement("a table"),), 1e-3)
RULE = ZeroSigns("a rule")


def found(
    truth: list[float], got: list[float], zeros: ZeroSigns | None = RULE, bound: Ulp = BOUND
) -> tuple[Difference, ...]:
    outputs = {"y": np.array(got, np.float32)}
    whole = Outputs((Output("y", np.array(truth, np.float32), bound, np.array(truth), zeros),))
    assert compare.differences(whole, outputs) == compare.differences(whole, outputs, measure_accuracy(whole, outputs))
    assert compare.are_right(whole, outputs) == (not compare.differences(whole, outputs))
    return compare.differences(whole, outputs)


def test_a_zero_of_the_wrong_sign_is_wrong_where_a_rule_defines_it() -> None:
    (difference,) = found([1.0, -0.0, 0.0], [1.0, 0.0, 0.0])
    rule = "a zero must have the expected sign (a rule)"
    assert (difference.reason, difference.wrong) == (f"1 of 3 elements are wrong; {rule}", 1)
    assert [(wrong.at, wrong.expected, wrong.got) for wrong in difference.first] == [((1,), "-0.0", "0.0")]
    assert found([1.0, -0.0, 0.0], [1.0, 0.0, -0.0], zeros=None) == ()


def test_a_zero_that_a_floor_moves_has_no_sign_to_compare() -> None:
    assert found([-0.0, 1.0], [1e-4, 1.0]) == found([1e-4, 1.0], [-0.0, 1.0]) == ()


def test_the_rule_may_hold_for_some_elements() -> None:
    zeros = ZeroSigns("a rule", np.array([True, False]))
    assert found([-0.0, -0.0], [-0.0, 0.0], zeros) == ()
    assert found([-0.0, -0.0], [0.0, 0.0], zeros)[0].wrong == 1


def test_both_rules_are_named_where_both_are_broken() -> None:
    (difference,) = found([-0.0, 1.0], [0.0, 1.5])
    assert difference.wrong == 2
    assert "each must be within 4 ULP (a table); a zero must have the expected sign" in difference.reason


def test_elements_beyond_a_block_are_seen() -> None:
    truth = [1.0] * 70_000 + [-0.0]
    (difference,) = found(truth, [*truth[:-1], 0.0])
    assert difference.first[0].at == (70_000,)


def test_a_prepared_case_keeps_the_rule() -> None:
    prepared = prepared_case.of(suite.case_by_id("Mod-13/float32/fractions[runtime]").build())
    assert isinstance(prepared.truth, Outputs)
    (output,) = prepared.truth.outputs
    assert output.zeros is not None
    assert output.zeros.source.startswith("the page: the sign of the dividend")
    assert zero_signs.find_defined_signs(output).shape == output.value.shape


M, P = -0.0, 0.0
SIGNS = [
    ("Sin", 7, ([M, P],), {}, [True, False]),
    ("Erf", 13, ([M, P],), {}, [True, False]),
    ("Sqrt", 13, ([M, P],), {}, [True, False]),
    ("Ceil", 13, ([-0.5, P, M],), {}, [True, False, True]),
    ("Round", 11, ([-0.5, 0.5],), {}, [True, False]),
    ("Log", 13, ([1.0],), {}, [False]),
    ("Reciprocal", 13, ([-np.inf, np.inf],), {}, [True, False]),
    ("Add", 14, ([M, M, 1.0], [M, P, -1.0]), {}, [True, False, False]),
    ("Sub", 14, ([M, M, 1.0], [P, M, 1.0]), {}, [True, False, False]),
    ("Mul", 14, ([M, M, P, 1e-30], [-1.0, 1.0, -2.0, -1e-30]), {}, [False, True, True, True]),
    ("Div", 14, ([M, 1.0, P], [-1.0, -np.inf, 3.0]), {}, [False, True, False]),
    ("Pow", 15, ([M, M, -10.0], [3.0, 2.0, -401.0]), {}, [True, False, True]),
    ("LeakyRelu", 16, ([M, -2.0, P],), {"alpha": 0.0}, [True, True, False]),
    ("PRelu", 16, ([M, -2.0, P], [0.0]), {}, [True, True, False]),
    ("Mod", 13, ([-4.0, 4.0, P], [2.0, -2.0, -3.0]), {"fmod": 1}, [True, False, False]),
]


@pytest.mark.parametrize(("operator", "version", "inputs", "attributes", "signs"), SIGNS)
def test_operators_declare_their_rule(
    operator: str, version: int, inputs: tuple[list[float], ...], attributes: dict[str, float], signs: list[bool]
) -> None:
    names = {"PRelu": ("X", "slope")}.get(operator, ("A", "B"))
    operands = tuple(Operand(name, np.array(value, np.float32)) for name, value in zip(names, inputs, strict=False))
    truth = registry.all_operators()[operator].truth(Node(operator, "", version, operands, ("out",), attributes))
    assert isinstance(truth, Outputs)
    (output,) = truth.outputs
    assert (output.value == 0).all()
    assert np.signbit(output.value).tolist() == signs
    assert zero_signs.are_right(output, output.value)
    assert zero_signs.wrong(output.value, -output.value, zero_signs.find_defined_signs(output)).all()


def test_what_the_page_leaves_open_is_not_compared() -> None:
    operands = tuple(Operand(name, np.array(value, np.float32)) for name, value in (("A", [M, M]), ("B", [2.0, -2.0])))
    truth = registry.all_operators()["Mod"].truth(Node("Mod", "", 13, operands, ("C",), {"fmod": 1}))
    assert isinstance(truth, Outputs)
    assert zero_signs.find_defined_signs(truth.outputs[0]).tolist() == [False, True]
