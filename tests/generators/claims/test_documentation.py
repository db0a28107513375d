"""ONNX Runtime's page of kernels, read and taken over."""

from __future__ import annotations

from typing import Any

import pytest

from epcheck.generators.claims import documentation
from epcheck.generators.claims.documentation import DocumentationError, parse, refresh_table

DML = "DmlExecutionProvider"

PAGE = """\
## Operators implemented by CPUExecutionProvider

| Op Name | Parameters | OpSet Version | Types Supported |
|---------|------------|---------------|-----------------|
|**Operator Domain:** *ai.onnx*||||
|Abs|*in* X:**T**<br> *out* Y:**T**|13+|**T** = tensor(double), tensor(float)|
| |
| |
## Operators implemented by DmlExecutionProvider

| Op Name | Parameters | OpSet Version | Types Supported |
|---------|------------|---------------|-----------------|
|**Operator Domain:** *ai.onnx*||||
|Abs|*in* X:**T**<br> *out* Y:**T**|13+|**T** = tensor(float), tensor(float16), tensor(int8)|
|||[6, 12]|**T** = tensor(float)|
|SequenceAt|*in* input_sequence:**S**<br> *out* tensor:**T**|11+|**I** = tensor(int32), tensor(int64)<br/> **S** = seq(tensor(bool)), seq(tensor(float))<br/> **T** = tensor(bool)|
|Where|*in* condition:**B**<br> *in* X:**T**|9|**B** = tensor(bool)<br/> **T** = tensor(int64)|
| |
| |
|**Operator Domain:** *com.microsoft*||||
|Gelu|*in* X:**T**<br> *out* Y:**T**|1+|**T** = tensor(float), tensor(float16)|
| |
| |
"""  # noqa: E501


def row(name: str, since_version: int, **further: Any) -> dict[str, Any]:
    return {"domain": "ai.onnx", "name": name, "since_version": since_version, **further}


def test_the_section_of_the_provider_is_read_with_its_domains_versions_and_types() -> None:
    assert parse(PAGE, DML) == {
        ("ai.onnx", "Abs", 13): {"T": ["float", "float16", "int8"]},
        ("ai.onnx", "Abs", 6): {"T": ["float"]},
        ("ai.onnx", "SequenceAt", 11): {
            "I": ["int32", "int64"],
            "S": ["seq(bool)", "seq(float)"],
            "T": ["bool"],
        },
        ("ai.onnx", "Where", 9): {"B": ["bool"], "T": ["int64"]},
        ("com.microsoft", "Gelu", 1): {"T": ["float", "float16"]},
    }
    assert list(parse(PAGE, "CPUExecutionProvider")) == [("ai.onnx", "Abs", 13)]


@pytest.mark.parametrize("page", ["", PAGE.replace("DmlExecutionProvider", "OtherProvider")])
def test_a_page_without_the_provider_is_refused(page: str) -> None:
    with pytest.raises(DocumentationError, match="no section '## Operators implemented by DmlExecutionProvider'; give"):
        parse(page, DML)


def test_a_section_without_operators_is_refused() -> None:
    with pytest.raises(DocumentationError, match="has no operators"):
        parse(
            "## Operators implemented by DmlExecutionProvider\n\nnone\n## Other\n|Abs||13+|**T** = tensor(float)|", DML
        )


def test_new_rows_are_added_changed_ones_replaced_and_what_else_is_known_stays() -> None:
    table = {
        "about": "kept",
        "operators": [
            row("Abs", 13, type_constraints={"T": ["float"]}, source_file="kept.cpp"),
            row("Hidden", 1, type_constraints={"T": ["float"]}),
            row("Where", 9, type_constraints={"B": ["bool"], "T": ["int64"]}),
        ],
    }
    found = refresh_table(table, parse(PAGE, DML))
    assert found.added == ("Abs-6", "SequenceAt-11", "com.microsoft::Gelu-1")
    assert found.changed == ("Abs-13",)
    assert found.undocumented == ("Hidden-1",)
    assert found.table["about"] == "kept"
    names = [(row["name"], row["since_version"]) for row in found.table["operators"]]
    assert names == [("Abs", 13), ("Abs", 6), ("Hidden", 1), ("SequenceAt", 11), ("Where", 9), ("Gelu", 1)]
    assert found.table["operators"][0] == row(
        "Abs", 13, type_constraints={"T": ["float", "float16", "int8"]}, source_file="kept.cpp"
    )


def test_taking_the_same_page_over_again_changes_nothing() -> None:
    once = refresh_table({"operators": []}, parse(PAGE, DML))
    again = refresh_table(once.table, parse(PAGE, DML))
    assert (again.added, again.changed, again.undocumented) == ((), (), ())
    assert again.table == once.table


def test_the_page_that_is_read_by_default_is_onnx_runtime_s() -> None:
    assert documentation.SOURCE.startswith("https://")
    assert documentation.SOURCE.endswith("/docs/OperatorKernels.md")


def test_what_holds_on_a_condition_stays_as_far_as_the_page_has_it() -> None:
    row = {
        "domain": "ai.onnx",
        "name": "Abs",
        "since_version": 13,
        "type_constraints": {"T": ["float", "int8", "int16"]},
    }
    newer, newest = {"runtime": ">=1.20"}, {"runtime": ">=1.21"}
    whole = {"when": newer}
    row["conditional"] = [
        whole,
        {"when": newest, "type_constraints": {"T": ["int8", "int16"]}},
        {"when": newest, "type_constraints": {"T": ["int16"]}},
    ]
    found = refresh_table({"operators": [row]}, {("ai.onnx", "Abs", 13): {"T": ["float", "int8"]}})
    assert found.table["operators"][0]["conditional"] == [whole, {"when": newest, "type_constraints": {"T": ["int8"]}}]
