"""onnx's node tests in other versions of their operators."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
import pytest

from epcheck.generators import registry, suite
from epcheck.generators.claims import claims_of
from epcheck.generators.sources import version_converted
from epcheck.generators.sources.node_tests import NodeTest
from epcheck.generators.sources.version_converted import Conversion, ConversionError, VersionConverted
from epcheck.generators.truth import Outputs

pytestmark = pytest.mark.slow  # onnx computes its tests when it is asked for them, which takes seconds

DML = VersionConverted("dml")


@cache
def by_name() -> dict[str, Conversion]:
    found = version_converted.convert_tests(DML)
    return {each.test.name: each for each in found if isinstance(each.test, NodeTest)}


def test_a_test_runs_in_the_newest_version_that_is_claimed() -> None:
    found = by_name()["test_reshape_negative_dim"]
    claims = claims_of("DmlExecutionProvider")
    assert claims is not None
    newest = claims.versions("", "Reshape")[-1]
    assert (found.test.node.since_version, found.was > newest, found.why) == (newest, True, "")
    (entry,) = found.test.model.opset_import
    assert entry.version == newest
    assert sum(each.test.node.since_version != each.was for each in by_name().values()) > 300


def test_what_cannot_be_converted_stays_and_says_why() -> None:
    why = {name: found.why for name, found in by_name().items() if found.why}
    assert why["test_attention_4d"] == "the provider claims no version of Attention"
    assert why["test_bitcast_float32_to_int32"] == "the provider claims no version of BitCast"
    assert all(found.test.node.since_version == found.was for found in by_name().values() if "claims no" in found.why)
    words = {text.partition(": ")[2] for text in why.values()}
    assert "it does not allow T = int8" in words


def test_a_version_that_means_something_else_is_not_taken() -> None:
    test = by_name()["test_softmax_example"].test
    other = version_converted._convert_test(test, 11)
    assert not isinstance(other, str)
    wide = version_converted._convert_test(by_name()["test_softmax_axis_0"].test, 11)
    assert not isinstance(wide, str)
    softmax = registry.operator_of("Softmax")
    assert version_converted._why_not_alike(test, other, softmax) == ""
    assert (
        version_converted._why_not_alike(by_name()["test_softmax_axis_0"].test, wide, softmax)
        == "it means something else"
    )
    assert version_converted._why_not_alike(test, other, None).startswith("the suite has no oracle")


def test_its_cases_have_ids_of_their_own_and_build() -> None:
    cases = list(suite.cases(("Reshape", "Relu"), source=DML))
    assert {case.binding for case in cases} == {"onnx@dml"}
    for case in cases:
        built = case.build()
        assert isinstance(built.truth, Outputs), case.id
        onnx.checker.check_model(built.model)
    relu = suite.case_by_id("Relu-14/float32/test_relu[onnx@dml]")
    truth = relu.build().truth
    assert isinstance(truth, Outputs)
    np.testing.assert_array_equal(truth.outputs[0].value, by_name()["test_relu"].test.outputs[0])


def test_the_source_is_named_by_its_provider() -> None:
    assert suite.sources_of("onnx@DmlExecutionProvider") == (DML,)
    assert str(DML) == "onnx@dml"
    with pytest.raises(ConversionError, match="onnx@xnn: there is no claim table of 'xnn'; there is one of cpu, "):
        suite.sources_of("onnx@xnn")
