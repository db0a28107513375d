"""Environments for a machine without network: everything that they are installed from, in parts of a stated size.

A folder of parts has `part.001` and so on, `pack.json`, which lists what they hold, and `install.py`, which needs
nothing but the Python of that machine.
"""

from __future__ import annotations

import fnmatch
import importlib.metadata
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

from epcheck.conformance import lab
from epcheck.conformance.lab.folder import hash_file
from epcheck.conformance.lab.process import Progress
from epcheck.conformance.records import atomic_file
from epcheck.conformance.targets import environments
from epcheck.conformance.targets.recipes.environment import environment, list_requirements
from epcheck.conformance.targets.target import TargetError

LIST, SCRIPT, LAB = "pack.json", "install.py", "lab.pack"
"""What a folder of parts has beside them, and the name of the packed DirectML lab among what they hold."""

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class PackedEnvironments:
    """What was packed. folder: of the parts. parts: their files. size_bytes: of all. names: the environments, `dml` for
    the lab. wheels: how many files of packages there are. left_out: those that `without` names."""

    folder: Path
    parts: tuple[Path, ...]
    size_bytes: int
    names: tuple[str, ...]
    wheels: int
    left_out: tuple[str, ...]


def pack(
    folder: Path,
    targets: Sequence[str],
    *,
    python: str | None = None,
    part_mb: int = 0,
    without: Sequence[str] = (),
    source: Path | None = None,
    software_driver: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> PackedEnvironments:
    """Pack epcheck and the environments of targets for a machine of the same system and processor.

    folder: for the parts; it is made, and has to be empty. targets: recipes, with `@RELEASE` for a release, and `dml`
    for the lab of this machine. python: the version there, `3.12`; None for this one. part_mb: megabytes of a part at
    most; 0 makes one part. without: globs over names of packages that the other machine has. source: a wheel of epcheck
    or its source; None for that which is installed here. software_driver: the lab is packed with its Vulkan driver.

    Raises TargetError, RuntimeInstallError, LabError and OSError; a folder that was begun is deleted.
    """
    recipes = [environment(name) for name in targets if name != "dml"]
    if python is not None and not re.fullmatch(r"3\.\d+", python):
        raise TargetError(f"--python '{python}' is no version of Python; write for example 3.12")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise TargetError(f"{folder} is not an empty folder; name a new one")
    source = source or _find_source()
    total = 1 + len(recipes) + ("dml" in targets)

    def say(index: int, message: str) -> None:
        if progress:
            progress(Progress("pack", index, total, message))

    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix="epcheck-pack-", dir=folder) as scratch:
            held = Path(scratch) / "held"
            held.mkdir()
            say(1, "fetching epcheck and what it needs")
            listed = {"epcheck": _fetch("epcheck", held, python, [_build(source, Path(scratch))])}
            for number, made in enumerate(recipes, 2):
                say(number, f"fetching {', '.join(made.recipe.packages)}")
                listed[made.name] = _fetch(made.name, held, python, list_requirements(made))
            if "dml" in targets:
                say(total, "packing the lab")
                lab.pack(held / LAB, None, runtimes=(), software_driver=software_driver)
            left_out = tuple(sorted(path.name for path in held.iterdir() if _is_left_out(path.name, without)))
            for file in left_out:
                (held / file).unlink()
            files = sorted(held.iterdir())
            names = {name: [file for file in own if file not in left_out] for name, own in listed.items()}
            parts = _write_parts(folder, files, names, part_mb)
        shutil.copyfile(str(resources.files(__package__) / "install_pack.py"), folder / SCRIPT)
    except BaseException:
        shutil.rmtree(folder)
        raise
    size, fetched = sum(part.stat().st_size for part in parts), {file for own in names.values() for file in own}
    return PackedEnvironments(folder, parts, size, tuple(targets), len(fetched), left_out)


def _find_source() -> Path:
    """The folder that the installed epcheck was built from, as pip recorded it (PEP 610). Raises TargetError."""
    text = importlib.metadata.distribution("epcheck").read_text("direct_url.json")
    url = urlparse(json.loads(text)["url"]) if text else None
    path = Path(url2pathname(url.path)) if url and url.scheme == "file" else None
    if path is None or not path.exists():
        raise TargetError("the source of this epcheck is not on this machine; name a wheel or a source with --epcheck")
    return path


def _build(source: Path, scratch: Path) -> str:
    """A wheel of epcheck."""
    if source.suffix == ".whl":
        return str(source)
    command = environments.pip_command("wheel", "-q", "--no-deps", "-w", str(scratch), str(source))
    environments.run_step("a wheel of epcheck cannot be packed", command)
    return str(next(scratch.glob("epcheck-*.whl")))


def _fetch(name: str, held: Path, python: str | None, wanted: Sequence[str]) -> list[str]:
    """Fetch requirements and all that they need into `held`. Returns the names of the files."""
    version = python or f"{sys.version_info.major}.{sys.version_info.minor}"
    with tempfile.TemporaryDirectory(dir=held.parent) as own:
        options = ("-q", "--python-version", version, "--only-binary=:all:", "-d", own)
        command = environments.pip_command("download", *options, *wanted)
        environments.run_step(f"environment '{name}' cannot be packed", command)
        files = sorted(path.name for path in Path(own).iterdir())
        for file in files:
            (Path(own) / file).replace(held / file)
    return files


def _is_left_out(file: str, without: Sequence[str]) -> bool:
    """Whether a wheel is of a package that one of the globs names, written as in an index (PEP 503)."""
    name = re.sub(r"[-_.]+", "-", file.partition("-")[0]).lower()
    return any(fnmatch.fnmatchcase(name, re.sub(r"[-_.]+", "-", pattern).lower()) for pattern in without)


def _write_parts(folder: Path, files: Sequence[Path], names: dict[str, list[str]], part_mb: int) -> tuple[Path, ...]:
    """The files one after the other, cut where a part is full, and the list of both."""
    parts = [folder / "part.001"]
    with parts[0].open("wb") as out:
        for path in files:
            with path.open("rb") as content:
                shutil.copyfileobj(content, out)
    if part_mb:
        whole = parts.pop().rename(folder / "whole")
        with whole.open("rb") as content:
            while block := content.read(MEGABYTE):
                parts.append(folder / f"part.{len(parts) + 1:03}")
                with parts[-1].open("wb") as out:
                    out.write(block)
                    out.writelines(content.read(MEGABYTE) for _ in range(part_mb - 1))
        whole.unlink()
    listed = {"environments": names, "files": list(map(_describe, files)), "parts": list(map(_describe, parts))}
    atomic_file.write_text(folder / LIST, json.dumps(listed, indent=1) + "\n")
    return tuple(parts)


def _describe(path: Path) -> dict[str, object]:
    return {"name": path.name, "size": path.stat().st_size, "sha256": hash_file(path)}
