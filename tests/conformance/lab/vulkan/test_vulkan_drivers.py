import json
import os
import sys
from pathlib import Path

import pytest

from epcheck.conformance.lab import LabError
from epcheck.conformance.lab.folder import Config, Layout
from epcheck.conformance.lab.vulkan import drivers
from epcheck.conformance.lab.wine import environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the lab is for Linux")


def icd(path: Path, library: str = "libGLX_nvidia.so.0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": {"library_path": library}}))
    return path


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine whose drivers are all below the folder that is returned."""
    for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    machine = tmp_path / "machine"
    monkeypatch.setattr(drivers, "_places", lambda: iter([machine / "etc", machine / "usr/share"]))
    return machine


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "lab")


def test_the_places_are_those_of_the_loader_and_of_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for name in ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_DATA_DIRS", "/opt/share:/usr/share")
    assert [str(place) for place in drivers._places()] == [
        "/home/me/.config", "/etc/xdg", "/etc", "/home/me/.local/share", "/opt/share", "/usr/share",
        "/usr/local/share", "/usr/share", "/usr/local/nvidia/share",
    ]  # fmt: skip


def test_drivers_are_found_once_in_the_order_of_the_places(bare_machine: Path) -> None:
    first = icd(bare_machine / "etc/vulkan/icd.d/b.json")
    second = icd(bare_machine / "usr/share/vulkan/icd.d/a.json")
    (bare_machine / "usr/share/vulkan/icd.d/link.json").symlink_to(first)
    assert [file.path for file in drivers.machine_drivers()] == [first, second]
    assert drivers.machine_drivers()[0].place == str(first.parent)


@pytest.mark.parametrize("variable", ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"])
def test_drivers_of_the_environment_replace_all_others(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    icd(bare_machine / "etc/vulkan/icd.d/b.json")
    named, in_folder = icd(tmp_path / "x.json"), icd(tmp_path / "folder/y.json")
    monkeypatch.setenv(variable, f"{named}{os.pathsep}{in_folder.parent}")
    assert drivers.machine_drivers() == [drivers.DriverFile(path, variable) for path in (named, in_folder)]


def test_what_a_run_names_comes_before_what_the_lab_was_installed_with(layout: Layout, tmp_path: Path) -> None:
    run, installed = icd(tmp_path / "run.json"), icd(tmp_path / "installed.json")
    own = icd(layout.root / "usr/share/vulkan/icd.d/lvp_icd.json")
    config = Config(vulkan=str(installed))
    assert drivers.choose(layout, config, run).files == (run,)
    assert drivers.choose(layout, config).files == (installed,)
    assert drivers.choose(layout, Config()).files == (own,)
    with pytest.raises(LabError, match=r"no such Vulkan driver: .*absent\.json; name the driver's ICD file"):
        drivers.choose(layout, config, tmp_path / "absent.json")


def test_a_lab_without_a_driver_uses_those_of_the_machine(bare_machine: Path, layout: Layout) -> None:
    with pytest.raises(LabError, match="this machine has no Vulkan driver that can be found"):
        drivers.choose(layout, Config())
    found = [icd(bare_machine / f"usr/share/vulkan/icd.d/{name}.json") for name in ("intel", "nvidia")]
    assert drivers.choose(layout, Config()).files == tuple(found)
    assert environment(layout, Config())["VK_DRIVER_FILES"] == f"{found[0]}:{found[1]}"


def test_the_machines_own_wine_leaves_the_choice_to_the_loader(layout: Layout) -> None:
    assert drivers.choose(layout, Config("/usr/bin/wine", "/usr/bin/wineserver")).files == ()


def test_the_libraries_of_a_driver_under_a_prefix_of_its_own_are_found(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = icd(tmp_path / "nvidia/share/vulkan/icd.d/nvidia_icd.json")
    assert drivers.library_folders([driver]) == []
    folder = tmp_path / "nvidia/lib64"
    folder.mkdir()
    (folder / "libGLX_nvidia.so.0").touch()
    assert drivers.library_folders([driver]) == [folder]
    assert environment(layout, Config(), driver)["LD_LIBRARY_PATH"] == str(folder)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
    assert environment(layout, Config(), driver)["LD_LIBRARY_PATH"] == f"/opt/lib:{folder}"
    (folder / "libc.so.6").touch()  # nothing of the machine would start with it
    assert drivers.library_folders([driver]) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"ICD": []}', '{"ICD": {"library_path": 3}}', "[" * 100_000])
def test_a_file_that_names_no_library_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "icd.json"
    path.write_text(text)
    assert drivers.library(path) is None
    assert drivers.library(tmp_path / "absent.json") is None
