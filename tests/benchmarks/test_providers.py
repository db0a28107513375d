"""The benchmark of any target: which cases it takes, what its bare loop is told, and the ratios."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import providers
from benchmarks.peers import stored_cases
from benchmarks.peers.stored_cases import StoredCase
from benchmarks.providers import Bench
from benchmarks.rates import larger_suite
from benchmarks.rates.measurement import Measurement
from benchmarks.rates.workload import Workload, built
from epcheck.conformance.targets.specification import resolve

CPU = resolve("cpu")


def bench(folder: Path) -> Bench:
    stored = folder / "some.cases"
    stored_cases.write(stored, built(larger_suite.cases(1, {"Relu-14/float32/ordinary[runtime]"})))
    return Bench(CPU, Workload(folder / "some.json", 1, stored), folder / "cache.sqlite")


def test_candidates_are_of_versions_that_the_target_claims_and_the_same_each_time() -> None:
    found = [case.id for case in providers.candidates(CPU, 50)]
    assert len(found) == 50
    assert found == [case.id for case in providers.candidates(CPU, 50)]
    assert not any(name.startswith("com.microsoft.dml::") for name in found)
    assert {case.id for case in providers.candidates(CPU, 20)} < set(found)


def test_the_loop_of_a_plugin_names_its_package_and_options(tmp_path: Path) -> None:
    plugin = json.dumps({"package": "onnxruntime_qnn"})
    qnn = replace(
        CPU,
        command=("/env/python",),
        arguments=("onnxruntime", "--plugin", plugin),
        provider="QNNExecutionProvider",
        options={"backend_type": "htp"},
        is_plugin=True,
    )
    command = providers.loop(replace(bench(tmp_path), target=qnn), is_kept=True)
    assert command[0] == "/env/python"
    assert command[3:] == [
        *("--provider", "QNNExecutionProvider", "--options", '{"backend_type": "htp"}', "--unoptimised"),
        *("--package", "onnxruntime_qnn", "--keep"),
    ]


@pytest.mark.parametrize("is_kept", [False, True])
def test_the_loop_runs_each_case(tmp_path: Path, is_kept: bool) -> None:
    found = providers.measured(bench(tmp_path), "bare-kept" if is_kept else "bare")
    assert (found.cases, found.report["refused"]) == (1, 0)
    assert found.seconds > 0


def test_a_model_that_raises_is_refused(tmp_path: Path) -> None:
    broken = bench(tmp_path)
    stored_cases.write(broken.workload.stored, [StoredCase("broken", b"no model", {})])
    assert providers.measured(broken, "bare").report["refused"] == 1


def test_ratios_are_of_rows_of_the_same_repeat() -> None:
    report = {"refused": 0}
    repeats = [
        {row: Measurement(cases, 1.0, report) for row, cases in zip(providers.ROWS, counts, strict=True)}
        for counts in ((10, 20, 5, 40), (10, 40, 20, 30), (20, 20, 10, 40))
    ]
    *_, last = providers.lines("some", repeats)
    assert last == "  epcheck        40.0 cases/s   3.00 x bare (2.00 to 4.00), 2.00 x bare-kept (0.75 to 2.00)"
