"""The report in the vocabulary of ONNX Runtime's plan: JSON, as `conformance-report.schema.json` describes it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from importlib.resources import files
from typing import IO, Any

from epcheck.conformance.records import strict_json
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.run import Run
from epcheck.conformance.records.target_facts import INCIDENTAL
from epcheck.reports.ort_conformance.result import EXCLUDED, NOT_RUN, PASS, RESULTS, result_of
from epcheck.reports.runs.fingerprint import provider_of
from epcheck.reports.runs.report import Entry
from epcheck.reports.runs.summary import Summary

SCHEMA_VERSION = 1
"""The version of the document. A reader refuses a newer one."""

SCHEMA_FILE = "conformance-report.schema.json"

BY = ("domain", "operator", "opset", "dtype")
"""By what the results are counted, besides all together."""

DYNAMIC, BUILT_IN, CALLABLE = "dynamic", "built-in", "callable"
"""How the provider came into the session: as a plugin library, with ONNX Runtime's wheel, or it is no provider."""


def schema() -> dict[str, Any]:
    """The JSON Schema of the document."""
    text = (files("epcheck.reports.ort_conformance") / SCHEMA_FILE).read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


Profiles = Mapping[str, str | None] | None


class ConformanceReport:
    """The document in the making, a line for each record.

    profiles: target -> SHA-256 of its provider profile, in hexadecimal, where it has one.
    """

    def __init__(
        self, run: Run, file: IO[bytes], _held: ExitStack, profiles: Mapping[str, str | None] | None = None
    ) -> None:
        self._run = run
        self._file = file
        self._counts: dict[str, dict[str, dict[str, Counter[str]]]] = {}
        self._separator = b"\n"
        providers = [_provider(run, target, (profiles or {}).get(target)) for target in run.candidates]
        head = {
            "$schema": schema()["$id"],
            "schema_version": SCHEMA_VERSION,
            "suite": {"name": "epcheck", "version": run.versions.get("epcheck", ""), "versions": dict(run.versions)},
            "run": {
                "id": run.run_id, "started": run.started, "finished": run.finished, "status": run.status,
                "command": list(run.command),
            },
            "providers": providers,
        }  # fmt: skip
        file.write(_json(head)[:-1] + b',\n"results":[')

    def add(self, entry: Entry) -> None:
        """Write the result of a record."""
        record = entry.record
        fields = _result(record)
        counts = self._counts.setdefault(record.candidate.target, {name: {} for name in ("", *BY)})
        for name, value in _list_keys(record):
            counts[name].setdefault(value, Counter())[fields["result"]] += 1
        self._file.write(self._separator + _json(fields))
        self._separator = b",\n"

    def finish(self, summary: Summary) -> None:
        """Write the counts. A planned case without a record has no result; it makes the report incomplete."""
        not_run = any(counts[""][""][NOT_RUN] for counts in self._counts.values())
        end = {
            "summary": {
                "complete": self._run.status == "complete" and not summary.missing and not not_run,
                "not_recorded": summary.missing,
                "targets": [
                    {"target": target, "results": _all_counts(self._counts.get(target, {}).get("", {}).get("", {}))}
                    | {f"by_{name}": _by(self._counts.get(target, {}).get(name, {})) for name in BY}
                    for target in dict.fromkeys([*self._run.candidates, *self._counts])
                ],
            }
        }
        self._file.write(b"],\n" + _json(end)[1:] + b"\n")


def _provider(run: Run, target: str, profile: str | None) -> dict[str, Any]:
    facts = run.targets.get(target, {})
    provider = provider_of(run, target)
    registration = DYNAMIC if facts.get("plugin") else CALLABLE if target.startswith("python:") else BUILT_IN
    return {
        "target": target,
        "execution_provider": provider,
        "registration": registration,
        "provider_version": facts.get("plugin") or facts.get("onnxruntime") or "",
        "onnxruntime_version": facts.get("onnxruntime", ""),
        "environment": {name: value for name, value in facts.items() if value and name not in INCIDENTAL},
        "profile_sha256": profile,
    }


def _result(record: Record) -> dict[str, Any]:
    case, candidate, result = record.case, record.candidate, result_of(record)
    seconds = [value for value in (candidate.create_s, candidate.run_s) if value is not None]
    fields: dict[str, Any] = {
        "target": candidate.target,
        "case": case.case_id,
        "operator": {
            "domain": case.domain, "type": case.operator, "since_version": case.since_version, "opset": case.opset,
        },
        "dtype": case.dtype,
        "result": result,
        "duration_s": sum(seconds) if seconds else None,
        "claimed": record.claimed,
    }  # fmt: skip
    if result != PASS:
        fields["diagnostics"] = {"status": record.status, "blame": record.blame, "reason": record.reason}
    if record.expectation:
        excluded = {name: getattr(record.expectation, name) for name in ("case", "status", "reason", "link", "when")}
        fields["exclusion"] = excluded | {"up_to_date": result == EXCLUDED}
    return fields


def _list_keys(record: Record) -> Iterator[tuple[str, str]]:
    case = record.case
    yield "", ""
    yield from zip(BY, (case.domain or "ai.onnx", case.operator_key, str(case.opset), case.dtype), strict=True)


def _by(counts: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    return {value: _all_counts(counts[value]) for value in sorted(counts)}


def _all_counts(counts: Mapping[str, int]) -> dict[str, int]:
    return {result: counts.get(result, 0) for result in RESULTS}


def _json(value: Any) -> bytes:
    return strict_json.dumps(value).encode("ascii")
