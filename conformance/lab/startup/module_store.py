"""Python modules of the lab, all in one file: Wine takes some 5 ms to find and read one, and a worker imports 250.

This file runs in Windows Python under Wine, alone. The store is written by the first worker that finds none, from what
it has imported, and belongs to one installation of Python and the runtime: its name says which.
"""

from __future__ import annotations

import contextlib
import importlib.util
import marshal
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import Any

END = "epcheck's modules"
"""The last value of a store: one that lacks it was not written whole."""

Entry = tuple[bool, str, bytes]
"""Of a module: whether it is a package, its file, its compiled code."""


class StoredModules(MetaPathFinder, Loader):
    """Finds and loads modules that are in a store."""

    def __init__(self, entries: dict[str, Entry]) -> None:
        self._entries = entries

    def find_spec(self, fullname: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        """The module as if its own file had been found; None where it is not in the store."""
        if fullname not in self._entries:
            return None
        is_package, file, _ = self._entries[fullname]
        folders = [os.path.dirname(file)] if is_package else None  # noqa: PTH120  (pathlib takes 20 ms to import)
        return importlib.util.spec_from_file_location(fullname, file, loader=self, submodule_search_locations=folders)

    def create_module(self, _spec: ModuleSpec) -> None:
        """Python's own way."""

    def exec_module(self, module: ModuleType) -> None:
        """Execute the compiled code."""
        exec(marshal.loads(self._entries[module.__name__][2]), module.__dict__)


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


def write(store: str, packages: tuple[str, ...]) -> None:
    """Keep what has been imported of the standard library and of these packages. Does nothing where that fails."""
    entries: dict[str, Entry] = {}
    for name, module in tuple(sys.modules.items()):
        loader = getattr(module, "__loader__", None)
        root = name.partition(".")[0]
        if type(loader) is SourceFileLoader and (root in packages or root in sys.stdlib_module_names):
            with contextlib.suppress(ImportError, OSError):
                code = marshal.dumps(loader.get_code(name))
                entries[name] = hasattr(module, "__path__"), loader.get_filename(name), code
    temporary = f"{store}.{os.getpid()}"
    with contextlib.suppress(OSError):
        with open(temporary, "wb") as file:  # noqa: PTH123
            file.write(marshal.dumps(entries) + marshal.dumps(END))
        os.replace(temporary, store)  # noqa: PTH105
