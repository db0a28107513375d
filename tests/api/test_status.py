"""What this machine has: every target is there, and each that does not work names the command that helps."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from epcheck import api
from epcheck.api.machine import status as module
from epcheck.conformance.targets.choice import Choice
from epcheck.conformance.targets.recipes.recipe import RECIPES
from tests.command_line import call

NO_LAB = "the lab is not installed; run: epcheck lab install"


@pytest.fixture
def without_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Linux machine on which a lab can be installed and is not."""
    monkeypatch.setattr(module.sys, "platform", "linux")
    monkeypatch.setattr(module, "why_no_dml", lambda: NO_LAB)
    monkeypatch.setattr(module, "best_choice", lambda: Choice("dml", "it is installed first", install_lab=True))
    monkeypatch.setattr(module.lab, "can_install", lambda: None)


def test_every_target_is_there_with_its_command() -> None:
    found = {target.name: target for target in api.status().targets}
    assert found.keys() >= {"cpu", "dml", "directml", "reference", *RECIPES}
    assert (found["cpu"].ready, found["cpu"].command) == (True, "epcheck run --target cpu")
    assert all(target.command.startswith("epcheck run --target ") for target in found.values() if target.ready)


def test_what_is_installed_has_its_version() -> None:
    assert api.status().installed["onnx"] == importlib.metadata.version("onnx")


@pytest.mark.usefixtures("without_lab")
def test_a_target_that_is_not_ready_names_what_makes_it_so() -> None:
    found = api.status()
    assert (found.default.name, found.default.ready) == ("dml", False)
    assert found.default.about.endswith("a run installs it first, about a minute")
    by_name = {target.name: target for target in found.targets}
    assert by_name["dml"].command == by_name["directml"].command == "epcheck lab install"
    commands = {target.name: target.command for target in found.targets if target.name in RECIPES and not target.ready}
    assert commands == {name: f"epcheck env create {name}" for name in commands}
    done = call("status")
    assert done.code == 2
    ready, others = done.out.split("How to get the others")
    assert "\ncpu  CPUExecutionProvider" in ready
    assert f"\ndml  the default: DirectML's provider: {NO_LAB}" in others


def test_a_target_is_tried_with_one_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "_targets", lambda: iter([CPU, BROKEN]))
    monkeypatch.setattr(module, "best_choice", lambda: Choice("cpu", "there is no other"))
    works, broken = api.status(api.StatusOptions(try_targets=True)).targets
    assert works.ready
    assert "; tried: a case passes in " in works.about
    assert not broken.ready
    assert "No module named 'nothing_of_the_sort'" in broken.about
    assert list(tmp_path.iterdir()) == []


CPU = api.TargetStatus("cpu", True, "the CPU", "epcheck run --target cpu")
BROKEN = api.TargetStatus("python:nothing_of_the_sort:f", True, "a function", "epcheck run")
