"""A year of nights: a store of what several machines might have left behind, and the list of what happened to them.

It starts from what real releases of onnxruntime-directml did (`release_nights.json`: a sample of cases, the status that
each release gave them, and their errors in ULP). Machines move on from release to release; upon that come the events of
a Year, which are drawn from a seed: drivers that break and mend families of operators, drifts, flakes, nights that are
lost, failed, cut off or dated by a wrong clock. `write` leaves nothing in the store but what a machine would have left;
what has to be found there is in `Year` and `States` alone.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import EXPECTED, FAILURE, PASS
from epcheck.reports.runs import parquet

GOLDEN = Path(__file__).with_name("release_nights.json")
FIRST_NIGHT = datetime(2025, 1, 1, 1, 0, tzinfo=UTC)
TARGET = "dml"
SECONDS, CREATE_SECONDS = 1e-3, 6e-3
NOISE = 0.15
"""The standard deviation of the logarithm of a case's seconds, from night to night."""

LOADED = 0.25
"""How much slower or faster all sessions of a night may be together (standard deviation of the logarithm)."""

Indices = Sequence[int]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Assessment:
    """What a record says of a case."""

    status: str
    blame: str
    reading: str


BROKEN = Assessment("mismatch", "candidate", FAILURE)
CRASHED = Assessment("crash", "candidate", FAILURE)


@dataclass(frozen=True)
class Nights:
    """What releases did. facts: of each release. verdicts: those that occur. status: [release, case], an index into
    verdicts. ulp: the largest error of each case where it passes; NaN where nothing has a bound in ULP."""

    facts: tuple[Mapping[str, str], ...]
    verdicts: tuple[Assessment, ...]
    case_ids: tuple[str, ...]
    domains: tuple[str, ...]
    opsets: tuple[int, ...]
    status: Array
    ulp: Array

    @classmethod
    def read(cls, path: Path = GOLDEN) -> Self:
        """The sample that lies beside this file."""
        document = json.loads(path.read_text(encoding="utf-8"))
        verdicts = (*(Assessment(*verdict) for verdict in document["verdicts"]), BROKEN, CRASHED)
        ids, domains, opsets, ulp, letters = zip(*document["cases"], strict=True)
        status = np.array([[string.ascii_letters.index(letter) for letter in each] for each in letters]).T
        worst = np.array([np.nan if error is None else error for error in ulp])
        return cls(tuple(document["releases"]), tuple(dict.fromkeys(verdicts)), ids, domains, opsets, status, worst)

    @cached_property
    def operators(self) -> tuple[str, ...]:
        """The operator of each case."""
        return tuple(parts(case_id)[0] for case_id in self.case_ids)

    def cases_of(self, operator: str) -> tuple[int, ...]:
        """The cases of an operator that pass in every release, so that an event is the only thing that happens."""
        return tuple(n for n in self.steady if self.operators[n] == operator)

    @cached_property
    def steady(self) -> tuple[int, ...]:
        """The cases that pass in every release."""
        passes = np.array([verdict.status == PASS for verdict in self.verdicts])
        return tuple(int(n) for n in np.flatnonzero(passes[self.status].all(axis=0)))

    def index(self, verdict: Assessment) -> int:
        return self.verdicts.index(verdict)


def parts(case_id: str) -> tuple[str, int, str, str, str]:
    """Operator, since_version, dtype, sample and binding of `Slice-13/float32/inner[runtime]`."""
    head, dtype, rest = case_id.split("/", 2)
    operator, _, version = head.rpartition("-")
    sample, _, binding = rest.rstrip("]").rpartition("[")
    return operator.rpartition("::")[2], int(version), dtype, sample, binding


@dataclass(frozen=True)
class Machine:
    """One machine. facts: of its graphics stack. releases: (night, index of the release) in the order of nights.
    ahead: how much its clock is."""

    name: str
    facts: Mapping[str, str]
    releases: tuple[tuple[int, int], ...]
    ahead: timedelta = timedelta()


@dataclass(frozen=True)
class Update:
    """From `night` on a fact of the target has another value, which breaks or mends nothing by itself."""

    machine: str
    night: int
    fact: str
    value: str


@dataclass(frozen=True)
class Breaks:
    """Cases get a verdict from `night` until before `until`."""

    machine: str
    night: int
    cases: tuple[int, ...]
    verdict: Assessment = BROKEN
    until: int | None = None


@dataclass(frozen=True)
class Drifts:
    """The error in ULP of cases is `factor` times what it was, from `night` on. They still pass."""

    machine: str
    night: int
    cases: tuple[int, ...]
    factor: float


@dataclass(frozen=True)
class Slows:
    """Cases take `factor` times as long, from `night` on."""

    machine: str
    night: int
    cases: tuple[int, ...]
    factor: float


@dataclass(frozen=True)
class Flakes:
    """A case fails now and then, with this probability, all year."""

    machine: str
    case: int
    rate: float


@dataclass(frozen=True)
class Lost:
    """Nights of which the machine left no file."""

    machine: str
    nights: tuple[int, ...]


@dataclass(frozen=True)
class CouldNotRun:
    """A night on which the worker did not come up, or the run ended early. share: of the cases that were recorded."""

    machine: str
    night: int
    share: float = 0.0


@dataclass(frozen=True)
class CutOff:
    """A night whose file was not copied to its end. share: of its bytes that are there."""

    machine: str
    night: int
    share: float


@dataclass(frozen=True)
class Suite:
    """From `night` on the suite of every machine has other cases. renamed: case -> its new id. vanished, added: cases
    that it has until or from then on."""

    night: int
    renamed: Mapping[int, str] = field(default_factory=dict)
    vanished: tuple[int, ...] = ()
    added: tuple[int, ...] = ()


@dataclass(frozen=True)
class WrongClock:
    """A night that is dated wrongly."""

    machine: str
    night: int
    ahead: timedelta


Event = Update | Breaks | Drifts | Slows | Flakes | Lost | CouldNotRun | CutOff | Suite | WrongClock


@dataclass(frozen=True)
class Year:
    """What happened. nights: how many."""

    nights: int
    machines: tuple[Machine, ...]
    events: tuple[Event, ...]
    seed: int

    def of(self, kind: type[Any], machine: str | None = None) -> Iterator[Any]:
        """The events of a kind, of all machines or of one."""
        return (e for e in self.events if isinstance(e, kind) and (machine is None or e.machine == machine))


@dataclass(frozen=True)
class States:
    """What was the case on one machine, night by night. verdict, ulp, slow, present: [night, case]. facts: of the
    target. lost: nights without a file. failed, cut: nights that were not whole, and the share that is there."""

    machine: Machine
    verdict: Array
    ulp: Array
    slow: Array
    present: Array
    facts: tuple[Mapping[str, str], ...]
    lost: frozenset[int]
    failed: Mapping[int, float]
    cut: Mapping[int, float]


def states_of(year: Year, machine: Machine, golden: Nights) -> States:
    """Every night of a machine as it truly was, flakes left out."""
    cases, name = len(golden.case_ids), machine.name
    verdict = np.zeros((year.nights, cases), np.int16)
    facts: list[dict[str, str]] = [dict(machine.facts) for _ in range(year.nights)]
    for night, release in machine.releases:
        verdict[night:] = golden.status[release]
        for of_night in facts[night:]:
            of_night.update(golden.facts[release])
    ulp, slow = np.tile(golden.ulp, (year.nights, 1)), np.ones((year.nights, cases))
    for update in sorted(year.of(Update, name), key=lambda update: update.night):
        for of_night in facts[update.night :]:
            of_night[update.fact] = update.value
    for breaks in year.of(Breaks, name):
        verdict[breaks.night : breaks.until, list(breaks.cases)] = golden.index(breaks.verdict)
    for drifts in year.of(Drifts, name):
        ulp[drifts.night :, list(drifts.cases)] *= drifts.factor
    for slows in year.of(Slows, name):
        slow[slows.night :, list(slows.cases)] *= slows.factor
    present = np.ones((year.nights, cases), bool)
    for suite in year.of(Suite):
        present[suite.night :, list(suite.vanished)] = False
        present[: suite.night, list(suite.added)] = False
    return States(
        machine, verdict, ulp, slow, present, tuple(facts),
        lost=frozenset(night for lost in year.of(Lost, name) for night in lost.nights),
        failed={event.night: event.share for event in year.of(CouldNotRun, name)},
        cut={event.night: event.share for event in year.of(CutOff, name)},
    )  # fmt: skip


def run_of(year: Year, states: States, night: int, number: int) -> Run:
    """The run of a night as its machine describes it. number: of the machine."""
    machine = states.machine
    ahead = machine.ahead + sum((e.ahead for e in year.of(WrongClock, machine.name) if e.night == night), timedelta())
    started = FIRST_NIGHT + timedelta(days=night, minutes=7 * number) + ahead
    failed = night in states.failed
    silent = states.failed.get(night, 1.0) == 0.0
    return Run(
        run_id=f"{started:%Y%m%d-%H%M%S}-{number:02x}{night % 256:02x}",
        started=started.isoformat(timespec="seconds"),
        finished=(started + timedelta(minutes=4)).isoformat(timespec="seconds"),
        duration_s=240.0,
        command=("epcheck", "nightly", "--target", TARGET, "--thin"),
        candidates=(TARGET,),
        baseline="cpu",
        targets={} if silent else {TARGET: dict(states.facts[night])},
        planned=int(states.present[night].sum()),
        selection={"candidates": [TARGET], "baseline": "cpu", "thin": True},
        versions={"epcheck": "0.1.0", "onnx": "1.23.2", "python": "3.12.9"},
        status="failed: target 'dml': its worker did not start within 60 s" if failed else "complete",
    )


@dataclass(frozen=True)
class Page:
    """Rows as a store has them, which many nights share but for their run and their seconds. order: of the cases."""

    rows: pa.Table
    order: Array
    passing: Array
    counted: Mapping[str, parquet.TargetCounts]


class Writer:
    """Writes the nights of one machine. What does not change from one night to the next is made once."""

    def __init__(self, year: Year, states: States, golden: Nights, number: int) -> None:
        self._year, self._states, self._golden, self._number = year, states, golden, number
        self._random = np.random.default_rng([year.seed, number])
        self._cases = len(golden.case_ids)
        self._ids = tuple(_case_ids(year, golden, night) for night in range(year.nights))
        self._words = {
            name: pa.array([getattr(verdict, name) for verdict in golden.verdicts])
            for name in ("status", "blame", "reading")
        }
        self._failing = np.array([verdict.reading in (FAILURE, EXPECTED) for verdict in golden.verdicts])
        self._passing = np.array([verdict.status == PASS for verdict in golden.verdicts])
        self._usual = SECONDS * np.exp(self._random.normal(0, 0.5, self._cases))
        self._pages: dict[tuple[object, ...], Page] = {}

    def write(self, folder: Path) -> None:
        """A file for each night that left one."""
        for night in range(self._year.nights):
            verdict, seconds = self._tonight(night)  # drawn in any case, so that an event changes its own night alone
            if night in self._states.lost:
                continue
            run = run_of(self._year, self._states, night, self._number)
            page = self._page(night, verdict)
            path = folder / f"{run.run_id}.parquet"
            with path.open("wb") as file:
                parquet.write_sorted(_of_run(page, run, seconds[page.order]), page.counted, run, file)
            if night in self._states.cut:
                data = path.read_bytes()
                path.write_bytes(data[: int(len(data) * self._states.cut[night])])

    def _tonight(self, night: int) -> tuple[Array, Array]:
        """What was seen: the verdicts with the flakes of the night, and the seconds with its noise."""
        verdict = self._states.verdict[night].copy()
        for flaky_cases in self._year.of(Flakes, self._states.machine.name):
            if self._random.random() < flaky_cases.rate:
                verdict[flaky_cases.case] = self._golden.index(BROKEN)
        noise = self._random.normal(0, NOISE, self._cases) + self._random.normal(0, LOADED)
        return verdict, self._usual * self._states.slow[night] * np.exp(noise)

    def _page(self, night: int, verdict: Array) -> Page:
        keep = np.flatnonzero(self._states.present[night])
        keep = keep[: int(len(keep) * self._states.failed.get(night, 1.0))]
        ulp = self._states.ulp[night]
        key = (self._ids[night], verdict.tobytes(), keep.tobytes(), ulp.tobytes())
        if key not in self._pages:
            self._pages[key] = self._new_page(self._ids[night], verdict, keep, ulp)
        return self._pages[key]

    def _new_page(self, case_ids: tuple[str, ...], verdict: Array, keep: Array, ulp: Array) -> Page:
        first = {case: (not self._failing[verdict[case]], case_ids[case]) for case in keep.tolist()}
        order = np.array(sorted(first, key=first.__getitem__), int)
        passing = self._passing[verdict]
        unknown = ~passing | np.isnan(ulp)
        columns = _columns(case_ids, self._golden) | {
            **{name: words.take(pa.array(verdict)) for name, words in self._words.items()},
            "failing": pa.array(self._failing[verdict]),
            "reason": self._words["status"].take(pa.array(verdict)),
            "ulp_max": pa.array(ulp, mask=unknown),
            "ulp_sum": pa.array(ulp * 10, mask=unknown),
        }
        every = [columns.get(f.name, pa.nulls(self._cases, f.type)).cast(f.type) for f in parquet.SCHEMA]
        rows = pa.table(every, schema=parquet.SCHEMA).take(pa.array(order))
        return Page(rows, order, passing[order], parquet.count(rows))


def _of_run(page: Page, run: Run, seconds: Array) -> pa.Table:
    tonight = {
        "run_id": pa.repeat(pa.scalar(run.run_id), len(seconds)),
        "create_s": pa.array(_rounded(seconds * (CREATE_SECONDS / SECONDS)), pa.float64()),
        "run_s": pa.array(_rounded(seconds), pa.float64(), mask=~page.passing),
    }
    rows = page.rows
    for name, column in tonight.items():
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), column)
    return rows


def _case_ids(year: Year, golden: Nights, night: int) -> tuple[str, ...]:
    """The ids of the cases in the suite of a night."""
    renamed: dict[int, str] = {}
    for suite in year.of(Suite):
        renamed |= suite.renamed if night >= suite.night else {}
    return tuple(renamed.get(case, case_id) for case, case_id in enumerate(golden.case_ids))


def _columns(case_ids: Sequence[str], golden: Nights) -> dict[str, pa.Array]:
    """What the ids say of the cases, and what is the same on each night."""
    operators, versions, dtypes, samples, bindings = zip(*map(parts, case_ids), strict=True)
    count = len(case_ids)
    return {
        "target": pa.repeat(pa.scalar(TARGET), count),
        "case_id": pa.array(case_ids),
        "operator": pa.array(operators),
        "domain": pa.array(golden.domains),
        "since_version": pa.array(versions),
        "opset": pa.array(golden.opsets),
        "dtype": pa.array(dtypes),
        "sample": pa.array(samples),
        "binding": pa.array(bindings),
        "claimed": pa.repeat(pa.scalar(True), count),
        "assignment": pa.array([f"DmlExecutionProvider {operator}" for operator in operators]),
        "attempts": pa.repeat(pa.scalar(1), count),
        "baseline": pa.repeat(pa.scalar("cpu"), count),
        "baseline_status": pa.repeat(pa.scalar(PASS), count),
        "ulp_elements": pa.array(np.full(count, 20), mask=np.isnan(golden.ulp)),
    }


def _rounded(seconds: Array) -> Array:
    """To three significant digits, as a store has them."""
    scale = 10.0 ** (np.floor(np.log10(seconds)) - 2)
    return np.round(seconds / scale) * scale


def write(year: Year, golden: Nights, folder: Path) -> dict[str, States]:
    """Write the store of a year into an empty folder; machine -> what was true."""
    every = {machine.name: states_of(year, machine, golden) for machine in year.machines}
    for number, states in enumerate(every.values(), 1):
        Writer(year, states, golden, number).write(folder)
    return every
