"""The demonstration finds the faults that were put into its provider, no others, and leads to one."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest

from epcheck import reports
from epcheck.api.machine.demo import TARGET
from epcheck.api.machine.demo_provider import FAULTS, OPERATORS
from tests.command_line import call


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The addresses that a browser was asked to open."""
    addresses: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(webbrowser, "open", addresses.append)
    return addresses


def test_the_demonstration_finds_every_fault_and_opens_the_report(opened: list[str]) -> None:
    done = call("demo")
    assert (done.code, done.err) == (0, "")
    folder = reports.latest(Path("epcheck-runs"))
    assert opened == [(folder / "report.html").resolve().as_uri()]
    summary = reports.summarize(reports.read_run(folder), reports.read_records(folder))
    (target,) = summary.targets
    causes = {cause.operators: cause.title for cause in target.causes_of("failure")}
    assert causes == {
        ("Slice",): "a value of steps < 0: wrong values: the last element is wrong, off by 1",
        ("TopK",): (
            "the first input has its largest value twice: wrong values: "
            "equal values must come with the lower index first"
        ),
        ("Split", "Concat"): (
            "is refused: DemoKernels.cpp(212) 80070057 Invalid parameter: an empty tensor is not supported"
        ),
    }
    assert {operator for operators in causes for operator in operators} == set(FAULTS)
    assert set(OPERATORS) - set(FAULTS) == {"Transpose"}
    assert target.by_reading.keys() == {"failure", "ok"}


def test_its_steps_are_commands_that_show_the_fault(opened: list[str]) -> None:
    steps = call("demo", "--no-open").out.split("Find a fault in a minute\n")[1].splitlines()
    assert opened == []
    case = steps[1].removeprefix("2. Its smallest case is ").partition(": ")[0]
    assert steps[2].endswith(f'epcheck repro "{case}" --out repro')
    assert call("repro", case, "--out", "repro").code == 0
    assert steps[3].endswith(f"epcheck replay repro --target {TARGET}")
    replayed = call("replay", "repro", "--target", TARGET)
    assert replayed.code == 1
    assert "elements are wrong" in replayed.out
