"""The first member of a packed lab: what the file holds, and what the lab was made from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Config, Layout
from epcheck.conformance.lab.plan import plan
from epcheck.conformance.lab.steps import Stamp, digests

NAME = "lab-pack.json"
FORMAT = 1
MOST_BYTES = 2_000_000_000  # unpacked; a lab with its software driver and four runtimes takes a third of that
_MOST_ENTRIES = 100_000
_TOP = frozenset({"dxil", "prefix", "python", "root", "runtimes"})  # what of a lab may come from a file
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")  # of users and of steps


@dataclass(frozen=True)
class File:
    """A file. path: relative to the lab's folder. size: bytes. mtime: seconds since 1970. executable: by its owner."""

    path: str
    size: int
    sha256: str
    mtime: int
    executable: bool = False


@dataclass(frozen=True)
class Link:
    """A symbolic link. target: relative to the link's folder."""

    path: str
    target: str


@dataclass(frozen=True)
class Manifest:
    """What a packed lab holds.

    made_from: step of the lab -> digest of its inputs, without the folder. stamps: of the finished steps. user: whose
    folder the Wine prefix has. folders: those that may be empty. epcheck_lab_pack: the format of the file.
    """

    made_from: dict[str, str]
    stamps: dict[str, Stamp]
    user: str
    software_driver: bool
    files: tuple[File, ...]
    links: tuple[Link, ...]
    folders: tuple[str, ...]
    epcheck_lab_pack: int = FORMAT

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def digest_steps() -> dict[str, str]:
    """Step -> digest of what this release of epcheck makes it from, the same for every folder."""
    return digests(plan(Layout(Path("/")), Config()))


def list_stored_files(files: Iterable[File]) -> list[File]:
    """The files whose content is in the archive, the first with each content, in the order of the archive."""
    first: dict[str, File] = {}
    for file in files:
        first.setdefault(file.sha256, file)
    return sorted(first.values(), key=lambda file: (PurePosixPath(file.path).suffix, file.path))


def encode(manifest: Manifest) -> bytes:
    return json.dumps(msgspec.to_builtins(manifest), indent=0).encode()


def decode(content: bytes, source: Path) -> Manifest:
    """Read what a stranger may have written. source: the file, for messages. Raises LabError."""
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise LabError(f"{source} is not a packed lab, or is damaged; write it again: epcheck lab pack") from None
    if manifest.epcheck_lab_pack != FORMAT or manifest.made_from != digest_steps():
        raise LabError(f"{source} was packed by another release of epcheck; pack the lab with this release")
    _check_paths(manifest, source)
    sizes = [file.size for file in manifest.files]
    if len(sizes) > _MOST_ENTRIES or min(sizes, default=0) < 0 or sum(sizes) > MOST_BYTES:
        raise LabError(f"{source} claims to hold more than {MOST_BYTES / 1e9:.0f} GB; it is not a packed lab")
    for name in (manifest.user, *manifest.stamps):
        if not _NAME.fullmatch(name):
            raise LabError(f"{source} has the name {name!r}, which no lab has; it is not a packed lab")
    return manifest


def _check_paths(manifest: Manifest, source: Path) -> None:
    """Every path lies in the lab, once, and none leads through a file or a link."""
    leaves = [*(file.path for file in manifest.files), *(link.path for link in manifest.links)]
    no_folders = set(leaves)
    for path in [*leaves, *manifest.folders]:
        parts = PurePosixPath(path).parts
        through = any("/".join(parts[:count]) in no_folders for count in range(1, len(parts)))
        if not _is_inside(path) or parts[0] not in _TOP or through:
            raise LabError(f"{source} names the path {path!r}, which no lab has; it is not a packed lab")
    if len({*leaves, *manifest.folders}) != len(leaves) + len(manifest.folders):
        raise LabError(f"{source} names a path twice; it is not a packed lab")
    for link in manifest.links:
        if not _leads_inside(link):
            raise LabError(f"{source} has a link {link.path!r} that leaves the lab; it is not a packed lab")


def _is_inside(path: str) -> bool:
    pure = PurePosixPath(path)
    return (
        bool(pure.parts)
        and not pure.is_absolute()
        and ".." not in pure.parts
        and str(pure) == path
        and "\0" not in path
    )


def _leads_inside(link: Link) -> bool:
    target = PurePosixPath(link.target)
    depth = len(PurePosixPath(link.path).parts) - 1
    for part in target.parts:
        depth += -1 if part == ".." else 1
        if depth < 1:
            return False
    return not target.is_absolute() and bool(link.target) and "\0" not in link.target
