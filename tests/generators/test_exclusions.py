"""What of ai.onnx has no case: nothing without a reason, and no reason for what has cases or is not there."""

from __future__ import annotations

import re

import onnx
import onnxruntime
import pytest
from onnx import TensorProto, defs, helper
from onnxruntime.capi import onnxruntime_pybind11_state as pybind

from epcheck.generators import exclusions, registry, schema, suite

SCHEMAS = [s for s in defs.get_all_schemas_with_history() if not s.domain and not s.deprecated]


def types() -> set[str]:
    """The element types in the schemas of ai.onnx."""
    spelled = {name for s in SCHEMAS for c in s.type_constraints for name in c.allowed_type_strs}
    return {found for name in spelled for found in re.findall(r"tensor\((\w+)\)", name)}


def test_every_operator_has_cases_or_a_reason() -> None:
    covered = {operator.name for operator in registry.all_operators().values() if not operator.domain}
    assert {s.name for s in SCHEMAS} - covered - exclusions.OPERATORS.keys() == set()
    assert {row.name: row.why for row in exclusions.list_excluded_operators() if not row.why} == {}


def test_no_reason_is_for_what_has_cases_or_is_not_there() -> None:
    covered = {operator.name for operator in registry.all_operators().values() if not operator.domain}
    assert exclusions.OPERATORS.keys() & covered == set()
    assert exclusions.OPERATORS.keys() - {s.name for s in SCHEMAS} == set()
    named = dict(exclusions.list_element_types())
    assert {name for name in exclusions.TYPES if not named.get(name)} == set()


def test_no_reason_is_for_a_kernel_of_an_operator_that_has_cases() -> None:
    assert exclusions.KERNELS.keys() & registry.all_operators().keys() == set()
    assert {name.rpartition("::")[0] for name in registry.all_operators()} & exclusions.DOMAINS.keys() == set()
    assert all(reason.why and reason.source for reason in (*exclusions.KERNELS.values(), *exclusions.DOMAINS.values()))


def test_every_reason_of_a_kernel_is_of_one_that_some_runtime_has() -> None:
    schemas = {(s.domain, s.name) for s in pybind.get_all_operator_schema()}
    named = {f"{domain}::{name}" if domain else name for domain, name in schemas}
    absent = exclusions.KERNELS.keys() - named
    if onnxruntime.__version__.startswith("1.24."):  # of onnxruntime-directml
        absent -= {"com.microsoft::GatherPacked"}
    assert absent == {"GroupNorm"}  # DirectML's provider registers it


def test_every_element_type_has_cases_or_a_reason() -> None:
    rows = dict(exclusions.list_element_types())
    assert len(rows) == len(types())
    assert {name for name, why in rows.items() if not why} - suite.dtypes() == set()
    assert rows["float8_e4m3fn"] == rows["int2"] == rows["float32"] == ""
    assert rows["complex64"] == "ONNX Runtime has no tensor of it"


def test_the_operators_of_opset_26_to_28_have_cases() -> None:
    added = {s.name for s in SCHEMAS if s.since_version >= 26} - {s.name for s in SCHEMAS if s.since_version < 26}
    assert {"BitCast", "CumProd", "CausalConvWithState", "LinearAttention", "SwiGLU"} <= added
    assert added <= registry.all_operators().keys()


def test_what_no_runtime_has_is_not_in_the_registry_and_is_no_function() -> None:
    kernels = {kernel.op_name for kernel in pybind.get_all_opkernel_def() if kernel.domain in ("", "ai.onnx")}
    assert "Slice" in kernels
    named = [name for name, why in exclusions.OPERATORS.items() if why == exclusions.NO_RUNTIME]
    assert named == ["ImageDecoder"]
    for name in named:
        assert name not in kernels
        definition = defs.get_schema(name)
        assert not definition.has_function
        assert not definition.has_context_dependent_function


NO_TENSOR = [name for name, why in exclusions.TYPES.items() if why == "ONNX Runtime has no tensor of it"]


@pytest.mark.parametrize("name", NO_TENSOR)
def test_onnx_runtime_has_no_tensor_of_the_type(name: str) -> None:
    element = getattr(TensorProto, name.upper())
    node = helper.make_node("Identity", ["x"], ["y"]) if name.startswith("complex") else None
    node = node or helper.make_node("Cast", ["x"], ["y"], to=element)
    x = helper.make_tensor_value_info("x", element if name.startswith("complex") else TensorProto.FLOAT, [2])
    graph = helper.make_graph([node], "types", [x], [helper.make_tensor_value_info("y", element, [2])])
    opset = 25 if name.startswith("complex") else 28
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)
    with pytest.raises(Exception, match=r"MLDataType|INVALID_GRAPH|Opset|opset"):
        onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def test_an_operator_that_the_installed_onnx_does_not_know_is_left_out_with_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    knows = schema.knows
    monkeypatch.setattr(schema, "knows", lambda name, domain="": name != "SwiGLU" and knows(name, domain))
    registry.unknown_operators.cache_clear()
    registry._modules.cache_clear()
    try:
        assert registry.unknown_operators() == {"SwiGLU"}
        assert "SwiGLU" not in registry.all_operators()
        unknown = [row for row in exclusions.list_excluded_operators() if not row.since_versions]
        assert [(row.name, row.why) for row in unknown] == [
            ("SwiGLU", f"onnx {onnx.__version__} has no schema of it; a newer onnx has")
        ]
    finally:
        monkeypatch.undo()
        registry.unknown_operators.cache_clear()
        registry._modules.cache_clear()
