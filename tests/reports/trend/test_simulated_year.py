"""A year of nights on three machines, in which every injected event must be named correctly, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import pytest

from epcheck.conformance.records.terms import EXPECTED, FAILURE, PASS
from epcheck.reports.diff import assessment, difference, drift
from epcheck.reports.diff.classification import (
    APPEARED,
    FLAPPING,
    KINDS,
    NOT_RUN,
    REGRESSION,
    REPAIRED,
    STILL,
    VANISHED,
)
from epcheck.reports.diff.compared_runs import read_compared_run
from epcheck.reports.diff.difference import Difference
from epcheck.reports.store.nights import Completeness
from epcheck.reports.store.run_file import ProblemKind
from epcheck.reports.store.store import Store, open_store
from epcheck.reports.trend import sections
from epcheck.reports.trend.flaky_cases import flaky_cases
from epcheck.reports.trend.last_good import last_good
from epcheck.reports.trend.trend import Trend, trend
from tests.reports.simulated_year import (
    CRASHED,
    FIRST_NIGHT,
    TARGET,
    Assessment,
    Breaks,
    CouldNotRun,
    CutOff,
    Drifts,
    Flakes,
    Lost,
    Machine,
    Nights,
    Slows,
    States,
    Suite,
    Update,
    WrongClock,
    Year,
    run_of,
    write,
)

pytestmark = pytest.mark.slow

WHOLE, PARTIAL, NIGHT_NOT_RUN = Completeness.WHOLE, Completeness.PARTIAL, Completeness.NOT_RUN

NIGHTS = 365
MACHINES = ("llvmpipe", "NVIDIA H200", "Intel Arc B580")
PARTS = {"onnxruntime": "onnxruntime", "DirectML.dll": "DirectML.dll", "driver_version": "driver", "os": "OS"}
"""Fact -> what the reports call it."""


def is_bad(verdict: Assessment) -> bool:
    """Whether it fails, expected or not."""
    return verdict.reading in (FAILURE, EXPECTED)


def a_machine(name: str, driver: str, first: int, ahead: float = 0.0) -> Machine:
    """A machine that gets the releases one after another, from night `first` on every 37 nights. ahead: hours."""
    facts = {"adapter": name, "driver_version": driver, "os": "Windows-11-26100"}
    releases = ((0, 0), *((first + 37 * step, step + 1) for step in range(8)))
    return Machine(name, facts, releases, timedelta(hours=ahead))


def a_year(golden: Nights, seed: int = 20260101) -> Year:
    """What happens. Operators are drawn from those that pass in every release; each has one event at most."""
    random = np.random.default_rng(seed)
    families = sorted({golden.operators[case] for case in golden.steady}, key=lambda name: -len(golden.cases_of(name)))
    drawn = iter(random.permutation([name for name in families if len(golden.cases_of(name)) >= 6]).tolist())

    def family() -> tuple[int, ...]:
        return golden.cases_of(next(drawn))

    measured = {name: [c for c in golden.cases_of(name) if golden.ulp[c] > 0.6] for name in families}
    inexact = tuple(max(measured.values(), key=len))
    taken = golden.operators[inexact[0]]
    drawn = iter([name for name in drawn if name != taken])
    lone = [case for case in golden.steady if len(golden.cases_of(golden.operators[case])) < 6]
    flaky = random.choice(lone, 6, replace=False).tolist()
    rest = [case for case in lone if case not in flaky]
    arc, h200, llvmpipe = "Intel Arc B580", "NVIDIA H200", "llvmpipe"
    return Year(
        NIGHTS,
        (
            a_machine(llvmpipe, "Mesa 25.0.7", 20),
            a_machine(h200, "580.159.04", 22, ahead=5),
            a_machine(arc, "32.0.101.8250", 40, ahead=-4),
        ),
        (
            # A driver breaks a family and the next one mends it; another driver does nothing.
            Update(h200, 50, "driver_version", "581.80"),
            Breaks(h200, 50, family(), until=75),
            Update(h200, 75, "driver_version", "582.10"),
            Update(arc, 90, "driver_version", "32.0.101.8300"),
            # A system update brings processes down, and nothing mends it.
            Update(arc, 160, "os", "Windows-11-28000"),
            Breaks(arc, 160, family(), CRASHED),
            # DirectML.dll alone is replaced, and breaks something on one machine.
            Update(arc, 120, "DirectML.dll", "1.15.9.0"),
            Breaks(arc, 120, family()),
            # Something breaks and is mended with nothing else changing.
            Breaks(llvmpipe, 110, family(), until=140),
            # It breaks while the machine is lost: the first night after tells it, with the driver of that time.
            Lost(arc, tuple(range(200, 209))),
            Update(arc, 204, "driver_version", "32.0.101.8331"),
            Breaks(arc, 204, family()),
            Drifts(h200, 101, inexact, 4.0),
            Update(h200, 101, "driver_version", "583.05"),
            Slows(arc, 215, family(), 3.0),
            *(Flakes(llvmpipe, case, rate) for case, rate in zip(flaky[:4], (0.03, 0.1, 0.3, 0.5), strict=True)),
            *(Flakes(arc, case, 0.08) for case in flaky[4:]),
            Lost(h200, (5, 180, 181)),
            CouldNotRun(llvmpipe, 150),
            CouldNotRun(llvmpipe, 206),  # while another machine is lost: nobody can tell which of them it is
            CouldNotRun(arc, 153, share=0.4),
            CutOff(arc, 99, 0.5),
            CutOff(h200, 250, 0.99),
            WrongClock(llvmpipe, 340, timedelta(hours=-30)),
            Suite(300, {rest[0]: "Renamed-1/float32/once_more[runtime]"}, tuple(rest[1:4]), tuple(rest[4:7])),
        ),
        seed,
    )


@dataclass(frozen=True)
class Simulated:
    """A year that was written, opened and read."""

    year: Year
    golden: Nights
    states: Mapping[str, States]
    opened: Store
    trend: Trend

    def runs(self, machine: str) -> dict[int, str]:
        """Night -> run_id, of all nights that the machine recorded anything of, in the order of their dates."""
        states, number = self.states[machine], list(self.states).index(machine) + 1
        runs = {
            night: run_of(self.year, states, night, number)
            for night in range(self.year.nights)
            if night not in states.lost and night not in states.cut and states.failed.get(night, 1.0) > 0
        }
        return {night: runs[night].run_id for night in sorted(runs, key=lambda night: runs[night].started)}

    def bad(self, machine: str, night: int) -> dict[str, bool]:
        """Case -> whether it truly fails in a night, for the cases that are recorded."""
        return {case_id: is_bad(verdict) for case_id, verdict in self.verdicts(machine, night).items()}

    def verdicts(self, machine: str, night: int) -> dict[str, Assessment]:
        """Case -> its true verdict in a night, for the cases that are recorded."""
        states = self.states[machine]
        recorded = np.flatnonzero(states.present[night])
        recorded = recorded[: int(len(recorded) * states.failed.get(night, 1.0))]
        names = dict(enumerate(self.golden.case_ids))
        for suite in self.year.of(Suite):
            names |= suite.renamed if night >= suite.night else {}
        return {names[case]: self.golden.verdicts[states.verdict[night, case]] for case in recorded.tolist()}

    def day(self, machine: str, night: int) -> str:
        """The date of a night by a clock that is right."""
        moment = FIRST_NIGHT + timedelta(days=night) + self.states[machine].machine.ahead
        return moment.date().isoformat()

    def flaky_cases(self, machine: str) -> set[str]:
        """The cases that flicker."""
        return {self.golden.case_ids[flaky_cases.case] for flaky_cases in self.year.of(Flakes, machine)}

    def changed(self, machine: str, before: int, after: int) -> frozenset[tuple[str, str, str]]:
        older, newer = (self.states[machine].facts[night] for night in (before, after))
        return frozenset((part, older[f], newer[f]) for f, part in PARTS.items() if older[f] != newer[f])


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    folder = tmp_path_factory.mktemp("year")
    golden = Nights.read()
    year = a_year(golden)
    states = write(year, golden, folder)
    opened = open_store(folder)
    return Simulated(year, golden, states, opened, trend(opened, lambda operator: operator))


Told = tuple[str, bool, str, str, frozenset[tuple[str, str, str]]]
"""Machine, whether it broke, run_id of the first night, case, and (part, older, newer) of all that came with it."""


def true_switches(simulated: Simulated, machine: str) -> Iterator[Told]:
    """What the store says truly happened to cases: each change between two nights that recorded the case."""
    last: dict[str, tuple[int, bool]] = {}
    for night, run_id in simulated.runs(machine).items():
        for case_id, bad in simulated.bad(machine, night).items():
            if case_id in last and last[case_id][1] != bad:
                yield machine, bad, run_id, case_id, simulated.changed(machine, last[case_id][0], night)
            last[case_id] = night, bad


def test_every_case_that_broke_or_was_mended_is_named_with_its_night_and_what_came_with_it(simulated: Simulated):
    found = {
        (e.machine, e.broke, e.run_id, c.case_id, frozenset((x.part, x.older, x.newer) for x in e.changed))
        for e in simulated.trend.events
        for c in e.cases
    }
    true = {switch for machine in simulated.states for switch in true_switches(simulated, machine)}
    assert found == true
    assert len({run_id for _, _, run_id, _, _ in true}) > 20, "the year has events"


def test_a_break_while_the_machine_was_lost_is_told_on_its_first_night_back(simulated: Simulated):
    (lost,) = (e for e in simulated.trend.events if e.broke and e.not_run == 9)
    assert [(c.part, c.newer) for c in lost.changed] == [("driver", "32.0.101.8331")]
    assert lost.run_id == simulated.runs(lost.machine)[209]


def test_flaky_cases_are_named_and_only_they(simulated: Simulated):
    found = {(flake.machine, flake.case_id) for flake in simulated.trend.flaky_cases}
    assert found == {(machine, case_id) for machine in MACHINES for case_id in simulated.flaky_cases(machine)}


def test_files_that_were_cut_off_are_the_only_troubles(simulated: Simulated):
    assert [problem.kind for problem in simulated.trend.problems] == [ProblemKind.TRUNCATED, ProblemKind.TRUNCATED]


def true_nights_not_whole(simulated: Simulated, machine: str) -> dict[str, Completeness]:
    """Date -> how far it got, of the nights that left no file, a broken one, or not all records; and of a night that
    the clock put elsewhere, which no reader can know to be there."""
    states = simulated.states[machine]
    failed = {night: PARTIAL if share else NIGHT_NOT_RUN for night, share in states.failed.items()}
    misdated = [wrong.night for wrong in simulated.year.of(WrongClock, machine)]
    gone = dict.fromkeys((*states.lost, *states.cut, *misdated), NIGHT_NOT_RUN)
    return {simulated.day(machine, night): completeness for night, completeness in (failed | gone).items()}


@pytest.mark.parametrize("name", MACHINES)
def test_nights_that_did_not_run_are_told_as_such_and_no_others(simulated: Simulated, name: str):
    (machine,) = (machine for machine in simulated.trend.machines if machine.name == name)
    found = {night.label: night.completeness for night in machine.nights if night.completeness is not WHOLE}
    assert found == true_nights_not_whole(simulated, name)
    assert len(machine.nights) == NIGHTS + len(list(simulated.year.of(WrongClock, name)))


@pytest.mark.parametrize("name", MACHINES)
def test_a_night_has_a_rate_where_it_ran_whole_and_none_where_it_did_not(simulated: Simulated, name: str):
    (machine,) = (machine for machine in simulated.trend.machines if machine.name == name)
    nights = {run_id: night for night, run_id in simulated.runs(name).items()}
    for night in machine.nights:
        if night.completeness is not WHOLE:
            assert night.rate() is None, night
            continue
        verdicts = simulated.verdicts(name, nights[night.run_id])
        steady = [verdict for case_id, verdict in verdicts.items() if case_id not in simulated.flaky_cases(name)]
        passes, failing = sum(verdict.status == PASS for verdict in steady), sum(map(is_bad, steady))
        flaky = len(simulated.flaky_cases(name))
        assert passes <= night.counts.passes <= passes + flaky
        assert failing <= night.counts.failing <= failing + flaky
        assert night.rate() == night.counts.passes / (passes + failing + flaky)


def test_a_start_that_failed_while_another_machine_was_lost_is_told_apart(simulated: Simulated):
    """It left a file that names no adapter, and it may be of two machines."""
    (unknown,) = (machine for machine in simulated.trend.machines if machine.name not in MACHINES)
    assert [(night.label, night.completeness) for night in unknown.nights] == [
        (simulated.day("llvmpipe", 206), NIGHT_NOT_RUN)
    ]


def test_the_tables_list_the_nights_that_did_not_run(simulated: Simulated):
    every = {section.title: section for section in sections.sections(simulated.trend, most=1000)}
    found = {
        (night, completeness, machine)
        for night, completeness, _, machine in every["Nights not run"].rows
        if machine in MACHINES
    }
    assert found == {
        (day, str(completeness), machine)
        for machine in MACHINES
        for day, completeness in true_nights_not_whole(simulated, machine).items()
    }


def compared(simulated: Simulated, machine: str, night: int) -> tuple[Difference, int]:
    """What the comparison of a night with the last good one says, and which night that was."""
    stored = {run.run_id: run for run in simulated.opened.runs}
    runs = simulated.runs(machine)
    newer = stored[runs[night]]
    before = last_good(simulated.opened, newer.run, TARGET)
    assert before is not None
    past = tuple(run for run in simulated.opened.runs if run.run.started <= newer.run.started)
    flaky = flaky_cases(replace(simulated.opened, runs=past), newer.run, TARGET)
    halves = (read_compared_run(run.path, TARGET, run.run) for run in (before.stored, newer))
    nights = {run_id: n for n, run_id in runs.items()}
    return difference.compare_nights(*halves, flaky=flaky), nights[before.stored.run_id]


def ids(found: Difference, kind: str) -> set[str]:
    return {case_id for group in found.of(kind) for case_id in group.case_ids}


def eventful(year: Year, machine: Machine) -> set[int]:
    """Nights on which something happened, and the first ones after a machine was lost."""
    nights = {night for night, _ in machine.releases if night} | {suite.night for suite in year.of(Suite)}
    for kind in (Update, Breaks, Drifts, Slows):
        nights |= {event.night for event in year.of(kind, machine.name)}
    nights |= {breaks.until for breaks in year.of(Breaks, machine.name) if breaks.until}
    return nights | {lost.nights[-1] + 1 for lost in year.of(Lost, machine.name)}


def assert_compared_exactly(simulated: Simulated, machine: str, night: int) -> Difference:
    """The comparison of a night with the last good one says what truly happened between the two, and nothing else.

    A failure is new where a reading became a failure or a pass became bad.
    """
    found, before = compared(simulated, machine, night)
    older, newer = (simulated.verdicts(machine, each) for each in (before, night))
    flaky = simulated.flaky_cases(machine)
    both = [(case, older[case], newer[case]) for case in newer if case in older and case not in flaky]
    broke = {
        case
        for case, old, new in both
        if (new.reading == FAILURE != old.reading) or (old.status == PASS and is_bad(new))
    }
    assert ids(found, REGRESSION) - flaky == broke
    assert ids(found, REPAIRED) - flaky == {c for c, old, new in both if is_bad(old) and new.status == PASS}
    assert ids(found, FLAPPING) <= flaky
    assert ids(found, APPEARED) == newer.keys() - older.keys()
    assert ids(found, VANISHED) == older.keys() - newer.keys()
    assert {(part.part, part.older, part.newer) for part in found.changed} == simulated.changed(machine, before, night)
    drifted = [event.cases for event in simulated.year.of(Drifts, machine) if before < event.night <= night]
    assert {case for drift in found.accuracy for case in drift.case_ids} == names(simulated, drifted)
    slower = [event.cases for event in simulated.year.of(Slows, machine) if before < event.night <= night]
    operators = {simulated.golden.operators[case] for cases in slower for case in cases}
    assert {speed.operator for speed in found.speed if speed.operator} == operators
    assert not found.placement
    assert (assessment.assess(found).result == assessment.WORSE) == bool(ids(found, REGRESSION))
    return found


def names(simulated: Simulated, events: Iterable[Sequence[int]]) -> set[str]:
    return {simulated.golden.case_ids[case] for cases in events for case in cases}


@pytest.mark.parametrize("name", MACHINES)
def test_a_night_on_which_something_happened_is_told_exactly(simulated: Simulated, name: str):
    for night in sorted(eventful(simulated.year, simulated.states[name].machine) & simulated.runs(name).keys()):
        assert_compared_exactly(simulated, name, night)


@pytest.mark.parametrize("name", MACHINES)
def test_of_a_night_on_which_nothing_happened_nothing_is_told(simulated: Simulated, name: str):
    whole = simulated.runs(name).keys() - simulated.states[name].failed.keys() - {0}
    quiet = sorted(whole - eventful(simulated.year, simulated.states[name].machine))
    for night in np.random.default_rng(7).choice(quiet, 10, replace=False).tolist():
        found = assert_compared_exactly(simulated, name, night)
        assert not {case for kind in KINDS if kind != STILL for case in ids(found, kind)} - simulated.flaky_cases(name)


def test_a_flaky_case_is_no_new_failure_once_it_is_known(simulated: Simulated):
    differences = [compared(simulated, "llvmpipe", night)[0] for night in range(300, 330, 2)]
    often = {simulated.golden.case_ids[e.case] for e in simulated.year.of(Flakes, "llvmpipe") if e.rate >= 0.3}
    assert often == {case for found in differences for case in ids(found, FLAPPING)} & often
    assert not {case for found in differences for case in ids(found, REGRESSION)} & often


def test_a_night_that_ended_early_is_no_regression_of_what_it_did_not_reach(simulated: Simulated):
    found, before = compared(simulated, "Intel Arc B580", 153)
    assert before == 152
    assert not ids(found, REGRESSION)
    assert len(ids(found, NOT_RUN)) > 100
    assert assessment.assess(found).result == assessment.NOT_RUN


def test_a_smaller_drift_than_the_one_that_is_told_would_not_have_been(simulated: Simulated):
    """The injected drift is above the threshold: were it not, the tests above could not fail."""
    assert all(event.factor > drift.FACTOR for event in simulated.year.of(Drifts))
