"""The operators of the suite by their keys. A module of `operators/` is imported when one of its operators is needed.

A module names the keys of its operators in `DECLARES`, which is read without importing it, and has the operators in
`OPERATORS`, in the same order.
"""

from __future__ import annotations

import copyreg
import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from epcheck.generators import operators, schema
from epcheck.generators.node import split_name
from epcheck.generators.operator import Operator

_DECLARES = re.compile(r"^DECLARES = \((.*?)\)$", re.MULTILINE | re.DOTALL)


class _Operators(Mapping[str, Operator[Any]]):
    """Key -> operator; `values` imports every module."""

    def __getitem__(self, key: str) -> Operator[Any]:
        return _load(_modules()[key])[key]

    def __iter__(self) -> Iterator[str]:
        return iter(_modules())

    def __len__(self) -> int:
        return len(_modules())

    def __contains__(self, key: object) -> bool:
        return key in _modules()


_OPERATORS = _Operators()


def all_operators() -> Mapping[str, Operator[Any]]:
    """`Operator.key` -> operator, without those that are newer than the installed onnx: `unknown_operators`."""
    return _OPERATORS


def load_operators() -> None:
    """Import every module, as a process does of which others are forked."""
    for module in dict.fromkeys(_modules().values()):
        _load(module)


def operator_of(key: str) -> Operator[Any]:
    """The operator of that key; KeyError when there is none."""
    return _OPERATORS[key]


def group_of(key: str) -> str:
    """What reports group an operator under: the module or folder of `operators/` that declares it, in words (`batch
    normalization`). For an operator that the suite does not have, as runs of other versions may, its key."""
    module = _declared().get(key)
    if module is None:
        return key
    folder, name = module.rsplit(".", 2)[1:]
    return (folder if name == "operators" else name).replace("_", " ")


@cache
def unknown_operators() -> frozenset[str]:
    """The keys of declared operators of which the installed onnx has no schema, because it is older."""
    return frozenset(key for key in _declared() if not schema.knows(*split_name(key)))


@cache
def _modules() -> Mapping[str, str]:
    """Key -> the full name of the module that declares it, of all operators that the installed onnx knows."""
    unknown = unknown_operators()
    return {key: module for key, module in _declared().items() if key not in unknown}


@cache
def _declared() -> Mapping[str, str]:
    """Key -> the full name of the module that declares it."""
    packages = pkgutil.walk_packages(operators.__path__, f"{operators.__name__}.")
    names = sorted((m.name for m in packages if not m.ispkg), key=lambda name: name.rpartition(".")[2])
    return {key: name for name in names for key in _read_keys(name)}


def _read_keys(module: str) -> tuple[str, ...]:
    """What the module declares, from its text; nothing where it is a part of an operator's folder."""
    package, _, name = module.rpartition(".")
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    text = Path(spec.submodule_search_locations[0], f"{name}.py").read_text(encoding="utf-8")
    match = _DECLARES.search(text)
    return tuple(re.findall(r'"([^"]+)"', match[1])) if match else ()


@cache
def _load(module: str) -> Mapping[str, Operator[Any]]:
    declared: tuple[Operator[Any], ...] = importlib.import_module(module).OPERATORS
    for kind in {type(operator) for operator in declared}:
        copyreg.pickle(kind, _reduce)
    return {operator.key: operator for operator in declared}


def _reduce(operator: Operator[Any]) -> Any:
    """How an operator is pickled: one of the suite as its key, because its functions may be lambdas."""
    if _OPERATORS.get(operator.key) is operator:
        return operator_of, (operator.key,)
    return operator.__reduce_ex__(2)
