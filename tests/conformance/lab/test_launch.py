import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from epcheck.conformance import lab
from epcheck.conformance.lab.folder import Config, Layout
from epcheck.conformance.lab.packages.pins import runtime
from epcheck.conformance.lab.plan import plan, runtime_step
from epcheck.conformance.lab.process import Say
from epcheck.conformance.lab.steps import Step, perform


def pretend(layout: Layout, config: Config, *runtimes: str) -> None:
    """A lab that has every stamp and none of the programs."""
    layout.folder.mkdir(exist_ok=True)
    layout.mark(config)
    facts = {"wine": {"wine_version": "10.0", "vulkan": "lavapipe"}, "dxil": {"vkd3d": "1.14"}}

    def stamped(step: Step) -> Step:
        def work(_say: Say) -> tuple[str, dict[str, str]]:
            return "made", facts.get(step.name, {})

        return Step(step.name, step.inputs, work, step.needs)

    wheels = [runtime(version) for version in runtimes]
    for wheel in wheels:
        (layout.runtimes / wheel.folder).mkdir(parents=True)
    steps = [*plan(layout, config), *(runtime_step(layout, wheel) for wheel in wheels)]
    perform(layout, [stamped(step) for step in steps], None)
    layout.dxil.parent.mkdir()
    layout.dxil.touch()
    driver = layout.root / "usr/share/vulkan/icd.d/lvp_icd.json"
    driver.parent.mkdir(parents=True)
    driver.write_text('{"ICD": {"library_path": "libvulkan_lvp.so"}}')


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "lab")
    pretend(layout, Config(), "1.24.4", "1.20.1", "windowsml-1.30.0")
    return layout


def test_the_command_ends_in_the_windows_python_that_scripts_are_appended_to(layout: Layout) -> None:
    argv = lab.python_launch(layout.folder).argv
    assert argv[-3:] == (str(layout.root / "usr/lib/wine/wine64"), lab.windows_path(layout.python / "python.exe"), "-P")


def test_each_runtime_comes_first_on_the_path_after_what_is_taken_off_it(layout: Layout) -> None:
    for name, folder in [
        ("1.24.4", "onnxruntime-directml-1.24.4"),
        ("1.20.1", "onnxruntime-directml-1.20.1"),
        ("1.30.0", "onnxruntime-windowsml-1.30.0.202609102321"),
    ]:
        env = lab.python_launch(layout.folder, runtime=name).env
        assert env["PYTHONPATH"].split(";")[1:] == [lab.windows_path(layout.runtimes / folder)]


def test_the_users_own_wine_and_home_are_out_of_reach(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINEPREFIX", "/home/user/.wine")
    monkeypatch.setenv("WINEARCH", "win32")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("PYTHONHOME", "/usr")
    env = lab.python_launch(layout.folder).env
    assert env["WINEPREFIX"] == str(layout.prefix)
    assert env["HOME"] == str(layout.home)
    assert env["WINEARCH"] == "win64"
    assert "DISPLAY" not in env
    assert "PYTHONHOME" not in env
    assert "winedbg.exe=" in env["WINEDLLOVERRIDES"]


def test_native_output_is_quiet_unless_asked_for(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WINEDEBUG", "VKD3D_DEBUG", "VKD3D_SHADER_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    env = lab.python_launch(layout.folder).env
    assert (env["WINEDEBUG"], env["VKD3D_DEBUG"], env["VKD3D_SHADER_DEBUG"]) == ("-all", "none", "none")
    monkeypatch.setenv("VKD3D_DEBUG", "trace")
    assert lab.python_launch(layout.folder).env["VKD3D_DEBUG"] == "trace"


def test_the_shim_is_told_of_the_rebuilt_vkd3d_and_the_stack(layout: Layout) -> None:
    env = lab.python_launch(layout.folder).env
    assert env["EPCHECK_VKD3D"] == lab.windows_path(layout.dxil)
    assert env["EPCHECK_GRAPHICS_STACK"] == "wine 10.0, vkd3d 1.14 DXIL"
    assert env["EPCHECK_D3D12_SHIM"].endswith("\\conformance\\lab\\graphics\\d3d12_shim.py")
    layout.dxil.unlink()
    env = lab.python_launch(layout.folder).env
    assert "EPCHECK_VKD3D" not in env
    assert env["EPCHECK_GRAPHICS_STACK"] == "wine 10.0"


def test_another_vulkan_driver_can_be_chosen_for_one_launch(layout: Layout, tmp_path: Path) -> None:
    driver = tmp_path / "nvidia_icd.json"
    with pytest.raises(lab.LabError, match=r"no such Vulkan driver: .*nvidia_icd\.json; name the driver's ICD file"):
        lab.python_launch(layout.folder, vulkan=driver)
    driver.write_text("{}")
    assert lab.python_launch(layout.folder, vulkan=driver).env["VK_DRIVER_FILES"] == str(driver)
    own = layout.root / "usr/share/vulkan/icd.d/lvp_icd.json"
    assert lab.python_launch(layout.folder).env["VK_DRIVER_FILES"] == str(own)


def test_a_runtime_that_is_not_there_is_named_with_the_command_that_adds_it(layout: Layout) -> None:
    with pytest.raises(
        lab.LabError, match=r"has no onnxruntime-directml-1\.22\.0; run: epcheck lab install --runtime 1"
    ):
        lab.python_launch(layout.folder, runtime="1.22.0")


def test_a_folder_without_a_lab_is_named_with_the_command_that_makes_one(tmp_path: Path) -> None:
    for ask in (lab.python_launch, lab.prelude, lab.stop):
        with pytest.raises(lab.LabError, match="is not a lab; run: epcheck lab install"):
            ask(tmp_path)
    with pytest.raises(lab.LabError, match="is not a lab; run: epcheck lab install"):
        lab.ensure_runtime("1.24.4", tmp_path)


def test_a_runtime_that_is_there_needs_no_install(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    lab.ensure_runtime("1.20.1", layout.folder)


def test_status_lists_what_is_there(layout: Layout) -> None:
    found = lab.status(layout.folder)
    assert found.installed
    assert found.dxil
    assert found.runtimes == ("1.24.4", "1.20.1", "windowsml-1.30.0.202609102321")
    assert (found.wine_version, found.vulkan) == ("10.0", "lavapipe")
    assert [s.name for s in found.steps[:5]] == ["wine", "glvnd", "prefix", "dxil", "python"]
    assert all(s.done for s in found.steps)


def test_status_of_a_lab_that_was_moved_says_what_is_to_be_done_again(layout: Layout, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.move(layout.folder, moved)
    found = lab.status(moved)
    assert not found.installed
    assert [s.name for s in found.steps if not s.done] == ["wine", "glvnd", "prefix"]


def test_status_of_nothing_is_not_installed(tmp_path: Path) -> None:
    found = lab.status(tmp_path / "absent")
    assert (found.installed, found.runtimes, found.size_bytes, found.wine_version) == (False, (), 0, None)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no lab on Windows")
def test_windows_sees_the_machine_as_drive_z() -> None:
    assert lab.windows_path(Path("/tmp/a b/model.onnx")) == "Z:\\tmp\\a b\\model.onnx"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no lab on Windows")
def test_a_lab_whose_server_never_ran_has_a_folder_for_it_that_stays(layout: Layout) -> None:
    layout.prefix.mkdir()
    prefix, home, server = lab.written_folders(layout.folder)
    try:
        assert (prefix, home) == (layout.prefix, layout.home)
        assert server.parent == Path("/tmp")
        assert server.name == (layout.prefix / "wineserver").read_text()
        assert server.stat().st_mode & 0o777 == 0o700
        assert lab.written_folders(layout.folder)[2] == server
    finally:
        server.rmdir()
    assert lab.written_folders(layout.folder)[2].is_dir(), "as after a restart of the machine"
    server.rmdir()
