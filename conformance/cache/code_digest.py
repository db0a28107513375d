"""What of epcheck's own code decides a cached value: the modules that make it, and all modules that they import.

Import statements are found in the source by a pattern, wherever they stand: parsing three hundred files takes a second,
this takes milliseconds. Data files (JSON, TOML) that lie beside such a module count as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from epcheck.conformance.workers.program import machine

ROOT = Path(__file__).parents[2]
"""The folder that the packages `generators` and `conformance` are in."""

RELEASES = ("onnx", "numpy", "ml-dtypes")
"""Distributions whose release decides what a case is."""

_PREPARED = (
    "generators.suite",
    "generators.operators.*",
    "conformance.preparation.prepared_case",
    "conformance.preparation.pack",
)
_OPINION = (
    *_PREPARED,
    "conformance.judging.opinion",
    "conformance.judging.opinion_row",
    "conformance.judging.repeats",
    "conformance.workers.*",
)

MAKERS: Mapping[str, tuple[str, ...]] = {
    "prepared": _PREPARED,
    "opinion": _OPINION,
    "size": _OPINION,
    "statuses": _OPINION,
    "workers": _OPINION,
    "parity": _OPINION,
    "alone": _OPINION,
}
"""Kind of value -> the modules that make it, without the leading `epcheck.`. A name that ends in `.*` stands for all
modules of a package: pkgutil finds the operators, and the worker program is started as a file."""

_IMPORT = re.compile(rb"\n[ \t]*(?:from|import)[ \t]+(epcheck[\w.]*|\.[\w.]*)(?:[ \t]+import[ \t]+(\([^)]*\)|[^\n]+))?")
_COMMENT = re.compile(rb"#[^\n]*")
_NAME = re.compile(rb"(?:^|[,(])\s*(\w+)")
_DATA = ("json", "toml")


def code_digest(kind: str) -> bytes:
    """A digest of the code, the data and the releases of other packages that a value of this kind depends on.

    Raises KeyError for a kind that MAKERS does not have, LookupError when a module that it names is not there.
    """
    return _code_digests(ROOT)[kind]


@cache
def _code_digests(root: Path) -> dict[str, bytes]:
    sources, releases = Sources(root), _releases()
    by_makers = {makers: sources.digest(makers, releases) for makers in set(MAKERS.values())}
    return {kind: by_makers[makers] for kind, makers in MAKERS.items()}


def _releases() -> bytes:
    words = [machine.architecture()]
    for name in RELEASES:
        with contextlib.suppress(PackageNotFoundError):
            words.append(f"{name}=={version(name)}")
    return "\0".join(words).encode()


class Sources:
    """The source files of `generators` and `conformance` below a folder, each read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._modules: dict[str, str] = {}
        self._data: dict[str, list[str]] = {}
        self._contents: dict[str, bytes] = {}
        for package in ("generators", "conformance"):
            for folder, _, names in os.walk(root / package):
                self._list(os.path.relpath(folder, root).replace(os.sep, "/"), names)

    def _list(self, folder: str, names: Iterable[str]) -> None:
        package = folder.replace("/", ".")
        for name in names:
            stem, _, suffix = name.rpartition(".")
            if suffix == "py":
                self._modules[package if stem == "__init__" else f"{package}.{stem}"] = f"{folder}/{name}"
            elif suffix in _DATA:
                self._data.setdefault(folder, []).append(f"{folder}/{name}")

    def digest(self, makers: Iterable[str], besides: bytes) -> bytes:
        """Of the files of the modules and of all that they import, and of `besides`."""
        digest = hashlib.blake2b(besides)
        for file in self.files(makers):
            content = self._read(file)
            digest.update(b"%s\0%d\0%s" % (file.encode(), len(content), content))
        return digest.digest()

    def files(self, makers: Iterable[str]) -> list[str]:
        """The files of the modules and of all that they import, and the data beside these, sorted; from the root."""
        modules = self.closure(makers).values()
        data = (
            file for folder in {module.rpartition("/")[0] for module in modules} for file in self._data.get(folder, ())
        )
        return sorted([*modules, *data])

    def closure(self, makers: Iterable[str]) -> dict[str, str]:
        """Module -> file of the modules and of all of ours that they import, at the top or inside a function.

        Raises LookupError when one of `makers` is not there.
        """
        pending = [module for maker in makers for module in self._find_modules(maker)]
        found: dict[str, str] = {}
        while pending:
            module = pending.pop()
            if module not in found and module in self._modules:
                found[module] = self._modules[module]
                pending += self._find_imports(module)
        return found

    def _find_modules(self, maker: str) -> list[str]:
        package = maker.removesuffix(".*")
        if package == maker:
            found = [maker] if maker in self._modules else []
        else:
            found = [module for module in self._modules if f"{module}.".startswith(f"{package}.")]
        if not found:
            raise LookupError(f"there is no module epcheck.{maker}, which MAKERS in {__name__} names")
        return found

    def _find_imports(self, module: str) -> Iterator[str]:
        """The modules of ours that a module imports, its package among them, and names that may be modules."""
        file = self._modules[module]
        parent = module.rpartition(".")[0]
        package = module if file.endswith("/__init__.py") else parent
        yield parent
        for match in _IMPORT.finditer(b"\n" + self._read(file)):
            base, names = match[1].decode(), match[2]
            dots = len(base) - len(base.lstrip("."))
            parents = package.split(".")
            above = ["epcheck", *parents[: len(parents) + 1 - dots]] if dots else []
            origin = ".".join([*above, base.lstrip(".")]).rstrip(".").removeprefix("epcheck").lstrip(".")
            yield origin
            for name in _NAME.findall(_COMMENT.sub(b"", names or b"")):
                yield f"{origin}.{name.decode()}".lstrip(".")

    def _read(self, file: str) -> bytes:
        if file not in self._contents:
            self._contents[file] = (self._root / file).read_bytes()
        return self._contents[file]
