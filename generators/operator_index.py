"""Which module of `operators/` declares which operators, read from their texts: no module is imported.

A module names the keys of its operators in `DECLARES`, in the order of its `OPERATORS`.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from epcheck.generators import operators

_DECLARES = re.compile(r"^DECLARES = \((.*?)\)$", re.MULTILINE | re.DOTALL)


def group_of(key: str) -> str:
    """What reports group an operator under: the module or folder of `operators/` that declares it, in words (`batch
    normalization`). For an operator that the suite does not have, as runs of other versions may, its key."""
    module = declaring_modules().get(key)
    if module is None:
        return key
    return _name_group(module).replace("_", " ")


def family_of(key: str) -> str:
    """The family of an operator, in words: the folder of `operators/` that declares it (`convolution pooling`); `other
    operators` for one that the suite does not have."""
    module = declaring_modules().get(key)
    return "other operators" if module is None else module.split(".")[3].replace("_", " ")


def family_folder(key: str) -> Path | None:
    """The folder of `operators/` that declares an operator; None for one that the suite does not have."""
    module = declaring_modules().get(key)
    return None if module is None else Path(operators.__path__[0]) / module.split(".")[3]


@cache
def declaring_modules() -> Mapping[str, str]:
    """Key -> the full name of the module that declares it."""
    packages = pkgutil.walk_packages(operators.__path__, f"{operators.__name__}.")
    names = sorted((m.name for m in packages if not m.ispkg), key=_name_group)
    return {key: name for name in names for key in _read_keys(name)}


def _name_group(module: str) -> str:
    folder, name = module.rsplit(".", 2)[1:]
    return folder if name == "operators" else name


def _read_keys(module: str) -> tuple[str, ...]:
    """What the module declares, from its text; nothing where it is a part of an operator's folder."""
    package, _, name = module.rpartition(".")
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    text = Path(spec.submodule_search_locations[0], f"{name}.py").read_text(encoding="utf-8")
    match = _DECLARES.search(text)
    return tuple(re.findall(r'"([^"]+)"', match[1])) if match else ()
