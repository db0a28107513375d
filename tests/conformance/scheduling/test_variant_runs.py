"""The other ways of running a case without a process: what is run next, and which results come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.judging.variants import compare
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.outcome import CRASHED, DONE, FAILED, Outcome, bits
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling.case_lifecycle import CaseLifecycle, Conclude, Ran, Run, Where
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.variant_runs import VariantRuns, Way
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.target import Target
from epcheck.conformance.targets.variants import Axis, Variants, variants_of
from epcheck.conformance.workers.program.backends.declined import DECLINED as DECLINED_BY
from epcheck.conformance.workers.program.protocol import CONTEXT, CONTEXT_BYTES
from tests.conformance.small_cases import identity

CANDIDATE = Target("candidate", ("python",), ("onnxruntime",))
CASE = prepared_case.of(identity("a").build())
REFUSAL = prepared_case.of(identity("a", must_refuse=True).build())


def answer(*values: float, shared: int = 1, **more: tuple[tuple[str, str], ...]) -> Outcome:
    return Outcome(DONE, outputs={"y": np.array(values, np.float32)}, shared=shared, **more)


RIGHT, WRONG, WRONG_OTHERWISE = answer(-1.0, 0.0), answer(-1.0, 5.0), answer(-1.0, 7.0)
MINUS_ZERO = answer(-1.0, -0.0)
REFUSED = Outcome(FAILED, "create", "no such thing")
DECLINED = Outcome(FAILED, "create", "epcheck: this way of running does not apply: an input has no memory on a device")
UNPLACED = Outcome(FAILED, "create", "fallback to CPU EP has been explicitly disabled")
CRASH = Outcome(CRASHED, message="killed by SIGSEGV")


def variants(*names: str, axis: Axis = Axis.LEVEL) -> Variants:
    found = variants_of([CANDIDATE], (axis,))["candidate"]
    return Variants(tuple(t for t in found.targets if t.variant.partition("=")[2] in names), {})


def runs_after(
    outcome: Outcome, *names: str, axis: Axis = Axis.LEVEL, case: PreparedCase = CASE
) -> tuple[VariantRuns, dict[str, Target]]:
    """The variants of a case whose ordinary way gives this, and their targets, the candidate among them."""
    chosen = variants(*names, axis=axis)
    way = Way(opinion(case, CANDIDATE, outcome), bits(outcome.outputs) if outcome.outputs else "")
    return VariantRuns(case, CANDIDATE, chosen, way), {t.variant.partition("=")[2]: t for t in chosen.targets}


def states(runs: VariantRuns) -> dict[str, tuple[str, str]]:
    assert runs.is_done
    return {result.variant: (result.state, result.reason) for result in runs.results()}


@pytest.mark.parametrize("outcome", [RIGHT, WRONG, REFUSED])
def test_the_same_again_is_the_same(outcome: Outcome) -> None:
    runs, targets = runs_after(outcome, "all")
    assert runs.begin() == [(targets["all"], False)]
    assert not runs.is_done
    assert runs.handle(targets["all"], outcome) == []
    assert states(runs) == {"level=all": (terms.SAME, "")}


def test_what_differs_is_run_again_alone_beside_the_ordinary_way() -> None:
    runs, targets = runs_after(RIGHT, "basic", "all")
    runs.begin()
    assert runs.handle(targets["basic"], WRONG) == [(targets["basic"], True), (CANDIDATE, True)]
    assert runs.handle(targets["all"], REFUSED) == [(targets["all"], True)]
    assert runs.handle(targets["basic"], WRONG) == []
    assert runs.handle(CANDIDATE, RIGHT) == []
    assert not runs.is_done
    runs.handle(targets["all"], REFUSED)
    found = states(runs)
    assert found["level=basic"][0] == found["level=all"][0] == terms.DIFFERS
    assert found["level=basic"][1].startswith("is wrong: y: 1 of 2 elements are wrong")
    assert found["level=all"][1] == "refuses at create: no such thing"
    assert [r.opinion.attempts for r in runs.results() if r.opinion] == [2, 2]


def test_what_does_not_come_again_alone_is_unsteady() -> None:
    runs, targets = runs_after(RIGHT, "all")
    runs.begin()
    runs.handle(targets["all"], WRONG)
    runs.handle(CANDIDATE, RIGHT)
    runs.handle(targets["all"], RIGHT)
    assert states(runs) == {"level=all": (terms.UNSTEADY, "the result changes between runs (mismatch, alone pass)")}


@pytest.mark.parametrize(
    ("repeated", "state", "words"),
    [
        ([CRASH], terms.DIFFERS, "crash: killed by SIGSEGV (in 2 of 2 runs)"),
        ([RIGHT, RIGHT, WRONG], terms.DIFFERS, "is wrong: y: 1 of 2 elements are wrong"),
        ([RIGHT] * 4, terms.UNSTEADY, "in 1 of 5 runs"),
    ],
)
def test_a_use_of_sessions_is_repeated_until_two_runs_differ(repeated: list[Outcome], state: str, words: str) -> None:
    runs, targets = runs_after(RIGHT, "2", axis=Axis.THREADS)
    runs.begin()
    assert runs.handle(targets["2"], WRONG) == [(targets["2"], True), (CANDIDATE, True)]
    assert runs.handle(CANDIDATE, RIGHT) == []
    for outcome in repeated:
        assert not runs.is_done
        runs.handle(targets["2"], outcome)
    found = states(runs)["threads=2"]
    assert found[0] == state
    assert found[1].startswith(words)


OTHER = Target("other", ("python",), ("onnxruntime",), provider="SomeExecutionProvider")
COMPILED = Outcome(DONE, outputs={CONTEXT: np.frombuffer(b"EPContext", np.uint8)})


def loading(outcome: Outcome = RIGHT) -> tuple[VariantRuns, Target]:
    """The runs of what another target compiles, and the target that is first asked to."""
    (target,) = (t for t in variants_of([CANDIDATE], (Axis.CONTEXT,), (OTHER,))["candidate"].targets if t.compiler)
    way = Way(opinion(CASE, CANDIDATE, outcome), bits(outcome.outputs))
    runs = VariantRuns(CASE, CANDIDATE, Variants((target,), {}), way)
    ((compiler, alone),) = runs.begin()
    assert (compiler.base, compiler.compiles_for, alone) == ("other", "candidate", False)
    assert compiler.request_defaults == {"way": "context", "context": "compile"}
    return runs, compiler


@pytest.mark.parametrize(
    ("outcome", "state", "words"),
    [
        (RIGHT, terms.SAME, ""),
        (REFUSED, terms.SAME, "refused: no such thing"),
        (WRONG, terms.DIFFERS, "is wrong: y: 1 of 2 elements are wrong"),
        (CRASH, terms.DIFFERS, "crash: killed by SIGSEGV"),
    ],
)
def test_what_another_target_compiled_is_right_or_refused(outcome: Outcome, state: str, words: str) -> None:
    runs, compiler = loading()
    ((target, alone),) = runs.handle(compiler, COMPILED)
    assert (target.base, target.variant, target.compiled, alone) == (
        "candidate", "context=from:other", b"EPContext", False,
    )  # fmt: skip
    for again, is_alone in runs.handle(target, outcome):
        assert is_alone
        assert again.compiled == (b"EPContext" if again.variant else b"")
        runs.handle(again, outcome if again.variant else RIGHT)
    found = states(runs)["context=from:other"]
    assert (found[0], found[1].startswith(words)) == (state, True)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (
            replace(DECLINED, message=f"{DECLINED_BY}nothing is compiled"),
            "other compiles nothing of it: nothing is compiled",
        ),
        (CRASH, "other compiles nothing of it: killed by SIGSEGV"),
        (RIGHT, "other compiles nothing of it: done"),
        (
            Outcome(DONE, outputs={CONTEXT: np.broadcast_to(np.uint8(0), CONTEXT_BYTES + 1)}),
            "what other compiles has 268,435,457 bytes; 268,435,456 are read",
        ),
    ],
)
def test_what_another_target_does_not_compile_is_skipped(outcome: Outcome, words: str) -> None:
    runs, compiler = loading()
    assert runs.handle(compiler, outcome) == []
    assert states(runs) == {"context=from:other": (terms.NOT_RUN, words)}


def test_a_case_waits_for_what_another_target_compiles() -> None:
    plan = Plan((), (CANDIDATE,), variants=variants_of([CANDIDATE], (Axis.CONTEXT,), (OTHER,)))
    assert [target.name for target in plan.targets] == ["candidate", "other"]
    life = CaseLifecycle(plan, CASE)
    life.begin({})
    actions = life.handle(Ran(CANDIDATE, Where.SHARED, RIGHT))
    by_base = {action.target.base for action in actions if isinstance(action, Run)}
    assert by_base == {"candidate", "other"}
    (asked,) = (a.target for a in actions if isinstance(a, Run) and a.target.compiles_for)
    (load,) = life.handle(Ran(asked, Where.OWN_SESSION, COMPILED))
    assert isinstance(load, Run)
    assert (load.target.compiled, load.where) == (b"EPContext", Where.OWN_SESSION)


def test_what_the_ordinary_way_does_alone_as_well_is_a_difference_of_packing() -> None:
    runs, targets = runs_after(replace(RIGHT, shared=8), "all")
    runs.begin()
    runs.handle(targets["all"], WRONG)
    runs.handle(targets["all"], WRONG)
    runs.handle(CANDIDATE, WRONG)
    words = "gives pass where others share its session, and mismatch alone"
    assert states(runs) == {"level=all": (terms.SAME, ""), "packing=shared": (terms.DIFFERS, words)}


def test_wrong_answers_that_are_not_the_same_differ() -> None:
    runs, targets = runs_after(WRONG, "all")
    runs.begin()
    assert runs.handle(targets["all"], WRONG_OTHERWISE) == [(targets["all"], True), (CANDIDATE, True)]


def test_other_bits_that_are_right_are_close() -> None:
    (target,) = variants("all").targets
    passes = Opinion("candidate", terms.PASS)
    found = compare(target, passes, bits(RIGHT.outputs), MINUS_ZERO, passes, bits(MINUS_ZERO.outputs))
    assert (found.state, found.reason) == (terms.CLOSE, "different bits, also right")


def test_what_does_not_apply_says_why() -> None:
    runs, targets = runs_after(RIGHT, "device", axis=Axis.IO_BINDING)
    runs.begin()
    runs.handle(targets["device"], DECLINED)
    assert states(runs) == {"io_binding=device": (terms.NOT_RUN, "an input has no memory on a device")}
    runs, targets = runs_after(RIGHT, "all")
    runs.begin()
    runs.handle(targets["all"], replace(RIGHT, assignment=()))
    assert states(runs) == {"level=all": (terms.NOT_RUN, "no node is left at this level")}


@pytest.mark.parametrize(
    ("ordinary", "why"),
    [(CRASH, "the plain run has no stable result"), (UNPLACED, "the provider does not take the node")],
)
def test_what_has_nothing_to_compare_with_is_not_run(ordinary: Outcome, why: str) -> None:
    runs, _ = runs_after(ordinary, "all")
    assert runs.begin() == []
    assert states(runs) == {"level=all": (terms.NOT_RUN, why)}


def test_a_node_that_is_not_taken_alone_is_run_in_a_pack() -> None:
    runs, targets = runs_after(UNPLACED, "packed", axis=Axis.PACKING)
    assert runs.begin() == [(targets["packed"], False)]
    runs.handle(targets["packed"], RIGHT)
    runs.handle(targets["packed"], RIGHT)
    runs.handle(CANDIDATE, UNPLACED)
    assert states(runs) == {"packing=packed": (terms.DIFFERS, "is right")}


@pytest.mark.parametrize(
    ("outcome", "state", "reason"),
    [
        (REFUSED, terms.SAME, "refused: no such thing"),
        (RIGHT, terms.CLOSE, "accepted, and the result is right"),
        (WRONG, terms.DIFFERS, "accepted, and is wrong: y: 1 of 2 elements are wrong"),
        (CRASH, terms.DIFFERS, "crash: killed by SIGSEGV"),
    ],
)
def test_a_stale_or_damaged_context_must_be_refused(outcome: Outcome, state: str, reason: str) -> None:
    runs, targets = runs_after(RIGHT, "stale", "damaged", axis=Axis.CONTEXT)
    runs.begin()
    for target in targets.values():
        if runs.handle(target, outcome):
            runs.handle(target, outcome)
    runs.handle(CANDIDATE, RIGHT)
    for found, words in states(runs).values():
        assert (found, words[: len(reason)]) == (state, reason)


def test_a_stale_context_that_gives_what_is_wrong_ordinarily_as_well_differs_no_more() -> None:
    runs, targets = runs_after(WRONG, "stale", axis=Axis.CONTEXT)
    runs.begin()
    assert not runs.handle(targets["stale"], WRONG)
    assert states(runs) == {"context=stale": (terms.CLOSE, "accepted, and the result is that of the plain run")}


def test_a_refusal_that_must_come_is_the_same_however_it_is_run() -> None:
    runs, targets = runs_after(REFUSED, "all", case=REFUSAL)
    runs.begin()
    runs.handle(targets["all"], REFUSED)
    assert states(runs) == {"level=all": (terms.SAME, "")}


def lived(ordinary: Outcome, varied: Outcome, *expectations: Expectation) -> Record:
    """The record of a case of which the ordinary way gives one outcome, and the level `all` another, each time."""
    candidate = replace(CANDIDATE, expectations=expectations)
    plan = Plan((), (candidate,), variants={"candidate": variants("all")})
    return conclude(CaseLifecycle(plan, CASE), lambda target: varied if target.variant else ordinary)


def conclude(life: CaseLifecycle, give: Callable[[Target], Outcome]) -> Record:
    """The record of the first candidate. give: what comes of a run on a target."""
    pending = life.begin({})
    while True:
        action = pending.pop(0)
        if isinstance(action, Conclude):
            return action.records[0]
        if isinstance(action, Run):
            assert action.where is not Where.SHARED or not action.target.variant
            pending += life.handle(Ran(action.target, action.where, give(action.target)))


def test_a_case_that_is_right_ordinarily_and_wrong_otherwise_is_variant_dependent() -> None:
    found = lived(RIGHT, WRONG)
    assert (found.status, found.blame, found.reading) == (terms.VARIANT_DEPENDENT, terms.CANDIDATE, terms.FAILURE)
    assert "right in the plain run, but differs when run another way: level=all: is wrong: y: 1 of" in found.reason


def test_a_case_that_is_wrong_stays_wrong_and_says_how_it_differs() -> None:
    found = lived(WRONG, RIGHT)
    assert (found.status, found.reading) == (terms.MISMATCH, terms.FAILURE)
    assert found.reason.endswith("differs when run another way: level=all: is right")
    assert [(v.variant, v.state) for v in found.variants] == [("level=all", terms.DIFFERS)]


def test_a_case_that_is_the_same_in_every_way_says_nothing_of_it() -> None:
    found = lived(RIGHT, RIGHT)
    assert (found.status, found.reading, found.reason) == (terms.PASS, terms.OK, "candidate is right")
    assert [(v.variant, v.state) for v in found.variants] == [("level=all", terms.SAME)]


def test_an_expected_difference_is_expected_and_never_fixed() -> None:
    known = Expectation("Identity-*", terms.VARIANT_DEPENDENT, "the optimiser does it")
    assert lived(RIGHT, WRONG, known).reading == terms.EXPECTED
    assert lived(RIGHT, RIGHT, known).reading == terms.OK
    assert lived(WRONG, WRONG, known).reading == terms.FAILURE


def test_opinions_of_variants_are_those_of_the_candidate() -> None:
    found = lived(RIGHT, WRONG)
    (result,) = found.variants
    assert isinstance(result.opinion, Opinion)
    assert (result.opinion.target, result.opinion.status) == ("candidate level=all", terms.MISMATCH)


def test_an_error_of_what_the_documentation_forbids_is_no_difference_but_a_wrong_value_is() -> None:
    dml = replace(CANDIDATE, provider="DmlExecutionProvider")
    (shared,) = (t for t in variants_of([dml], (Axis.THREADS,))["candidate"].targets if t.variant == "threads=shared")
    ordinary = opinion(CASE, CANDIDATE, RIGHT)

    def state(message: str) -> str:
        outcome = Outcome(FAILED, "run", message)
        judged = replace(ordinary, status=terms.REFUSED, message=message, stage="run")
        return compare(shared, ordinary, "", outcome, judged, "").state

    assert state("Call failed.") == terms.SAME
    assert state("epcheck found: other feeds give other values") == terms.DIFFERS


def test_uses_are_of_cases_that_are_right_in_the_ordinary_way() -> None:
    runs, _ = runs_after(WRONG, "2", axis=Axis.THREADS)
    assert runs.begin() == []
    assert states(runs) == {"threads=2": (terms.NOT_RUN, "the plain run is not right")}


@pytest.mark.parametrize(
    ("differing", "status"),
    [
        ({"threads=2": CRASH}, terms.USAGE_DEPENDENT),
        ({"threads=2": CRASH, "level=all": WRONG}, terms.VARIANT_DEPENDENT),
    ],
)
def test_what_differs_in_uses_alone_is_usage_dependent(differing: dict[str, Outcome], status: str) -> None:
    chosen = variants_of([CANDIDATE], (Axis.LEVEL, Axis.THREADS))
    life = CaseLifecycle(Plan((), (CANDIDATE,), variants=chosen), CASE)
    record = conclude(life, lambda target: differing.get(target.variant, RIGHT))
    assert (record.status, record.blame) == (status, terms.CANDIDATE)


def test_uses_are_of_the_sampled_cases_alone() -> None:
    chosen = variants_of([CANDIDATE], (Axis.LEVEL, Axis.THREADS))
    both = {"level", "threads"}
    for used, axes in ((None, both), ({Axis.THREADS: (CASE.case.id,)}, both), ({Axis.THREADS: ()}, {"level"})):
        found = Plan((), (CANDIDATE,), variants=chosen, used=used).find_variants(CANDIDATE, CASE.case.id)
        assert found is not None
        assert {target.variant.partition("=")[0] for target in found.targets} == axes
    only = variants_of([CANDIDATE], (Axis.THREADS,))
    assert Plan((), (CANDIDATE,), variants=only, used={Axis.THREADS: ()}).find_variants(CANDIDATE, CASE.case.id) is None
