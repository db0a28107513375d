"""What is wrong with a request is said before anything is installed for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from epcheck import api
from epcheck.api.suite import executor
from epcheck.conformance.releases.error import ReleaseError
from epcheck.conformance.targets.target import TargetError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no lab")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """A machine that could have a lab and has none; what is asked for of the package index."""
    asked: list[str] = []

    def releases(package: str, windows: bool) -> tuple[str, ...]:
        asked.append(package)
        assert windows
        return ("1.23.0", "1.24.3", "1.24.4")

    def install(_progress: object) -> None:
        raise AssertionError("the lab is being installed")

    monkeypatch.setenv("EPCHECK_LAB", str(tmp_path / "lab"))
    monkeypatch.setattr(executor.lab, "can_install", lambda: None)
    monkeypatch.setattr(executor, "_install_lab", install)
    monkeypatch.setattr(executor, "releases_of", releases)
    return asked


def why_not(*targets: str, vulkan: Path | None = None, baseline: str | None = None) -> str:
    options = api.RunOptions(targets, baseline, ("Relu",), limit=1, vulkan=vulkan)
    with pytest.raises(TargetError) as refusal:
        api.run(options)
    return str(refusal.value)


def test_a_driver_that_is_not_there(bare: list[str], tmp_path: Path) -> None:
    missing = tmp_path / "icd.json"
    expected = f"no such Vulkan driver: {missing}; name the driver's ICD file (JSON)"
    assert why_not("dml", vulkan=missing) == expected
    assert why_not(vulkan=missing) == expected
    assert bare == []


def test_nothing_is_listed_for_a_target_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api.RunOptions, "cases", lambda _options: pytest.fail("cases are listed"))
    assert why_not("nope").startswith("unknown target 'nope'")


def test_another_target_or_the_baseline(bare: list[str]) -> None:
    assert why_not("dml", "no-such").startswith("unknown target 'no-such'")
    assert why_not("dml", baseline="no-such").startswith("unknown target 'no-such'")
    assert why_not("dml@new") == "target 'dml@new': 'new' is not a release; write for example dml@1.20.1"
    assert why_not("directml@new") == "target 'directml@new': 'new' is not a release; write for example directml@1.20.1"
    assert bare == []


def test_a_release_that_the_package_index_does_not_have(bare: list[str]) -> None:
    assert why_not("dml@9.9.9") == (
        "target 'dml@9.9.9': onnxruntime-directml has no such release; the newest are 1.23.0, 1.24.3, 1.24.4"
    )
    assert why_not("dml@windowsml-9.9.9").startswith("target 'dml@windowsml-9.9.9': onnxruntime-windowsml has no such")
    assert bare == ["onnxruntime-directml", "onnxruntime-windowsml"]


@pytest.mark.parametrize("target", ["dml", "dml@1.24.4", "dml@1.24.3"])
def test_what_may_be_right_is_installed(bare: list[str], target: str) -> None:
    options = api.RunOptions((target,), operators=("Relu",), limit=1)
    with pytest.raises(AssertionError, match="the lab is being installed"), executor.open_executor(options, api.SILENT):
        pass
    assert bare in ([], ["onnxruntime-directml"])


def test_an_index_that_cannot_be_reached_keeps_nobody_from_trying(
    bare: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(_package: str, windows: bool) -> tuple[str, ...]:
        raise ReleaseError(f"unreachable, {windows}")

    monkeypatch.setattr(executor, "releases_of", unreachable)
    options = api.RunOptions(("dml@9.9.9",), operators=("Relu",), limit=1)
    with pytest.raises(AssertionError, match="the lab is being installed"), executor.open_executor(options, api.SILENT):
        pass
    assert bare == []
