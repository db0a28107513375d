"""Cases as zip files, with which the page of a run lets its failures be reproduced."""

from __future__ import annotations


def archive(case_id: str) -> bytes | None:
    """The folder that `api.repro` writes, as a zip file; None for a case that this suite lacks or cannot build."""
    from epcheck.conformance.test_data import repro  # a page without failures needs no generator
    from epcheck.generators import suite

    try:
        return repro.archive(suite.case_by_id(case_id).build())
    except suite.SelectionError:
        return None
    except Exception:  # of the case's generator, whatever it is: the record says it
        return None
