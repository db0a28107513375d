"""Cases as zip files, with which the page of a run lets its failures be reproduced."""

from __future__ import annotations

from epcheck.conformance.test_data import repro
from epcheck.generators import suite
from epcheck.generators.suite import SelectionError


def archive(case_id: str) -> bytes | None:
    """The folder that `api.repro` writes, as a zip file; None for a case that this suite lacks or cannot build."""
    try:
        return repro.archive(suite.case_by_id(case_id).build())
    except SelectionError:
        return None
    except Exception:  # of the case's generator, whatever it is: the record says it
        return None
