"""What a declaration gives beside its cases: how it is pickled, and why it has no DirectML operator."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest

from epcheck.generators import registry, suite
from epcheck.generators.node import qualified_name
from epcheck.generators.operator import NotLowered


@pytest.mark.parametrize("key", ["Slice", "Add", "PRelu", "com.microsoft::Gelu"])
def test_an_operator_of_the_suite_is_pickled_as_its_key(key: str) -> None:
    operator = registry.operator_of(key)
    assert pickle.loads(pickle.dumps(operator)) is operator
    assert copy.deepcopy(operator) is operator
    assert len(pickle.dumps(operator)) < 100


def test_a_changed_operator_is_pickled_as_it_is() -> None:
    changed = replace(registry.operator_of("Slice"), varied=("T", "Tind"))
    assert pickle.loads(pickle.dumps(changed)) == changed


def test_an_operator_that_never_is_a_single_directml_operator_says_what_it_is_instead() -> None:
    reasons = {
        operator.lower.reason
        for operator in registry.all_operators().values()
        if isinstance(operator.lower, NotLowered)
    }
    assert len(reasons) == 5
    built = suite.case_by_id("Compress-11/float32/axis_1[runtime]").build()
    assert built.lowering is None


def test_a_qualified_name_has_the_domain_unless_it_is_that_of_onnx() -> None:
    assert qualified_name("Slice", "") == "Slice"
    assert qualified_name("Gelu", "com.microsoft") == "com.microsoft::Gelu"
