"""The store and the reports made from it.

A run is a folder: `create` it, `Journal.append` its records, `Journal.close` it, `resume` it when it was interrupted;
`merge_runs` makes one of several.
`read_run` and `read_records` give it back; every report is made from them, so it can be made again at any time:
`write_all` makes all of them at once.
"""

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
