"""The store and the reports made from it.

A run is a folder: `create` it, `Journal.append` its records, `Journal.close` it, `resume` it when it was interrupted;
`merge_runs` makes one of several.
`read_run` and `read_records` give it back; every report is made from them, so it can be made again at any time.
"""

from epcheck.reports.document import DOCUMENT_SCHEMA, write_json
from epcheck.reports.html import write_html
from epcheck.reports.junit import write_junit
from epcheck.reports.merge import merge_runs
from epcheck.reports.store import (
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
    write_outcomes,
    write_run,
)
from epcheck.reports.summary import (
    Cell,
    Finding,
    Summary,
    Tally,
    TargetSummary,
    finding_key,
    headline,
    sample_stem,
    summarize,
    target_headline,
)

__all__ = [
    "DEFAULT_ROOT",
    "DOCUMENT_SCHEMA",
    "Cell",
    "Finding",
    "Journal",
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
    "write_html",
    "write_json",
    "write_junit",
    "write_outcomes",
    "write_run",
]
