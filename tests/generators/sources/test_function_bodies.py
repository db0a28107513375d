"""Expanded functions: the oracles of several nodes against what onnx stores, and the opsets of a provider."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
import pytest

from epcheck.generators import suite
from epcheck.generators.claims import Claims, claims_of
from epcheck.generators.sources import function_bodies, version_converted
from epcheck.generators.sources.function_bodies import FunctionBodyTest, function_body_tests
from epcheck.generators.sources.version_converted import Conversion, VersionConverted
from epcheck.generators.truth import Open, Outputs

pytestmark = pytest.mark.slow  # onnx computes its tests when it is asked for them, which takes seconds

DML = VersionConverted("dml")


@cache
def by_name() -> dict[str, FunctionBodyTest]:
    return {test.name: test for test in function_body_tests()}


def claims() -> Claims:
    found = claims_of("DmlExecutionProvider")
    assert found is not None
    return found


def converted(name: str) -> tuple[FunctionBodyTest, str]:
    return version_converted.convert_function_body(by_name()[name], claims())


def test_graphs_of_oracles_give_what_onnx_stores() -> None:
    judged = 0
    for test in function_body_tests():
        found = function_bodies.judge_test(test)
        if isinstance(found, Open):
            continue
        judged += 1
        for own, stored in zip(found, test.outputs, strict=True):
            assert (own.value.shape, own.value.dtype) == (stored.shape, stored.dtype), test.name
            floating = stored.dtype.kind == "f"
            own_value, other = (a.astype(np.float64) if floating else a for a in (own.value, stored))
            np.testing.assert_allclose(own_value, other, 2e-3, 1e-5 if floating else 0, err_msg=test.name)
    assert judged > 200


def test_an_expanded_function_gets_the_newest_opset_of_the_provider() -> None:
    test, why = converted("test_gelu_tanh_1_expanded")
    assert why == ""
    for proto in test.model.graph.node:
        version = onnx.defs.get_schema(proto.op_type, test.opset, "").since_version
        assert proto.op_type == "Constant" or version in claims().versions("", proto.op_type)
    onnx.checker.check_model(test.model, full_check=True)


def test_what_cannot_be_converted_stays_as_it_is_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    test, why = converted("test_layer_normalization_2d_axis0_expanded")
    assert test.opset == by_name()[test.name].opset == 17
    assert "Unrecognized attribute: axes" in why
    _, why = converted("test_sce_mean_expanded")
    assert why == ""
    known = version_converted.all_operators()
    others = {key: operator for key, operator in known.items() if key != "NegativeLogLikelihoodLoss"}
    monkeypatch.setattr(version_converted, "all_operators", lambda: others)
    _, why = converted("test_sce_mean_expanded")
    assert why.endswith("the suite has no oracle of NegativeLogLikelihoodLoss that says whether it means the same")


def test_another_meaning_is_found() -> None:
    test = by_name()["test_softmax_example_expanded"]
    assert version_converted._why_changed_body(test, 22) == ""
    assert version_converted._why_changed_body(test, 12) == "ReduceSum-11 means something else"


def test_its_cases_build_and_say_which_nodes_may_be_elsewhere() -> None:
    found = {case.sample: case for case in suite.cases(("Mul",), source=DML) if "_expanded" in case.sample}
    made = found["test_gelu_tanh_1_expanded"].build()
    onnx.checker.check_model(made.model)
    assert isinstance(made.truth, Outputs)
    np.testing.assert_array_equal(made.truth.outputs[0].value, by_name()["test_gelu_tanh_1_expanded"].outputs[0])
    around = made.node.surroundings
    assert around is not None
    assert around.level == "all"
    assert "Tanh" not in around.elsewhere
    assert {"Constant"} <= set(around.elsewhere)


def test_the_list_has_a_line_for_each() -> None:
    each = Conversion(by_name()["test_celu_expanded"], 12)
    assert str(each) == f"test_celu_expanded: opset 12 -> {each.now}"
    assert next(version_converted.convert_tests(DML)).now
