"""A gate as SARIF 2.1.0, which services of code scanning show beside the model's file.

Source of the fields: OASIS, Static Analysis Results Interchange Format Version 2.1.0, sections 3.13 to 3.28.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from epcheck.conformance.records import strict_json
from epcheck.models.gate.gate import PASSES, CheckedModel, Gate
from epcheck.models.validation.faults import list_faults
from epcheck.models.validation.page import group_by_reason
from epcheck.models.validation.validation import FAILS, REFUSED, RIGHT, UNJUDGED, WRONG, Validation

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

UNUSABLE, LEFT_OUT, LIMIT, NODE = "unusable", "left-out", "limit", "wrong-node"
REMARK, ELSEWHERE = "remark", "not-on-provider"

RULES: Mapping[str, tuple[str, str]] = {
    REFUSED: ("error", "The model does not load on the provider."),
    FAILS: ("error", "A run of the model ends with an error, a crash or a timeout."),
    WRONG: ("error", "An output of the model is not right."),
    UNJUDGED: ("warning", "It is not known whether the outputs are right."),
    UNUSABLE: ("error", "The file cannot be validated, or the target is unavailable."),
    LEFT_OUT: ("warning", "The validation was not finished: it was interrupted, or its budget was spent."),
    LIMIT: ("error", "The model breaks a limit of [validate] in epcheck.toml."),
    NODE: ("warning", "A node is wrong alone, on the values that it should receive, although the outputs are right."),
    REMARK: ("warning", "A remark on the model's file."),
    ELSEWHERE: ("note", "Nodes do not run on the provider."),
}
"""Rule -> the level of its results unless they have their own, and what it says."""

NODES = 20
"""Nodes of one result that have a location; its text counts all."""


@dataclass(frozen=True)
class Result:
    """A result in the making. rule: of RULES. level: `error`, `warning` or `note`. nodes: as the model names them.
    remedy: what to do. command: shows it again; empty for that which validates the model."""

    rule: str
    level: str
    text: str
    nodes: tuple[str, ...] = ()
    remedy: str = ""
    command: str = ""


def sarif(gate: Gate, root: Path | None = None) -> str:
    """The document, one run in it. root: of the repository, to which the paths of models are relative; None for the
    working directory. A model outside of it has an absolute `file:` address."""
    base = (root or Path()).resolve()
    results = [_json(result, checked, base) for checked in gate.checked for result in _results(checked)]
    rules = [
        {"id": rule, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}
        for rule, (level, text) in RULES.items()
    ]
    driver = {"name": "epcheck", "version": version("epcheck"), "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "utf16CodeUnits", "results": results}
    return strict_json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}) + "\n"


def _results(checked: CheckedModel) -> Iterator[Result]:
    found = checked.validation
    if found is None:
        rule = UNUSABLE if checked.is_begun else LEFT_OUT
        yield Result(rule, RULES[rule][0], checked.trouble, remedy=checked.faults[0].remedy)
        return
    if found.left_out:
        yield Result(LEFT_OUT, RULES[LEFT_OUT][0], found.unfinished)
    if found.status in RULES:
        level = "note" if checked.result == PASSES else RULES[found.status][0]
        yield from _of_status(found, level)
    limits = checked.faults[len(list_faults(found)) :]
    yield from (Result(LIMIT, "error", fault.what, remedy=fault.remedy, command=fault.command) for fault in limits)
    if found.status in (RIGHT, UNJUDGED):
        level = "error" if found.nodes_beyond_bounds in checked.broken else RULES[NODE][0]
        for fault in list_faults(found)[: len(found.wrong_nodes)]:
            yield Result(NODE, level, fault.what, fault.nodes, fault.remedy, fault.command)
    for remark in found.inspection.findings:
        text = f"{remark.text}. {remark.suggestion}" if remark.suggestion else remark.text
        yield Result(REMARK, remark.severity, text)
    if found.placement is not None:
        for group in group_by_reason(found.placement):
            where = f"{group.provider}, not on {found.placement.provider}"
            text = f"{group.what} on {where}: {group.reason or 'reason unknown'}"
            yield Result(ELSEWHERE, "note", f"{text}. {group.what_to_do}" if group.what_to_do else text, group.names)


def _of_status(found: Validation, level: str) -> Iterator[Result]:
    """A result for each fault of a model that is not right; its text begins with the headline."""
    faults = list_faults(found)[len(found.wrong_nodes) if found.status == UNJUDGED else 0 :]
    for fault in faults or (None,):
        if fault is None:
            yield Result(found.status, level, found.headline)
        else:
            text = found.headline if fault.what in found.headline else f"{found.headline}. {fault.what}"
            yield Result(found.status, level, text, fault.nodes, fault.remedy, fault.command)


def _json(result: Result, checked: CheckedModel, base: Path) -> dict[str, Any]:
    remedy = f". What to do: {result.remedy}" if result.remedy else ""
    text = f"{checked.target}: {result.text}{remedy}"
    artifact = {"uri": _uri(checked.path, base)}
    place: dict[str, Any] = {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": 1}}}
    if result.nodes:
        place["logicalLocations"] = [{"name": _text(node), "kind": "member"} for node in result.nodes[:NODES]]
    return {
        "ruleId": result.rule,
        "ruleIndex": list(RULES).index(result.rule),
        "level": result.level,
        "message": {"text": _text(text)},
        "locations": [place],
        "partialFingerprints": {"epcheck/v1": _digest(checked, result)},
        "properties": {
            "nodes": [_text(node) for node in result.nodes],
            "remedy": _text(result.remedy),
            "reproduce": _text(result.command or checked.command),
        },
    }


def _text(value: str) -> str:
    """Fit for readers of Unicode: a name in a model may hold half a surrogate pair."""
    return value.encode("utf-8", "replace").decode("utf-8")


def _digest(checked: CheckedModel, result: Result) -> str:
    """Names a result from run to run: it has the nodes, or the text without its figures, which change."""
    parts = (checked.name, checked.target, result.rule, *(result.nodes or (re.sub(r"\d", "", result.text),)))
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _uri(path: Path, base: Path) -> str:
    """Relative to the repository, in the syntax of RFC 3986."""
    whole = path.resolve()
    if whole.is_relative_to(base):
        return quote(PurePath(whole.relative_to(base)).as_posix())
    return whole.as_uri()
