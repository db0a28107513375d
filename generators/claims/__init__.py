"""What execution providers claim to support, from their own documentation: operator x since_version x dtypes.

The table of the DML EP is ONNX Runtime's docs/OperatorKernels.md and the registrations in its OperatorRegistration.cpp;
the JSON file beside this module names the commits. Other providers have no table: nothing is claimed for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from epcheck.generators.schema import NUMPY_NAMES

_TABLES = {"DmlExecutionProvider": "dml_ep_operators.json"}

Key = tuple[str, str, int]
"""(domain, operator, since_version); the domain of ai.onnx is ''."""


@dataclass(frozen=True)
class Claims:
    """The claims of one provider: type constraint -> numpy dtype names, for every operator version it registers."""

    provider: str
    operators: Mapping[Key, Mapping[str, frozenset[str]]]

    def why_not(self, domain: str, operator: str, since_version: int, types: Mapping[str, str]) -> str | None:
        """None when the provider claims the operator with these dtypes; otherwise what it does not claim, in words.

        types: type constraint -> numpy dtype name. Constraints that the table does not list are not restricted.
        """
        constraints = self.operators.get((domain, operator, since_version))
        if constraints is None:
            versions = sorted(v for d, o, v in self.operators if (d, o) == (domain, operator))
            listed = ", ".join(map(str, versions))
            return f"no kernel for {operator}-{since_version}" + (f" (it has {listed})" if versions else "")
        for constraint, dtype in types.items():
            if constraint in constraints and dtype not in constraints[constraint]:
                return f"{operator}-{since_version} is not claimed for {constraint} = {dtype}"
        return None


@cache
def claims_of(provider: str) -> Claims | None:
    """The claims of an execution provider; None when it publishes no table that epcheck has."""
    if provider not in _TABLES:
        return None
    table = json.loads((files(__name__) / _TABLES[provider]).read_text(encoding="utf-8"))
    return Claims(provider, {_key(row): _constraints(row) for row in table["operators"]})


def _key(row: Mapping[str, Any]) -> Key:
    return "" if row["domain"] == "ai.onnx" else row["domain"], row["name"], row["since_version"]


def _constraints(row: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    return {
        constraint: frozenset(NUMPY_NAMES.get(name, name) for name in names)
        for constraint, names in row["type_constraints"].items()
    }
