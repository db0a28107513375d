"""The store and the reports made from it.

A run is a folder: `create` it, `Journal.append` its records, `Journal.close` it, `resume` it when it was interrupted;
`merge_runs` makes one of several.
`read_run` and `read_records` give it back; every report is made from them, so it can be made again at any time:
`write_all` makes all of them at once. Importing this package imports none of that: each is loaded when it is first
used, since pyarrow, which few commands need, takes 36 MiB.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epcheck.reports.merge import merge_runs
    from epcheck.reports.runs.findings import Finding, finding_key, sample_stem
    from epcheck.reports.runs.headline import headline, target_headline
    from epcheck.reports.runs.json_document import DOCUMENT_SCHEMA
    from epcheck.reports.runs.run_folder import (
        DEFAULT_ROOT,
        Journal,
        Resumed,
        StoreError,
        create,
        latest,
        new_run_folder,
        read_records,
        read_run,
        resume,
        write_run,
    )
    from epcheck.reports.runs.summary import Cell, Summary, Tally, TargetSummary, summarize
    from epcheck.reports.write import (
        Reported,
        write_all,
        write_html,
        write_json,
        write_junit,
        write_ort_conformance,
        write_outcomes,
    )

_MODULES = {
    "reports.merge": ("merge_runs",),
    "reports.runs.findings": (
        "Finding",
        "finding_key",
        "sample_stem",
    ),
    "reports.runs.headline": (
        "headline",
        "target_headline",
    ),
    "reports.runs.json_document": ("DOCUMENT_SCHEMA",),
    "reports.runs.run_folder": (
        "DEFAULT_ROOT",
        "Journal",
        "Resumed",
        "StoreError",
        "create",
        "latest",
        "new_run_folder",
        "read_records",
        "read_run",
        "resume",
        "write_run",
    ),
    "reports.runs.summary": (
        "Cell",
        "Summary",
        "Tally",
        "TargetSummary",
        "summarize",
    ),
    "reports.write": (
        "Reported",
        "write_all",
        "write_html",
        "write_json",
        "write_junit",
        "write_ort_conformance",
        "write_outcomes",
    ),
}
"""Module, without `epcheck.` -> the names that it lends to this package."""

_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "DEFAULT_ROOT",
    "DOCUMENT_SCHEMA",
    "Cell",
    "Finding",
    "Journal",
    "Reported",
    "Resumed",
    "StoreError",
    "Summary",
    "Tally",
    "TargetSummary",
    "create",
    "finding_key",
    "headline",
    "latest",
    "merge_runs",
    "new_run_folder",
    "read_records",
    "read_run",
    "resume",
    "sample_stem",
    "summarize",
    "target_headline",
    "write_all",
    "write_html",
    "write_json",
    "write_junit",
    "write_ort_conformance",
    "write_outcomes",
    "write_run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"epcheck.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
