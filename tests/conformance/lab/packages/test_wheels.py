"""Which pip fetches packages; nothing here reaches the network."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from epcheck.conformance.lab.packages import wheels


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment as `uvx` and `pipx run` make it."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else find(name))


def test_the_pip_of_this_python_comes_first() -> None:
    assert wheels.pip() == (sys.executable, "-m", "pip")


@pytest.mark.usefixtures("no_pip")
def test_where_there_is_no_pip_the_one_that_python_keeps_for_new_environments_runs() -> None:
    command = wheels.pip()
    assert command is not None
    assert command[1].endswith("pip")
    assert wheels.missing() is None
    printed = subprocess.run([*command, "--version"], capture_output=True, encoding="utf-8", check=True).stdout
    assert printed.startswith("pip ")
    assert ".whl" in printed


@pytest.mark.usefixtures("no_pip")
def test_a_distribution_may_keep_its_wheels_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept = tmp_path / "pip-24.0-py3-none-any.whl"
    kept.touch()
    monkeypatch.setattr(sysconfig, "get_config_var", {"WHEEL_PKG_DIR": str(tmp_path)}.get)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert wheels.pip() == (sys.executable, str(kept / "pip"))


def test_a_python_without_any_pip_is_told_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    empty = ModuleSpec("ensurepip", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", {"ensurepip": empty}.get)
    monkeypatch.setattr(sysconfig, "get_config_var", lambda _name: None)
    assert wheels.missing() == f"{sys.executable} has no pip; run: {sys.executable} -m ensurepip"
