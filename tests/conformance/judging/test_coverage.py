"""Claims against cases and runs: what is covered, what passes, what cannot be reached and why."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import onnxruntime
import pytest

from epcheck.api.suite.coverage import CoverageError, CoverageOptions, kind_coverage
from epcheck.api.suite.coverage import coverage as api_coverage
from epcheck.api.suite.run import run
from epcheck.api.suite.run_options import RunOptions
from epcheck.conformance.judging import coverage
from epcheck.conformance.records import terms
from epcheck.conformance.records.record import Record
from epcheck.conformance.targets.specification import describe_target, resolve
from epcheck.generators.claims import Claims, claims_of, table_path, why_unreachable
from epcheck.generators.graphs import graph_sample
from tests.command_line import call, refused
from tests.conformance.small_cases import identities, records_of
from tests.whole_suite import whole_suite_ids

DML = "DmlExecutionProvider"
FEW = Claims(
    "few",
    {
        ("", "Slice", 13): {"T": frozenset(("float32", "bool")), "Tind": frozenset(("int32", "int64"))},
        ("", "TopK", 24): {"T": frozenset(("float32", "bfloat16"))},
        ("", "If", 7): {"B": frozenset(("bool",))},
        ("", "Sigmoid", 13): {"T": frozenset(("bfloat16", "float64"))},
        ("", "Round", 11): {"T": frozenset(("float32",)), "Unused": frozenset(("int32",))},
        ("nowhere", "Unknown", 1): {"T": frozenset(("float32",))},
        ("", "QLinearConv", 10): {"T1": frozenset(("uint8", "int32"))},
    },
)


def states(triples: object) -> dict[tuple[str, str], str]:
    return {(f"{t.operator}-{t.key[2]}", t.dtype): t.state for t in triples}  # type: ignore[attr-defined]


def test_a_claim_is_covered_where_a_case_binds_its_dtype_to_any_constraint() -> None:
    assert states(coverage.of_suite(FEW)) == {
        ("Slice-13", "bool"): "covered",
        ("Slice-13", "float32"): "covered",
        ("Slice-13", "int32"): "covered",
        ("Slice-13", "int64"): "covered",
        ("TopK-24", "bfloat16"): "unreachable",
        ("TopK-24", "float32"): "covered",
        ("If-7", "bool"): "unreachable",
        ("nowhere::Unknown-1", "float32"): "unreachable",
        ("QLinearConv-10", "uint8"): "covered",
        ("QLinearConv-10", "int32"): "covered",
        ("Sigmoid-13", "bfloat16"): "unreachable",
        ("Sigmoid-13", "float64"): "covered",
        ("Round-11", "float32"): "covered",
        ("Round-11", "int32"): "unreachable",
    }


def test_a_run_says_which_claims_pass_fail_and_are_declined() -> None:
    cases = identities(4)
    (good, *_) = records_of(cases, resolve("cpu")).values()

    def recorded(operator: str, version: int, dtype: str, status: str, reading: str = terms.OK) -> Record:
        facts = replace(good.case, operator=operator, since_version=version, types={"T": dtype})
        return replace(good, case=facts, status=status, reading=reading)

    seen = coverage.tally(
        [
            recorded("Slice", 13, "float32", terms.PASS),
            recorded("Slice", 13, "float32", terms.UNPLACED),
            recorded("Slice", 13, "bool", terms.UNPLACED),
            recorded("Slice", 13, "int64", terms.PASS),
            recorded("Slice", 13, "int64", terms.CRASH, terms.EXPECTED),
            recorded("Round", 11, "float32", terms.REFUSED, terms.NOTED),
            recorded("Elsewhere", 1, "int64", terms.PASS),
        ]
    )
    found = states(coverage.of_run(FEW, seen))
    assert found["Slice-13", "float32"] == "passing"
    assert found["Slice-13", "bool"] == "unplaced"
    assert found["Slice-13", "int64"] == "failing"
    assert found["Round-11", "float32"] == "unplaced"
    assert seen[("", "Round", 11), "float32"] == {"noted": 1}
    assert found["Slice-13", "int32"] == "missing"
    assert found["If-7", "bool"] == "unreachable"


def test_every_claim_of_the_dml_ep_is_one_of_its_table() -> None:
    claims = claims_of(DML)
    assert claims is not None
    triples = list(coverage.of_run(claims, {}))
    assert len(triples) == 3086
    assert len({triple.operator for triple in triples}) == 205


@pytest.mark.parametrize(
    ("key", "dtype", "why"),
    [
        (("", "Slice", 13), "float32", ""),
        (("", "Slice", 12), "float32", "no opset has a revision 12 of Slice"),
        (("", "SequenceAt", 11), "seq(float)", ""),
        (("", "SequenceAt", 11), "seq(bfloat16)", "the schema of that version does not allow the dtype"),
        (("", "TopK", 10), "int8", "the schema of that version does not allow the dtype"),
        (("", "If", 16), "string", "a tensor of strings holds nothing that a provider computes"),
        (("", "OptionalHasElement", 18), "optional(seq(tensor(bfloat16)))", "the schema of that version"),
    ],
)
def test_why_a_claim_cannot_be_reached(key: tuple[str, str, int], dtype: str, why: str) -> None:
    reason = why_unreachable(key, dtype)
    assert reason.startswith(why)
    assert bool(reason) == bool(why)


@pytest.mark.slow
def test_the_command_prints_counts_and_writes_every_claim(tmp_path: Path) -> None:
    result = call("coverage", "--json", str(tmp_path / "claims.json"))
    document = json.loads((tmp_path / "claims.json").read_text(encoding="utf-8"))
    counts = Counter(claim["state"] for claim in document)
    assert f"3,086 claims of 205 operators, {3086 - counts['unreachable']:,} can be reached" in result.out
    assert result.code == (1 if counts["missing"] else 0)
    assert {(claim["operator"], claim["since_version"]) for claim in document if claim["state"] == "covered"} >= {
        ("Slice", 13), ("TopK", 11), ("QLinearConv", 10),
    }  # fmt: skip


def test_a_provider_without_a_table_is_named() -> None:
    message = refused("coverage", "--provider", "TensorrtExecutionProvider")
    assert message.startswith("provider 'TensorrtExecutionProvider' has no claim table; choose one of DmlExecution")


@pytest.fixture(scope="module")
def of_cpu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few cases on the CPU provider."""
    root = tmp_path_factory.mktemp("runs")
    options = RunOptions(targets=("cpu",), operators=("Neg",), dtypes=("float32",), limit=6, root=root, baseline="none")
    return run(replace(options, reference=False)).folder


def test_a_run_is_read_against_the_claims_of_its_own_target(tmp_path: Path, of_cpu: Path) -> None:
    table = tmp_path / "claims.json"
    row = {"domain": "ai.onnx", "name": "Neg", "since_version": 6, "type_constraints": {"T": ["float", "int8"]}}
    table.write_text(json.dumps({"provider": "CPUExecutionProvider", "operators": [row]}), encoding="utf-8")
    found = api_coverage(CoverageOptions(run=of_cpu, claims=table))
    assert {(triple.key, triple.dtype): triple.state for triple in found} == {
        (("", "Neg", 6), "float32"): "passing",
        (("", "Neg", 6), "int8"): "missing",
    }
    shipped = claims_of("CPUExecutionProvider")
    assert shipped is not None
    if shipped.when["runtime"] == f"{'.'.join(onnxruntime.__version__.split('.')[:2])}.*":
        with_dtypes = {key for key, constraints in shipped.operators.items() if constraints}
        assert {triple.key for triple in api_coverage(CoverageOptions(run=of_cpu))} == with_dtypes
        assert {name for _, name, _ in shipped.operators.keys() - with_dtypes} == {"NonMaxSuppression"}
    else:
        with pytest.raises(CoverageError, match="applies where runtime is"):
            api_coverage(CoverageOptions(run=of_cpu))


def test_the_cases_by_rule_are_counted_and_what_a_run_says_of_each(of_cpu: Path, tmp_path: Path) -> None:
    kinds = {found.kind: found for found in kind_coverage()}
    graphs = sum(found.cases for found in kinds.values() if found.kind in graph_sample.KINDS)
    assert graphs == sum("/graph_" in case_id for case_id in whole_suite_ids())
    assert kinds["undefined"].cases == sum("/undefined_" in case_id for case_id in whole_suite_ids()) == 100
    assert min(kinds[kind].cases for kind in ("border", "empty", "pairs")) > 50
    assert (kinds["between"].cases, kinds["between"].statuses) == (4, {})
    assert kinds["apart"].aim.startswith("what looks like a fusion, and is none")
    assert all(found.statuses == {} for found in kind_coverage(CoverageOptions(run=of_cpu)))
    options = RunOptions(targets=("cpu",), patterns=("graph_diamond_fan_of_",), root=tmp_path, baseline="none")
    folder = run(replace(options, reference=False)).folder
    found = {kind.kind: kind.statuses for kind in kind_coverage(CoverageOptions(run=folder)) if kind.statuses}
    assert found == {"diamond": {"pass": 2}}


def test_the_claims_of_any_target_are_covered_or_not() -> None:
    shipped = claims_of("CPUExecutionProvider")
    assert shipped is not None
    assert set(describe_target("cpu@1.20.1", {}).claims.operators) == set(shipped.operators)  # type: ignore[union-attr]
    assert describe_target(
        "mine", {"targets": {"mine": {"provider": "OpenVINOExecutionProvider"}}}
    ).claims is claims_of("OpenVINOExecutionProvider")
    assert describe_target("mine", {"targets": {"mine": {"base": "dml"}}}).provider == DML


def test_what_has_no_claims_is_said(of_cpu: Path) -> None:
    assert refused("coverage", "--target", "reference").startswith("target 'reference' has no claim table; make one")
    message = refused("coverage", "--run", str(of_cpu), "--target", "dml")
    assert message.endswith("has no target 'dml'; it has cpu")


def test_claims_are_refreshed_into_a_file_of_choice(tmp_path: Path) -> None:
    page = tmp_path / "kernels.md"
    page.write_text(
        "## Operators implemented by DmlExecutionProvider\n|**Operator Domain:** *ai.onnx*||||\n"
        "|Slice|x|14+|**T** = tensor(float)|\n",
        encoding="utf-8",
    )
    result = call("claims", "refresh", str(page), "--out", str(tmp_path / "table.json"))
    assert result.code == 0
    assert "added: Slice-14\nchanged: nothing\n" in result.out
    written = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    path = table_path(DML)
    assert path is not None
    assert len(written["operators"]) == len(json.loads(path.read_text(encoding="utf-8"))["operators"]) + 1


def test_a_page_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Something else", encoding="utf-8")
    message = refused("claims", "refresh", str(tmp_path / "page.md"), "--out", str(tmp_path / "table.json"))
    assert message.startswith("the page has no section")
    assert not (tmp_path / "table.json").exists()


def test_a_page_that_cannot_be_reached_is_one_sentence_that_says_what_to_do(tmp_path: Path) -> None:
    message = refused("claims", "refresh", "http://127.0.0.1:1/page.md", "--out", str(tmp_path / "table.json"))
    assert message == (
        "http://127.0.0.1:1/page.md cannot be read (Connection refused); without network, name this file: "
        "docs/OperatorKernels.md of an ONNX Runtime checkout"
    )
    assert not (tmp_path / "table.json").exists()
