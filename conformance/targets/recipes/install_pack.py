"""Install what `epcheck env pack` packed, on a machine without network.

    python3 install.py --to FOLDER                               # the parts are beside this file
    python3 install.py --to FOLDER --parts DIR --parts DIR       # the parts came in several folders
    FOLDER/epcheck run --target dml                              # then

Each part and each file is compared with its SHA-256 before anything is installed. It needs Python 3.11 or later with
pip or ensurepip, and no root.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!@-]*")
"""What a file or an environment may be called: nothing that leaves its folder."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="where everything is installed; new")
    parser.add_argument(
        "--parts", type=Path, action="append", metavar="DIR", help="a folder with parts; repeat for more"
    )
    parser.add_argument(
        "--packages-from", type=Path, metavar="DIR", help="a site-packages folder with packages that were not packed"
    )
    options = parser.parse_args()
    try:
        install(options.to.absolute(), options.parts or [Path(__file__).parent], options.packages_from)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"install.py: {error}", file=sys.stderr)
        return 2
    return 0


def install(to: Path, folders: list[Path], packages: Path | None) -> None:
    """Raises OSError and ValueError, with one sentence."""
    if to.exists():
        raise ValueError(f"{to} is there already; name a new folder, or delete it")
    listed = json.loads((Path(__file__).parent / "pack.json").read_text(encoding="utf-8"))
    names = [each["name"] for each in (*listed["files"], *listed["parts"])] + list(listed["environments"])
    if wrong := [name for name in names if not NAME.fullmatch(name)]:
        raise ValueError(f"pack.json: {wrong[0]!r} is no name of a file; pack again")
    parts = [find_part(part, folders) for part in listed["parts"]]
    held = to / "wheels"
    held.mkdir(parents=True)
    try:
        unpack(listed["files"], parts, held)
        make_environment(to, [held / name for name in listed["environments"].pop("epcheck")], packages)
        call = write_command(to)
        if (held / "lab.pack").is_file():
            run([*call, "lab", "unpack", str(held / "lab.pack")])
        for name, files in listed["environments"].items():
            own = held / name
            own.mkdir()
            for file in files:
                shutil.copyfile(held / file, own / file)
            more = ["--packages-from", str(packages)] if packages else []
            run([*call, "env", "create", name, "--wheels", str(own), *more])
    except BaseException:
        shutil.rmtree(to, ignore_errors=True)
        raise
    shutil.rmtree(held)
    print(f"installed in {to}; run: {call[0]} list targets")


def find_part(part: dict[str, Any], folders: list[Path]) -> Path:
    """The file of a part, which is whole."""
    for folder in folders:
        path = folder / str(part["name"])
        if path.is_file():
            digest = hashlib.sha256()
            for block in read_blocks([path]):
                digest.update(block)
            if digest.hexdigest() != part["sha256"]:
                raise ValueError(f"{path} is damaged; copy it again")
            return path
    raise ValueError(f"there is no {part['name']} in {', '.join(map(str, folders))}; copy it there")


def read_blocks(paths: list[Path]) -> Iterator[bytes]:
    for path in paths:
        with path.open("rb") as content:
            while block := content.read(1 << 20):
                yield block


def unpack(files: list[dict[str, Any]], parts: list[Path], held: Path) -> None:
    """Write each file of the parts, and compare it."""
    blocks, content = read_blocks(parts), b""
    for file in files:
        digest, missing = hashlib.sha256(), int(file["size"])
        with (held / file["name"]).open("wb") as out:
            while missing and (content := content or next(blocks, b"")):
                block, content = content[:missing], content[missing:]
                digest.update(block)
                out.write(block)
                missing -= len(block)
        if digest.hexdigest() != file["sha256"]:
            raise ValueError(f"{file['name']} is not what was packed; pack again")


def make_environment(to: Path, wheels: list[Path], packages: Path | None) -> None:
    """A virtual environment with epcheck."""
    run([sys.executable, "-I", "-m", "venv", "--without-pip", str(to / "environment")])
    python = to / "environment" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run([*find_pip(), "--python", str(python), "install", "-q", "--no-index", "--no-deps", *map(str, wheels)])
    if packages:
        base = str(python.parents[1])
        purelib = sysconfig.get_path("purelib", "venv", vars={"base": base, "platbase": base})
        Path(purelib, "packages_from.pth").write_text(f"{packages.absolute()}\n", encoding="utf-8")


def find_pip() -> list[str]:
    """The pip of this Python, or the one that it keeps for new environments."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-I", "-m", "pip"]
    kept = importlib.util.find_spec("ensurepip")
    bundled = list((Path(kept.origin).parent / "_bundled").glob("pip-*.whl")) if kept and kept.origin else []
    if not bundled:
        raise ValueError(f"{sys.executable} has no pip; use another Python")
    return [sys.executable, str(bundled[0] / "pip")]


def write_command(to: Path) -> list[str]:
    """The command `epcheck` in the folder, with the folder's own lab, environments and cache."""
    own = {"EPCHECK_LAB": to / "lab", "EPCHECK_RUNTIMES": to / "runtimes", "EPCHECK_CACHE": to / "cache"}
    if os.name == "nt":
        path, start = to / "epcheck.cmd", f'"{to}\\environment\\Scripts\\epcheck.exe" %*'
        lines = ["@echo off", *(f'set "{name}={value}"' for name, value in own.items()), start, ""]
    else:
        path, start = to / "epcheck", f'exec {shlex.quote(f"{to}/environment/bin/epcheck")} "$@"'
        lines = ["#!/bin/sh", *(f"export {name}={shlex.quote(str(value))}" for name, value in own.items()), start, ""]
    path.write_text("\n".join(lines), encoding="utf-8")
    path.chmod(0o755)
    return [str(path)]


def run(command: list[str]) -> None:
    """Raises ValueError where it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise ValueError(f"this command failed with {done.returncode}: {' '.join(command)}")


if __name__ == "__main__":
    sys.exit(main())
