"""Every case of the suite, enumerated once for all tests of a session."""

from __future__ import annotations

from functools import cache

from epcheck.generators import suite
from epcheck.generators.case import Case


@cache
def whole_suite() -> tuple[Case, ...]:
    """All cases in their stable order: more than a second of a processor, so ask in a test, not in a module."""
    return tuple(suite.cases())


@cache
def whole_suite_ids() -> tuple[str, ...]:
    """The ids of all cases, in the order of the suite."""
    return tuple(case.id for case in whole_suite())
