"""Claim tables as files: what is read is what was written, and what is wrong is said in one sentence."""

from __future__ import annotations

import json

import pytest

from epcheck.generators import claims
from epcheck.generators.claims import table
from epcheck.generators.claims.table import Probed, Row, Table, TableError

TABLE = Table(
    [
        Row("ai.onnx", "Abs", 13, {"T": ["float", "int8"]}, partial={"T": ["int8"]}, note="declines size 0"),
        Row("com.microsoft", "Gelu", 1, {"T": ["float16"]}),
    ],
    provider="SomeExecutionProvider",
    when={"runtime": "1.24.*"},
    documentation=["https://example.test/"],
    probed=Probed("2026-11-22", "some", "1.0", "1.23.2", {"onnxruntime": "1.24.1"}, cases=10, placed=9),
)


def test_a_table_is_read_as_it_was_written() -> None:
    assert table.decode_table(table.encode_table(TABLE), "t.json") == TABLE


def test_each_operator_version_is_one_line() -> None:
    lines = table.encode_table(TABLE).splitlines()
    assert '  {"domain":"com.microsoft","name":"Gelu","since_version":1,"type_constraints":{"T":["float16"]}}' in lines
    assert json.loads(table.encode_table(Table([Row("ai.onnx", "Abs", 13, {})])))["operators"][0]["name"] == "Abs"


def test_the_claims_of_a_table() -> None:
    found = claims.parse(table.encode_table(TABLE), "t.json")
    assert (found.provider, found.when) == ("SomeExecutionProvider", {"runtime": "1.24.*"})
    assert found.why_not("", "Abs", 13, {"T": "float32"}) is None
    assert found.why_not("", "Abs", 13, {"T": "float64"}) == "Abs-13 is not claimed for T = float64"
    assert found.is_partial("", "Abs", 13, {"T": "int8"})
    assert not found.is_partial("", "Abs", 13, {"T": "float32"})
    assert not found.is_partial("com.microsoft", "Gelu", 1, {"T": "float16"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "claim table 't.json' is not valid: Input data was truncated"),
        ('{"operators": 3}', "Expected `array`, got `int` - at `$.operators`"),
        ('{"operators": [{"domain": "ai.onnx"}]}', "missing required field"),
        (table.encode_table(Table([Row("ai.onnx", "Abs", 13, {})] * 2)), "claim table 't.json' has Abs-13 twice"),
        (
            table.encode_table(Table([Row("ai.onnx", "Abs", 13, {"T": ["float"]}, {"T": ["int8"]})])),
            "Abs-13 is claimed in part for T = int8, which is not among its type_constraints",
        ),
        (table.encode_table(Table([])), "does not say whose it is; give it a 'provider'"),
    ],
)
def test_what_is_no_table(text: str, why: str) -> None:
    with pytest.raises(TableError) as caught:
        claims.parse(text, "t.json")
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_schema_names_every_field() -> None:
    rows = table.schema()["$defs"]["Row"]
    assert set(rows["required"]) == {"domain", "name", "since_version", "type_constraints"}
    assert "partial" in rows["properties"]
