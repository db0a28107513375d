"""The colour of each reading, the same wherever it is shown."""

from __future__ import annotations

from epcheck.conformance.records.terms import EXPECTED, FAILURE, FIXED, NOTED, OK

COLOURS = {OK: "green", FAILURE: "bold red", EXPECTED: "yellow", FIXED: "cyan", NOTED: "blue"}
