"""What the DML EP claims, read from its documentation."""

from __future__ import annotations

import pytest

from epcheck.generators import schema
from epcheck.generators.claims import PROVIDERS, Claims, claims_of, newest_claimed_version, table, table_path

DML = "DmlExecutionProvider"


@pytest.fixture
def dml() -> Claims:
    found = claims_of(DML)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("operator", "since_version", "types"),
    [
        ("Slice", 1, {"T": "bool"}),
        ("Slice", 10, {"T": "uint64", "Tind": "int64"}),
        ("Slice", 11, {"T": "float64", "Tind": "int32"}),
        ("Slice", 13, {"T": "float16", "Tind": "int64"}),
        ("TopK", 1, {"T": "float32", "I": "int64"}),
        ("TopK", 10, {"T": "float16", "I": "int64"}),
        ("TopK", 11, {"T": "uint8", "I": "int64"}),
        ("QLinearConv", 10, {"T1": "uint8", "T2": "int8", "T3": "uint8", "T4": "int32"}),
    ],
)
def test_what_is_claimed(dml: Claims, operator: str, since_version: int, types: dict[str, str]) -> None:
    assert dml.why_not("", operator, since_version, types) is None


@pytest.mark.parametrize(
    ("operator", "since_version", "types", "why"),
    [
        ("TopK", 24, {"T": "float32", "I": "int64"}, "no kernel for TopK-24 (it has 1, 10, 11)"),
        ("TopK", 11, {"T": "float64", "I": "int64"}, "TopK-11 is not claimed for T = float64"),
        ("Slice", 13, {"T": "bfloat16", "Tind": "int64"}, "Slice-13 is not claimed for T = bfloat16"),
        ("Slice", 13, {"T": "float16", "Tind": "int16"}, "Slice-13 is not claimed for Tind = int16"),
        ("QLinearConv", 10, {"T1": "uint8", "T2": "int16"}, "QLinearConv-10 is not claimed for T2 = int16"),
        ("Slice", 12, {"T": "float32"}, "no kernel for Slice-12 (it has 1, 10, 11, 13)"),
        ("NoSuchOperator", 1, {}, "no kernel for NoSuchOperator-1"),
    ],
)
def test_what_is_not_claimed(dml: Claims, operator: str, since_version: int, types: dict[str, str], why: str) -> None:
    assert dml.why_not("", operator, since_version, types) == why


def test_the_domain_counts(dml: Claims) -> None:
    assert dml.why_not("com.microsoft", "Slice", 13, {"T": "float32"}) == "no kernel for Slice-13"
    assert dml.why_not("com.microsoft", "Gelu", 1, {"T": "float32"}) is None


def test_constraints_that_the_table_does_not_list_are_not_restricted(dml: Claims) -> None:
    assert dml.why_not("", "TopK", 11, {"T": "float16", "Unlisted": "bfloat16"}) is None


def test_dtypes_are_numpy_names(dml: Claims) -> None:
    assert dml.operators["", "Slice", 13]["T"] == {
        "bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64",
        "uint8", "uint16", "uint32", "uint64",
    }  # fmt: skip
    names = {name for constraints in dml.operators.values() for dtypes in constraints.values() for name in dtypes}
    assert not names & {"float", "double"}


def test_other_providers_have_no_table() -> None:
    assert claims_of("TensorrtExecutionProvider") is None


@pytest.mark.parametrize("provider", ["CPUExecutionProvider", "OpenVINOExecutionProvider"])
def test_a_table_that_was_probed_says_how_and_what_a_person_found(provider: str) -> None:
    path = table_path(provider)
    assert path is not None
    found = table.decode_table(path.read_bytes(), path.name)
    assert found.provider == provider
    assert found.probed is not None
    assert found.when["runtime"] == f"{found.probed.facts['onnxruntime'].rpartition('.')[0]}.*"
    assert found.probed.placed < found.probed.cases
    assert found.documentation
    assert "Reviewed" in found.review
    assert table.encode_table(found) == path.read_text(encoding="utf-8")


def test_no_table_but_directml_s_changes_which_cases_there_are() -> None:
    cpu = claims_of("CPUExecutionProvider")
    assert cpu is not None
    assert max(cpu.versions("", "TopK")) > newest_claimed_version("TopK") == 11


def test_the_table_is_read_once() -> None:
    assert claims_of(DML) is claims_of(DML)


@pytest.mark.parametrize(
    ("operator", "domain", "version"),
    [("Reshape", "", 21), ("Split", "", 18), ("Range", "", 11), ("Gelu", "com.microsoft", 1)],
)
def test_the_established_version_is_the_newest_that_is_claimed(operator: str, domain: str, version: int) -> None:
    assert newest_claimed_version(operator, domain) == version


def test_an_operator_that_nobody_claims_is_established_in_its_newest_version() -> None:
    assert newest_claimed_version("Det") == schema.since_versions("Det")[-1]


def provider_claims(provider: str) -> Claims:
    found = claims_of(provider)
    assert found is not None
    return found


def test_webgpu_claims_what_it_takes_with_the_plugin_that_was_asked() -> None:
    webgpu = provider_claims("WebGpuExecutionProvider")
    assert webgpu.when == {"plugin": "0.4.*"}
    assert webgpu.why_not("", "Slice", 13, {"T": "float32", "Tind": "int64"}) is None
    assert webgpu.why_not("", "Conv", 22, {"T": "float16"}) is None  # only the device that was asked lacks float16
    assert webgpu.why_not("", "Slice", 13, {"T": "int64"}) == "Slice-13 is not claimed for T = int64"
    assert webgpu.why_not("", "Sin", 22, {"T": "float32"}) == "no kernel for Sin-22 (it has 7)"


def test_webgpu_claims_an_if_where_it_takes_the_branches() -> None:
    webgpu = provider_claims("WebGpuExecutionProvider")
    assert webgpu.why_not("", "If", 21, {"B": "bool", "V": "float32"}) is None
    assert webgpu.is_partial("", "If", 21, {"B": "bool", "V": "float32"})
    assert webgpu.why_not("", "If", 21, {"B": "bool", "V": "float64"}) == "If-21 is not claimed for V = float64"


def test_qnn_claims_no_float64_and_most_in_part() -> None:
    qnn = provider_claims("QNNExecutionProvider")
    assert qnn.when == {"plugin": "2.7.*"}
    assert qnn.why_not("", "Add", 14, {"T": "float32"}) is None
    assert not qnn.is_partial("", "Add", 14, {"T": "float32"})
    assert qnn.why_not("", "Add", 14, {"T": "float64"}) == "Add-14 is not claimed for T = float64"
    assert qnn.is_partial("", "Slice", 11, {"T": "int64", "Tind": "int64"})


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_shipped_table_was_reviewed_against_named_pages(provider: str) -> None:
    path = table_path(provider)
    assert path is not None
    found = table.decode_table(path.read_bytes(), path.name)
    if found.probed:  # DirectML's was not asked: it is the page
        assert found.provider == provider
        assert found.documentation
        assert found.review.startswith("Reviewed ")
        assert 0 < found.probed.placed < found.probed.cases
        assert found.when


def test_what_is_claimed_on_a_condition_is_claimed_where_it_holds() -> None:
    dml = provider_claims(DML)
    v20 = dml.narrow(lambda when: when["runtime"] in {">=1.17", ">=1.18", ">=1.19", ">=1.20"})
    assert dml.narrow(lambda when: "runtime" in when) is dml
    assert dml.why_not("", "Transpose", 21, {"T": "float32"}) is None
    assert v20.why_not("", "Transpose", 21, {"T": "float32"}) == "no kernel for Transpose-21 (it has 1, 13)"
    assert v20.why_not("", "Reshape", 21, {"T": "float32"}) is None
    v18 = dml.narrow(lambda when: when["runtime"] in {">=1.17", ">=1.18"})
    assert v18.why_not("", "Reshape", 21, {"T": "float32"}) == "no kernel for Reshape-21 (it has 5, 13, 14, 19)"
    assert v18.why_not("", "DFT", 17, {"T1": "float32", "T2": "int64"}) is None
    assert v18.why_not("", "DFT", 17, {"T1": "float64", "T2": "int64"}) == "DFT-17 is not claimed for T1 = float64"
    v17 = dml.narrow(lambda when: when["runtime"] == ">=1.17")
    assert v17.versions("", "Shape") == (1, 13, 15)
    assert v20.why_not("", "Shape", 19, {"T": "float32", "T1": "int64"}) is None
    assert len(v18.operators) < len(v20.operators) < len(dml.operators)
    assert {c.when["runtime"] for c in v20.conditional} == {">=1.17", ">=1.18", ">=1.19", ">=1.20"}
