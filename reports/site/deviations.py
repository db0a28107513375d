"""What is wrong, in groups: the cases of one operator that are wrong in the same way on one provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from epcheck.conformance.records.case_facts import qualified_name
from epcheck.conformance.records.repro_command import repro_command
from epcheck.reports.checksum import group_key
from epcheck.reports.dtypes import dtype_order
from epcheck.reports.runs.findings import reason_stem, sample_stem
from epcheck.reports.site.provider_release import ProviderRelease
from epcheck.reports.site.table import NEWEST, operator_order, tabulate_releases
from epcheck.reports.store.query import query
from epcheck.reports.store.run_file import StoredRun

EXAMPLES = 5
"""Case ids that a group names."""

REASON = 600
"""Characters of a reason that are kept."""

_WRONG = f"""
    WITH {NEWEST}
    SELECT target, provider_release, domain, operator, since_version, dtype, sample, case_id, status, blame, reading,
        reason
    FROM newest WHERE standing = 'wrong' ORDER BY case_id
"""


@dataclass
class Deviation:
    """Cases of one operator that are wrong in the same way on one provider.

    provider_release: index of it. key: the same for every provider and in every site. sample: the samples' common name.
    reason: of the first case. repro: the command line that reproduces
    the first case. case_ids: the first EXAMPLES of them.
    """

    provider_release: int
    key: str
    operator: str
    sample: str
    status: str
    blame: str
    reading: str
    reason: str
    cases: int = 0
    versions: set[int] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    repro: str = ""
    case_ids: list[str] = field(default_factory=list)

    def add(self, version: int, dtype: str, case_id: str) -> None:
        """Count one more case."""
        self.cases += 1
        self.versions.add(version)
        self.dtypes.add(dtype)
        if len(self.case_ids) < EXAMPLES:
            self.case_ids.append(case_id)

    @property
    def listed_dtypes(self) -> list[str]:
        """The dtypes in reading order."""
        return sorted(self.dtypes, key=dtype_order)


def deviations_of(runs: Sequence[StoredRun], releases: Sequence[ProviderRelease]) -> tuple[Deviation, ...]:
    """Every group, by operator, the largest first. Raises FileProblemError for a file that is damaged."""
    found: dict[tuple[int, str], Deviation] = {}
    for row in query(runs, _WRONG, placed=tabulate_releases(releases)).to_pylist():
        operator = qualified_name(row["operator"], row["domain"])
        sample = sample_stem(row["sample"])
        reason = reason_stem(row["reason"].removeprefix(row["target"]))
        key = group_key(operator, sample, row["reading"], row["status"], row["blame"], reason)
        at = row["provider_release"], key
        if at not in found:
            found[at] = Deviation(
                row["provider_release"], key, operator, sample, row["status"], row["blame"], row["reading"],
                row["reason"][:REASON],
            )  # fmt: skip
            found[at].repro = repro_command(row["case_id"], row["target"])
        found[at].add(row["since_version"], row["dtype"], row["case_id"])
    return tuple(
        sorted(found.values(), key=lambda d: (operator_order(d.operator), -d.cases, d.provider_release, d.key))
    )
