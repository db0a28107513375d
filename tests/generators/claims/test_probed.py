"""Claim tables from nodes that a provider takes or declines."""

from __future__ import annotations

from epcheck.generators import suite
from epcheck.generators.case import Case
from epcheck.generators.claims import Claims, find_claims, probed
from epcheck.generators.claims.probed import Asked
from epcheck.generators.claims.table import Row, Table


def case(sample: str, operator: str = "Cast") -> Case:
    return Case(operator, "", 13, "label", sample, "runtime", builder=lambda _case: None)  # type: ignore[arg-type,return-value]


def asked(sample: str, why_not: str = "", **types: str) -> Asked:
    return Asked(case(sample), tuple(types.items()), why_not)


def table_of(*nodes: Asked) -> Claims:
    return find_claims(Table(probed.rows(nodes)), "")


def test_what_is_taken_is_claimed_and_nothing_else() -> None:
    found = table_of(asked("a", T="float32"), asked("b", "no", T="float64"), asked("c", T="int8"))
    assert found.operators == {("", "Cast", 13): {"T": frozenset({"float32", "int8"})}}
    assert found.partial == {}


def test_a_version_of_which_nothing_is_taken_has_no_row() -> None:
    assert probed.rows([asked("a", "no", T="float32")]) == []


def test_a_dtype_of_which_one_node_is_declined_is_claimed_in_part() -> None:
    (row,) = probed.rows([asked("a", T="float32"), asked("b", "rank 9", T="float32"), asked("c", T="int8")])
    assert row == Row(
        "ai.onnx", "Cast", 13, {"T": ["float", "int8"]}, {"T": ["float"]},
        "declines 1 of 3 nodes, for example label/b[runtime]: rank 9",
    )  # fmt: skip


def test_to_take_a_node_and_to_fail_is_not_to_decline_it() -> None:
    fails = Asked(case("b"), (("T", "float32"),), "FAIL : no such tensor", fails=True)
    (row,) = probed.rows([asked("a", T="float32"), fails])
    assert row.partial == {}
    assert row.note == "fails on 1 of 2 nodes, for example label/b[runtime]: FAIL : no such tensor"
    assert probed.rows([fails]) == []


def test_of_two_dtypes_that_are_declined_together_the_rarer_is_in_part() -> None:
    found = table_of(
        asked("a", T1="float32", T2="int8"),
        asked("b", T1="int32", T2="uint8"),
        asked("c", T1="float32", T2="int32"),
        asked("d", "no", T1="float32", T2="uint8"),
    )
    assert found.partial == {("", "Cast", 13): {"T2": frozenset({"uint8"})}}
    assert found.is_partial("", "Cast", 13, {"T1": "float32", "T2": "uint8"})
    assert not found.is_partial("", "Cast", 13, {"T1": "float32", "T2": "int8"})


def test_every_declined_node_is_unclaimed_or_in_part() -> None:
    nodes = [
        asked(f"{first}-{second}", "" if (index * 7) % 3 else "no", T1=first, T2=second)
        for index, (first, second) in enumerate((a, b) for a in ("float32", "int8", "bool") for b in ("int8", "bool"))
    ]
    found = table_of(*nodes)
    for node in nodes:
        types = dict(node.types)
        unclaimed = found.why_not("", "Cast", 13, types)
        assert (unclaimed is not None or found.is_partial("", "Cast", 13, types)) or not node.why_not
        assert not node.why_not or unclaimed or found.is_partial("", "Cast", 13, types)
        assert node.why_not or unclaimed is None


def test_samples_are_spread_over_each_version_and_dtype() -> None:
    cases = list(suite.cases(["Abs"], ["float32"]))
    of_13 = [each.id for each in cases if each.since_version == 13]
    chosen = [each.id for each in probed.samples(cases, 4) if each.since_version == 13]
    assert len(chosen) == 4
    assert chosen[0] == of_13[0]
    assert set(chosen) <= set(of_13)
    assert len(list(probed.samples(cases, 10_000))) == len(cases)
