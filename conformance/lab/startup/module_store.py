"""Python modules of the lab, all in one file: Wine takes some 5 ms to find and read one, and a worker imports 300.

Wine's server takes part in every question about a file. This file runs in Windows Python under Wine, alone, as soon as
Python can run anything (`sitecustomize`): so it imports only what is a part of the interpreter. The store is written by
the first worker that finds none, from what it has imported, and belongs to one installation of Python and the runtime:
its name says which.
"""

import marshal
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import ExtensionFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType
    from typing import Any

END = "epcheck's modules"
"""The last value of a store: one that lacks it was not written whole."""

UNUSED = frozenset(f"numpy.{name}" for name in ("ctypeslib", "fft", "ma", "polynomial", "random"))
"""Modules that numpy imports and a worker does not use: they are executed when somebody asks for something in them.
numpy.random alone takes a tenth of a worker's start."""

Entry = tuple[bool, str, bytes]
"""Of a module: whether it is a package, its file, its compiled code; none of a library of machine code, which is loaded
from its own file without being looked for."""


class StoredModules:
    """Finds and loads modules that are in a store."""

    def __init__(self, entries: dict[str, Entry]) -> None:
        self._entries = entries

    def find_spec(self, fullname: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """The module as if its own file had been found; None where it is not in the store."""
        if fullname not in self._entries:
            return None
        is_package, file, code = self._entries[fullname]
        loader: Any = self if code else ExtensionFileLoader(fullname, file)
        if fullname in UNUSED:
            from importlib.util import LazyLoader

            loader = LazyLoader(loader)
        spec = ModuleSpec(fullname, loader, origin=file, is_package=is_package)
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(file)]  # noqa: PTH120  (pathlib takes 20 ms to import)
        return spec

    def create_module(self, _spec: ModuleSpec) -> None:
        """Python's own way."""

    def exec_module(self, module: "ModuleType") -> None:
        """Execute the compiled code."""
        exec(marshal.loads(self._entries[module.__name__][2]), module.__dict__)

    def get_code(self, fullname: str) -> "CodeType":
        """The compiled code of a module, for those who run it as a program."""
        code: CodeType = marshal.loads(self._entries[fullname][2])
        return code

    def get_resource_reader(self, fullname: str) -> "Any":
        """What reads the files that lie in a package, for `importlib.resources`."""
        from importlib.readers import FileReader
        from types import SimpleNamespace

        return FileReader(SimpleNamespace(path=self._entries[fullname][1]))  # type: ignore[arg-type]


def use(store: str) -> bool:
    """Import from the store in this file from now on; False where there is none, or it cannot be read."""
    try:
        with open(store, "rb") as file:  # noqa: PTH123
            entries, end = marshal.load(file), marshal.load(file)
    except (OSError, ValueError, EOFError, TypeError):
        return False
    if end != END:
        return False
    sys.meta_path.insert(0, StoredModules(entries))
    return True


def is_used() -> bool:
    """Whether modules come from a store."""
    return any(isinstance(finder, StoredModules) for finder in sys.meta_path)


def write(store: str, packages: tuple[str, ...]) -> None:
    """Keep what has been imported of the standard library and of these packages. Does nothing where that fails."""
    entries: dict[str, Entry] = {}
    for name, module in tuple(sys.modules.items()):
        loader: Any = getattr(module, "__loader__", None)
        root = name.partition(".")[0]
        if hasattr(loader, "get_filename") and (root in packages or root in sys.stdlib_module_names):
            try:
                file, code = loader.get_filename(name), loader.get_code(name)
            except (ImportError, OSError):  # it goes by another name, too
                continue
            entries[name] = hasattr(module, "__path__"), file, b"" if code is None else marshal.dumps(code)
    temporary = f"{store}.{os.getpid()}"
    try:
        with open(temporary, "wb") as file:  # noqa: PTH123
            file.write(marshal.dumps(entries) + marshal.dumps(END))
        os.replace(temporary, store)  # noqa: PTH105
    except OSError:
        return
