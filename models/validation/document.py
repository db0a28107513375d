"""A validation as a JSON document."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from epcheck.models.validation.validation import Validation

SCHEMA = 1
"""Version of the document: it grows when a field changes its meaning."""


def document(validation: Validation) -> dict[str, Any]:
    """Every field but the values that the nodes at fault received. Scalars may be numpy's, and infinite."""
    if validation.culprit is not None:
        validation = replace(validation, culprit=replace(validation.culprit, received={}))
    found = asdict(validation)
    found["path"] = found["inspection"]["path"] = str(validation.path)
    return {"schema": SCHEMA, "status": validation.status, "headline": validation.headline, **found}
