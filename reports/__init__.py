"""The store and the reports made from it.

A run is a folder: `create` it, `Journal.append` its records, `Journal.close` it, `resume` it when it was interrupted.
`read_run` and `read_records` give it back; every report is made from them, so it can be made again at any time.
"""

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

__all__ = [
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
    "write_outcomes",
    "write_run",
]
