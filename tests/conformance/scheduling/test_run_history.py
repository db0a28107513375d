"""Baseline and reference are asked once about the same model and feeds, candidates always; and how cases fared tells
the next run which ones to keep apart."""

from __future__ import annotations

import pickle
import platform
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.judging.opinion_row import from_row, to_row
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.opinion import Difference, Mismatch, Opinion
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling import run_history
from epcheck.conformance.scheduling.case_scheduler import CaseScheduler
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.pools import session_request
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets import specification
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.program import machine
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.truth import Output, Outputs
from tests.conformance.small_cases import HERE, backend, identities, identity

CASES = list(suite.cases(["Slice"], patterns=["Slice-13/float32/*"], limit=40))
CPU, REFERENCE = specification.resolve("cpu"), specification.resolve("reference")
CANDIDATE = replace(CPU, name="candidate", expectations=())

STAND_IN = """
import sys

sys.path.insert(0, {folder!r})
from epcheck.conformance.workers.program import backends, main

make = backends.make
backends.make = lambda *_: make("python:" + {function!r})
main.main(sys.argv[1:])
"""


def stand_in(path: Path, function: str, **changes: Any) -> Target:
    """A target that looks like onnxruntime to whoever asks, and is `faulty_backends:FUNCTION`."""
    path.write_text(STAND_IN.format(folder=str(HERE), function=f"faulty_backends:{function}"), encoding="utf-8")
    return replace(backend("right"), name="stand_in", arguments=("onnxruntime",), worker=str(path), **changes)


posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

IDLE_WORKERS = IdleWorkers(keep=6)


@pytest.fixture(scope="module", autouse=True)
def _idle_workers() -> Iterator[None]:
    """Most of these runs have the same targets."""
    with closing(IDLE_WORKERS):
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Target name -> cases that it was sent."""
    counts, original = Counter[str](), session_request.encode

    def counted(name: str, cases: Sequence[PreparedCase], target: Target, place: bool) -> list[bytes]:
        counts[target.name] += len(cases)
        return original(name, cases, target, place)

    monkeypatch.setattr(session_request, "encode", counted)
    return counts


def run(path: Path, cases: Sequence[Case], *candidates: Target, **further: Any) -> dict[str, Record]:
    """Sample name -> record of the first candidate, of a run with that cache."""
    taken: list[Record] = []
    with closing(Cache(path)) as kept:
        run_plan(Plan(cases, candidates, **further), taken.append, cache=kept, idle_workers=IDLE_WORKERS)
    assert kept.trouble == ""
    return {r.case.sample + r.case.binding: r for r in taken if r.candidate.target == candidates[0].name}


def timeless(found: dict[str, Record]) -> dict[str, Record]:
    """The records without what differs from run to run."""

    def plain(opinion: Opinion | None) -> Opinion | None:
        return opinion and replace(opinion, create_s=None, run_s=None, shared=1, remembered=False)

    return {name: replace(r, candidate=plain(r.candidate), baseline=plain(r.baseline)) for name, r in found.items()}  # type: ignore[arg-type]


def remembered(found: dict[str, Record]) -> set[bool]:
    return {r.baseline.remembered for r in found.values() if r.baseline is not None}


def test_baseline_and_reference_are_asked_in_the_first_run_only(path: Path, asked: Counter[str]) -> None:
    first = run(path, CASES, CANDIDATE, baseline=CPU, reference=REFERENCE)
    assert asked == {"candidate": 40, "cpu": 40, "reference": 40}
    asked.clear()
    second = run(path, CASES, CANDIDATE, baseline=CPU, reference=REFERENCE)
    assert asked == {"candidate": 40}
    assert (remembered(first), remembered(second)) == ({False}, {True})
    assert {r.candidate.remembered for r in (*first.values(), *second.values())} == {False}
    assert timeless(first) == timeless(second)
    assert {r.oracles["reference"] for r in second.values()} == {"agrees"}


def test_what_is_remembered_says_how_long_it_took_then(path: Path) -> None:
    first, second = (run(path, CASES[:3], CANDIDATE, baseline=CPU) for _ in range(2))
    for name, found in first.items():
        assert found.baseline is not None
        assert second[name].baseline == replace(found.baseline, remembered=True)
        assert found.baseline.create_s


def test_without_a_cache_nothing_is_remembered(asked: Counter[str]) -> None:
    for _ in range(2):
        run_plan(Plan(CASES[:3], (CANDIDATE,), CPU), lambda _record: None, idle_workers=IDLE_WORKERS)
    assert asked == {"candidate": 6, "cpu": 6}


def test_a_candidate_that_is_the_baseline_too_is_run(path: Path, asked: Counter[str]) -> None:
    for _ in range(2):
        asked.clear()
        found = run(path, CASES[:5], CANDIDATE, CPU, baseline=CPU)
        assert asked == {"candidate": 5, "cpu": 5}
        assert remembered(found) == {False}


def test_what_it_said_as_a_candidate_is_not_remembered_of_it_as_the_baseline(path: Path, asked: Counter[str]) -> None:
    run(path, CASES[:5], CPU)
    asked.clear()
    run(path, CASES[:5], CANDIDATE, baseline=CPU)
    assert asked == {"candidate": 5, "cpu": 5}


@pytest.mark.parametrize("role", ["baseline", "reference"])
def test_a_callable_is_never_remembered(path: Path, asked: Counter[str], role: str) -> None:
    """Its code may change without a change of its name; a table of epcheck.toml may call it what it likes."""
    function = backend("right", name="reference")
    for _ in range(2):
        asked.clear()
        run(path, identities(4), backend("right"), **{role: function})
        assert asked["reference"] == 4


def test_another_session_option_asks_again(path: Path, asked: Counter[str]) -> None:
    run(path, CASES[:5], CANDIDATE, baseline=CPU)
    asked.clear()
    other = replace(CPU, config={**CPU.config, "session.use_env_allocators": "1"})
    assert remembered(run(path, CASES[:5], CANDIDATE, baseline=other)) == {False}
    assert asked["cpu"] == 5


def test_other_cases_are_asked_about(path: Path, asked: Counter[str]) -> None:
    run(path, CASES[:5], CANDIDATE, baseline=CPU)
    asked.clear()
    run(path, CASES[:8], CANDIDATE, baseline=CPU)
    assert asked["cpu"] == 3


FACTS = {"onnxruntime": "1.24.4", "os": "Linux"}


@pytest.mark.parametrize(
    "change",
    [
        {"command": ("/another/python",)}, {"arguments": ("onnxruntime", "--prelude", "x.py")},
        {"provider": "CUDAExecutionProvider"}, {"options": {"device_id": "1"}}, {"config": {}}, {"device": None},
        {"environment": {"A": "b"}},
    ],
    ids=str,
)  # fmt: skip
def test_whatever_changes_an_answer_changes_the_fingerprint(change: dict[str, Any]) -> None:
    before = run_history.fingerprint(CPU, FACTS)
    assert before is not None
    assert run_history.fingerprint(replace(CPU, **change), FACTS) not in (None, before)


@pytest.mark.parametrize("facts", [{**FACTS, "onnxruntime": "1.25.0"}, {**FACTS, "driver": "25.2"}, {"os": "Linux"}])
def test_another_fact_of_the_runtime_changes_the_fingerprint(facts: dict[str, str]) -> None:
    assert run_history.fingerprint(CPU, facts) != run_history.fingerprint(CPU, FACTS)


def test_another_processor_is_another_fact(tmp_path: Path) -> None:
    """A cache may travel: in a home on the network, or between the machines of a CI."""
    cpuinfo = tmp_path / "cpuinfo"
    processors = []
    for flags in ("fpu avx2 fma", "fpu avx2 fma avx512f amx_int8"):
        cpuinfo.write_text(f"processor\t: 0\nmodel name\t: A Processor\nflags\t\t: {flags}\n\nprocessor\t: 1\n")
        processors.append(machine.processor(cpuinfo))
    assert processors == ["A Processor, fma, avx2", "A Processor, fma, avx2, avx512f, amx_int8"]
    assert machine.processor(tmp_path / "none") == platform.processor()


@pytest.mark.parametrize(
    "change",
    [{"name": "a"}, {"pack": 1}, {"jobs": 3}, {"window": 1}, {"deadline_s": 1.0}, {"expectations": (
        Expectation("*", terms.CRASH, "it is a test"),)}],
    ids=str,
)  # fmt: skip
def test_what_changes_no_answer_does_not_change_the_fingerprint(change: dict[str, Any]) -> None:
    assert run_history.fingerprint(replace(CPU, **change), FACTS) == run_history.fingerprint(CPU, FACTS)


def test_model_feeds_and_truth_are_what_an_opinion_is_of() -> None:
    built = CASES[0].build()
    before = prepared_case.of(built).digest
    assert prepared_case.of(replace(built, case=CASES[1])).digest == before
    feeds = {name: array + 1 for name, array in built.feeds.items()}
    for other in (
        replace(built, feeds=feeds), replace(built, model=built.model + b"\x12\x01x"),
        replace(built, truth=CASES[1].build().truth),
    ):  # fmt: skip
        assert prepared_case.of(other).digest != before


def test_an_opinion_is_that_of_the_same_answers_alone(path: Path) -> None:
    with closing(Cache(path)) as kept:
        for facts in (FACTS, {**FACTS, "driver": "25.2"}):
            opinions = run_history.opinions(kept, CPU, facts)
            assert opinions is not None
            assert opinions.of(["Slice-13/float32"]) == {}
            row = to_row(Opinion("cpu", "pass", accuracy=Accuracy(2, 0.5, 0.75, (1, 1))), "bits")
            opinions.put("Slice-13/float32", b"digest", row)
            opinions.write()
            assert opinions.of(["Slice-13/float32"]) == {"Slice-13/float32": {b"digest": row}}


def falsely_expected(name: str) -> Case:
    """y = Identity(x) with a truth that is none: everybody who is right disagrees with it, bit by bit the same."""
    honest = identity(name)

    def build(case: Case) -> BuiltCase:
        built = honest.build()
        return replace(built, case=case, truth=Outputs((Output("y", built.feeds["x"] + 1),)))

    return replace(honest, builder=build)


def test_an_oracle_with_the_very_same_answer_is_found_among_remembered_answers(path: Path, asked: Counter[str]) -> None:
    for expected in (1, 0):
        asked.clear()
        found = run(path, [falsely_expected("a")], CANDIDATE, reference=REFERENCE)["aruntime"]
        assert (found.status, found.blame) == (terms.MISMATCH, terms.ORACLES_DISAGREE)
        assert "reference give" in found.reason
        assert found.oracles["reference"].startswith("disagrees: ")
        assert asked["reference"] == expected


def test_only_what_is_steady_is_remembered(path: Path, tmp_path: Path) -> None:
    """A crash, a timeout, and an answer that changes may be others the next time."""
    assert set(terms.STATUSES) - set(run_history.STEADY) == {
        terms.CRASH, terms.TIMEOUT, terms.FLAKY, terms.ORDER_DEPENDENT, terms.VARIANT_DEPENDENT, terms.USAGE_DEPENDENT,
        terms.SKIPPED,
    }  # fmt: skip
    cases = [identity(fault or "none", fault=fault) for fault in ("", "raise", "return_reshaped", "abort")]
    baseline = stand_in(tmp_path / "worker.py", "faulty")
    first, second = (run(path, cases, backend("right"), baseline=baseline) for _ in range(2))
    assert timeless(first) == timeless(second)
    baselines = {
        name: (r.baseline.status, r.baseline.remembered) for name, r in second.items() if r.baseline is not None
    }
    assert baselines == {
        "noneruntime": (terms.PASS, True),
        "raiseruntime": (terms.REFUSED, True),
        "return_reshapedruntime": (terms.MISMATCH, True),
        "abortruntime": (terms.CRASH, False),
    }


def test_an_answer_that_changes_is_not_remembered(path: Path, tmp_path: Path) -> None:
    baseline = stand_in(tmp_path / "worker.py", "never_the_same")
    for _ in range(2):
        found = run(path, identities(1), backend("right"), baseline=baseline)["number_0runtime"]
        assert found.baseline is not None
        assert (found.baseline.status, found.baseline.remembered) == (terms.FLAKY, False)


OPINION = Opinion(
    "cpu", terms.MISMATCH, "run", "y: it is wrong", assignment=(("CPUExecutionProvider", "Slice"),), create_s=0.25,
    run_s=0.5, attempts=2, log_tail="it said\nso", shared=32,
    differences=(
        Difference("y", "float32", (2, 3), "2 of 6", 2, 6, float("inf"), 1.5,
                   (Mismatch((0, 1), "1.0", "2.0", float("inf")), Mismatch((1, 1), "1", "2")), ((0, 9), (1, 0))),
    ),
)  # fmt: skip


@pytest.mark.parametrize("opinion", [OPINION, Opinion("cpu", terms.PASS), replace(OPINION, assignment=None)])
def test_an_opinion_loses_nothing_on_its_way(opinion: Opinion) -> None:
    assert from_row("cpu", to_row(opinion, "bits")) == (
        replace(opinion, remembered=True),
        "bits",
    )


def test_it_is_the_opinion_of_whoever_has_that_fingerprint() -> None:
    found, _ = from_row("my_cpu", to_row(OPINION, ""))
    assert found.target == "my_cpu"


@pytest.mark.parametrize(
    "row",
    [None, b"", b"garbage", (), to_row(OPINION, "")[:-1], ("pass",) * 12,
     (*to_row(OPINION, "")[:3], "{", *to_row(OPINION, "")[4:])],
)  # fmt: skip
def test_what_is_no_opinion_is_refused(row: Any) -> None:
    with pytest.raises(ValueError, match="not an opinion: "):
        from_row("cpu", row)


def test_a_row_that_is_no_opinion_asks_again(path: Path, asked: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(run_history, "to_row", lambda *_: b"garbage")
        first = run(path, CASES[:5], CANDIDATE, baseline=CPU)
    second, third = (run(path, CASES[:5], CANDIDATE, baseline=CPU) for _ in range(2))
    assert asked["cpu"] == 10
    assert timeless(first) == timeless(second) == timeless(third)
    assert (remembered(second), remembered(third)) == ({False}, {True})


CULPRITS = {identity(f"number_{number}").id for number in (3, 9)}


def in_packs(path: Path, function: str) -> tuple[dict[str, Record], int]:
    """12 cases on `packed_backends:FUNCTION`, called `packs`: case id -> record, and how many sessions of several
    cases failed."""
    taken: list[Record] = []
    target = replace(backend(function, module="packed_backends"), name="packs", pack=12)
    with closing(Cache(path)) as kept, CaseScheduler(Plan((), (target,)), taken.append, kept) as session:
        for case in identities(12):
            session.submit(case)
        while session.under_way:
            session.turn()
        incidents = len(list(session._pools.incidents()))
    return {found.case_id: found for found in taken}, incidents


CASE_IDS = [identity(name).id for name in ("a", "b", *(f"number_{number}" for number in range(12)))]


def last_statuses(path: Path, target: str) -> dict[str, str]:
    with closing(Cache(path)) as kept:
        named = replace(CPU, name=target)
        known = run_history.Statuses(kept, (named,))
        return {case_id: status for case_id in CASE_IDS if (status := known.of(named, case_id))}


@posix
def test_a_case_that_crashed_goes_alone_the_next_time_and_spoils_no_pack(path: Path) -> None:
    first, incidents = in_packs(path, "aborts_on_3_and_9")
    assert incidents >= 1
    assert {case_id for case_id, r in first.items() if r.status == terms.CRASH} == CULPRITS
    second, incidents = in_packs(path, "aborts_on_3_and_9")
    assert incidents == 0
    assert timeless(second) == timeless(first)
    sharing = {case_id: r.candidate.shared for case_id, r in second.items() if r.candidate.shared > 1}
    assert set(sharing.values()) == {10}
    assert second.keys() - sharing.keys() == CULPRITS


@pytest.mark.slow
def test_a_case_that_passes_again_is_forgotten_and_shares_again(path: Path) -> None:
    in_packs(path, "refuses_3_and_9")
    assert last_statuses(path, "packs") == dict.fromkeys(CULPRITS, terms.REFUSED)
    assert last_statuses(path, "another") == {}
    found, _ = in_packs(path, "right")
    assert {r.status for r in found.values()} == {terms.PASS}
    assert last_statuses(path, "packs") == {}
    found, _ = in_packs(path, "right")
    assert {r.candidate.shared for r in found.values()} == {12}


def test_statuses_of_cases_that_were_not_run_stay(path: Path) -> None:
    wrong = backend("always_wrong")
    for cases in ([identity("a")], [identity("b")], []):
        run(path, cases, wrong)
    assert last_statuses(path, wrong.name) == dict.fromkeys((identity("a").id, identity("b").id), terms.MISMATCH)


def test_statuses_that_cannot_be_read_are_none(path: Path) -> None:
    key = run_history.cache.key("statuses", CPU.name, "")
    for row in (b"garbage", pickle.dumps(7), pickle.dumps(Path("a"))):
        with closing(Cache(path)) as kept:
            kept.put({key: row})
        with closing(Cache(path)) as kept:
            assert kept.get([key]) == {key: row}
        assert last_statuses(path, CPU.name) == {}
