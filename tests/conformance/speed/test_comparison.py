"""Two targets on one node: what rounds come to, and real workers of stated speed."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from epcheck.conformance.records.speed import (
    COPIED,
    CREATE,
    EQUIVALENT,
    FASTER,
    FIRST,
    RUN,
    SLOWER,
    UNDECIDED,
    PhaseRatio,
    SpeedComparison,
    find_judged,
)
from epcheck.conformance.speed import comparison
from epcheck.conformance.speed.comparison import (
    NodeTimer,
    Round,
    SpeedTest,
    build,
    choose_pace,
    compare_nodes,
    describe_outputs,
    describe_steadiness,
    find_ratios,
    least_round_s,
)
from epcheck.conformance.speed.timed_target import Block, NotTimedError, TimedModel, TimedTarget, read_block
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.session_result import session_result
from epcheck.generators.speed_shapes import TimedNode, timed_nodes

TEST = SpeedTest(0.001, (RUN,), None)


def block(run_s: float, create_s: float | None = 0.002, first_s: float | None = 0.003) -> Block:
    return Block(create_s, first_s, run_s, None, 5, run_s * 5)


def copying(run_s: float | None, copied_s: float | None) -> Block:
    """A block of a provider with a memory of its own."""
    return Block(None, None, run_s, copied_s, 5, 0.1)


def test_the_fastest_block_of_each_target_counts() -> None:
    """Whatever disturbs the others."""
    a = (block(2.0), block(1.0, None, None), block(9.0, None, None))
    b = (block(1.2), block(8.0, None, None), block(1.5, None, None))
    found = Round(a, b)
    assert math.exp(found.logarithm(RUN) or 0) == pytest.approx(1.2)
    assert (found.seconds(RUN), found.seconds(CREATE), found.seconds(FIRST)) == ((1.0, 1.2), (0.002,) * 2, (0.003,) * 2)


def test_phases_are_those_that_both_targets_have() -> None:
    rounds = [Round((block(1.0), block(1.0)), (block(2.0, None), block(2.0, None)))] * 12
    assert [(phase.phase, round(phase.ratio, 6), phase.verdict) for phase in find_ratios(rounds, 0.01)] == [
        (FIRST, 1.0, EQUIVALENT),
        (RUN, 2.0, SLOWER),
    ]
    assert find_ratios([], 0.01) == []


def test_runs_that_copy_are_compared_with_runs_that_copy() -> None:
    """Of a provider whose buffers cannot be bound each run copies; one without a memory of its own copies nothing."""
    bound = copying(1.0, 4.0), copying(1.0, None)
    unbound = copying(None, 8.0), copying(None, 9.0)
    for a, ratio in ((bound, 2.0), ((block(4.0), block(5.0)), 2.0)):
        phases = find_ratios([Round(a, unbound)] * 12, 0.01)
        assert [(phase.phase, phase.ratio) for phase in phases] == [(COPIED, pytest.approx(ratio))]
        assert [phase.phase for phase in find_judged(phases, (RUN,))] == [COPIED]
        assert find_judged(phases, (CREATE,)) == []
    both = find_ratios([Round(bound, bound)] * 12, 0.01)
    assert [phase.phase for phase in both] == [RUN, COPIED]
    assert [phase.phase for phase in find_judged(both, (RUN,))] == [RUN]


def test_copies_are_a_part_of_a_round() -> None:
    """Each session has some: 2 x 0.2 s here, and as long as a block of runs."""
    runs_alone = [copying(1e-3, None), copying(1e-3, None)]
    with_copies = [copying(1e-3, 0.2), copying(1e-3, 0.2)]
    assert choose_pace(runs_alone, 0.85) == (5, 5)
    assert choose_pace(with_copies, 0.85) == (1, 5)
    assert least_round_s(runs_alone) == pytest.approx(5e-3)
    assert least_round_s(with_copies) == pytest.approx(1.6)  # 0.8 of copies, and as long for runs


class Side:
    """A target whose node takes 1 ms, and whose data takes 0.4 s to send."""

    def time_new_session(self, _model: TimedModel, runs: int, _seconds: float = 0.0, wanted: bool = False) -> Block:
        if wanted:
            time.sleep(0.4)
        return Block(None, None, 1e-3, None, runs or 3, 0.0)

    def time_again(self, _model: TimedModel, runs: int) -> Block:
        return Block(None, None, 1e-3, None, runs, 0.0)


def test_a_visit_has_more_rounds_where_the_data_takes_long(relu: TimedNode) -> None:
    """So that they take as long as making and sending it; not more than half of the 13 that are needed."""
    timer = NodeTimer(relu, TEST)
    timer.visit((Side(), Side()), 60.0, 60.0, time.monotonic() + 60.0)  # type: ignore[arg-type]
    assert len(timer.rounds) == 7
    late = NodeTimer(relu, TEST)
    late.visit((Side(), Side()), 60.0, 60.0, time.monotonic())  # type: ignore[arg-type]
    assert len(late.rounds) == 1


def test_a_node_takes_more_than_its_share_and_waits_where_that_is_too_much(relu: TimedNode) -> None:
    until = time.monotonic() + 60.0
    timer = NodeTimer(relu, TEST)
    timer.visit((Side(), Side()), 0.1, 1.0, until)  # type: ignore[arg-type]
    assert (timer.rounds, timer.waits, timer.is_over) == ([], True, False)
    trouble = timer.conclude(("a", "b")).trouble
    assert trouble.startswith("too little time: 13 rounds are needed, and a run takes 0.001 s and its data 0.8")
    timer.visit((Side(), Side()), 1.0, 4.0, until)  # type: ignore[arg-type]
    assert (len(timer.rounds), timer.waits, timer.conclude(("a", "b")).trouble) == (7, False, "")


class Waiting(Side):
    """A target whose sessions take 20 ms."""

    target = resolve("cpu")

    def start(self) -> None:
        pass

    end = start

    def time_new_session(self, _model: TimedModel, runs: int, *_: object, **__: object) -> Block:
        time.sleep(0.02)
        return Block(0.01, 0.01, 1e-3, None, runs or 3, 0.0)


def test_a_node_is_begun_where_there_is_time_for_those_before_it() -> None:
    nodes = list(itertools.islice(timed_nodes(), 30))
    found, _notes = compare_nodes(nodes, (Waiting(), Waiting()), TEST, 4.0)  # type: ignore[arg-type]
    assert [each.case for each in found] == [node.id for node in nodes]
    begun = [each for each in found if each.rounds]
    assert 1 < len(begun) < 10
    assert len([each for each in begun if each.rounds < 13]) <= 1  # the estimate may be wrong for the last one
    assert {each.trouble for each in found if not each.rounds} == {
        "no time was left: give --seconds more, or choose nodes"
    }


def test_workers_that_start_in_no_time_are_no_trouble(monkeypatch: pytest.MonkeyPatch, relu: TimedNode) -> None:
    """The clock of Windows stands still for 16 ms."""
    monkeypatch.setattr(comparison, "_renew", lambda _sides: 0.0)
    ((found,), _notes) = compare_nodes([relu], (Waiting(), Waiting()), TEST, 4.0)  # type: ignore[arg-type]
    assert found.rounds >= 13


def test_ratios_that_are_known_become_more_precise_where_no_other_is_missing() -> None:
    class Scattered(Waiting):
        """Slower by 20 to 40 %: known after 13 rounds, but not precisely."""

        def __init__(self) -> None:
            self.runs = itertools.cycle([1.2e-3, 1.3e-3, 1.4e-3])

        def time_new_session(self, _model: TimedModel, runs: int, *_: object, **__: object) -> Block:
            self.run_s = next(self.runs)
            return Block(0.001, 0.001, self.run_s, None, runs or 3, 0.0)

        def time_again(self, _model: TimedModel, runs: int) -> Block:
            return Block(None, None, self.run_s, None, runs, 0.0)

    class Right(Waiting):
        def time_new_session(self, _model: TimedModel, runs: int, *_: object, **__: object) -> Block:
            return Block(0.001, 0.001, 1e-3, None, runs or 3, 0.0)

    seen: list[str] = []
    nodes = list(itertools.islice(timed_nodes(), 3))
    found, _notes = compare_nodes(nodes, (Right(), Scattered()), TEST, 5.0, seen.append)  # type: ignore[arg-type]
    assert {(phase.phase, phase.verdict) for each in found for phase in each.phases if phase.phase == RUN} == {
        (RUN, SLOWER)
    }
    assert {words.rpartition(": ")[2] for words in seen[:3]} == {node.id for node in nodes}
    assert max(each.rounds for each in found) > 13


@pytest.mark.parametrize(
    ("low", "high", "verdict", "limit", "settled"),
    [
        (1.15, 1.21, SLOWER, None, True),
        (1.05, 1.30, SLOWER, None, False),  # known to be slower, not by how much
        (0.97, 1.03, EQUIVALENT, 1.1, True),
        (1.05, 1.12, SLOWER, 1.1, False),  # on both sides of what is allowed
        (1.11, 1.14, SLOWER, 1.1, True),
        (0.99, 1.08, UNDECIDED, 1.1, False),
    ],
)
def test_when_a_measurement_has_seen_enough(
    low: float, high: float, verdict: str, limit: float | None, settled: bool
) -> None:
    ratios = [
        PhaseRatio(RUN, 1.0, 1.0, 1.0, low, high, verdict),
        PhaseRatio(CREATE, 1.0, 1.0, 1.0, 0.0, 9.0, UNDECIDED),
    ]
    assert SpeedTest(0.01, (RUN,), limit).is_settled(ratios) is settled


@pytest.mark.parametrize(
    ("run_s", "round_s", "pace"),
    [
        (2e-4, 1.0, (5, 21)),  # 4 ms of the slower one, and an odd number
        (2e-3, 1.0, (5, 3)),
        (0.02, 1.0, (3, 3)),  # fewer cycles
        (0.05, 1.0, (1, 3)),
        (0.1, 1.0, (1, 1)),
        (0.25, 1.0, (1, 1)),  # one run in a block
        (0.5, 1.0, (1, 1)),  # which takes longer
    ],
)
def test_a_round_takes_no_longer_than_it_may(run_s: float, round_s: float, pace: tuple[int, int]) -> None:
    assert choose_pace([block(run_s), block(run_s / 2)], round_s) == pace


def test_what_blocks_say_of_the_machine() -> None:
    steady = [Round((block(1.0), block(1.0)), (block(1.0), block(1.0)))] * 9
    throttled = [Round((block(s), block(s)), (block(1.0), block(1.0))) for s in (1, 1, 1, 1, 1, 1, 1.3, 1.3, 1.3)]
    busy = [Round((block(1.0), block(1.5)), (block(1.0), block(1.0)))] * 9
    assert describe_steadiness(steady, ("x", "y")) == ()
    assert describe_steadiness(throttled, ("x", "y")) == (
        "runs of 'x' took 1.30 times as long at the end: the clock, or other programs",
    )
    assert describe_steadiness(busy, ("x", "y")) == (
        "two blocks of one session of 'x' differ by a factor of 1.50 in the median round",
    )


def test_outputs_that_differ_are_told() -> None:
    values = np.array([1.0, 2.0, np.nan], np.float32)
    assert describe_outputs({"y": values}, {"y": values + np.float32(1e-6)}) == ()
    assert describe_outputs({"y": values}, {"y": values + 1}) == (
        "the values of 'y' differ: see which is wrong with epcheck run",
    )
    assert describe_outputs({"y": values}, {}) == ("only one target gives the output 'y'",)
    assert describe_outputs({"y": values}, {"y": values[:2]}) == ("the output 'y' is float32 [3] and float32 [2]",)


@pytest.mark.parametrize(
    "timing",
    [{}, {"runs_ns": [], "copied_ns": []}, {"runs_ns": "1", "copied_ns": []}, {"runs_ns": [1, "x"], "copied_ns": []},
     {"runs_ns": [-5], "copied_ns": []}, {"runs_ns": [float("inf")], "copied_ns": []},
     {"runs_ns": [1] * 10_001, "copied_ns": []}],
)  # fmt: skip
def test_times_that_are_none_are_refused(timing: dict[str, object]) -> None:
    header = {"stage": "done", "timing": timing, "busy_s": 0.1, "cpu_s": 0.1}
    with pytest.raises((KeyError, TypeError, ValueError)):
        read_block(header, session_result(header), {})


@pytest.fixture
def idle() -> Iterator[IdleWorkers]:
    with closing(IdleWorkers()) as workers:
        yield workers


@pytest.fixture
def relu() -> TimedNode:
    return next(node for node in timed_nodes() if node.id == "Relu-14/float32/256_ki")


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)


def run_both(idle: IdleWorkers, node: TimedNode, a: str, b: str, seconds: float = 120.0) -> SpeedComparison:
    sides = TimedTarget(resolve(a), idle, 1), TimedTarget(resolve(b), idle, 1)
    try:
        (found,), _notes = compare_nodes([node], sides, TEST, seconds)
        return found
    finally:
        for side in sides:
            side.end()


def timed(name: str) -> str:
    return f"python:timed_backends:{name}"


@pytest.mark.slow
def test_one_and_a_half_times_as_slow_is_told_with_its_ratio(idle: IdleWorkers, relu: TimedNode) -> None:
    found = run_both(idle, relu, timed("takes_1"), timed("takes_1_5"))
    run = found.phase(RUN)
    assert run is not None
    assert (run.verdict, found.trouble, found.phase(CREATE)) == (SLOWER, "", None)
    assert run.low <= 1.5 * 1.02
    assert run.high >= 1.5 / 1.02
    assert found.rounds >= TEST.fewest_rounds == 13
    assert "slower by 1." in run.words


@pytest.mark.slow
def test_a_target_beside_itself_is_no_different(idle: IdleWorkers, relu: TimedNode) -> None:
    found = run_both(idle, relu, "cpu", "cpu")
    assert [phase.phase for phase in found.phases] == [CREATE, FIRST, RUN]
    assert {phase.verdict for phase in found.phases} <= {EQUIVALENT, UNDECIDED}
    assert found.sizes == "262144"


@pytest.mark.slow
def test_a_worker_repeats_the_elements_of_large_feeds(idle: IdleWorkers) -> None:
    model = build(next(node for node in timed_nodes() if node.id == "Relu-14/float32/16_mi"))
    side = TimedTarget(resolve("cpu"), idle, 1)
    try:
        outputs = side.time_new_session(model, 1, wanted=True).outputs
    finally:
        side.end()
    (drawn,) = model.feeds.values()
    assert (drawn.nbytes, model.bytes) == (1 << 22, len(model.content) + (1 << 26))
    np.testing.assert_array_equal(outputs["output_0"], np.tile(np.maximum(drawn[::16], 0), 16))  # every 16th comes back


@pytest.mark.slow
def test_what_a_target_does_not_run_has_no_ratio(idle: IdleWorkers, relu: TimedNode) -> None:
    found = run_both(idle, relu, "cpu", timed("fails"))
    assert (found.trouble, found.phases) == (f"'{timed('fails')}' does not run it: no kernel of mine", ())


@pytest.mark.slow
def test_other_values_are_told(idle: IdleWorkers, relu: TimedNode) -> None:
    found = run_both(idle, relu, timed("takes_1"), timed("gives_1"))
    assert (found.trouble, found.rounds >= 13) == ("", True)
    assert found.notes[0] == "the values of 'output_0' differ: see which is wrong with epcheck run"


@pytest.mark.slow
def test_too_little_time_is_told_before_anything_is_measured(idle: IdleWorkers, relu: TimedNode) -> None:
    found = run_both(idle, relu, timed("takes_1"), timed("takes_1_5"), seconds=0.01)
    assert (found.rounds, found.phases) == (0, ())
    assert found.trouble.startswith("too little time: 13 rounds are needed, and a run takes 0.0")


@pytest.mark.slow
def test_a_faster_target_is_told_as_such(idle: IdleWorkers, relu: TimedNode) -> None:
    found = run_both(idle, relu, timed("takes_1_5"), timed("takes_1"))
    run = found.phase(RUN)
    assert run is not None
    assert run.verdict == FASTER
    assert run.words.startswith("faster by 1.")


@pytest.mark.slow
def test_a_worker_that_is_lost_takes_one_node_along(idle: IdleWorkers, relu: TimedNode) -> None:
    side = TimedTarget(resolve("cpu"), idle, 1)
    side.start()
    side.end()
    with pytest.raises(NotTimedError, match="lost its worker"):
        side.time_again(build(relu), 3)
    side.end()
