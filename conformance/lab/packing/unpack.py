"""Making a lab from a file that `pack` wrote: without network, in any folder, for any user."""

from __future__ import annotations

import contextlib
import lzma
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from epcheck.conformance.lab import system
from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Config, Layout, hash_file
from epcheck.conformance.lab.packing import compression, manifest, relocation
from epcheck.conformance.lab.packing.manifest import File, Manifest
from epcheck.conformance.lab.process import Progress
from epcheck.conformance.lab.status import LabStatus, status
from epcheck.conformance.lab.steps import lock_lab

_MOST_MANIFEST = 1 << 25  # bytes
_OVERHEAD = 4096  # bytes of a member beside its content, at most

Say = Callable[[int, int], None]
"""What reading reports through: the bytes done, the bytes in all."""


def unpack(
    path: Path,
    folder: Path | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
) -> LabStatus:
    """Make a lab from a packed one. Takes some seconds, no network and no other program.

    folder: as for `install`; it must be new or empty. What the file holds is compared with its manifest. Nothing is
    left in the folder when that fails. Raises LabError, and OSError when the disk is full or the file cannot be read.
    """
    if reason := system.unfit():
        raise LabError(reason)
    layout = Layout.of(folder)
    _refuse_used(layout)

    def say(done: int, total: int) -> None:
        if progress:
            progress(Progress("unpack", 1, 1, "unpacking", done, total))

    was_there = layout.folder.is_dir()
    with path.open("rb") as source, lock_lab(layout), _undone(layout, was_there):
        listed = _extract(source, path, layout.scratch, say)
        layout.mark(Config())
        for part in sorted(layout.scratch.iterdir()):
            part.rename(layout.folder / part.name)
        relocation.settle(layout, listed)
        shutil.rmtree(layout.scratch, ignore_errors=True)
    return status(layout.folder)


def _refuse_used(layout: Layout) -> None:
    if layout.exists():
        remedy = f"run: epcheck lab remove --folder {layout.folder}, or name another --folder"
        raise LabError(f"{layout.folder} holds a lab already; {remedy}")
    layout.refuse_foreign()


@contextlib.contextmanager
def _undone(layout: Layout, was_there: bool) -> Iterator[None]:
    """When what is done in the lab's folder fails, the folder is empty again, or gone. The caller holds its lock."""
    _refuse_used(layout)
    try:
        yield
    except BaseException:
        for path in layout.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        if not was_there:
            layout.folder.rmdir()
        raise


def _extract(source: IO[bytes], path: Path, folder: Path, say: Say) -> Manifest:
    """Unpack the file into `folder`, made anew. Raises LabError when it is not what its manifest says."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    damaged = f"{path} is damaged or not whole; write or copy it again"
    try:
        content = compression.Decompressed(source, _MOST_MANIFEST)
        with tarfile.open(fileobj=content, mode="r|") as tar:
            listed = _read_manifest(tar, path)
            content.allow(listed.size + _OVERHEAD * (len(listed.files) + 20))
            _extract_files(tar, listed, folder, say, damaged)
        while content.read(_OVERHEAD):
            pass  # the end belongs to the file as well
    except (tarfile.TarError, lzma.LZMAError, EOFError, ValueError, OverflowError) as error:
        if isinstance(error, lzma.LZMAError) and "format" in str(error).lower():
            raise LabError(f"{path} is not a packed lab; write one with: epcheck lab pack") from None
        raise LabError(damaged) from None
    _complete(listed, folder)
    return listed


def _read_manifest(tar: tarfile.TarFile, path: Path) -> Manifest:
    member = tar.next()
    if member is None or member.name != manifest.NAME or not member.isreg() or member.size > _MOST_MANIFEST:
        raise LabError(f"{path} is not a packed lab; write one with: epcheck lab pack")
    content = tar.extractfile(member)
    assert content is not None
    return manifest.decode(content.read(), path)


def _extract_files(tar: tarfile.TarFile, listed: Manifest, folder: Path, say: Say, damaged: str) -> None:
    """Every member is a file that the manifest lists, of its size and content, and none is missing."""
    wanted = {file.path: file for file in manifest.list_stored_files(listed.files)}
    total, done = sum(file.size for file in wanted.values()), 0
    while member := tar.next():
        file = wanted.pop(member.name, None)
        if file is None or not member.isreg() or member.size != file.size:
            raise LabError(damaged)
        source = tar.extractfile(member)  # `extract` has no filter before Python 3.11.4, and keeps more than is listed
        assert source is not None
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as out:
            shutil.copyfileobj(source, out)
        _finish(target, file)
        if hash_file(target) != file.sha256:
            raise LabError(damaged)
        done += file.size
        say(done, total)
    if wanted:
        raise LabError(damaged)


def _complete(listed: Manifest, folder: Path) -> None:
    """Make the folders, the further copies of contents, and the links."""
    for name in listed.folders:
        (folder / name).mkdir(parents=True, exist_ok=True)
    first = {file.sha256: file for file in manifest.list_stored_files(listed.files)}
    for file in listed.files:
        if (source := first[file.sha256]) is not file:
            _copy(folder / source.path, folder / file.path, file)
    for link in listed.links:
        path = folder / link.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(link.target)


def _copy(source: Path, target: Path, file: File) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    _finish(target, file)


def _finish(target: Path, file: File) -> None:
    target.chmod(0o755 if file.executable else 0o644)
    os.utime(target, (file.mtime, file.mtime))
