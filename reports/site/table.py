"""The table of a site: how each provider stands in each operator, version and dtype, and since which release.

Of each case the newest record counts that a provider, release and adapter has. A case is right when it passes, wrong
when it fails, be that expected or not, and declined when nothing is owed: not placed or refused where nothing is
claimed. Skipped cases do not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from epcheck.conformance.records.case_facts import qualified_name
from epcheck.conformance.records.terms import EXPECTED, FAILURE, OK
from epcheck.reports.dtypes import dtype_order
from epcheck.reports.runs.summary import NOT_RUN
from epcheck.reports.site.provider_release import ProviderRelease
from epcheck.reports.store.query import query
from epcheck.reports.store.run_file import StoredRun

NEWEST = """
    placed_rows AS (
        SELECT outcomes.*, placed.provider_release, placed.line, placed.ordinal, row_number() OVER (
            PARTITION BY placed.provider_release, case_id ORDER BY placed.age
        ) AS rank
        FROM outcomes JOIN placed ON outcomes.run_id = placed.run_id AND outcomes.target = placed.target
        WHERE status <> 'skipped'
    ),
    newest AS (
        SELECT *, CASE WHEN failing THEN 'wrong' WHEN status = 'pass' THEN 'right' ELSE 'declined' END AS standing
        FROM placed_rows WHERE rank = 1
    )
"""
"""Two tables for a query: `newest` has the record of each case that counts. It needs the table of `placed`."""

_SINCE = """
    changes AS (
        SELECT *, count(*) OVER whole AS known, min(ordinal) OVER whole AS oldest,
            CASE WHEN standing = lag(standing) OVER step THEN 0 ELSE 1 END AS changed
        FROM newest
        WINDOW whole AS (PARTITION BY line, case_id), step AS (PARTITION BY line, case_id ORDER BY ordinal)
    ),
    spans AS (SELECT *, sum(changed) OVER (PARTITION BY line, case_id ORDER BY ordinal) AS span FROM changes),
    dated AS (SELECT *, min(ordinal) OVER (PARTITION BY line, case_id, span) AS since FROM spans)
"""

_CODES = """
    cases AS (SELECT DISTINCT domain, operator, since_version, dtype, case_id FROM newest),
    present AS (SELECT DISTINCT provider_release, domain, operator, since_version, dtype FROM newest),
    coded AS (
        SELECT present.*, string_agg(CASE WHEN reading IS NULL THEN '.' WHEN standing = 'right' THEN 'r'
            WHEN standing = 'declined' THEN 'd' WHEN reading = 'expected' THEN 'e' ELSE 'f' END,
            '' ORDER BY cases.case_id) AS codes
        FROM present JOIN cases USING (domain, operator, since_version, dtype)
        LEFT JOIN newest ON newest.provider_release = present.provider_release AND newest.case_id = cases.case_id
        GROUP BY ALL
    )
"""

_CELLS = f"""
    WITH {NEWEST}, {_SINCE}, {_CODES}
    SELECT provider_release, domain, operator, since_version, dtype,
        count(*) FILTER (standing = 'right') AS passes,
        count(*) FILTER (reading IN ('failure', 'flaky')) AS failures,
        count(*) FILTER (reading = 'expected') AS expected,
        count(*) FILTER (standing = 'declined') AS declined,
        bool_or(claimed) AS claimed,
        max(ulp_max) FILTER (standing = 'right') AS ulp,
        max(since) FILTER (standing = 'right' AND known > 1) AS right_since,
        min(since) FILTER (standing = 'wrong' AND known > 1) AS wrong_since,
        max(since) FILTER (standing = 'declined' AND known > 1) AS declined_since,
        min(oldest) FILTER (known > 1) AS oldest,
        any_value(codes) AS codes
    FROM dated JOIN coded USING (provider_release, domain, operator, since_version, dtype) GROUP BY ALL
"""


@dataclass(frozen=True)
class Cell:
    """One operator, version and dtype on one provider.

    provider_release: index of it. passes, failures, expected, declined: cases. claimed: whether the provider's claims
    have it; None without a table of claims. ulp: the largest error in ULP of the cases that pass; None where nothing
    has a bound in ULP. codes: a letter for each case of the operator, version and dtype that the store has, in the
    order of their ids: `r` right, `f` wrong, `e` wrong and expected, `d` declined, `.` no record. since: index of the
    release since which it stands as it does without a break, as far as cases of several releases tell; None where there
    are none. since_oldest: that is the oldest release of which the store has such cases; it may have been so before.
    """

    provider_release: int
    operator: str
    since_version: int
    dtype: str
    passes: int
    failures: int
    expected: int
    declined: int
    claimed: bool | None
    ulp: float | None
    codes: str
    since: int | None
    since_oldest: bool

    @property
    def taken(self) -> int:
        """Cases that the provider took: they are right or wrong."""
        return self.passes + self.failures + self.expected

    @property
    def state(self) -> str:
        """FAILURE, EXPECTED, OK, or NOT_RUN where all is declined."""
        return state_of(self.passes, self.failures, self.expected)


def state_of(passes: int, failures: int, expected: int) -> str:
    """How cases of these numbers stand together: FAILURE, EXPECTED, OK or NOT_RUN."""
    if failures:
        return FAILURE
    return EXPECTED if expected else OK if passes else NOT_RUN


def tabulate_releases(releases: Sequence[ProviderRelease]) -> pa.Table:
    """Run and target -> provider release, for queries: `age` counts the runs of each from its newest."""
    rows = [
        (run_id, target, index, release.line, release.ordinal, age)
        for index, release in enumerate(releases)
        for age, (run_id, target) in enumerate(reversed(release.runs))
    ]
    names = ("run_id", "target", "provider_release", "line", "ordinal", "age")
    kinds = (pa.string(), pa.string(), pa.int32(), pa.int32(), pa.int32(), pa.int32())
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)], names=list(names))


def cells_of(runs: Sequence[StoredRun], releases: Sequence[ProviderRelease]) -> tuple[Cell, ...]:
    """Every cell, by operator, version, dtype and provider. Raises FileProblemError for a file that is damaged."""
    table = query(runs, _CELLS, placed=tabulate_releases(releases))
    at = {(release.line, release.ordinal): index for index, release in enumerate(releases)}
    cells = (_cell(row, releases[row["provider_release"]], at) for row in table.to_pylist())
    return tuple(
        sorted(
            cells, key=lambda c: (operator_order(c.operator), c.since_version, dtype_order(c.dtype), c.provider_release)
        )
    )


def operator_order(operator: str) -> tuple[bool, str]:
    """Sorts ONNX's own operators first."""
    return "::" in operator, operator


def _cell(row: Mapping[str, Any], release: ProviderRelease, at: Mapping[tuple[int, int], int]) -> Cell:
    state = state_of(row["passes"], row["failures"], row["expected"])
    since = row[{OK: "right_since", NOT_RUN: "declined_since"}.get(state, "wrong_since")]
    return Cell(
        provider_release=row["provider_release"],
        operator=qualified_name(row["operator"], row["domain"]),
        since_version=row["since_version"],
        dtype=row["dtype"],
        passes=row["passes"],
        failures=row["failures"],
        expected=row["expected"],
        declined=row["declined"],
        claimed=row["claimed"],
        ulp=row["ulp"],
        codes=row["codes"],
        since=None if since is None else at[release.line, since],
        since_oldest=since is not None and since == row["oldest"],
    )


def by_operator(cells: Sequence[Cell]) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    """The cells of each operator; `cells` as `cells_of` gives them."""
    start = 0
    for end in range(1, len(cells) + 1):
        if end == len(cells) or cells[end].operator != cells[start].operator:
            yield cells[start].operator, tuple(cells[start:end])
            start = end
