"""A provider profile, to JSON and back. `provider-profile.schema.json` describes the document.

The parts are those that ONNX Runtime's design of an operator conformance suite gives a profile (pull request 32213,
"Provider profile"): the support that the provider declares, and documented exclusions. A reader learns from it which
cases are UNSUPPORTED and which are EXCLUDED.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from epcheck.conformance.records.case_condition import parse_condition
from epcheck.conformance.records.terms import STATUSES
from epcheck.conformance.targets import condition
from epcheck.conformance.targets.condition import ANYWHERE, Condition, ConditionError
from epcheck.conformance.targets.expectation import Expectation
from epcheck.generators.claims import Claims, Conditional, Kernel
from epcheck.generators.error import EpcheckError

SCHEMA_VERSION = 1
"""The version of the document. A reader refuses a newer one."""

SCHEMA_FILE = "provider-profile.schema.json"


class ProfileError(EpcheckError, ValueError):
    """A document is no provider profile; the message says where, and what is missing."""


@dataclass(frozen=True, eq=False)
class ProviderProfile:
    """provider: the execution provider. target: what it is called here. claims: None where it publishes none.
    expectations: the deviations that are known and tolerated for now. Two are equal when their documents are."""

    provider: str
    target: str
    claims: Claims | None
    expectations: tuple[Expectation, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProviderProfile) and dumps(self) == dumps(other)

    def __hash__(self) -> int:
        return hash(dumps(self))


def schema() -> dict[str, Any]:
    """The JSON Schema of a profile."""
    loaded: dict[str, Any] = json.loads((files("epcheck.conformance.profile") / SCHEMA_FILE).read_text("utf-8"))
    return loaded


def to_json(profile: ProviderProfile) -> dict[str, Any]:
    """The document, in JSON's own types."""
    return {
        "$schema": schema()["$id"],
        "schema_version": SCHEMA_VERSION,
        "execution_provider": profile.provider,
        "target": profile.target,
        "support": None if profile.claims is None else _support(profile.claims),
        **({"support_when": dict(profile.claims.when)} if profile.claims and profile.claims.when else {}),
        "exclusions": [_exclusion(expectation) for expectation in profile.expectations],
    }


def dumps(profile: ProviderProfile) -> str:
    """The document as text, the same for the same profile."""
    return json.dumps(to_json(profile), indent=1, ensure_ascii=True) + "\n"


def digest(profile: ProviderProfile) -> str:
    """SHA-256 of the text, in hexadecimal."""
    return hashlib.sha256(dumps(profile).encode("ascii")).hexdigest()


def loads(text: str, source: str) -> ProviderProfile:
    """The profile in a JSON text; `source` names it in errors. Raises ProfileError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProfileError(f"{source} is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise ProfileError(f"{source} is not a provider profile: it is not an object")
    version = document.get("schema_version")
    if type(version) is int and version > SCHEMA_VERSION:
        raise ProfileError(
            f"{source}: schema_version {version} is newer than this epcheck reads ({SCHEMA_VERSION}); upgrade epcheck"
        )
    try:
        return from_json(document)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ProfileError(f"{source} is not a provider profile: {what}; see epcheck profile schema") from None


def from_json(document: Mapping[str, Any]) -> ProviderProfile:
    """What `to_json` gave. Raises KeyError, TypeError, AttributeError or ValueError when it is not that."""
    if document["schema_version"] != SCHEMA_VERSION:
        raise ValueError(f"schema_version is {document['schema_version']!r}")
    provider, support = _text(document["execution_provider"]), document["support"]
    return ProviderProfile(
        provider,
        _text(document["target"]),
        None if support is None else _claims(provider, support, document.get("support_when", {})),
        tuple(_expectation(number, fields) for number, fields in enumerate(document["exclusions"], 1)),
    )


def _support(claims: Claims) -> list[dict[str, Any]]:
    rows = []
    for (domain, operator, since_version), types in claims.operators.items():
        row: dict[str, Any] = {
            "domain": domain,
            "operator": operator,
            "since_version": since_version,
            "types": _sort_types(types),
        }
        if partial := claims.partial.get((domain, operator, since_version)):
            row["partial"] = _sort_types(partial)
        if conditional := [c for c in claims.conditional if c.key == (domain, operator, since_version)]:
            row["conditional"] = [{"when": dict(c.when), "types": _sort_types(c.types)} for c in conditional]
        if kernel := claims.kernels.get((domain, operator, since_version)):
            row["kernel"] = {
                "query": kernel.query, "rule": kernel.rule, "cpu_inputs": sorted(kernel.cpu_inputs),
                "runs_on_cpu": kernel.runs_on_cpu,
            }  # fmt: skip
        rows.append(row)
    return rows


def _sort_types(types: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    return {constraint: sorted(dtypes) for constraint, dtypes in types.items()}


def _claims(provider: str, rows: list[dict[str, Any]], when: Mapping[str, str | list[str]]) -> Claims:
    keys = [(_text(row["domain"]), _text(row["operator"]), int(row["since_version"])) for row in rows]
    types = [_constraints(row["types"]) for row in rows]
    partial = {key: _constraints(row["partial"]) for key, row in zip(keys, rows, strict=True) if "partial" in row}
    kernels = {key: _kernel(row["kernel"]) for key, row in zip(keys, rows, strict=True) if "kernel" in row}
    conditional = tuple(
        Conditional(key, dict(part["when"]), _constraints(part["types"]))
        for key, row in zip(keys, rows, strict=True)
        for part in row.get("conditional", ())
    )
    return Claims(provider, dict(zip(keys, types, strict=True)), kernels, partial, dict(when), conditional)


def _constraints(types: Mapping[str, list[str]]) -> dict[str, frozenset[str]]:
    return {name: frozenset(map(_text, dtypes)) for name, dtypes in types.items()}


def _kernel(fields: Mapping[str, Any]) -> Kernel:
    return Kernel(
        _text(fields["query"]), _text(fields["rule"]), frozenset(map(int, fields["cpu_inputs"])),
        bool(fields["runs_on_cpu"]),
    )  # fmt: skip


def _exclusion(expectation: Expectation) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "case": expectation.case, "status": expectation.status, "reason": expectation.reason,
        "link": expectation.link, "bound": expectation.bound,
        "when": {name: list(patterns) for name, patterns in expectation.when.patterns},
        "where": expectation.where_text, "variant": list(expectation.variants), "gives": list(expectation.gives),
    }  # fmt: skip
    return {name: value for name, value in fields.items() if value not in ("", None, {}, [])}


def _expectation(number: int, fields: Mapping[str, Any]) -> Expectation:
    if fields["status"] not in STATUSES:
        raise ValueError(f"exclusion {number} has the unknown status {fields['status']!r}")
    if not str(fields["reason"]).strip():
        raise ValueError(f"exclusion {number} has no reason")
    bound = fields.get("bound")
    return Expectation(
        _text(fields["case"]), fields["status"], _text(fields["reason"]), _text(fields.get("link", "")),
        None if bound is None else float(bound), _read_condition(number, fields),
        parse_condition(_text(fields["where"])) if "where" in fields else (),
        tuple(map(_text, fields.get("variant", ()))), tuple(map(_text, fields.get("gives", ()))),
    )  # fmt: skip


def _read_condition(number: int, fields: Mapping[str, Any]) -> Condition:
    try:
        return condition.parse(dict(fields["when"])) if "when" in fields else ANYWHERE
    except ConditionError as error:
        raise ValueError(f"exclusion {number}: {error}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value
