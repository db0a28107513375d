"""The cases that the rows run: chosen once for a table, written to files that epcheck's side and its peers' share."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from benchmarks import epcheck_rate
from benchmarks.epcheck_rate import Setting
from benchmarks.peers import stored_cases
from benchmarks.peers.stored_cases import StoredCase
from benchmarks.rates import crashing_backend, larger_suite
from epcheck.conformance.records.terms import CRASH, PASS
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.truth import Outputs, Refusal

SUITE_ROUNDS = 2
PASSING_ROUNDS = 4
SAMPLE = 150
"""Cases of the samples for Polygraphy's Python API and for DirectML."""

SAMPLE_ROUNDS = 50
DML_ROUNDS = 40
DML_CANDIDATES = 250
"""Cases of which the first SAMPLE that DirectML passes are taken."""

COMMANDS = 6
"""Models for Polygraphy's command line, which is started once for each."""

CRASH_ROUNDS = 1
CRASH_EVERY = 1000


@dataclass(frozen=True)
class Workload:
    """Cases of the suite, `rounds` times over, each time with other random data.

    only: a JSON list of the suite's ids. stored: the same cases, in the same order, as models and feeds; of the first
    round alone where a peer is too slow for more. cache: epcheck's, which has been filled by a run of these cases.
    """

    only: Path
    rounds: int
    stored: Path

    @property
    def cache(self) -> Path:
        """The file of the cache; see `Workbench.warm`."""
        return self.only.with_suffix(".sqlite")

    @property
    def arguments(self) -> list[str]:
        """How `epcheck_rate.py` is told of it."""
        return ["--only", str(self.only), "--rounds", str(self.rounds)]


class Workbench:
    """The workloads, each made when it is first asked for, in a folder that the caller removes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._caches = 0

    @cached_property
    def suite(self) -> Workload:
        """The whole suite as it is: also what CPU fails, has no kernel for, or must refuse; without the cases that end
        its process, which a bare loop does not survive."""
        return self._workload("suite", [i for i, status in self._on_cpu.items() if status != CRASH], SUITE_ROUNDS)

    @cached_property
    def passing(self) -> Workload:
        """Every case that must give an answer and gives the right one on CPU."""
        return self._workload("passing", self._passing_ids, PASSING_ROUNDS)

    @cached_property
    def sample(self) -> Workload:
        """SAMPLE of those; its models and feeds are stored once, epcheck runs them SAMPLE_ROUNDS times over."""
        return self._workload("sample", self._ranked[:SAMPLE], SAMPLE_ROUNDS, stored_rounds=1)

    @cached_property
    def commands(self) -> Workload:
        """COMMANDS of the sample, for what needs a process for each."""
        return self._workload("commands", self._ranked[:COMMANDS], SAMPLE_ROUNDS, stored_rounds=1)

    @cached_property
    def dml(self) -> Workload:
        """SAMPLE cases that pass on CPU and on DirectML."""
        candidates = self._ranked[:DML_CANDIDATES]
        passing = epcheck_rate.passing(larger_suite.cases(1, set(candidates)), "dml")
        return self._workload("dml", [case_id for case_id in candidates if case_id in passing][:SAMPLE], DML_ROUNDS)

    @cached_property
    def crash(self) -> Workload:
        """The passing cases in fewer rounds; one in CRASH_EVERY crashes."""
        return self._workload("crash", self._passing_ids, CRASH_ROUNDS)

    @cached_property
    def marks(self) -> Path:
        """What makes one case in CRASH_EVERY of `crash` crash."""
        path = self.folder / "marks.txt"
        crashing_backend.mark(path, stored_cases.read(self.crash.stored), CRASH_EVERY)
        return path

    def warm(self, workload: Workload) -> Path:
        """The cache of a workload, filled by a run of its cases that nobody times."""
        if not workload.cache.exists():
            cases = larger_suite.cases(workload.rounds, set(json.loads(workload.only.read_text(encoding="utf-8"))))
            epcheck_rate.run(cases, Setting(cache=workload.cache), lambda _: None)
        return workload.cache

    def cold(self) -> Path:
        """The file of a cache that does not exist yet."""
        self._caches += 1
        return self.folder / f"cold{self._caches}.sqlite"

    @cached_property
    def _on_cpu(self) -> dict[str, str]:
        return epcheck_rate.statuses(larger_suite.cases(1), "cpu")

    @cached_property
    def _passing_ids(self) -> set[str]:
        passing = {case_id for case_id, status in self._on_cpu.items() if status == PASS}
        return {case.id for case in larger_suite.cases(1, passing) if _must_be_answered(case)}

    @cached_property
    def _ranked(self) -> list[str]:
        """The passing ids in an order that is random and the same everywhere, and stays when the suite grows."""
        return sorted(self._passing_ids, key=lambda case_id: sha256(case_id.encode()).digest())

    def _workload(self, name: str, ids: Collection[str], rounds: int, stored_rounds: int | None = None) -> Workload:
        made = Workload(self.folder / f"{name}.json", rounds, self.folder / f"{name}.cases")
        made.only.write_text(json.dumps(sorted(ids)), encoding="utf-8")
        stored_cases.write(made.stored, built(larger_suite.cases(stored_rounds or rounds, set(ids))))
        return made


def _must_be_answered(case: Case) -> bool:
    """Whether the node may not be refused."""
    truth = case.build().truth
    return not isinstance(truth, Refusal) and not (isinstance(truth, Outputs) and truth.undefined)


def built(cases: Iterable[Case]) -> Iterable[StoredCase]:
    """Models and feeds of the cases."""
    for case in cases:
        made: BuiltCase = case.build()
        yield StoredCase(case.id, made.model, made.feeds)
