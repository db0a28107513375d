import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from epcheck.cli.commands.machine.lab import app
from epcheck.conformance.lab import LabError, MissingLibrary, VulkanStatus, default_folder, vulkan_status
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.vulkan import status
from epcheck.conformance.lab.vulkan.packages import PACKAGES
from epcheck.conformance.lab.vulkan.status import why_none_loads

runner = CliRunner()


def named(path: Path, library: str) -> Path:
    path.write_text(json.dumps({"ICD": {"library_path": library}}))
    return path


def found(monkeypatch: pytest.MonkeyPatch, folder: Path, *files: Path) -> VulkanStatus:
    monkeypatch.setenv("VK_DRIVER_FILES", ":".join(map(str, files)))
    return vulkan_status(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="asks the loader of Linux")
def test_each_driver_is_tried_and_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    files = [
        named(tmp_path / "good.json", "libm.so.6"),
        named(tmp_path / "absent.json", "libno_such_driver.so"),
        named(tmp_path / "text.json", "./text.so"),
        tmp_path / "no_file.json",
        tmp_path / "empty.json",
    ]
    files[-1].touch()
    tried = found(monkeypatch, tmp_path / "lab", *files)
    good, absent, text, no_file, empty = tried.drivers
    assert (good.library, good.loadable, good.used, good.place) == ("libm.so.6", True, True, "VK_DRIVER_FILES")
    assert absent.problem == "libno_such_driver.so: cannot open shared object file"
    assert text.problem == f"{tmp_path}/text.so: file too short"
    assert (no_file.problem, empty.problem) == ("the file does not exist", "the file names no library")
    assert [driver.loadable for driver in tried.drivers] == [True, False, False, False, False]
    assert tried.usable
    assert not found(monkeypatch, tmp_path / "lab", *files[1:]).usable


@pytest.mark.skipif(sys.platform != "linux", reason="asks the loader of Linux")
def test_why_a_worker_finds_no_driver_is_a_clause_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    good, absent = named(tmp_path / "good.json", "libm.so.6"), named(tmp_path / "absent.json", "libno_such_driver.so")
    assert why_none_loads([], tmp_path) == why_none_loads([absent, good], tmp_path) == ""
    problem = "libno_such_driver.so: cannot open shared object file"
    assert why_none_loads([absent], tmp_path) == f"its Vulkan driver {absent} cannot be loaded: {problem}"
    lacks = (MissingLibrary("libz3.so.4", "libz3-4"), MissingLibrary("libown.so.1", None))
    monkeypatch.setattr(status, "_load", lambda *_: (lacks, None))
    assert why_none_loads([absent], tmp_path) == (
        f"its Vulkan driver {absent} needs libz3.so.4, libown.so.1: install them (Debian: libz3-4)"
    )


def test_a_machine_without_drivers_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("VK_DRIVER_FILES", str(tmp_path))
    looked = vulkan_status(tmp_path / "lab")
    assert (looked.drivers, looked.usable) == ((), False)
    assert looked.reason.endswith("install a driver, or name its ICD file (JSON) with --vulkan")


def test_windows_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(LabError, match=r"^the lab is for Linux; on Windows, DirectML uses Direct3D's own drivers$"):
        vulkan_status(tmp_path)


@pytest.mark.usefixtures("installed_lab")
def test_a_library_that_is_missing_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    layout = Layout(default_folder())
    driver = named(tmp_path / "lvp.json", str(layout.libraries / "libvulkan_lvp.so"))
    (alone,) = found(monkeypatch, tmp_path / "no lab", driver).drivers
    assert MissingLibrary("libLLVM.so.19.1", "libllvm19") in alone.missing
    assert not alone.loadable
    own, same = found(monkeypatch, layout.folder, driver).drivers
    assert (own.loadable, own.used, own.place) == (True, True, "the lab")
    assert (same.loadable, same.used) == (True, False)


@pytest.mark.skipif(sys.platform != "linux", reason="asks the loader of Linux")
def test_the_command_shows_a_line_for_each_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    good, bad = named(tmp_path / "good.json", "libm.so.6"), named(tmp_path / "bad.json", "libno_such_driver.so")
    monkeypatch.setenv("VK_DRIVER_FILES", f"{good}:{bad}")
    result = runner.invoke(app, ["status", "--vulkan", "--folder", str(tmp_path / "lab")])
    assert result.exit_code == 1
    assert f"used: {good} (libm.so.6; VK_DRIVER_FILES): can be loaded\n" in result.output
    assert f"{bad} (libno_such_driver.so; VK_DRIVER_FILES): cannot be loaded: libno_such_driver.so" in result.output
    assert result.output.endswith("Vulkan: the lab has no driver of its own; the best device is used\n")


def test_packages_are_those_of_debian() -> None:
    expected = {"libX11.so.6": "libx11-6", "libGLX.so.0": "libglx0", "libGLdispatch.so.0": "libglvnd0"}
    assert expected.items() <= PACKAGES.items()
