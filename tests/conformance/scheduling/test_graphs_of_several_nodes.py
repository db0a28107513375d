"""Fixed graphs on the real CPU provider: optimised, in sessions of their own, judged by the truth of each node."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from epcheck.conformance.judging.claim import is_promised
from epcheck.conformance.judging.opinion import placement_gap
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records.outcome import DONE, Outcome
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling.grouping import Grouping
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import CPU, DML
from epcheck.conformance.test_data import repro
from epcheck.generators import suite
from tests.conformance.judged_cases import DIRECTML

FUSED = "Relu-14/float32/graph_fusion_conv_relu[runtime]"
MISTAKEN = "Add-14/float32/graph_apart_layer_normalization_of_fourth_powers[runtime]"
BETWEEN = "Neg-13/float32/graph_between_det[runtime]"


def prepared(case_id: str) -> PreparedCase:
    return prepared_case.of(suite.case_by_id(case_id).build())


def placed(*nodes: tuple[str, str]) -> Outcome:
    return Outcome(DONE, assignment=nodes)


def test_a_fusion_that_the_cpu_provider_gets_right_and_another_that_it_gets_wrong() -> None:
    """Without optimisation both are right: the sessions of graphs are optimised."""
    records: dict[str, Record] = {}
    cases = tuple(map(suite.case_by_id, (FUSED, MISTAKEN)))
    run_plan(Plan(cases, (resolve("cpu"),)), lambda record: records.update({record.case_id: record}))
    assert (records[FUSED].status, records[FUSED].reading) == ("pass", "ok")
    assert (records[MISTAKEN].status, records[MISTAKEN].reading) == ("mismatch", "expected")
    (difference,) = records[MISTAKEN].candidate.differences
    assert difference.wrong == 96
    assert difference.max_abs is not None
    assert 0.5 < difference.max_abs < 1.5
    assert {operator for _, operator in records[MISTAKEN].candidate.assignment or ()} == {"LayerNormalization"}


def test_a_folder_of_a_graph_is_run_with_all_optimisations(tmp_path: Path) -> None:
    folder = repro.write(suite.case_by_id(MISTAKEN).build(), tmp_path)
    command = [sys.executable, str(folder / "run.py"), CPU]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "WRONG on CPUExecutionProvider" in done.stdout


def test_every_node_of_an_optimised_graph_must_be_the_provider_s() -> None:
    graph = prepared(FUSED)
    assert (graph.level, graph.elsewhere) == ("all", ())
    assert placement_gap(graph, DML, placed((DML, "DmlFusedConv"))) == ""
    assert placement_gap(graph, DML, placed((DML, "Conv"), (CPU, "Relu"))) == f"Relu was assigned to {CPU}"
    assert placement_gap(graph, DML, placed()).startswith("no proof of placement")


def test_a_node_in_between_may_be_the_cpu_s_and_no_other() -> None:
    between = prepared(BETWEEN)
    assert between.elsewhere == ("Det",)
    assert placement_gap(between, DML, placed((DML, "Relu"), (CPU, "Det"), (DML, "Neg"))) == ""
    assert placement_gap(between, DML, placed((DML, "Relu"), (CPU, "Det"), (CPU, "Neg"))).startswith("Neg was")


def test_graphs_share_no_session_and_nobody_promises_them() -> None:
    graph, single = prepared(FUSED), prepared("Relu-14/float32/ordinary[runtime]")
    assert Grouping().group(graph, DIRECTML, "pass", {}) == b""
    assert Grouping().group(single, DIRECTML, "pass", {}) != b""
    assert is_promised(single, DIRECTML)
    assert not is_promised(graph, DIRECTML)


def test_the_level_is_a_part_of_what_a_case_is() -> None:
    graph = suite.case_by_id(FUSED).build()
    around = graph.node.surroundings
    assert around is not None
    plain = replace(graph, node=replace(graph.node, surroundings=replace(around, level="")))
    assert prepared_case.of(graph).digest != prepared_case.of(plain).digest
