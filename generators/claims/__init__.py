"""What execution providers claim to support: operator x since_version x dtypes.

The table of the DML EP is ONNX Runtime's docs/OperatorKernels.md and the registrations in its OperatorRegistration.cpp;
the JSON file beside this module names the commits. The other tables were made by `epcheck probe`, which asks a provider
which nodes it takes, and compared with the provider's documentation; each says with which release and with what result.
A provider without a table promises nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from epcheck.generators import schema
from epcheck.generators.claims import table
from epcheck.generators.claims.table import Row, Table, TableError
from epcheck.generators.schema import NUMPY_NAMES

DML = "DmlExecutionProvider"
_TABLES = {
    DML: "dml_ep_operators.json",
    "CPUExecutionProvider": "cpu.json",
    "CUDAExecutionProvider": "cuda.json",
    "OpenVINOExecutionProvider": "openvino.json",
    "QNNExecutionProvider": "qnn.json",
    "WebGpuExecutionProvider": "webgpu.json",
}
PROVIDERS = tuple(_TABLES)
"""Those whose claims epcheck ships."""

Key = tuple[str, str, int]
"""(domain, operator, since_version); the domain of ai.onnx is ''."""


@dataclass(frozen=True)
class Kernel:
    """How a registered kernel is chosen.

    query, rule: the name of the support query that may decline a node, and what it declines, in words. cpu_inputs: the
    inputs that it reads on the CPU. runs_on_cpu: it is a CPU kernel that the provider registers as its own.
    """

    query: str
    rule: str
    cpu_inputs: frozenset[int]
    runs_on_cpu: bool


Constraints = Mapping[str, frozenset[str]]
"""Type constraint -> numpy dtype names."""

When = Mapping[str, str | list[str]]
"""On which releases and machines something holds, as in an expectation's `when`; empty for everywhere."""


@dataclass(frozen=True)
class Conditional:
    """What of an operator version is claimed only where `when` holds. types: of which dtypes; empty for all of it."""

    key: Key
    when: When
    types: Constraints = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Claims:
    """The claims of one provider, for every operator version of which it takes nodes.

    partial: the part of `operators` of which it takes some nodes and not others. when: where they are its claims.
    conditional: the part of `operators` that it claims only on some releases or machines; `narrow` takes out what is
    not claimed on one of them.
    """

    provider: str
    operators: Mapping[Key, Constraints]
    kernels: Mapping[Key, Kernel] = field(default_factory=dict)
    partial: Mapping[Key, Constraints] = field(default_factory=dict)
    when: When = field(default_factory=dict)
    conditional: tuple[Conditional, ...] = ()

    def narrow(self, holds: Callable[[When], bool]) -> Claims:
        """What is claimed where some conditions hold. holds: whether one does. Where all do, it is these claims."""
        missing = [conditional for conditional in self.conditional if not holds(conditional.when)]
        if not missing:
            return self
        whole = {conditional.key for conditional in missing if not conditional.types}
        left = {key: types for key, types in self.operators.items() if key not in whole}
        for key, types in ((c.key, c.types) for c in missing if c.key in left):
            left[key] = {name: found - types.get(name, frozenset()) for name, found in left[key].items()}
        return replace(self, operators=left, conditional=tuple(c for c in self.conditional if c not in missing))

    def versions(self, domain: str, operator: str) -> tuple[int, ...]:
        """The versions of an operator that it registers, oldest first."""
        return tuple(sorted(v for d, o, v in self.operators if (d, o) == (domain, operator)))

    def why_not(self, domain: str, operator: str, since_version: int, types: Mapping[str, str]) -> str | None:
        """None when the provider claims the operator with these dtypes; otherwise what it does not claim, in words.

        types: type constraint -> numpy dtype name. Constraints that the table does not list are not restricted.
        """
        constraints = self.operators.get((domain, operator, since_version))
        if constraints is None:
            listed = ", ".join(map(str, self.versions(domain, operator)))
            return f"no kernel for {operator}-{since_version}" + (f" (it has {listed})" if listed else "")
        for constraint, dtype in types.items():
            if constraint in constraints and dtype not in constraints[constraint]:
                return f"{operator}-{since_version} is not claimed for {constraint} = {dtype}"
        return None

    def is_partial(self, domain: str, operator: str, since_version: int, types: Mapping[str, str]) -> bool:
        """Whether only some nodes of the operator with these dtypes are claimed, so that any one may be declined.

        The arguments as in `why_not`.
        """
        constraints = self.partial.get((domain, operator, since_version), {})
        return any(dtype in constraints.get(constraint, ()) for constraint, dtype in types.items())


def table_path(provider: str) -> Path | None:
    """The file of the provider's table; None when there is none."""
    return Path(__file__).with_name(_TABLES[provider]) if provider in _TABLES else None


@cache
def claims_of(provider: str) -> Claims | None:
    """The claims of an execution provider; None when epcheck ships no table of it."""
    path = table_path(provider)
    return None if path is None else find_claims(table.decode_table(path.read_bytes(), path.name), provider)


def parse(text: str, source: str) -> Claims:
    """The claims of a table's text; `source` names it in errors. Raises TableError when it is not valid or names no
    provider."""
    found = table.decode_table(text, source)
    if not found.provider:
        raise TableError(f"claim table '{source}' does not say whose it is; give it a 'provider'")
    return find_claims(found, found.provider)


def find_claims(found: Table, provider: str) -> Claims:
    """The claims that a table holds."""
    rows = {_key(row): row for row in found.operators}
    return Claims(
        provider,
        {key: _constraints(row.type_constraints) for key, row in rows.items()},
        {key: _kernel(row) for key, row in rows.items()},
        {key: _constraints(row.partial) for key, row in rows.items() if row.partial},
        found.when,
        tuple(
            Conditional(key, c.when, _constraints(c.type_constraints))
            for key, row in rows.items()
            for c in row.conditional
        ),
    )


@cache
def newest_claimed_version(operator: str, domain: str = "") -> int:
    """The newest version of an operator that DirectML's provider claims; where it claims none, the newest there is.

    Every way for inputs to enter the model is tried in it. Later versions, which it does not have, get fewer cases.
    Tables of other providers change no case. KeyError when nobody knows the operator.
    """
    versions = schema.since_versions(operator, domain)
    claims = claims_of(DML)
    claimed = set(claims.versions(domain, operator)) if claims else set[int]()
    return max(claimed & set(versions), default=versions[-1])


def _kernel(row: Row) -> Kernel:
    return Kernel(
        query=row.support_query or "",
        rule=row.support_query_rule or "",
        cpu_inputs=frozenset(row.required_cpu_inputs),
        runs_on_cpu=row.kind == "cpu_kernel_registered_as_dml",
    )


def _key(row: Row) -> Key:
    return "" if row.domain == "ai.onnx" else row.domain, row.name, row.since_version


def _constraints(constraints: Mapping[str, Iterable[str]]) -> Constraints:
    return {
        constraint: frozenset(NUMPY_NAMES.get(name, name) for name in names)
        for constraint, names in constraints.items()
    }


NO_FEED = {
    **dict.fromkeys(
        (
            *("bfloat16", "float4e2m1", "float8e8m0"),
            *("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"),
        ),
        "ONNX Runtime takes and gives no numpy array of this dtype",
    ),
    "string": "a tensor of strings holds nothing that a provider computes",
    **dict.fromkeys(("int4", "uint4"), "ONNX Runtime takes and gives no numpy array of 4-bit integers"),
    **dict.fromkeys(("int2", "uint2"), "ONNX Runtime takes and gives no numpy array of 2-bit integers"),
}
"""Dtype -> why no case can feed or fetch it."""

INSERTED = dict.fromkeys(
    ("MemcpyFromHost", "MemcpyToHost"), "sessions insert this node themselves; a model that has one is refused"
)
"""Operator -> why no model can have it."""


def why_unreachable(key: Key, dtype: str) -> str:
    """Why no case can reach what a provider claims, in words; empty where one could."""
    domain, operator, since_version = key
    if not schema.has(operator, since_version, domain):
        return f"no opset has a revision {since_version} of {operator}"
    if operator in INSERTED:
        return INSERTED[operator]
    if not schema.allows(operator, since_version, dtype, domain):
        return "the schema of that version does not allow the dtype: a model that has it is refused"
    return NO_FEED.get(re.sub(r"^(?:(?:optional|seq|tensor)\()+|\)+$", "", dtype), "")
