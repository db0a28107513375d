"""Every case, built: its model is valid ONNX, has the opset and types as stated, is the same everywhere; and DirectML's
pages, where they define it, are of one opinion with its truth. Building takes half a minute: once, in this module."""

from __future__ import annotations

import collections
import hashlib
import os
import subprocess
import sys
import zlib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from epcheck.conformance.comparison import compare
from epcheck.conformance.preparation import prepared_case
from epcheck.generators import data, graph, registry, schema, suite
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import DECLARED
from epcheck.generators.truth import Output, Outputs, Refusal, Selection, Ulp
from tests.generators.built_suite import DEVIATIONS, NO_INFERENCE, built_case, built_first, built_suite
from tests.mutants.mutant import outputs_of
from tests.whole_suite import whole_suite

HERE = Path(__file__).parent

UNORDERED_AXES = "Squeeze-1/float32/axes_in_reverse[runtime]"
"""onnx infers a wrong rank where the axes of Squeeze-1 do not ascend."""


def is_without_truth(built: BuiltCase) -> bool:
    """Whether the case asks for a part of the outputs that the standard does not have: a refusal is right as well."""
    return built.case.sample.startswith("optional_") and bool(getattr(built.truth, "undefined", ""))


def model_of(built: BuiltCase) -> onnx.ModelProto:
    return onnx.load_from_string(built.model)


@pytest.mark.slow
def test_every_model_is_valid_and_its_shapes_can_be_inferred() -> None:
    """As far as onnx itself knows the operators; the bodies of its functions are not always right: NO_INFERENCE."""
    for built in built_suite():
        if built.case.domain or not schema.is_in_onnx(built.case.operator, built.case.since_version):
            continue
        if is_without_truth(built):
            continue
        model = model_of(built)
        bodies = any(node.op_type == "MeanVarianceNormalization" for node in model.graph.node)
        known = bodies or built.case.operator in NO_INFERENCE or built.case.id == UNORDERED_AXES
        full = not isinstance(built.truth, Refusal) and not known
        onnx.checker.check_model(model, full_check=full)


@pytest.mark.slow
def test_the_order_of_the_suite_does_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "_list_operator_cases", suite._list_operator_cases.__wrapped__)  # each time
    ids = [case.id for case in suite.cases()]
    assert ids == [case.id for case in whole_suite()]
    assert ids == [built.case.id for built in built_suite()]


@pytest.mark.slow
def test_the_stamped_opset_resolves_to_the_version_of_the_case() -> None:
    for built in built_suite():
        imported = {entry.domain: entry.version for entry in model_of(built).opset_import}
        assert imported[built.case.domain] == built.opset
        if schema.is_in_onnx(built.case.operator, built.case.since_version, built.case.domain):
            resolved = onnx.defs.get_schema(built.case.operator, built.opset, built.case.domain)
            assert resolved.since_version == built.case.since_version


@pytest.mark.parametrize(("since_version", "opset"), [(1, 7), (6, 7), (7, 7), (10, 10), (13, 13), (24, 24)])
def test_the_opset_is_the_oldest_from_7_on(since_version: int, opset: int) -> None:
    assert schema.opset_for(since_version) == opset


@pytest.mark.slow
def test_the_ir_version_is_8_unless_the_opset_needs_a_newer_one() -> None:
    versions = {
        (max(entry.version for entry in model.opset_import if not entry.domain), model.ir_version)
        for model in map(model_of, built_suite())
    }
    for opset, ir_version in versions:
        assert ir_version == max(8, onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)]))


def test_dtypes_in_the_model_are_those_of_the_case() -> None:
    for built in built_first():
        if built.case.sample.startswith("graph_"):
            continue  # graphs name their own tensors
        graph_proto = model_of(built).graph
        declared = {i.name: i.type.tensor_type.elem_type for i in (*graph_proto.input, *graph_proto.output)}
        declared |= {tensor.name: tensor.data_type for tensor in graph_proto.initializer}
        data_names = {"Slice": ("data", "output"), "TopK": ("X", "Values")}.get(built.case.operator, ("x", "w", "y"))
        dtypes = built.case.dtype.split("-")
        for name, dtype in zip(data_names, dtypes if len(dtypes) == 3 else dtypes * 2, strict=True):
            assert onnx.helper.tensor_dtype_to_np_dtype(declared[name]).name == dtype, built.case.id


@pytest.mark.slow
def test_types_name_every_constraint_of_the_schema_that_has_a_value() -> None:
    types = {case_id: built.types for built in built_suite() if (case_id := built.case.id)}
    assert types["Slice-1/bool/steps_omitted[runtime]"] == {"T": "bool"}
    assert types["Slice-13/float32/int32_indices_forward[initializer]"] == {"T": "float32", "Tind": "int32"}
    assert types["TopK-11/uint8/defaults[initializer]"] == {"T": "uint8", "I": "int64"}
    assert types["QLinearConv-10/uint8-int8-int8/bias[initializer]"] == {
        "T1": "uint8", "T2": "int8", "T3": "int8", "T4": "int32",
    }  # fmt: skip


@pytest.mark.slow
def test_feeds_are_the_graph_inputs_with_their_dtypes_and_shapes() -> None:
    for built in built_suite():
        inputs = {i.name: i.type.tensor_type for i in model_of(built).graph.input}
        assert inputs.keys() == built.feeds.keys(), built.case.id
        for name, value in built.feeds.items():
            assert onnx.helper.tensor_dtype_to_np_dtype(inputs[name].elem_type) == value.dtype
            dims = inputs[name].shape.dim
            if built.case.binding == graph.SYMBOLIC:
                assert [dim.dim_param for dim in dims] == [f"{name}_{i}" for i in range(value.ndim)]
            else:
                assert tuple(dim.dim_value for dim in dims) == value.shape


@pytest.mark.slow
def test_initializers_hold_the_values_of_the_node() -> None:
    for built in built_suite():
        for tensor in model_of(built).graph.initializer:
            value = built.node.value(tensor.name)
            assert value is not None
            assert numpy_helper.to_array(tensor).tobytes() == value.tobytes()


def test_where_inputs_enter_the_model_in_each_binding() -> None:
    entering = {
        binding: sorted(suite.case_by_id(f"TopK-11/float32/defaults[{binding}]").build().feeds)
        for binding in graph.BINDINGS
    }
    assert entering == {"initializer": ["X"], "runtime": ["K", "X"], "symbolic": ["X"], "constant": []}


@pytest.mark.slow
def test_outputs_have_their_rank_and_no_sizes() -> None:
    for built in built_suite():
        ranks = [len(output.type.tensor_type.shape.dim) for output in model_of(built).graph.output]
        dims = [dim for output in model_of(built).graph.output for dim in output.type.tensor_type.shape.dim]
        assert not any(dim.HasField("dim_value") or dim.HasField("dim_param") for dim in dims)
        if isinstance(built.truth, Outputs):
            assert ranks == [output.value.ndim for output in built.truth.outputs]
        elif isinstance(built.truth, Selection):
            assert ranks == [part.ndim for part in built.truth.accepted[0]]


def test_an_operator_of_another_domain_imports_its_domain_too() -> None:
    node = Node("Binarizer", "ai.onnx.ml", 1, (Operand("X", np.ones((2, 3), np.float32)),), ("Y",), {"threshold": 0.5})
    model = onnx.load_from_string(graph.model(node, graph.RUNTIME, graph.type_bindings(node), (2,)))
    onnx.checker.check_model(model, full_check=True)
    assert [(imported.domain, imported.version) for imported in model.opset_import] == [("", 17), ("ai.onnx.ml", 1)]
    assert model.graph.node[0].domain == "ai.onnx.ml"


@pytest.mark.slow
def test_the_truth_itself_is_right() -> None:
    """A provider that answers with the truth passes every case; what must be refused has no outputs."""
    for built in built_suite():
        outputs = outputs_of(built.truth)
        assert (outputs is None) == isinstance(built.truth, Refusal), built.case.id
        assert outputs is None or compare.are_right(built.truth, outputs), built.case.id


@pytest.mark.slow
def test_an_answer_that_is_wrong_everywhere_is_wrong_in_every_case() -> None:
    """Truths are arrays, those of a scalar too: a numpy scalar cannot be sent to those who ask for it."""
    for built in built_suite():
        outputs = outputs_of(built.truth) or {}
        assert all(type(value) is np.ndarray for value in outputs.values()), built.case.id
        wrong = {name: _change_every_element(value) for name, value in outputs.items() if value.size}
        if wrong and not (isinstance(built.truth, Outputs) and any(o.undefined for o in built.truth.outputs)):
            assert not compare.are_right(built.truth, outputs | wrong), built.case.id


WIDE = {
    "*/denormals[[]*": "a provider may flush denormals, and the table allows more than their size",
    "Det-*/*/hilbert_*": "elimination of a matrix that is nearly singular loses more than its determinant",
    "Det-*/*/nearly_singular_*": "the same",
    "BlackmanWindow-*/*_of_[12][[]*": "the formula cancels to 1e-17, which is 0",
    "Celu-*/float16/alpha_1000[[]*": "1000 * expm1(x / 1000) cancels as far as float16 has digits",
    "Gelu-*/float16/typed_scalar[[]*": "the only value is where 1 + erf(x) cancels",
    "GridSample-*/float64-float16/*": "places of the grid are of float16",
    "RoiAlign-*/float16/*": "places of the rois are of float16",
    "com.microsoft::SkipLayerNormalization-1/float16/constant[[]*": "the truth is 0 but for the rounding of the input",
    "*LinearAttention-*/float32-float32/delta_length_70[[]*": "the delta rule passes an error on 70 times",
    "*/float16/overflow_products_vector_by_vector[[]*": "products of 6e4 whose sum is 1",
    "GlobalAveragePool-*/float16/more_than_a_thread_group[[]*": "a sum of 1,155 terms in float16 may lose all",
    "com.microsoft::MatMulNBits-1/float16/inner_1024_*": "a sum of 1,024 terms in float16 may lose all",
    "com.microsoft::*MoE-1/float16/*": "two products in float16, one of the other",
    "ReduceSum-13/float16/infinities[[]*": "its one finite sum cancels",
}
"""Cases whose bound lets zeros pass, as patterns, and why."""


def lets_zeros_pass(output: Output) -> bool:
    """Whether the bound takes 0 for every element of the output that is a normal number."""
    if not isinstance(output.bound, Ulp) or not output.value.size:
        return False
    exact = np.abs(np.asarray(output.value, np.float64))
    normal = np.isfinite(exact) & (exact > float(ml_dtypes.finfo(output.value.dtype).tiny))
    if output.undefined is not None:
        normal &= ~output.undefined.where
    floor = np.broadcast_to(np.asarray(output.bound.floor, np.float64), exact.shape)
    return bool(normal.any() and (floor[normal] >= exact[normal]).all())


@pytest.mark.slow
def test_no_bound_lets_zeros_pass() -> None:
    """A case whose bound takes any small answer for right tells little: WIDE has each that there is, and why."""
    wide = [built.case for built in built_suite() if isinstance(built.truth, Outputs) and built.case.source != "designs"
            and any(map(lets_zeros_pass, built.truth.outputs))]  # fmt: skip
    assert [case.id for case in wide if not any(fnmatchcase(case.id, pattern) for pattern in WIDE)] == []
    assert [pattern for pattern in WIDE if not any(fnmatchcase(case.id, pattern) for case in wide)] == []


def _change_every_element(value: Array) -> Array:
    """A value of the same dtype, no element of which is right: NaN where it is a number, another string or truth."""
    match value.dtype.kind:
        case "b":
            return ~value
        case "i" | "u":
            return ~value
        case "O" | "U" | "S":
            return np.full_like(value, "neither")
    return np.where(np.isnan(value), 1, np.nan).astype(value.dtype)


@pytest.mark.slow
def test_a_refusal_is_declared_where_the_oracle_refuses() -> None:
    operators = registry.all_operators().items()
    declared = {(key, sample.name): sample.refused for key, operator in operators for sample in operator.samples()}
    for built in built_suite():
        if built.case.source == DECLARED:
            is_declared = declared[built.case.operator_key, built.case.sample]
            assert isinstance(built.truth, Refusal) == is_declared, built.case.id


@pytest.mark.slow
def test_whatever_a_page_defines_evaluates_to_the_truth() -> None:
    """But for DEVIATIONS: there the description that the DML EP makes is known to compute something else."""
    opinions = collections.Counter(
        (name, built.case.operator_key, opinion.partition(":")[0])
        for built in built_suite()
        for name, opinion in prepared_case.directml_opinion(built)[0].items()
    )
    disagreeing = {(name, operator) for name, operator, opinion in opinions if opinion == "disagrees"}
    assert disagreeing == DEVIATIONS.keys()
    assert sum(count for (_, _, opinion), count in opinions.items() if opinion == "agrees") > 10_000


def digest(cases: Iterable[BuiltCase]) -> str:
    """One hash over models, feeds and truths."""
    total = hashlib.sha256()
    for built in cases:
        total.update(built.case.id.encode() + built.model + repr(built.opset).encode())
        for name in sorted(built.feeds):
            total.update(name.encode() + built.feeds[name].tobytes())
        match built.truth:
            case Outputs(outputs):
                total.update(b"".join(output.value.tobytes() for output in outputs))
            case Selection(accepted=accepted):
                total.update(b"".join(part.tobytes() for pair in accepted for part in pair))
            case Refusal(reason):
                total.update(reason.encode())
    return total.hexdigest()


def one_of_each_sample() -> list[Case]:
    """Of each sample that an operator declares one case, in some version, dtype and binding, and every eighth of those
    that engines make: what a process changes, the order of a set, is in the code of a sample or of an engine."""
    shuffled = sorted(whole_suite(), key=lambda case: zlib.crc32(case.id.encode()))
    declared = {(case.operator_key, case.sample): case for case in shuffled if not case.kind}
    return [*declared.values(), *[case for case in shuffled if case.kind][::8]]


@pytest.mark.slow
def test_the_same_id_gives_the_same_bytes_in_another_process() -> None:
    """Strings have other hashes there."""
    program = (
        "import gc; gc.disable()\n"
        "from tests.generators import test_built_models as t\n"
        "print(t.digest(case.build() for case in t.one_of_each_sample()), hash('a'))"
    )
    path = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    seed = next(seed for seed in ("0", "4711") if seed != os.environ.get("PYTHONHASHSEED"))
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, encoding="utf-8", check=True
    )
    found, hash_there = done.stdout.split()
    assert int(hash_there) != hash("a")
    assert found == digest(map(built_case, one_of_each_sample()))


def test_boundary_values_of_floats_are_every_kind_of_value() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        values, info = data.special_floats(np.dtype(dtype)), np.finfo(dtype)
        assert values.dtype == dtype
        assert np.isnan(values).sum() == 1
        assert sorted(values[np.isinf(values)].tolist()) == [-np.inf, np.inf]
        assert np.signbit(values[values == 0]).tolist() == [False, True]
        assert ((np.abs(values) < info.tiny) & (values != 0)).sum() == 2
        assert {float(info.max), float(info.min), float(info.tiny)} <= set(values.tolist())


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("int8", [-128, -127, -1, 0, 1, 126, 127]),
        ("uint8", [0, 1, 0, 1, 254, 255]),
        ("int32", [-(2**31), 1 - 2**31, -1, 0, 1, 2**24 - 1, 2**24 + 1, 2**31 - 2, 2**31 - 1]),
        ("bool", [False, True, True, False]),
    ],
)
def test_boundary_values_of_integers(dtype: str, values: list[int]) -> None:
    assert data.boundary(np.dtype(dtype)).tolist() == values


def test_boundary_values_of_int64_stand_where_float64_stops_being_exact() -> None:
    assert {2**53 - 1, 2**53 + 1, -(2**63), 2**63 - 1} <= set(data.boundary_integers(np.dtype(np.int64)).tolist())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64"])
def test_distinct_values_are_finite_and_hardly_ever_repeat(dtype: str) -> None:
    values = data.distinct((30,), np.dtype(dtype), np.random.default_rng(1))
    assert values.dtype == dtype
    assert np.isfinite(values.astype(np.float64)).all()
    assert len(set(values.tolist())) >= 28
    assert {bool(v) for v in values < 0} == ({True, False} if dtype != "uint64" else {False})
