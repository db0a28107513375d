"""What an install says when it cannot be done; nothing here reaches the network."""

import platform
import sys
from pathlib import Path

import pytest

from epcheck.conformance import lab
from epcheck.conformance.lab import wine
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.packages import apt, python_runtime
from epcheck.conformance.lab.packages.pins import Wheel

linux = pytest.mark.skipif(sys.platform != "linux", reason="programs are shell scripts")


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_windows_needs_no_lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(lab.LabError, match="on Windows, DirectML runs without it"):
        lab.install(tmp_path / "lab")
    assert not (tmp_path / "lab").exists()


def test_another_processor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert "the lab needs Linux on x86-64; this is" in (lab.can_install() or "")


@linux
def test_an_old_wine_of_the_machine_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "wine64", "echo wine-8.0 '(Debian 8.0~repack-4)'")
    script(tmp_path / "wineserver", "")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(lab.LabError, match=r"wine64 is 'wine-8\.0 .*'; Wine 10 or later is needed"):
        lab.install(tmp_path / "lab", system_wine=True)


@linux
def test_a_recent_wine_of_the_machine_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loader, server = script(tmp_path / "wine", "echo wine-11.2"), script(tmp_path / "wineserver", "")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert wine.find_system_wine() == wine.Wine(loader, server)


@linux
def test_a_machine_without_wine_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(lab.LabError, match="this machine has no Wine on its PATH; install Wine 10 or later"):
        wine.find_system_wine()


@linux
def test_a_vulkan_driver_that_does_not_exist_is_named_before_anything_is_made(tmp_path: Path) -> None:
    if lab.can_install():
        pytest.skip(lab.can_install() or "")
    with pytest.raises(lab.LabError, match=r"no such Vulkan driver: .*absent\.json"):
        lab.install(tmp_path / "lab", vulkan=tmp_path / "absent.json")
    assert not (tmp_path / "lab").exists()


def test_no_debian_archive_asks_for_a_mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(apt, "missing", lambda: None)
    monkeypatch.setattr(apt, "machine_sources", lambda: [])
    with pytest.raises(lab.LabError, match="apt on this machine knows no Debian archive; name one with --mirror URL"):
        apt.Archive(Layout(tmp_path), None, lambda *_: None)


def test_a_release_that_does_not_exist_lists_those_that_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fetch(*_arguments: object, **_options: object) -> None:
        raise lab.LabError(
            "downloading failed: ERROR: Could not find a version that satisfies the requirement "
            "onnxruntime-directml==9.9 (from versions: 1.23.0, 1.24.4)"
        )

    monkeypatch.setattr(python_runtime, "fetch", fetch)
    expected = r"onnxruntime-directml has no release 9\.9 for Windows and Python 3\.12; there are 1\.23\.0, 1\.24\.4$"
    with pytest.raises(lab.LabError, match=expected):
        python_runtime.install_runtime(Layout(tmp_path), Wheel("onnxruntime-directml", "9.9"), lambda *_: None, None)
