"""The files of a fault: a folder that anybody can run, a bug report, and a line for the suite."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from epcheck.api.fuzzing.result import FuzzResult
from epcheck.conformance.fuzzing.fault import Fault
from epcheck.conformance.records import atomic_file, strict_json
from epcheck.conformance.records.repro_command import folder_name
from epcheck.conformance.test_data import repro
from epcheck.reports.markdown import escape_markdown

REPORT, LINE = "bug.md", "node.jsonl"
"""The bug report of a fault, and the node as one line."""

FACTS = ("onnxruntime", "DirectML.dll", "adapter", "driver", "driver_version", "processor", "os")
"""What a bug report says of the target."""

DOCUMENT_SCHEMA = 1


def name_folder(fault: Fault) -> str:
    """The name of the folder of a fault."""
    words = folder_name(fault.cause.symptom.operator.replace("→", "-"))[:60]
    return f"{words}-{fault.cause.id}"


def write(fault: Fault, out: Path, target: str, facts: Mapping[str, str]) -> Path:
    """Write the folder of a fault under `out` and return it: what `epcheck repro` writes, and the files above. Raises
    ReproError and OSError."""
    folder = out / name_folder(fault)
    built = fault.case.build()
    judged = repro.judged(built)
    if fault.level:
        judged = replace(judged, operator="", level="ORT_ENABLE_ALL")
    repro.write_folder(folder, built.model, built.feeds, judged)
    atomic_file.write_text(folder / LINE, fault.line + "\n")
    atomic_file.write_text(folder / REPORT, report(fault, target, facts))
    return folder


def report(fault: Fault, target: str, facts: Mapping[str, str]) -> str:
    """The bug report, in Markdown."""
    record, node = fault.record, fault.node
    lines = [
        f"# {fault.cause.symptom.operator}: {record.status} on {target}",
        "",
        escape_markdown(record.reason),
        "",
        f"- operator: {fault.cause.symptom.operator}, version {node.since_version}, {fault.case.dtype}",
        *([f"- fails at optimisation level {fault.level} and above"] if fault.level else []),
        f"- attributes: {_list_attributes(node.attributes)}",
        *(
            f"- input `{v.name}`: {v.dtype} {list(v.shape)}: {v.preview}"
            for v in record.case.values
            if v.where != "output"
        ),
        *(
            f"- expected `{v.name}`: {v.dtype} {list(v.shape)}: {v.preview}"
            for v in record.case.values
            if v.where == "output"
        ),
        *(
            f"- {difference.output}{list(mismatch.at)}: expected {mismatch.expected}, got {mismatch.got}"
            for difference in record.candidate.differences
            for mismatch in difference.first[:3]
        ),
        f"- blame: {record.blame or 'nobody'}; seen {_times(fault.occurrences)}",
        *(f"- {name}: {facts[name]}" for name in FACTS if facts.get(name)),
        *(["- the baseline fails in the same way"] if fault.cause.shared else []),
        *([f"- resembles the recorded deviation {fault.known}"] if fault.known else []),
        "",
        "Run it with `python run.py PROVIDER`; judge it with `epcheck replay FOLDER --target TARGET`. `node.jsonl` is",
        "the node as one line, for the example database of `epcheck fuzz`.",
        "",
        f"`epcheck harvest {name_folder(fault)}` makes a permanent case of it, for",
        "`epcheck run --source harvested`.",
    ]
    return "\n".join(lines) + "\n"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _list_attributes(attributes: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in attributes.items()) or "none"


def document_of(fault: Fault, folder: Path) -> dict[str, Any]:
    """The fault in JSON's own types."""
    symptom = fault.cause.symptom
    return {
        "id": fault.cause.id,
        "operator": symptom.operator,
        "status": symptom.status,
        "symptom": symptom.words,
        "blame": fault.record.blame,
        "reason": fault.record.reason,
        "case": fault.record.case_id,
        "node": json.loads(fault.line),
        "level": fault.level,
        "occurrences": fault.occurrences,
        "new": fault.is_new,
        "known": fault.known,
        "shared": fault.cause.shared,
        "replayed": fault.replayed,
        "rounds": fault.rounds,
        "seconds": round(fault.seconds, 3),
        "folder": folder.as_posix(),
    }


def document_text(result: FuzzResult) -> str:
    """The result as a JSON document: `schema` (DOCUMENT_SCHEMA), and the fields of FuzzResult."""
    fields = {
        "schema": DOCUMENT_SCHEMA,
        **{
            name: value
            for name, value in vars(result).items()
            if name not in ("faults", "folders", "out", "facts", "statuses", "draws")
        },
        "conforms": result.conforms,
        "facts": dict(result.facts),
        "statuses": dict(result.statuses),
        "draws": dict(result.draws),
        "faults": [document_of(*pair) for pair in zip(result.faults, result.folders, strict=True)],
    }
    return strict_json.dumps(fields) + "\n"
