"""Writing a lab into one file."""

from __future__ import annotations

import hashlib
import io
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from epcheck.conformance.lab import system
from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Layout, hash_file
from epcheck.conformance.lab.packages.pins import runtime
from epcheck.conformance.lab.packing import compression, contents, manifest
from epcheck.conformance.lab.packing.manifest import File, Link, Manifest
from epcheck.conformance.lab.process import Progress
from epcheck.conformance.lab.status import runtime_name, status
from epcheck.conformance.lab.steps import Stamp, lock_lab, read_stamp
from epcheck.conformance.records import atomic_file

_STEPS = ("wine", "glvnd", "prefix", "dxil", "python")


@dataclass(frozen=True)
class Packed:
    """A lab in a file. size_bytes: of the file. unpacked_bytes: of what it becomes. runtimes: as in `LabStatus`."""

    path: Path
    size_bytes: int
    unpacked_bytes: int
    runtimes: tuple[str, ...]
    software_driver: bool


def pack(
    path: Path,
    folder: Path | None = None,
    *,
    runtimes: Sequence[str] = (),
    software_driver: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Packed:
    """Write the lab as one file, for machines without network. Takes about a minute.

    The Linux and Windows files that DirectML needs are packed, see `contents`, without the software Vulkan driver
    unless `software_driver` is set. runtimes: as for `install`; none for all in the lab. An existing file is
    replaced. Raises LabError for a lab that is not complete or that changes meanwhile, and OSError.
    """
    if reason := system.unfit():
        raise LabError(reason)
    layout = Layout.of(folder)
    found = status(layout.folder)
    wanted = [runtime(name).folder for name in runtimes] or [runtime(name).folder for name in found.runtimes]
    if not found.installed:
        raise LabError(f"the lab in {layout.folder} is not complete; run: epcheck lab install")
    for name in wanted:
        if read_stamp(layout, name) is None:
            raise LabError(f"the lab in {layout.folder} has no {name}; its runtimes are {', '.join(found.runtimes)}")
    if path.is_dir():
        raise LabError(f"{path} is a folder; name the file to write")
    if not path.absolute().parent.is_dir():
        raise LabError(f"{path.parent}: no such folder; create it first")

    def say(message: str, done: int | None = None, total: int | None = None) -> None:
        if progress:
            progress(Progress("pack", 1, 1, message, done, total))

    with lock_lab(layout):
        say("reading the lab")
        listed = _manifest(layout, wanted, software_driver)
        with tempfile.TemporaryFile(dir=path.absolute().parent) as whole:
            _write_tar(layout, listed, whole)
            total = whole.tell()
            whole.seek(0)
            with atomic_file.replacing(path.absolute()) as target:
                compression.compress(whole, target, lambda done: say("compressing", done, total))
    size = path.stat().st_size
    say(f"{size / 1e6:.1f} MB")
    return Packed(path, size, listed.size, tuple(map(runtime_name, wanted)), software_driver)


def _manifest(layout: Layout, runtimes: Sequence[str], software_driver: bool) -> Manifest:
    files, links, folders = [], [], []
    kept = contents.list_packed_files(
        layout, [layout.runtimes / name for name in runtimes], software_driver=software_driver
    )
    for path in kept:
        name = path.relative_to(layout.folder).as_posix()
        if path.is_symlink():
            links.append(Link(name, str(path.readlink())))
        elif path.is_dir():
            folders.append(name)
        else:
            facts = path.stat()
            files.append(File(name, facts.st_size, hash_file(path), int(facts.st_mtime), bool(facts.st_mode & 0o100)))
    stamps = {name: stamp for name in (*_STEPS, *runtimes) if (stamp := read_stamp(layout, name))}
    return Manifest(
        made_from=manifest.digest_steps(),
        stamps=stamps if software_driver else {name: _without_driver(stamp) for name, stamp in stamps.items()},
        user=_user(layout),
        software_driver=software_driver,
        files=tuple(files),
        links=tuple(links),
        folders=tuple(folders),
    )


def _without_driver(stamp: Stamp) -> Stamp:
    return replace(stamp, facts={name: fact for name, fact in stamp.facts.items() if name != "vulkan"})


def _user(layout: Layout) -> str:
    """Whose folder Wine made in the prefix."""
    names = [path.name for path in (layout.prefix / "drive_c/users").iterdir() if path.name != "Public"]
    if len(names) != 1:
        raise LabError(f"the Wine prefix in {layout.folder} has no user; run: epcheck lab remove, then install")
    return names[0]


def _write_tar(layout: Layout, listed: Manifest, target: IO[bytes]) -> None:
    """The manifest, then every content once, alike beside alike: they compress better."""
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as tar:
        content = manifest.encode(listed)
        tar.addfile(_member(manifest.NAME, len(content)), io.BytesIO(content))
        for file in manifest.list_stored_files(listed.files):
            content = (layout.folder / file.path).read_bytes()
            if hashlib.sha256(content).hexdigest() != file.sha256:
                raise LabError(f"{layout.folder / file.path} changed while it was packed; run epcheck lab pack again")
            member = _member(file.path, file.size)
            member.mtime, member.mode = file.mtime, 0o755 if file.executable else 0o644
            tar.addfile(member, io.BytesIO(content))


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    return member
