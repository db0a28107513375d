"""Which releases are meant, and where they are listed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from epcheck.conformance.releases import package_index, series
from epcheck.conformance.releases.error import ReleaseError, UnusableReleaseError
from epcheck.conformance.releases.package_index import releases_of
from epcheck.conformance.releases.series import Series, choose, in_range, series_of, target_at
from epcheck.conformance.targets import environments

CPU = Series("cpu", "cpu")
LISTED = ("1.17.3", "1.18.0", "1.18.1", "1.20.1", "1.24.4")
WINDOWSML = ("windowsml-1.23.2.2025", "windowsml-1.25.2.2026", "windowsml-1.30.0.2026")


@pytest.fixture
def nothing_said() -> list[str]:
    return []


@pytest.mark.parametrize(
    ("oldest", "newest", "chosen"),
    [
        ("", "", "1.17.3 1.18.0 1.18.1 1.20.1 1.24.4"),
        ("1.18", "", "1.18.0 1.18.1 1.20.1 1.24.4"),
        ("", "1.18", "1.17.3 1.18.0 1.18.1"),
        ("1.18.1", "1.20.1", "1.18.1 1.20.1"),
        ("1.19", "1.20.0", ""),
        ("1.20.1", "windowsml-1.30.0", "1.20.1 1.24.4 windowsml-1.25.2.2026 windowsml-1.30.0.2026"),
        ("windowsml-1.23", "windowsml-1.25", "windowsml-1.23.2.2025 windowsml-1.25.2.2026"),
    ],
)
def test_a_range_has_both_ends(oldest: str, newest: str, chosen: str) -> None:
    assert in_range((*WINDOWSML, *LISTED), oldest, newest) == tuple(chosen.split())


def test_a_list_needs_no_index(monkeypatch: pytest.MonkeyPatch, nothing_said: list[str]) -> None:
    monkeypatch.setattr(series, "releases_of", None)
    assert choose(CPU, "1.20.1, 1.9.0,1.20.1", nothing_said.append) == ("1.9.0", "1.20.1")
    assert choose(CPU, "1.24.4", nothing_said.append) == ("1.24.4",)
    assert nothing_said == []


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("latest", "'latest' names no releases; write for example 1.17.3..1.24.4"),
        ("1.2..x", "'1.2..x' names no releases"),
        ("1.2,", "'1.2,' names no releases"),
        ("1.2zz", "'1.2zz' is not a release"),
        ("1.20.1..1.17.3", r"'1\.20\.1\.\.1\.17\.3' ends before it begins; write 1\.17\.3\.\.1\.20\.1"),
        ("1.2..1.3", r"there is no release of onnxruntime in '1\.2\.\.1\.3'; there are 1\.17\.3, 1\.18\.0"),
    ],
)
def test_releases_that_are_none_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, nothing_said: list[str], wanted: str, message: str
) -> None:
    monkeypatch.setattr(series, "releases_of", lambda *_: LISTED)
    with pytest.raises(ReleaseError, match=message):
        choose(CPU, wanted, nothing_said.append)


def test_without_an_index_what_is_installed_is_compared_and_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, nothing_said: list[str]
) -> None:
    def unreachable(*_: object) -> None:
        raise ReleaseError("the package index cannot be reached for the releases of onnxruntime")

    monkeypatch.setattr(series, "releases_of", unreachable)
    monkeypatch.setenv("EPCHECK_RUNTIMES", str(tmp_path))
    for name in ("onnxruntime-1.9.0", "onnxruntime-1.20.1", "onnxruntime-directml-1.18.0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "complete").touch()
    (tmp_path / "onnxruntime-1.19.0").mkdir()  # an installation that was interrupted
    assert sorted(environments.list_installed("onnxruntime")) == ["1.20.1", "1.9.0"]
    assert choose(CPU, "1.9..", nothing_said.append) == ("1.9.0", "1.20.1")
    assert nothing_said == [
        "Only releases that are installed are compared, since the package index cannot be reached for the releases of "
        "onnxruntime"
    ]
    with pytest.raises(ReleaseError, match=r"cannot be reached .*; name releases that are installed, as A,B,C"):
        choose(CPU, "1.10..", nothing_said.append)


def test_pip_says_which_releases_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = []

    def pip(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        listed = "onnxruntime (1.20.1)\nAvailable versions: 1.20.1, 1.20.0, 1.9.0, 1.21.0rc1\n  LATEST: 1.20.1\n"
        return subprocess.CompletedProcess(command, 0, listed, "WARNING: experimental\n")

    monkeypatch.setattr(package_index.wheels, "pip", lambda: ("pip",))
    monkeypatch.setattr(package_index, "run_process", pip)
    assert releases_of("onnxruntime") == ("1.9.0", "1.20.0", "1.20.1")
    assert releases_of("onnxruntime-directml", windows=True) == ("1.9.0", "1.20.0", "1.20.1")
    assert ["win_amd64" in command for command in commands] == [False, True]


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ("ERROR: No matching distribution found for x", "the package index has no release of x for Python 3"),
        ("WARNING: Retrying (Retry(total=0, connect=None)) after", "the package index cannot be reached for the rel"),
        ('ERROR: unknown command "index"', 'pip cannot list the releases of x: unknown command "index"'),
        ("", "pip cannot list the releases of x: it gives no reason"),
    ],
)
def test_what_pip_cannot_tell_is_one_sentence(monkeypatch: pytest.MonkeyPatch, errors: str, message: str) -> None:
    done = subprocess.CompletedProcess([], 1, "", errors)
    monkeypatch.setattr(package_index.wheels, "pip", lambda: ("pip",))
    monkeypatch.setattr(package_index, "run_process", lambda *_, **__: done)
    with pytest.raises(ReleaseError, match=message):
        releases_of("x")


def test_a_target_without_releases_is_refused() -> None:
    for name in ("reference", "python:module:function", "/usr/bin/python", "mine"):
        with pytest.raises(ReleaseError, match=f"target '{name}' has no releases to compare; name cpu, dml, directml"):
            series_of(name, {"targets": {"mine": {"python": "/usr/bin/python"}}})


def test_a_table_has_the_releases_of_its_base(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = {"targets": {"mine": {"base": "cpu@1.24.4", "deadline_s": 7, "pack": 1}}}
    assert series_of("mine@1.20.1", config) == Series("mine", "cpu")
    monkeypatch.setattr(environments, "ensure", lambda package, version: tmp_path / f"{package}-{version}")
    target = target_at(Series("mine", "cpu"), "1.20.1", config)
    assert (target.name, target.deadline_s, target.pack) == ("mine@1.20.1", 7, 1)
    assert target.command == (str(tmp_path / "onnxruntime-1.20.1"),)
    plain = target_at(CPU, "1.20.1", config)
    assert (plain.name, plain.deadline_s, plain.expectations) == ("cpu@1.20.1", 20.0, ())


def test_a_release_that_cannot_be_installed_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(package: str, version: str) -> Path:
        raise environments.RuntimeInstallError(f"{package} {version} cannot be installed: no space left")

    monkeypatch.setattr(environments, "ensure", fail)
    with pytest.raises(UnusableReleaseError, match=r"onnxruntime 1\.0 cannot be installed: no space left"):
        target_at(CPU, "1.0", {})


def test_a_recipe_has_the_releases_of_the_package_with_its_provider(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, nothing_said: list[str]
) -> None:
    monkeypatch.setenv("EPCHECK_RUNTIMES", str(tmp_path))
    webgpu = series_of("webgpu@0.4.0", {})
    assert (webgpu, webgpu.package, webgpu.in_lab) == (Series("webgpu", "webgpu"), "onnxruntime-ep-webgpu", False)
    for release in ("0.2.1", "0.4.0"):
        (tmp_path / f"webgpu-{release}").mkdir()
        made = '{"versions": {"onnxruntime-ep-webgpu": "0"}, "driver": ""}'
        (tmp_path / f"webgpu-{release}" / "environment.json").write_text(made, encoding="utf-8")

    def unreachable(*_: object) -> None:
        raise ReleaseError("the package index cannot be reached")

    monkeypatch.setattr(series, "releases_of", unreachable)
    assert choose(webgpu, "0.2..", nothing_said.append) == ("0.2.1", "0.4.0")
