"""The lists of cases that a certificate is about, of each release of the suite, as `mustpass.toml` has them; and what
tells a suite from any other.

As in the mustpass lists of the Khronos conformance test suites, a list stays what it was when the suite goes on: a
certificate names the release whose list it is about.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from epcheck.conformance.records.contract import Mustpass
from epcheck.conformance.records.run import digest_of
from epcheck.generators import suite
from epcheck.generators.case import Case

FILE = "mustpass.toml"

THIN, WHOLE = "thin", "whole"

_PACKAGES, _SUFFIXES = ("generators", "conformance"), (".py", ".toml", ".json", ".txt")


@cache
def load_mustpass() -> tuple[Mustpass, ...]:
    """The lists of every release that this epcheck knows."""
    text = (files("epcheck.conformance.profile") / FILE).read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text)["list"], tuple[Mustpass, ...])


def make_mustpass(cases: Iterable[Case], release: str, onnx: str) -> tuple[Mustpass, Mustpass]:
    """The lists of a suite. cases: all of it."""
    whole = tuple(cases)
    lists = {THIN: [case.id for case in suite.thin_cases(whole)], WHOLE: [case.id for case in whole]}
    thin, every = (Mustpass(name, release, onnx, len(ids), digest_of(ids)) for name, ids in lists.items())
    return thin, every


def format_mustpass(lists: Iterable[Mustpass]) -> str:
    """The text of `mustpass.toml`."""
    head = "# Which cases a certificate is about, by release; `nox -s case_ids` writes those of this one.\n"
    return head + "".join(
        f'\n[[list]]\nname = "{each.name}"\nsuite = "{each.suite}"\nonnx = "{each.onnx}"\ncases = {each.cases}\n'
        f'digest = "{each.digest}"\n'
        for each in lists
    )


def digest_suite() -> str:
    """SHA-256 over the code and data that make cases and judge them."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[2]
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*")):
            if path.suffix in _SUFFIXES and path.is_file():
                content = path.read_bytes().replace(b"\r\n", b"\n")
                digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()
