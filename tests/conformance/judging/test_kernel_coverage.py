"""Kernels against cases: what has one, what needs none, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epcheck import api
from epcheck.conformance.judging import kernel_coverage
from epcheck.conformance.judging.kernel_coverage import KernelCoverage
from epcheck.conformance.judging.kernel_registry import KernelRegistry, RegisteredKernel
from tests.command_line import call, refused

FLOAT = ("tensor(float)",)


def cover(*kernels: RegisteredKernel, unknown: frozenset[tuple[str, str]] = frozenset()) -> list[KernelCoverage]:
    return list(kernel_coverage.cover_kernels(KernelRegistry("a test", {}, frozenset(), kernels, unknown)))


def test_a_kernel_is_covered_where_a_case_in_its_range_has_each_of_its_dtypes() -> None:
    types = {"T": ("tensor(float)", "tensor(string)"), "I": ("tensor(int64)",)}
    (found,) = cover(RegisteredKernel("", "TopK", (10, 11), types))
    assert (found.state, found.dtypes, found.without_case) == ("covered", ("float32", "int64", "string"), ())


def test_kernels_of_one_range_are_one_row_and_other_ranges_others() -> None:
    rows = cover(
        RegisteredKernel("", "Abs", (6, 12), {"T": FLOAT}),
        RegisteredKernel("", "Abs", (6, 12), {"T": ("tensor(int8)",)}),
        RegisteredKernel("", "Abs", (13, None), {"T": FLOAT}),
    )
    assert [(row.versions, row.dtypes) for row in rows] == [((13, None), ("float32",)), ((6, 12), ("float32", "int8"))]


def test_a_dtype_that_a_case_could_have_and_none_has_is_named() -> None:
    (found,) = cover(RegisteredKernel("", "DynamicQuantizeLinear", (11, None), {"T1": FLOAT, "T2": ("tensor(int8)",)}))
    assert found.state == "covered"  # the schema has no int8 there
    (found,) = cover(RegisteredKernel("", "EyeLike", (9, None), {"T1": ("tensor(float)", "tensor(bfloat16)")}))
    assert found.state == "covered"
    (found,) = cover(RegisteredKernel("", "Gather", (13, None), {"T": ("tensor(float)", "tensor(complex64)")}))
    assert (found.state, found.without_case) == ("partial", ("complex64",))


def test_a_kernel_without_a_case_is_missing_or_has_a_reason_with_its_source() -> None:
    rows = cover(
        RegisteredKernel("com.microsoft", "NoSuchOperator", (1, None), {"T": FLOAT}),
        RegisteredKernel("com.microsoft", "BeamSearch", (1, None)),
        RegisteredKernel("ai.onnx.ml", "Scaler", (1, None)),
        RegisteredKernel("", "RandomNormal", (1, 21)),
        RegisteredKernel("", "Reshape", (1, 4)),
    )
    assert {row.name: row.state for row in rows} == {
        "com.microsoft::NoSuchOperator": "missing",
        "com.microsoft::BeamSearch": "excluded",
        "ai.onnx.ml::Scaler": "excluded",
        "RandomNormal": "excluded",
        "Reshape": "excluded",
    }
    why = {row.name: (row.why, row.source) for row in rows}
    assert why["com.microsoft::BeamSearch"][1] == "docs/ContribOperators.md"
    assert why["Reshape"] == ("no opset that ONNX Runtime reads has a version of Reshape in this range", "")


def test_what_a_library_does_not_tell_is_listed_only_where_there_is_no_case() -> None:
    unknown = frozenset((("", "Relu"), ("com.microsoft", "Snpe"), ("com.microsoft", "EPContext")))
    (found,) = cover(unknown=unknown)
    assert (found.name, found.state, found.dtypes, found.versions) == ("com.microsoft::Snpe", "unknown", (), None)


def test_a_schema_without_kernel_and_case_is_listed() -> None:
    schemas = frozenset((("", "Relu"), ("com.microsoft", "QMoE"), ("com.microsoft", "Snpe"), ("", "ImageDecoder")))
    registry = KernelRegistry("a test", {}, schemas, (RegisteredKernel("com.microsoft", "QMoE"),))
    assert kernel_coverage.list_uncovered_schemas(registry) == ("ImageDecoder", "com.microsoft::Snpe")


def test_the_command_names_the_kernels_of_cpu_and_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "kernels.json"
    done = call("coverage", "--kernels", "--json", str(path))
    written = json.loads(path.read_text())
    missing = [row for row in written["kernels"] if row["state"] == "missing"]
    assert done.code == (1 if missing else 0)
    assert all(f"missing  {row['domain']}::{row['operator']}-1+" in done.out for row in missing)
    assert f"CPUExecutionProvider of {written['release']}, by its kernel registry" in done.out
    slices = [row for row in written["kernels"] if row["operator"] == "Slice" and not row["domain"]]
    assert [row["versions"] for row in slices if row["state"] == "covered"] == [[1, 9], [10, 10], [11, 12], [13, None]]
    assert "com.microsoft::PackedAttention" in written["no_kernel"]


def test_another_source_of_claims_cannot_be_named_beside() -> None:
    why = refused("coverage", "--kernels", "--provider", "CPUExecutionProvider")
    assert why == "--kernels asks a target; leave out --run, --provider and --claims"


@pytest.mark.lab
def test_every_kernel_of_directml_has_a_case_or_a_reason() -> None:
    found = api.kernels(api.KernelsOptions("dml"))
    assert (found.provider, found.source) == ("DmlExecutionProvider", "its kernel registry")
    assert [kernel.name for kernel in found.kernels if kernel.state == kernel_coverage.MISSING] == []
    assert len(found.kernels) > 400
