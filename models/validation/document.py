"""A validation as a JSON document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from epcheck.models.validation.faults import list_faults
from epcheck.models.validation.validation import Validation

SCHEMA = 2
"""Version of the document: it grows when a field changes its name or its meaning."""


def document(validation: Validation) -> dict[str, Any]:
    """Every field but the values that the nodes at fault received. Scalars may be numpy's, and infinite."""
    validation = validation.plain
    found = asdict(validation)
    found["path"] = found["inspection"]["path"] = str(validation.path)
    if validation.reference is not None:
        found["reference"]["path"] = str(validation.reference.path)
    ratio = validation.speeds.ratio if validation.speeds else None
    faults = [asdict(fault) for fault in list_faults(validation)]
    stated = {"status": validation.status, "headline": validation.statement, "latency_ratio": ratio, "faults": faults}
    return {"schema": SCHEMA, **stated, **found}
