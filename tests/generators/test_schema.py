"""What is derived from onnx.defs, and how a declaration becomes cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from epcheck.generators import graph, schema
from epcheck.generators.case import Sample
from epcheck.generators.operator import spread
from tests.generators import runtime_schemas


@pytest.mark.parametrize(
    ("operator", "versions"), [("Slice", (1, 10, 11, 13)), ("TopK", (1, 10, 11, 24)), ("QLinearConv", (10,))]
)
def test_every_revision_is_known_oldest_first(operator: str, versions: tuple[int, ...]) -> None:
    assert schema.since_versions(operator) == versions


def test_what_onnx_does_not_have_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        schema.since_versions("NoSuchOperator")
    with pytest.raises(KeyError):
        schema.schema("Slice", 12)
    with pytest.raises(KeyError):
        schema.since_versions("Slice", "ai.onnx.ml")


def test_dtypes_are_those_that_numpy_holds_with_float32_first() -> None:
    assert schema.dtypes("TopK", 10, "T") == ("float32", "float16", "float64")
    every = schema.dtypes("Slice", 13, "T")
    assert every[0] == "float32"
    assert len(every) == 12
    assert schema.dtypes("QLinearConv", 10, "T1") == ("int8", "uint8")


def test_defaults_are_those_of_either_schema() -> None:
    assert schema.default_attributes("TopK", 11) == {"axis": -1, "largest": 1, "sorted": 1}
    assert schema.default_attributes("CDist", 1, "com.microsoft") == {"metric": "sqeuclidean"}
    assert schema.default_attributes("QGemm", 1, "com.microsoft") == {"alpha": 1.0, "transA": 0, "transB": 0}


@pytest.mark.parametrize(
    ("onnx_name", "numpy_name"),
    [
        ("tensor(float)", "float32"),
        ("tensor(double)", "float64"),
        ("tensor(float16)", "float16"),
        ("tensor(uint8)", "uint8"),
        ("tensor(bool)", "bool"),
        ("tensor(bfloat16)", ""),
        ("tensor(string)", ""),
        ("seq(tensor(float))", ""),
    ],
)
def test_element_types_by_their_numpy_names(onnx_name: str, numpy_name: str) -> None:
    assert schema.element_name(onnx_name) == numpy_name


def test_every_sample_is_tried_in_every_binding_in_the_first_dtype_of_the_newest_version() -> None:
    rare, often = Sample("rare"), Sample("often", every_dtype=True)
    for sample in (rare, often):
        assert spread(sample, first=True, newest=True) == tuple(graph.BINDINGS)
        assert spread(sample, first=True, newest=False) == (graph.INITIALIZER,)


def test_the_other_dtypes_have_the_samples_that_are_worth_it() -> None:
    rare, often = Sample("rare"), Sample("often", every_dtype=True)
    assert spread(rare, first=False, newest=True) == spread(rare, first=False, newest=False) == ()
    assert spread(often, first=False, newest=True) == (graph.INITIALIZER, graph.RUNTIME)
    assert spread(often, first=False, newest=False) == (graph.INITIALIZER,)


def test_a_scalar_has_no_dimension_that_could_be_symbolic() -> None:
    bindings = spread(Sample("scalar"), first=True, newest=True, scalar=True)
    assert bindings == (graph.INITIALIZER, graph.RUNTIME, graph.CONSTANT)


def test_operators_with_graphs_as_attributes() -> None:
    assert [schema.has_bodies(name) for name in ("If", "Loop", "Scan", "Identity")] == [True, True, True, False]
    assert not schema.has_bodies("If", "com.microsoft")


def test_a_schema_that_onnx_does_not_have_is_read_from_onnxruntime(tmp_path: Path) -> None:
    path, text = tmp_path / "schemas.json", runtime_schemas.SCHEMAS.read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines(keepends=True) if '"QuickGelu"' in line)
    path.write_text(text.replace(line, ""), encoding="utf-8")
    rows = list(map(runtime_schemas.make_row, runtime_schemas.list_schemas("com.microsoft::QuickGelu")))
    runtime_schemas.write_rows(rows, path)
    assert path.read_text(encoding="utf-8") == text
    changed = [{**row, "attributes": {}} for row in rows]
    runtime_schemas.write_rows(changed, path)
    assert path.read_text(encoding="utf-8") == text
    with pytest.raises(ValueError, match=r"no schema of com\.microsoft::NoSuchOperator"):
        runtime_schemas.list_schemas("com.microsoft::NoSuchOperator")
