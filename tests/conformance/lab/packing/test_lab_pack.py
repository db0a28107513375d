"""The lab of this machine, packed, unpacked into another folder, and used there with a driver that it does not hold."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from epcheck.cli.commands.machine.lab import app
from epcheck.conformance import lab
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.packages import elf, pins
from epcheck.conformance.lab.packages.python_runtime import runtime_folder
from epcheck.conformance.lab.packing import compression, contents

WORKER = """
import json, os, sys
exec(open(sys.argv[1]).read())
import numpy, onnxruntime
print(json.dumps({"version": onnxruntime.__version__, "facts": sys._epcheck_facts(), "temporary": os.environ["TEMP"],
                  "is_there": os.path.isdir(os.environ["TEMP"])}))
"""
MOST = 64 * 10**6  # bytes, of a packed lab


@pytest.fixture(scope="module")
def machine(installed_lab: None) -> Layout:  # noqa: ARG001
    layout = Layout.of(None)
    if layout.config().wine_loader:
        pytest.skip("the lab uses the machine's own Wine")
    return layout


@pytest.fixture(scope="module")
def packed(machine: Layout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A packed lab, compressed in a hurry."""
    path = tmp_path_factory.mktemp("packed") / "lab.pack"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "_FILTERS", [{"id": compression.lzma.FILTER_LZMA2, "preset": 0}])
        made = lab.pack(path, machine.folder, runtimes=[lab.DEFAULT_RUNTIME])
    assert (made.path, made.size_bytes, made.software_driver) == (path, path.stat().st_size, False)
    return path


@pytest.fixture(scope="module")
def driver(machine: Layout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The software driver as another driver of the machine, under a prefix of its own: its ICD file."""
    prefix = tmp_path_factory.mktemp("driver")
    (prefix / "lib").mkdir()
    pending, linked = ["libvulkan_lvp.so"], set(contents.DRIVERS_ASK_FOR) | {"libc.so.6", "ld-linux-x86-64.so.2"}
    while pending:
        if (name := pending.pop()) not in linked:
            linked.add(name)
            (prefix / "lib" / name).symlink_to(machine.libraries / name)
            pending += elf.read_needed(machine.libraries / name)
    file = prefix / "share/vulkan/icd.d/other_icd.json"
    file.parent.mkdir(parents=True)
    content = {"library_path": "libvulkan_lvp.so", "api_version": "1.4.305"}
    file.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": content}))
    return file


def test_a_worker_starts_in_an_unpacked_lab(
    packed: Path, driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert packed.stat().st_size < MOST
    folder = tmp_path / "another folder" / "lab"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    result = CliRunner().invoke(app, ["unpack", str(packed), "--folder", str(folder)])
    assert result.exit_code == 0, result.output
    layout, status = Layout(folder), lab.status(folder)
    assert (status.installed, status.vulkan, status.dxil) == (True, None, True)
    assert not (layout.libraries / contents.SOFTWARE_DRIVER).exists()
    (tmp_path / "worker.py").write_text(WORKER)
    monkeypatch.setenv("VK_DRIVER_FILES", str(driver))
    assert lab.vulkan_status(folder).usable
    launch = lab.python_launch(folder)
    assert launch.env["VK_DRIVER_FILES"] == str(driver)
    try:
        done = subprocess.run(
            [*launch.argv, lab.windows_path(tmp_path / "worker.py"), lab.windows_path(lab.prelude(folder))],
            env=launch.env, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=120, check=False,
        )  # fmt: skip
    finally:
        lab.stop(folder)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["version"] == "1.24.4"
    assert printed["facts"]["graphics_stack"].startswith(f"wine {status.wine_version}, vkd3d")
    assert "llvmpipe" in printed["facts"]["adapter"]
    assert printed["is_there"], printed["temporary"]


def kept(layout: Layout, *, software_driver: bool = False) -> list[Path]:
    return contents.list_packed_files(
        layout, [runtime_folder(layout, pins.runtime("1.24.4"))], software_driver=software_driver
    )


def test_what_programs_and_kept_libraries_need_is_kept(machine: Layout) -> None:
    paths = kept(machine)
    names = {path.name for path in paths}
    for path in paths:
        if path.is_file():
            assert set(elf.read_needed(path)) <= names, path
    assert {"libX11.so.6", "libGLX.so.0", "libGLdispatch.so.0", "libvulkan.so.1", "d3d12.dll", "hostname.exe"} <= names
    assert names.isdisjoint({"libLLVM.so.19.1", "libvulkan_lvp.so", "lvp_icd.json", "mshtml.dll", "winex11.so"})


def test_the_software_driver_is_kept_where_it_is_wanted(machine: Layout) -> None:
    names = {path.name for path in kept(machine, software_driver=True)}
    assert {"libLLVM.so.19.1", "libvulkan_lvp.so", "lvp_icd.json"} <= names


def test_nothing_of_the_machine_is_packed(machine: Layout) -> None:
    for path in kept(machine):
        assert path.is_relative_to(machine.folder)
        if path.is_symlink():
            assert not path.readlink().is_absolute(), path
        assert not path.is_relative_to(machine.home)
        assert not path.is_relative_to(machine.prefix / "dosdevices")


def test_a_runtime_that_the_lab_has_not_is_named_with_those_that_it_has(machine: Layout, tmp_path: Path) -> None:
    match = r"has no onnxruntime-directml-1\.0\.0; its runtimes are 1\.24\.4"
    with pytest.raises(lab.LabError, match=match):
        lab.pack(tmp_path / "lab.pack", machine.folder, runtimes=["1.0.0"])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named_before_anything_is_packed(machine: Layout, tmp_path: Path) -> None:
    with pytest.raises(lab.LabError, match=f"^{re.escape(str(tmp_path / 'none'))}: no such folder; create it first$"):
        lab.pack(tmp_path / "none" / "lab.pack", machine.folder)


def test_a_lab_that_is_not_complete_is_not_packed(tmp_path: Path) -> None:
    if lab.can_install():
        pytest.skip(lab.can_install() or "")
    with pytest.raises(lab.LabError, match="is not complete; run: epcheck lab install"):
        lab.pack(tmp_path / "lab.pack", tmp_path / "absent")
    assert list(tmp_path.iterdir()) == []
