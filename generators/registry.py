"""The operators of the suite by their keys. A module of `operators/` is imported when one of its operators is needed.

`operator_index` says which module that is. The module has its operators in `OPERATORS`.
"""

from __future__ import annotations

import copyreg
import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from epcheck.generators import schema
from epcheck.generators.node import split_name
from epcheck.generators.operator import Operator
from epcheck.generators.operator_index import declaring_modules


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


@cache
def unknown_operators() -> frozenset[str]:
    """The keys of declared operators of which the installed onnx has no schema, because it is older."""
    return frozenset(key for key in declaring_modules() if not schema.knows(*split_name(key)))


@cache
def _modules() -> Mapping[str, str]:
    """Key -> the full name of the module that declares it, of all operators that the installed onnx knows."""
    unknown = unknown_operators()
    return {key: module for key, module in declaring_modules().items() if key not in unknown}


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
