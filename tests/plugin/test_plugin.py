"""Faults of use in a provider of a library: each is told by its use, and nothing is told without one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.fault_injection import planted_uses
from epcheck import api
from epcheck.conformance.records import terms
from epcheck.conformance.scheduling import use_reduction
from epcheck.conformance.targets.variants import USES, Axis

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("g++") is None, reason="the provider is written for Linux, and needs g++"
)

FAULTS = [
    ("parallel_mode_tls", "Add-14/float32/same_shape", "options=parallel"),
    ("weights_by_name", "MatMul-13/float32/matrices", "weights=other"),
    ("round8_overrun", "Sigmoid-13/float32/ordinary", "reruns=bound"),
    ("reregister_flag", "Relu-14/float32/ordinary", "lifecycle=registered"),
]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> str:
    return planted_uses.name_target(planted_uses.build_library(tmp_path_factory.mktemp("library")))


def find_uses(target: str, patterns: tuple[str, ...], axes: tuple[Axis, ...], root: Path) -> tuple[set[str], set[str]]:
    """The statuses of the cases, and the uses that differ."""
    operators = tuple(pattern.partition("-")[0] for pattern in patterns)
    options = api.RunOptions(
        (target,), baseline="none", reference=False, thin=True, operators=operators, patterns=patterns, variants=axes,
        root=root,
    )  # fmt: skip
    statuses, differing = planted_uses.read_run(api.run(options).folder)
    return set(statuses), set(differing)


def test_without_a_fault_nothing_differs(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(planted_uses.SWITCH, raising=False)
    patterns = tuple(dict.fromkeys(pattern for _, pattern, _ in FAULTS))
    assert find_uses(target, patterns, USES, tmp_path) == ({terms.PASS}, set())


@pytest.mark.parametrize(("fault", "pattern", "use"), FAULTS, ids=[fault for fault, _, _ in FAULTS])
def test_a_planted_fault_is_told_by_its_use(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, pattern: str, use: str
) -> None:
    monkeypatch.setenv(planted_uses.SWITCH, fault)
    statuses, differing = find_uses(target, (pattern,), (Axis(use.partition("=")[0]),), tmp_path)
    assert terms.USAGE_DEPENDENT in statuses
    assert use in differing


REDUCED = [
    ("static_scratch", "Softmax-13/float32/defaults[runtime]", "threads=2", {"threads": 2}, (4, 3, 2)),
    ("fd_leak", "Relu-14/float32/ordinary[runtime]", "lifecycle=repeated", {"sessions": 2}, (4, 3, 2)),
]
"""What is left of the use, of what is the same each time. Last how often an extent is tried: either shows each time."""


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "case", "use", "left", "often"), REDUCED, ids=[fault for fault, *_ in REDUCED])
def test_a_fault_is_reduced_to_the_least_use_and_its_script_is_wrong(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, case: str, use: str,
    left: dict[str, int], often: tuple[int, int, int],
) -> None:  # fmt: skip
    monkeypatch.setenv(planted_uses.SWITCH, fault)
    for name, runs in zip(("ATTEMPTS", "STEADY", "SURE"), often, strict=True):
        monkeypatch.setattr(use_reduction, name, runs)
    folder = api.repro(api.ReproOptions(case, target=target, variant=use, out=tmp_path))
    session = json.loads((folder / "case.json").read_text())["session"]
    assert session["reduced"][1].startswith("reduced to ")
    assert session["extent"].items() >= left.items()
    done = subprocess.run(
        [sys.executable, "run.py"], cwd=folder, capture_output=True, encoding="utf-8", check=False, timeout=120
    )
    assert done.returncode == 1
    count = re.fullmatch(r"wrong in (\d+) of (\d+) runs", done.stdout.splitlines()[-1])
    assert count is not None
    assert int(count[1]) > int(count[2]) / 2
