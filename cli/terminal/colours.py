"""The colour of each reading, the same wherever it is shown."""

from __future__ import annotations

from epcheck.conformance.records.terms import EXPECTED, FAILURE, FIXED, FLAKY, NOTED, OK
from epcheck.reports.runs.summary import NOT_RUN

COLOURS = {
    OK: "green",
    FAILURE: "bold red",
    FLAKY: "magenta",
    EXPECTED: "yellow",
    FIXED: "cyan",
    NOTED: "blue",
    NOT_RUN: "dim",
}
