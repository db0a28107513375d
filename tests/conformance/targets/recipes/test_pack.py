"""Environments for a machine without network: packed in parts, installed by a script, with packages made for it."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from epcheck.conformance.targets.recipes import environment, install_pack, pack
from epcheck.conformance.targets.target import TargetError
from tests.command_line import call

SAYS_ITS_ARGUMENTS = (
    "import os, sys\ndef main():\n    print(*sys.argv[1:], os.environ['EPCHECK_RUNTIMES'], flush=True)\n"
)


def make_wheel(folder: Path, name: str, content: str = "") -> Path:
    """A package of one module, of release 9.9; that of epcheck has its command."""
    info = f"{name}-9.9.dist-info"
    files = {
        f"{name}_module.py": content,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 9.9\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if content:
        files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{name} = {name}_module:main\n"
    record = [f"{path},sha256={digest(text)},{len(text)}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    path = folder / f"{name}-9.9-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
    return path


def digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all packages that pip finds."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("EPCHECK_RUNTIMES", str(tmp_path / "runtimes"))
    make_wheel(folder, "numpy")
    make_wheel(folder, "onnxruntime_openvino")
    make_wheel(folder, "epcheck", SAYS_ITS_ARGUMENTS)
    return folder


def install(parts: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(parts / "install.py"), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False)


@pytest.mark.slow
def test_what_is_packed_is_installed_without_network(index: Path, tmp_path: Path) -> None:
    parts, source = tmp_path / "parts", index / "epcheck-9.9-py3-none-any.whl"
    packed = pack.pack(parts, ["openvino"], part_mb=1, without=["NumPy"], source=source)
    assert (packed.names, packed.wheels, packed.left_out) == (("openvino",), 2, ("numpy-9.9-py3-none-any.whl",))
    assert sorted(path.name for path in parts.iterdir()) == ["install.py", "pack.json", "part.001"]
    to = tmp_path / "a folder with 'quotes'"
    done = install(parts, "--to", str(to), "--packages-from", str(index))
    wheels = to / "wheels" / "openvino"
    assert f"env create openvino --wheels {wheels} --packages-from {index} {to / 'runtimes'}" in done.stdout
    assert done.returncode == 0
    assert not wheels.parent.exists()
    assert install(parts, "--to", str(to)).stdout.endswith("is there already; name a new folder, or delete it\n")


@pytest.mark.slow
def test_an_environment_is_made_of_the_wheels_of_a_folder(index: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    (more / "of_the_machine.py").write_text("")
    made = environment.create("openvino", wheels=index, packages_from=more)
    assert made.versions == {"onnxruntime-openvino": "9.9", "numpy": "9.9"}
    ask = "import of_the_machine, numpy_module"
    assert subprocess.run([str(made.python), "-I", "-c", ask], check=False).returncode == 0


@pytest.mark.parametrize("part_mb", [0, 1, 2])
def test_files_are_cut_and_joined_again(part_mb: int, tmp_path: Path) -> None:
    sizes = {"a.whl": 1, "b.whl": 2_600_000, "c.whl": 0, "d.whl": 400_000}
    files = [tmp_path / name for name in sizes]
    for number, path in enumerate(files):
        path.write_bytes(bytes([number + 1]) * sizes[path.name])
    folder, held = tmp_path / "parts", tmp_path / "held"
    folder.mkdir()
    held.mkdir()
    parts = pack._write_parts(folder, files, {}, part_mb)
    assert [path.stat().st_size for path in parts] == {
        0: [3_000_001], 1: [1_000_000, 1_000_000, 1_000_000, 1], 2: [2_000_000, 1_000_001],
    }[part_mb]  # fmt: skip
    listed = json.loads((folder / "pack.json").read_text(encoding="utf-8"))
    found = [install_pack.find_part(part, [tmp_path, folder]) for part in listed["parts"]]
    assert tuple(found) == parts
    install_pack.unpack(listed["files"], found, held)
    assert [(held / path.name).read_bytes() == path.read_bytes() for path in files] == [True] * 4


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda parts: (parts / "part.001").write_bytes(b"other"), "part.001 is damaged; copy it again"),
        (lambda parts: (parts / "part.001").unlink(), "there is no part.001 in"),
        (lambda parts: rename(parts, "../escapes.whl"), "'../escapes.whl' is no name of a file; pack again"),
    ],
)
def test_a_damaged_pack_installs_nothing(damage: object, words: str, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    (tmp_path / "a.whl").write_bytes(b"content")
    pack._write_parts(parts, [tmp_path / "a.whl"], {"epcheck": ["a.whl"]}, 0)
    (parts / "install.py").write_bytes(Path(str(install_pack.__file__)).read_bytes())
    damage(parts)  # type: ignore[operator]
    done = install(parts, "--to", str(tmp_path / "to"))
    assert words in done.stdout
    assert done.returncode == 2
    assert not (tmp_path / "to").exists()


def rename(parts: Path, name: str) -> None:
    listed = json.loads((parts / "pack.json").read_text(encoding="utf-8"))
    listed["files"][0]["name"] = name
    (parts / "pack.json").write_text(json.dumps(listed), encoding="utf-8")


def test_what_cannot_be_packed_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TargetError, match="is not an empty folder; name a new one"):
        pack.pack(tmp_path, [])
    with pytest.raises(TargetError, match=r"'4' is no version of Python; write for example 3\.12"):
        pack.pack(tmp_path / "new", [], python="4")
    done = call("env", "pack", str(tmp_path / "new"), "--target", "wbgpu")
    assert done.code == 2
    assert "no recipe 'wbgpu'" in done.err
    assert not (tmp_path / "new").exists()
