"""What a bisection over releases found, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epcheck.conformance.records import strict_json
from epcheck.conformance.releases.bisection import Bisection, CaseHistory
from epcheck.conformance.releases.search import CHANGED, WRONG
from epcheck.conformance.releases.wording import sentence
from epcheck.reports import sample_stem

DOCUMENT_SCHEMA = 1


@dataclass(frozen=True)
class HistoryGroup:
    """Cases of one operator, in any version, and of alike samples that change in the same release and in the same way.
    words: how."""

    operator: str
    sample: str
    words: str
    case_ids: tuple[str, ...]


@dataclass(frozen=True)
class Bisected:
    """A bisection. target: without a release. package: whose releases they are. facts: release -> what its worker
    reports of itself. speed: the cases are nodes of `epcheck speed`."""

    target: str
    package: str
    bisection: Bisection
    facts: Mapping[str, Mapping[str, str]]
    speed: bool = False

    @property
    def wrong_now(self) -> bool:
        """Whether a case is wrong in the newest release on which it was tried."""
        newest = (history.trials[list(history.trials)[-1]] for history in self.bisection.cases if history.trials)
        return any(trial.state == WRONG for trial in newest)

    @property
    def groups(self) -> tuple[HistoryGroup, ...]:
        """The cases by what was found of them, the largest group first."""
        found: dict[tuple[str, str, str], list[str]] = {}
        for history in self.bisection.cases:
            versioned, _, rest = history.case_id.partition("/")
            operator = versioned.rpartition("-")[0]
            sample = sample_stem(rest.rpartition("/")[2].rpartition("[")[0])
            found.setdefault((operator, sample, self.words(history)), []).append(history.case_id)
        groups = (HistoryGroup(*key, tuple(case_ids)) for key, case_ids in found.items())
        return tuple(sorted(groups, key=lambda group: -len(group.case_ids)))

    def words(self, history: CaseHistory) -> str:
        """`wrong since 1.19.2 (mismatch), right in 1.18.1`."""
        return sentence(history, self.bisection.releases)

    def check_command(self, history: CaseHistory) -> str:
        """The command line that shows the case on both sides of the change; empty where nothing changed."""
        found, releases = history.conclusion, self.bisection.releases
        if found.kind not in CHANGED or found.before is None or found.since is None:
            return ""
        targets = " ".join(f"-t {self.target}@{releases[index]}" for index in (found.before, found.since))
        return f'epcheck {"speed" if self.speed else "run"} {targets} -k "{history.case_id}"'

    def json(self) -> str:
        """One document: `schema` (DOCUMENT_SCHEMA; a reader refuses a newer one), `target`, `package`, `releases`, the
        oldest first, `left_out` (release -> why), `facts`, `runs` (releases in the order in which they were tried) and
        `cases`, each with `case`, `kind` (of `search.KINDS`), `before`, `since`, `skipped`, `words` and `trials`
        (release -> `status`, `message`)."""
        document = {
            "schema": DOCUMENT_SCHEMA,
            "target": self.target,
            "package": self.package,
            "releases": list(self.bisection.releases),
            "left_out": self.bisection.left_out,
            "facts": {release: dict(facts) for release, facts in self.facts.items()},
            "runs": [step.release for step in self.bisection.steps if not step.left_out],
            "cases": [self._case(history) for history in self.bisection.cases],
        }
        return strict_json.dumps(document)

    def _case(self, history: CaseHistory) -> dict[str, Any]:
        found, releases = history.conclusion, self.bisection.releases
        return {
            "case": history.case_id,
            "kind": found.kind,
            "before": None if found.before is None else releases[found.before],
            "since": None if found.since is None else releases[found.since],
            "skipped": [releases[index] for index in found.skipped],
            "words": self.words(history),
            "trials": {
                release: {"status": trial.status, "message": trial.message} for release, trial in history.trials.items()
            },
        }
