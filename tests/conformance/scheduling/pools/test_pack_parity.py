"""Whether cases end in a pack as they do alone: the sample, what is said of it, and what is kept."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling import run_history
from epcheck.conformance.scheduling.parity import Difference, Parity
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.pools import pack_parity, pools
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import CPU, DML, Target
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.generators import suite

OTHER = Target("other", (), (), provider="OtherExecutionProvider", pack=128)
FACTS = {"onnxruntime": "1.24.1", "interpreter": "/somewhere"}
MAX = Difference("Max-13/float32/one_input[runtime]", "unplaced", "pass")
WRONG = Difference("Abs-13/float32/matrix[runtime]", "pass", "mismatch")


def test_of_which_providers_it_is_known() -> None:
    assert pack_parity.is_known(Target("cpu", (), (), provider=CPU))
    assert pack_parity.is_known(Target("dml", (), (), provider=DML))
    assert pack_parity.is_known(Target("a callable", (), ()))
    assert not pack_parity.is_known(OTHER)
    assert not pack_parity.is_known(replace(OTHER, provider=DML, is_plugin=True))


def test_what_is_said() -> None:
    assert pack_parity.in_words(OTHER, Parity(172, [])) == ""
    assert pack_parity.in_words(OTHER, Parity(172, [WRONG, MAX])) == (
        "other: each case runs in a separate session until it passes in one, because 2 of 172 cases of a sample end "
        "otherwise in a pack than alone; 1 of these pass only in a pack, which is a finding, for example "
        "Max-13/float32/one_input[runtime]: unplaced alone, pass in a pack"
    )
    assert "please report this" not in pack_parity.in_words(OTHER, Parity(172, [WRONG]))


def test_it_is_kept_for_the_provider_its_options_and_its_release(tmp_path: Path) -> None:
    found = Parity(172, [MAX])
    with closing(Cache(tmp_path / "cache.sqlite")) as cache:
        assert run_history.pack_parity(cache, OTHER, FACTS) is None
        run_history.keep_pack_parity(cache, OTHER, FACTS, found)
        assert run_history.pack_parity(cache, OTHER, FACTS) == found
        assert run_history.pack_parity(cache, replace(OTHER, name="same"), {**FACTS, "interpreter": "/x"}) == found
        assert run_history.pack_parity(cache, OTHER, {**FACTS, "onnxruntime": "1.25.0"}) is None
        assert run_history.pack_parity(cache, replace(OTHER, options={"a": "b"}), FACTS) is None


@pytest.mark.slow
def test_the_cpu_provider_agrees_and_a_sample_that_is_told_otherwise_does_not() -> None:
    target, cases = resolve("cpu"), pack_parity.sample()
    assert len({case.shell for case in cases}) == 1
    assert len({case.case.operator for case in cases}) > 50
    with closing(IdleWorkers()) as idle:
        assert pack_parity.measure(target, cases, idle) == Parity(len(cases), [])


def shared(plan: Plan, cache: Cache) -> tuple[list[int], tuple[str, ...]]:
    """How many cases shared the session of each, and the run's notes about sessions."""
    records: list[Record] = []
    notes = run_plan(plan, records.append, cache=cache)
    about_sessions = tuple(note for note in notes if "the claim table" not in note)  # which another release lacks
    return [record.candidate.shared for record in records], about_sessions


@pytest.mark.parametrize(
    ("known", "packs", "noted"), [(None, False, False), (Parity(9, []), True, False), (Parity(9, [MAX]), False, True)]
)
def test_cases_share_sessions_only_where_they_are_known_to_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: Parity | None, packs: bool, noted: bool
) -> None:
    """The real CPU provider, taken for one of which nothing is known."""
    monkeypatch.setattr(pack_parity, "PACKS_AGREE", ())
    target = replace(resolve("cpu"), expectations=())
    plan = Plan(tuple(suite.cases(["Neg"], ["float32"], limit=12)), (target,))
    with closing(Cache(tmp_path / "cache.sqlite")) as cache:
        monkeypatch.setattr(run_history, "pack_parity", lambda *_: known)
        sizes, notes = shared(plan, cache)
    assert (max(sizes) > 1) == packs
    assert bool(notes) == noted
    assert all("each case runs in a separate session" in note for note in notes)
    assert len(sizes) < pools.WORTH_COMPARING
