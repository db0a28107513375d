"""Packed labs that are made here, whole and damaged ones; a real one is in `test_lab_pack.py`."""

import hashlib
import io
import lzma
import os
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from epcheck.cli.commands.machine.lab import app
from epcheck.conformance import lab
from epcheck.conformance.lab.folder import Config, Layout
from epcheck.conformance.lab.packages import elf
from epcheck.conformance.lab.packing import manifest
from epcheck.conformance.lab.packing.manifest import File, Link, Manifest
from epcheck.conformance.lab.steps import Stamp

ElfFile = Callable[[Sequence[str], str, str], bytes]
LIBRARIES = "root/usr/lib/x86_64-linux-gnu"
RUNTIME = "onnxruntime-directml-1.24.4"
REGISTRY = b'"TEMP"="C:\\\\users\\\\packer\\\\Temp"\n"X"="C:\\\\users\\\\packers"\n'

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the lab is for Linux")


@pytest.fixture
def contents(elf_file: ElfFile) -> dict[str, bytes]:
    """Path -> content of a lab without what is in programs."""
    program = elf_file(["libc.so.6"], "/home/packer/lab/root/usr/lib/x86_64-linux-gnu", "/home/packer/ld.so")
    return {
        "root/usr/lib/wine/wine64": program,
        "root/usr/lib/wine/wineserver64": program,
        f"{LIBRARIES}/ld-linux-x86-64.so.2": b"loader",
        f"{LIBRARIES}/libVkLayer_MESA_device_select.so": b"layer",
        f"{LIBRARIES}/wine/a.dll": b"the same",
        "prefix/drive_c/windows/system32/a.dll": b"the same",
        "prefix/user.reg": REGISTRY,
        "dxil/vkd3d_dxil.dll": b"dxil",
        f"runtimes/{RUNTIME}/onnxruntime/__init__.py": b"",
    }


def listed(contents: Mapping[str, bytes]) -> Manifest:
    """The manifest of a whole one."""
    files = tuple(
        File(path, len(content), hashlib.sha256(content).hexdigest(), 1_700_000_000, path.endswith("64"))
        for path, content in sorted(contents.items())
    )
    steps = [*manifest.digest_steps(), RUNTIME]
    return Manifest(
        made_from=manifest.digest_steps(),
        stamps={name: Stamp("of the runtime", "made", {"wine_version": "10.0"}) for name in steps},
        user="packer",
        software_driver=False,
        files=files,
        links=(Link(f"{LIBRARIES}/libc.so", "ld-linux-x86-64.so.2"), Link("root/usr/share/wine/wine", ".")),
        folders=("prefix/drive_c/users", "prefix/drive_c/users/packer"),
    )


def write(path: Path, described: Manifest, contents: Mapping[str, bytes]) -> Path:
    """A packed lab of these contents, once each, whatever the manifest says of them."""
    with lzma.open(path, "wb", preset=0) as compressed, tarfile.open(fileobj=compressed, mode="w|") as tar:
        for name, content in [(manifest.NAME, manifest.encode(described)), *contents.items()]:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(content), 1_700_000_000, 0o755
            tar.addfile(member, io.BytesIO(content))
    return path


def stored(described: Manifest, contents: Mapping[str, bytes]) -> dict[str, bytes]:
    return {file.path: contents[file.path] for file in manifest.list_stored_files(described.files)}


@pytest.fixture
def pack(contents: dict[str, bytes], tmp_path: Path) -> Path:
    described = listed(contents)
    return write(tmp_path / "lab.pack", described, stored(described, contents))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "another folder, whose name is longer than the one that the lab was packed in" / "lab")


def test_an_unpacked_lab_is_installed_where_it_lies(
    pack: Path, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(tarfile.TarFile, "extract")  # Python 3.11.2 has it without a filter
    status = lab.unpack(pack, layout.folder)
    assert status.installed
    assert lab.status(layout.folder) == status
    assert (status.runtimes, status.wine_version, status.vulkan, status.dxil) == (("1.24.4",), "10.0", None, True)
    for name in ("wine64", "wineserver64"):
        program = layout.root / "usr/lib/wine" / name
        assert elf.interpreter(program) == str(layout.libraries / "ld-linux-x86-64.so.2")
        assert b"$ORIGIN/../x86_64-linux-gnu\0" in program.read_bytes()
        assert os.access(program, os.X_OK)
    assert f'"{layout.libraries}/libVkLayer' in (layout.layers / "nulldrv_surface.json").read_text()
    assert [(layout.prefix / "dosdevices" / name).readlink() for name in ("c:", "z:")] == [
        Path("../drive_c"),
        Path("/"),
    ]
    assert (layout.prefix / "drive_c/windows/system32/a.dll").read_bytes() == b"the same"
    assert (layout.libraries / "libc.so").read_bytes() == b"loader"
    assert (layout.prefix / "drive_c/windows/system32/a.dll").stat().st_mtime == 1_700_000_000
    assert not layout.scratch.exists()


def test_the_wine_prefix_belongs_to_who_unpacks_it(pack: Path, layout: Layout) -> None:
    lab.unpack(pack, layout.folder)
    import pwd

    name = pwd.getpwuid(os.getuid()).pw_name
    assert [path.name for path in (layout.prefix / "drive_c/users").iterdir()] == [name]
    assert (layout.prefix / "user.reg").read_bytes() == REGISTRY.replace(b"packer\\", name.encode() + b"\\")


def test_a_lab_that_is_there_is_kept(pack: Path, layout: Layout) -> None:
    layout.folder.mkdir(parents=True)
    layout.mark(Config())
    result = CliRunner().invoke(app, ["unpack", str(pack), "--folder", str(layout.folder)])
    remedy = f"run: epcheck lab remove --folder {layout.folder}, or name another --folder"
    assert (result.exit_code, result.stderr) == (2, f"epcheck: {layout.folder} holds a lab already; {remedy}\n")
    assert [path.name for path in layout.folder.iterdir()] == ["lab.json"]


def test_an_unpacking_that_was_killed_can_be_repeated(pack: Path, layout: Layout) -> None:
    layout.scratch.mkdir(parents=True)
    (layout.scratch / "half").touch()
    layout.lock.touch()
    assert lab.unpack(pack, layout.folder).installed


def refused(path: Path, layout: Layout, match: str) -> None:
    """It is one sentence, and nothing is left behind; what was there stays."""
    with pytest.raises(lab.LabError, match=match):
        lab.unpack(path, layout.folder)
    assert not layout.folder.exists()
    layout.folder.mkdir(parents=True)
    with pytest.raises(lab.LabError, match=match):
        lab.unpack(path, layout.folder)
    assert [entry.name for entry in layout.folder.iterdir()] == []


DAMAGED = r"lab\.pack is damaged or not whole; write or copy it again$"
NO_PACK = r"lab\.pack is not a packed lab"


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9, 0.999])
def test_a_file_that_is_not_whole_is_refused(pack: Path, layout: Layout, part: float) -> None:
    content = pack.read_bytes()
    pack.write_bytes(content[: int(len(content) * part)])
    refused(pack, layout, DAMAGED)


def test_a_file_with_another_byte_is_refused(pack: Path, layout: Layout) -> None:
    content = bytearray(pack.read_bytes())
    content[len(content) // 2] ^= 1
    pack.write_bytes(content)
    refused(pack, layout, DAMAGED)


def test_another_file_is_refused(pack: Path, layout: Layout) -> None:
    for content in (b"text" * 100, lzma.compress(b"text" * 1000), lzma.compress(b"")):
        pack.write_bytes(content)
        refused(pack, layout, r"lab\.pack is (not a packed lab; write one with: epcheck lab pack|damaged)")
        layout.folder.rmdir()
    with tarfile.open(pack, "w:xz") as tar:
        tar.addfile(tarfile.TarInfo("readme.txt"))
    refused(pack, layout, NO_PACK)


def test_contents_that_differ_from_the_manifest_are_refused(
    pack: Path, contents: dict[str, bytes], layout: Layout
) -> None:
    described = listed(contents)
    whole = stored(described, contents)
    first = next(iter(whole))
    changed = bytes(len(whole[first]))
    for wrong in (
        {**whole, first: changed},
        {**whole, first: whole[first] + b"x"},
        {name: content for name, content in whole.items() if name != first},
        {**whole, "root/more": b"more"},
        {**whole, "../escaped": b"more"},
    ):
        refused(write(pack, described, wrong), layout, DAMAGED)
        layout.folder.rmdir()
    assert not (layout.folder.parent / "escaped").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE])
def test_a_member_that_is_no_file_is_refused(
    pack: Path, contents: dict[str, bytes], layout: Layout, kind: bytes
) -> None:
    described = listed(contents)
    with lzma.open(pack, "wb") as compressed, tarfile.open(fileobj=compressed, mode="w|") as tar:
        content = manifest.encode(described)
        head, link = tarfile.TarInfo(manifest.NAME), tarfile.TarInfo(described.files[0].path)
        head.size, link.type, link.linkname = len(content), kind, "/etc/passwd"
        tar.addfile(head, io.BytesIO(content))
        tar.addfile(link)
    refused(pack, layout, DAMAGED)


EMPTY = hashlib.sha256().hexdigest()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"files": (File("../x", 0, EMPTY, 0),)}, "names the path '../x', which no lab has"),
        ({"files": (File("/etc/x", 0, EMPTY, 0),)}, "names the path '/etc/x', which no lab has"),
        ({"files": (File("root/../../x", 0, EMPTY, 0),)}, "which no lab has"),
        ({"files": (File("root//x", 0, EMPTY, 0),)}, "which no lab has"),
        ({"files": (File("home/.profile", 0, EMPTY, 0),)}, "which no lab has"),
        ({"files": (File("lab.json", 0, EMPTY, 0),)}, "which no lab has"),
        ({"files": (File("", 0, EMPTY, 0),)}, "which no lab has"),
        ({"files": (File("root/x", 0, EMPTY, 0), File("root/x", 0, EMPTY, 0))}, "names a path twice"),
        ({"files": (File("root/x", 0, EMPTY, 0), File("root/x/y", 0, EMPTY, 0))}, "which no lab has"),
        ({"files": (File("root/x", 3_000_000_000, EMPTY, 0),)}, "claims to hold more than 2 GB"),
        ({"files": (File("root/x", -5, EMPTY, 0),)}, "claims to hold more than 2 GB"),
        ({"folders": ("root/..",)}, "which no lab has"),
        ({"links": (Link("root/x", "/etc"),)}, "has a link 'root/x' that leaves the lab"),
        ({"links": (Link("root/x", "../../etc"),)}, "has a link 'root/x' that leaves the lab"),
        ({"links": (Link("root/x", "y/../../../z"),)}, "has a link 'root/x' that leaves the lab"),
        ({"links": (Link("root/x", "y"),), "files": (File("root/x/z", 0, EMPTY, 0),)}, "which no lab has"),
        ({"user": "../.."}, r"has the name '\.\./\.\.', which no lab has"),
        ({"stamps": {"../lab": Stamp("", "")}}, r"has the name '\.\./lab', which no lab has"),
        (
            {"made_from": {"wine": "another"}},
            "was packed by another release of epcheck; pack the lab with this release",
        ),
        ({"epcheck_lab_pack": 2}, "was packed by another release of epcheck"),
    ],
)
def test_a_manifest_of_a_stranger_is_refused(
    pack: Path, contents: dict[str, bytes], layout: Layout, change: dict[str, Any], match: str
) -> None:
    refused(write(pack, replace(listed(contents), **change), {}), layout, match)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b"[" * 100_000, b'{"files": 3}'])
def test_a_manifest_that_is_none_is_refused(content: bytes) -> None:
    with pytest.raises(lab.LabError, match="is not a packed lab, or is damaged"):
        manifest.decode(content, Path("lab.pack"))


def test_a_manifest_is_read_as_it_was_written(contents: dict[str, bytes]) -> None:
    described = listed(contents)
    assert manifest.decode(manifest.encode(described), Path("lab.pack")) == described
    assert msgspec.json.decode(manifest.encode(described))["epcheck_lab_pack"] == 1


def test_programs_that_are_none_are_refused(pack: Path, contents: dict[str, bytes], layout: Layout) -> None:
    contents["root/usr/lib/wine/wine64"] = b"#!/bin/sh\n"
    described = listed(contents)
    write(pack, described, stored(described, contents))
    refused(pack, layout, "the packed lab cannot be used: .* names no folder of libraries")


def test_a_file_that_is_not_there_exits_with_2(layout: Layout) -> None:
    result = CliRunner().invoke(app, ["unpack", "absent.pack", "--folder", str(layout.folder)])
    assert (result.exit_code, result.stderr) == (2, "epcheck: No such file or directory: absent.pack\n")
    assert not layout.folder.exists()


def test_windows_has_no_lab_to_pack_or_to_unpack(monkeypatch: pytest.MonkeyPatch, layout: Layout) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(lab.LabError, match=r"^the lab is for Linux; on Windows, DirectML runs without it: pip install"):
        lab.unpack(Path("lab.pack"), layout.folder)
    with pytest.raises(lab.LabError, match=r"^the lab is for Linux; on Windows, DirectML runs without it: pip install"):
        lab.pack(Path("lab.pack"), layout.folder)
