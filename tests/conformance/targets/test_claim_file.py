"""Claim tables that a user names: for whom they count, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from epcheck.conformance.targets import claim_file
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import CPU, DML, NO_CLAIMS, Target
from epcheck.generators.claims import claims_of, table
from epcheck.generators.claims.table import Conditional, Row, Table, TableError

ABS = Row("ai.onnx", "Abs", 13, {"T": ["float"]})
SOME = Target("some", (), (), provider="SomeExecutionProvider")
CPU_TARGET = Target("cpu", (), (), provider=CPU)


def written(folder: Path, provider: str = "SomeExecutionProvider", **fields: object) -> Path:
    path = folder / "claims.json"
    path.write_text(table.encode_table(Table([ABS], provider=provider, **fields)), encoding="utf-8")  # type: ignore[arg-type]
    return path


def test_a_table_is_for_the_targets_of_its_provider(tmp_path: Path) -> None:
    some, cpu = claim_file.with_tables([SOME, CPU_TARGET], [written(tmp_path)])
    assert some.claims is not None
    assert set(some.claims.operators) == {("", "Abs", 13)}
    assert cpu is CPU_TARGET


def test_a_table_of_nobody_s_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="is of SomeExecutionProvider, and no candidate has it: they have CPUExec"):
        claim_file.with_tables([CPU_TARGET], [written(tmp_path)])


def test_a_table_replaces_the_one_that_is_shipped(tmp_path: Path) -> None:
    dml = Target("dml", (), (), provider=DML)
    assert dml.claims is claims_of(DML)
    (found,) = claim_file.with_tables([dml], [written(tmp_path, DML)])
    assert found.claims is not None
    assert set(found.claims.operators) == {("", "Abs", 13)}


def test_epcheck_toml_names_a_table(tmp_path: Path) -> None:
    path = written(tmp_path, CPU)
    config = tmp_path / "epcheck.toml"
    config.write_text(f"[targets.mine]\nbase = 'cpu'\nclaims = '{path}'\n", encoding="utf-8")
    found = resolve("mine", load_config(config)).claims
    assert found is not None
    assert set(found.operators) == {("", "Abs", 13)}
    config.write_text(f"[targets.mine]\nfunction = 'm:f'\nclaims = '{path}'\n", encoding="utf-8")
    with pytest.raises(TableError, match="is of CPUExecutionProvider, and target 'mine' has no provider"):
        resolve("mine", load_config(config))


def test_a_table_holds_where_its_condition_does(tmp_path: Path) -> None:
    (target,) = claim_file.with_tables([SOME], [written(tmp_path, when={"runtime": "1.24.*"})])
    here, there = {"onnxruntime": "1.24.1"}, {"onnxruntime": "1.25.0"}
    assert target.narrow(here).claims is target.claims
    assert claim_file.explain_unused(target, here) == ""
    assert target.narrow(there).claims is None
    assert target.narrow(there).claim_table is NO_CLAIMS
    assert claim_file.explain_unused(target, there).startswith(
        "some: the claim table of SomeExecutionProvider applies where runtime is 1.24.*, which differs here"
    )
    assert claim_file.explain_unused(SOME, there) == ""


def test_a_release_is_charged_with_its_own_claims_alone() -> None:
    dml = Target("dml", (), (), provider=DML)
    newest, older = dml.narrow({"onnxruntime": "1.24.4"}), dml.narrow({"onnxruntime": "1.20.1"})
    assert newest.claims is claims_of(DML)
    assert older.claims is not None
    assert older.claims.versions("", "Flatten") == (1, 9, 11, 13)
    assert older.claims.versions("", "Squeeze") == (1, 11, 13, 21)
    assert claim_file.explain_unused(dml, {"onnxruntime": "1.20.1"}) == ""
    assert dml.narrow({"onnxruntime": "1.30.0.202609102321"}).claims is claims_of(DML)


def test_a_row_may_hold_on_a_condition(tmp_path: Path) -> None:
    row = Row("ai.onnx", "Abs", 13, {"T": ["float", "int8"]}, conditional=[
        Conditional({"plugin": ">=2"}, {"T": ["int8"]}), Conditional({"adapter": "*Arc*"}),
    ])  # fmt: skip
    path = tmp_path / "claims.json"
    path.write_text(table.encode_table(Table([row], provider="SomeExecutionProvider")), encoding="utf-8")
    (target,) = claim_file.with_tables([SOME], [path])

    def taken(facts: dict[str, str]) -> set[str]:
        found = target.narrow(facts).claims
        assert found is not None
        return {name for types in found.operators.values() for name in types["T"]}

    assert taken({"plugin": "2.1", "adapter": "Arc"}) == {"float32", "int8"}
    assert taken({"plugin": "1.9", "adapter": "Arc"}) == {"float32"}
    assert taken({"plugin": "2.1", "adapter": "Iris"}) == set()


@pytest.mark.parametrize(
    ("conditional", "message"),
    [
        (Conditional({"moon": "full"}), "'when' cannot name 'moon'"),
        (Conditional({}), "'when' is empty"),
        (
            Conditional({"runtime": ">=1"}, {"T": ["bool"]}),
            "Abs-13 is claimed on a condition for T = bool, which is not",
        ),
    ],
)
def test_a_condition_of_a_row_that_is_none(tmp_path: Path, conditional: Conditional, message: str) -> None:
    row = Row("ai.onnx", "Abs", 13, {"T": ["float"]}, conditional=[conditional])
    path = tmp_path / "claims.json"
    path.write_text(table.encode_table(Table([row], provider="SomeExecutionProvider")), encoding="utf-8")
    with pytest.raises(TableError, match=message):
        claim_file.with_tables([SOME], [path])


def test_a_condition_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="'when' cannot name 'moon'"):
        claim_file.with_tables([SOME], [written(tmp_path, when={"moon": "full"})])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"none\.json' cannot be read"):
        claim_file.text_of(tmp_path / "none.json")
