"""Two targets on one node, in rounds: each times both in new sessions, as A B B A or B A A B."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import onnx
import psutil

from epcheck.conformance.records.speed import (
    COPIED,
    CREATE,
    FIRST,
    PHASES,
    RUN,
    UNDECIDED,
    PhaseRatio,
    SpeedComparison,
    find_judged,
)
from epcheck.conformance.speed.sequential import Interval, count_left_out, estimate, judge
from epcheck.conformance.speed.timed_target import Block, NotTimedError, TimedModel, TimedTarget
from epcheck.generators.array import Array
from epcheck.generators.speed_shapes import TimedNode

PROBE_S = 0.05
"""Seconds of the block that is not counted: it says how many runs a block is worth."""

BLOCK_S, LONGEST_BLOCK_S = 0.004, 0.1
"""Seconds of a block: all of a round take as long as a session that is created and run once, but no block is shorter or
longer than that."""

CYCLES = (5, 3, 1)
"""A B B A in a round, fewer where a run takes long: short blocks that follow each other closely find the machine in the
same state."""

FEWEST_RUNS, MOST_RUNS = (3, 1), 1001
"""Of a block; the smaller number where a run takes long."""

SHARE = 0.5
"""Of the time of a comparison that the rounds may take that are needed at least."""

SHARES = 4
"""A node that needs more than so many shares of the time, and than so many others, waits until their ratios are
known."""

MOST_ROUNDS = 400

WIDE = 1.1
"""A measurement goes on while the ends of an interval are further apart than this factor."""

BUSY, DRIFT = 1.1, 1.1
"""From which ratio on it is said that two blocks of one session differ, and first and last rounds of one target."""

STARTING = 0.3
"""Of the time of all comparisons that the starts of new workers may take, in the passes that are needed at least."""

FEWEST_VISITS = 2
"""Of a node, with rounds of their own: in new workers, as far as there is time to start them."""

KEPT_ELEMENTS = 1 << 22
"""Of the inputs of a node whose feeds are kept between visits."""

OTHERS = 0.25
"""Processors that other programs use from which on the machine is said to be busy."""

CLOSE = {"float16": 2e-2, "float32": 1e-3, "float64": 1e-6}
"""How far outputs of both targets may be apart, of the largest absolute value; other dtypes may by one."""


@dataclass(frozen=True)
class SpeedTest:
    """When a measurement has seen enough. alpha: of one interval. judged: the phases that have to be decided.
    max_slowdown: the ratio that they are compared with besides; None for none."""

    alpha: float
    judged: tuple[str, ...]
    max_slowdown: float | None

    @property
    def fewest_rounds(self) -> int:
        """Rounds before an interval has ends."""
        return next(rounds for rounds in range(1, MOST_ROUNDS) if count_left_out(rounds, self.alpha))

    def is_settled(self, phases: Sequence[PhaseRatio]) -> bool:
        """Whether no further round is needed."""
        is_precise = all(phase.high <= WIDE * phase.low for phase in find_judged(phases, self.judged))
        return is_precise and self.is_decided(phases)

    def is_decided(self, phases: Sequence[PhaseRatio]) -> bool:
        """Whether the intervals decide, however wide they are."""
        limit = self.max_slowdown
        return not any(
            phase.verdict == UNDECIDED or (limit is not None and phase.low <= limit < phase.high)
            for phase in find_judged(phases, self.judged)
        )


@dataclass(frozen=True)
class Round:
    """The blocks of one session of each target, in time: those of a cycle A B B A, or B A A B, are two of each."""

    a: tuple[Block, ...]
    b: tuple[Block, ...]

    def seconds(self, phase: str) -> tuple[float, float] | None:
        """The times of A and B; None where one of them has no such phase. Of runs those of the fastest block: other
        programs only add time (J. Chen and J. Revels, Robust benchmarking in noisy environments, 2016)."""
        a, b = ([each for block in side if (each := _time_of(block, phase)) is not None] for side in (self.a, self.b))
        if phase == COPIED and (a or b):  # who has no memory of its own copies nothing
            a, b = (times or [block.paced_s for block in side] for times, side in ((a, self.a), (b, self.b)))
        return (min(a), min(b)) if a and b else None

    def logarithm(self, phase: str) -> float | None:
        """That of B's time over A's; None where there is none."""
        times = self.seconds(phase)
        return math.log(times[1] / times[0]) if times and min(times) > 0 else None


def _time_of(block: Block, phase: str) -> float | None:
    return {CREATE: block.create_s, FIRST: block.first_s, RUN: block.run_s, COPIED: block.copied_s}[phase]


def compare_nodes(
    nodes: Sequence[TimedNode],
    sides: tuple[TimedTarget, TimedTarget],
    test: SpeedTest,
    seconds: float,
    say: Callable[[str], None] = lambda _words: None,
) -> tuple[tuple[SpeedComparison, ...], tuple[str, ...]]:
    """Time the nodes on both targets, in passes, until all are settled or the seconds are over; and what has to be
    known of all, in sentences. say: takes what is done.

    Every pass has new workers, as far as there is time to start them: where the system places code and data changes the
    speed of a process, and differs from process to process. A node is begun while there is time for what those before
    it need, in an order by chance, so that in little time some of every kind are compared; ratios that are known become
    more precise when there is no other. Raises TargetDown where a worker cannot be started. What a target does not run,
    or too slowly, is the trouble of a comparison.
    """
    busy = _Load()
    start_s = busy.leave_out(lambda: _renew(sides))
    began = time.monotonic()
    every = max(math.ceil(start_s * test.fewest_rounds / (STARTING * seconds)), 1)  # a clock may stand still
    until = began + seconds - start_s * test.fewest_rounds / every
    timers = [NodeTimer(node, test) for node in nodes]
    by_chance = [timers[place] for place in np.random.default_rng(38).permutation(len(timers))]
    passes, workers = 0, 1
    while passes < MOST_ROUNDS and time.monotonic() - began < seconds:
        chosen = _choose_nodes(by_chance, until - time.monotonic())
        if not chosen:
            break
        if passes and passes % every == 0:
            busy.leave_out(lambda: _renew(sides))
            workers += 1
        passes += 1
        for place, timer in enumerate(chosen, 1):
            now = time.monotonic()
            if now - began > seconds:
                break
            if timer.is_begun or _has_time(timers, until - now):
                say(f"pass {passes}, {place} of {len(chosen)}: {timer.node.id}")
                open_ones = sum(not (each.is_over or each.is_known or each.waits) for each in timers)
                share = (until - now) / max(open_ones, 1)
                usual_s = statistics.median([each.least_s for each in timers if each.is_begun] or [seconds / SHARES])
                timer.visit(sides, share, SHARES * max(share, usual_s), began + seconds)
    notes = [f"{passes} passes in {workers} workers of each target"] if every > 1 else []
    notes += busy.describe([each for timer in timers for each in timer.rounds])
    names = sides[0].target.name, sides[1].target.name
    return tuple(timer.conclude(names) for timer in timers), tuple(notes)


def _choose_nodes(timers: Sequence[NodeTimer], seconds: float) -> list[NodeTimer]:
    """Those of the next pass, for which there are so many seconds: of which no ratio is known; without such, one that
    waits; and then all that are not settled."""
    left = [timer for timer in timers if not timer.is_over]
    unknown = [timer for timer in left if not timer.is_known]
    new = [timer for timer in unknown if not timer.is_begun] if _has_time(timers, seconds) else []
    begun = sorted((timer for timer in unknown if timer.rounds), key=lambda timer: timer.needed_s)
    sums = itertools.accumulate(timer.needed_s for timer in begun)
    return (
        [timer for timer, needed_s in zip(begun, sums, strict=True) if needed_s < seconds] + new
        or begun[:1]
        or [timer for timer in unknown if timer.waits and timer.least_s < seconds][:1]
        or [timer for timer in left if timer.rounds]
    )


def _has_time(timers: Sequence[NodeTimer], seconds: float) -> bool:
    """Whether in so many seconds another node can be begun, which takes as long as those that are begun."""
    begun = [timer for timer in timers if timer.is_begun]
    spent, needed = sum(timer.spent_s for timer in begun), sum(timer.needed_s for timer in begun)
    return not begun or needed + (spent + needed) / len(begun) < seconds


def _renew(sides: tuple[TimedTarget, TimedTarget]) -> float:
    """Give both targets new workers; the seconds that it took. Raises TargetDown."""
    began = time.monotonic()
    for side in sides:
        side.end()
        side.start()
    return time.monotonic() - began


class NodeTimer:
    """One node: the rounds that it has, and whether it needs more. is_begun: it was visited. spent_s: all that it took.
    least_s: what the rounds take that are needed, by its probe. waits: until others leave as much."""

    def __init__(self, node: TimedNode, test: SpeedTest) -> None:
        self.node = node
        self.rounds: list[Round] = []
        self.is_over = self.is_begun = False
        self.spent_s = self.least_s = 0.0
        self.waits = False
        self._test = test
        self._trouble = ""
        self._is_decided = False
        self._notes: tuple[str, ...] = ()
        self._probes: tuple[Block, ...] = ()
        self._probing_s, self._preparing_s = 0.0, 0.0
        self._pace: tuple[int, int] | None = None
        self._visit_rounds = 1
        self._order = np.random.default_rng(38)
        self._model: TimedModel | None = None

    @property
    def is_known(self) -> bool:
        """Whether its ratio is, although perhaps not precisely."""
        return len(self.rounds) >= self._test.fewest_rounds and self._is_decided

    @property
    def needed_s(self) -> float:
        """Seconds that the rounds take which are needed and missing, by those that it has."""
        missing = max(self._test.fewest_rounds - len(self.rounds), 0)
        return 0.0 if self.is_over or not self.rounds else missing * (self.spent_s - self._probing_s) / len(self.rounds)

    def visit(self, sides: tuple[TimedTarget, TimedTarget], share: float, most_s: float, until: float) -> None:
        """One round, or several where the data of the node takes longer to make and to send; in the first visit after a
        probe. share: seconds that the rounds should take which are needed; where they take `most_s`, the node waits.
        until: on time.monotonic's clock, in seconds; no round begins after it. Raises TargetDown."""
        self.is_begun = True
        with self._timing():
            model = self._probe(sides) if not self._probes else None
            self.waits = self._pace is None and self.least_s > most_s
            if self.waits:
                return
            self._pace = self._pace or self._choose_pace(share)
            model = model or self._find_model()
            for _ in range(self._visit_rounds):
                self.rounds.append(_time_round(model, sides, self._pace, bool(self._order.integers(2))))
                phases = find_ratios(self.rounds, self._test.alpha)
                self._is_decided, self.is_over = self._test.is_decided(phases), self._test.is_settled(phases)
                if self.is_over or time.monotonic() > until:
                    break

    def _probe(self, sides: tuple[TimedTarget, TimedTarget]) -> TimedModel:
        """Run it on both, compare what comes out, and note how long it takes. The second session of a process counts:
        the first loads libraries. Raises NotTimedError, TargetDown."""
        began = time.monotonic()
        model = self._find_model()
        first = tuple(side.time_new_session(model, 1, wanted=True) for side in sides)
        self._preparing_s = max(time.monotonic() - began - sum(map(_count_seconds, first)), 0.0)
        self._notes = describe_outputs(*(block.outputs for block in first))
        self._probes = tuple(side.time_new_session(model, 0, PROBE_S) for side in sides)
        self._probing_s = time.monotonic() - began
        self.least_s = self._test.fewest_rounds * least_round_s(self._probes) + FEWEST_VISITS * self._preparing_s
        return model

    def _choose_pace(self, share: float) -> tuple[int, int]:
        """How long a round is, and how many a visit has."""
        fewest, preparing_s = self._test.fewest_rounds, self._preparing_s
        own_s = (SHARE * share - FEWEST_VISITS * preparing_s) / fewest
        pace = choose_pace(self._probes, max(own_s, least_round_s(self._probes)))
        cycles, runs = pace
        round_s = 2 * cycles * runs * sum(probe.paced_s for probe in self._probes)
        self._visit_rounds = min(max(math.ceil(preparing_s / round_s), 1), math.ceil(fewest / FEWEST_VISITS))
        return pace

    def conclude(self, names: tuple[str, str]) -> SpeedComparison:
        """What it comes to. names: of the targets."""
        node, rounds, fewest = self.node, [] if self._trouble else self.rounds, self._test.fewest_rounds
        notes = (*self._notes, *describe_steadiness(rounds, names))
        phases = tuple(find_ratios(rounds, self._test.alpha))
        if RUN in self._test.judged and phases and not any(phase.phase == RUN for phase in phases):
            copying = [name for name, side in zip(names, (rounds[0].a, rounds[0].b), strict=True) if not side[0].run_s]
            notes += (f"each run of '{copying[0]}' copies its inputs and outputs: compared with copies",)
        if 0 < len(rounds) < fewest:
            notes += (f"{len(rounds)} rounds in {self.spent_s:.1f} s, {fewest} are needed: give --seconds more",)
        trouble = self._trouble or ("" if rounds else self._describe_lack())
        return SpeedComparison(node.id, node.operator, node.dtype, node.sizes, len(rounds), round(self.spent_s, 3),
                               phases, trouble, notes)  # fmt: skip

    def _describe_lack(self) -> str:
        if not self.waits:
            return "no time was left: give --seconds more, or choose nodes"
        slowest = max(probe.paced_s for probe in self._probes)
        return (
            f"too little time: {self._test.fewest_rounds} rounds are needed, and a run takes {slowest:.2g} s and its "
            f"data {self._preparing_s:.2g} s; give --seconds more"
        )

    @contextmanager
    def _timing(self) -> Iterator[None]:
        """A target that does not run the node ends it."""
        began = time.monotonic()
        try:
            yield
        except NotTimedError as error:
            self._trouble, self.is_over = str(error), True
        self.spent_s += time.monotonic() - began

    def _find_model(self) -> TimedModel:
        """Its model and feeds; large ones are made again for each visit."""
        model = self._model or build(self.node)
        self._model = model if self.node.elements <= KEPT_ELEMENTS else None
        return model


def probe_run_s(node: TimedNode, side: TimedTarget) -> float:
    """Seconds of a run on one target, by a short block. Raises NotTimedError, TargetDown."""
    return side.time_new_session(build(node), 0, PROBE_S).paced_s


def build(node: TimedNode) -> TimedModel:
    """Its model and feeds, with the names of its outputs."""
    content, feeds, shapes = node.build()
    outputs = onnx.load_from_string(content).graph.output
    return TimedModel(node.id, content, feeds, shapes, tuple(value.name for value in outputs))


def choose_pace(probes: Sequence[Block], round_s: float) -> tuple[int, int]:
    """How many cycles a round has, and how many runs a block, the same on both sides. round_s: seconds that a round may
    take, which least_round_s is at least."""
    sessions = [(probe.create_s or 0.0) + (probe.first_s or 0.0) for probe in probes]
    both = sum(probe.paced_s for probe in probes)
    for fewest in FEWEST_RUNS:
        for cycles in CYCLES:
            longest = (round_s - _count_others(probes)) / _count_blocks(probes, cycles)
            if fewest * both <= longest:
                block = min(max(min(sessions) / (2 * cycles), BLOCK_S), LONGEST_BLOCK_S)
                runs = round(min(block / max(probe.paced_s for probe in probes), longest / both))
                return cycles, min(max(runs, fewest), MOST_RUNS) | 1
    return CYCLES[-1], FEWEST_RUNS[-1]


def least_round_s(probes: Sequence[Block]) -> float:
    """Seconds of a round with as many cycles and runs as are worth what goes before them, and of one with a run in each
    block at least."""
    others = _count_others(probes)
    shortest = _count_blocks(probes, CYCLES[-1]) * FEWEST_RUNS[-1] * sum(probe.paced_s for probe in probes)
    return others + max(others, shortest)


def _count_others(probes: Sequence[Block]) -> float:
    """Seconds of what a round has besides blocks of runs: the sessions and their copies."""
    sessions = sum((probe.create_s or 0.0) + (probe.first_s or 0.0) for probe in probes)
    return sessions + sum(2 * probe.copied_s for probe in probes if probe.copied_s and probe.run_s)


def _count_blocks(probes: Sequence[Block], cycles: int) -> float:
    """How many blocks of both targets a round takes the time of: a quarter more warm up, and copies take as long as
    one."""
    return 2 * cycles * 1.25 + any(bool(probe.copied_s and probe.run_s) for probe in probes)


def _count_seconds(block: Block) -> float:
    """Of the runs of a block in a new session, about."""
    runs_s = block.runs * block.paced_s
    return (block.create_s or 0.0) + (block.first_s or 0.0) + runs_s + (block.copied_s or 0.0) * 2 * bool(block.run_s)


def _time_round(model: TimedModel, sides: tuple[TimedTarget, TimedTarget], pace: tuple[int, int], swap: bool) -> Round:
    """pace: cycles, and runs of a block. swap: as B A A B. By chance: then A and B differ, if they are the same, as
    probably in one direction as in the other."""
    cycles, runs = pace
    outer, inner = reversed(sides) if swap else sides
    around = [outer.time_new_session(model, runs)]
    within = [inner.time_new_session(model, runs)]
    while len(around) < 2 * cycles:
        within.append(inner.time_again(model, runs))
        around.append(outer.time_again(model, runs))
        if len(around) < 2 * cycles:
            around.append(outer.time_again(model, runs))
            within.append(inner.time_again(model, runs))
    blocks = tuple(around), tuple(within)
    return Round(*reversed(blocks)) if swap else Round(*blocks)


def find_ratios(rounds: Sequence[Round], alpha: float) -> list[PhaseRatio]:
    """The phases that all rounds have, each with its ratio and interval."""
    found = []
    for phase in PHASES:
        logarithms = [value for each in rounds if (value := each.logarithm(phase)) is not None]
        times = [pair for each in rounds if (pair := each.seconds(phase)) is not None]
        if rounds and len(logarithms) == len(times) == len(rounds):
            interval: Interval = estimate(logarithms, alpha)
            a_s, b_s = (statistics.median(side) for side in zip(*times, strict=True))
            found.append(PhaseRatio(phase, a_s, b_s, interval.ratio, interval.low, interval.high, judge(interval)))
    return found


def describe_steadiness(rounds: Sequence[Round], names: tuple[str, str]) -> tuple[str, ...]:
    """What blocks of one target say of the machine: whether two of one session agree, and the first and last rounds."""
    notes = []
    for name, blocks in zip(names, ([each.a for each in rounds], [each.b for each in rounds]), strict=True):
        if len(blocks) < 6:
            continue
        apart = math.exp(statistics.median(abs(math.log(each[0].paced_s / each[1].paced_s)) for each in blocks))
        if apart > BUSY:
            notes.append(f"two blocks of one session of '{name}' differ by a factor of {apart:.2f} in the median round")
        third = len(blocks) // 3
        early, late = (
            statistics.median(each[0].paced_s for each in part) for part in (blocks[:third], blocks[-third:])
        )
        if not 1 / DRIFT < late / early < DRIFT:
            notes.append(
                f"runs of '{name}' took {late / early:.2f} times as long at the end: the clock, or other programs"
            )
    return tuple(dict.fromkeys(notes))


class _Load:
    """The processors that programs other than these two workers use, from now on."""

    def __init__(self) -> None:
        self._wall = self._others = 0.0
        self._begin()

    def leave_out(self, action: Callable[[], float]) -> float:
        """Do something that does not count: the start of workers, which use processors as well."""
        self._end()
        result = action()
        self._begin()
        return result

    def describe(self, rounds: Sequence[Round]) -> tuple[str, ...]:
        """In a sentence, where they are many."""
        self._end()
        blocks = sum(block.cpu_s for each in rounds for block in (*each.a, *each.b))
        others = (self._others - blocks) / max(self._wall, 1e-3)
        if not rounds or others < OTHERS:
            return ()
        return (f"the machine was busy: other programs used {others:.1f} of {psutil.cpu_count()} processors",)

    def _begin(self) -> None:
        self._at, self._busy, self._own = time.monotonic(), _busy_s(), time.process_time()

    def _end(self) -> None:
        self._wall += time.monotonic() - self._at
        self._others += _busy_s() - self._busy - (time.process_time() - self._own)


def _busy_s() -> float:
    """Seconds that all processors have worked since the machine started."""
    times = psutil.cpu_times()
    return float(times.user + times.system)


def describe_outputs(a: dict[str, Array], b: dict[str, Array]) -> tuple[str, ...]:
    """What is different in the outputs of both targets, in sentences: values are not judged, but a run that computes
    something else is no comparison."""
    for name in sorted({*a, *b}):
        if name not in a or name not in b:
            return (f"only one target gives the output '{name}'",)
        first, other = a[name], b[name]
        if (first.shape, first.dtype) != (other.shape, other.dtype):
            return (f"the output '{name}' is {first.dtype} {list(first.shape)} and {other.dtype} {list(other.shape)}",)
        if first.size and _are_apart(first, other):
            return (f"the values of '{name}' differ: see which is wrong with epcheck run",)
    return ()


def _are_apart(first: Array, other: Array) -> bool:
    wide, others = first.astype(np.float64), other.astype(np.float64)
    if (np.isfinite(wide) != np.isfinite(others)).any():
        return True
    finite = np.isfinite(wide)
    largest = float(np.abs(wide[finite]).max(initial=0.0))
    allowed = CLOSE[first.dtype.name] * largest if first.dtype.name in CLOSE else 1.0
    return bool((np.abs(wide - others)[finite] > allowed).any())
