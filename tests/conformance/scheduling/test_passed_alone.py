"""Cases are packed on a target whose packs do not agree once they have passed alone there, and not before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling import run_history
from epcheck.conformance.scheduling.parity import Difference, Parity
from epcheck.conformance.scheduling.passed_alone import PassedAlone
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.pools import pack_parity
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import Target
from epcheck.generators import suite

OTHER = Target("other", (), (), provider="OtherExecutionProvider", pack=128)
FACTS = {"other": {"onnxruntime": "1.24.1", "interpreter": "/somewhere"}}
PASSED = Opinion("other", "pass")


def case(name: str) -> PreparedCase:
    return prepared_case.of(suite.case_by_id(name).build())


RELU, ABS = case("Relu-14/float32/ordinary[runtime]"), case("Abs-13/float32/matrix[runtime]")


def looked_after(cache: Cache, target: Target = OTHER, facts: Mapping[str, Mapping[str, str]] = FACTS) -> PassedAlone:
    found = PassedAlone(cache)
    found.look_after(target, facts)
    return found


def kept(cache: Cache, *opinions: Opinion) -> PassedAlone:
    """After a run in which Relu fared so."""
    before = looked_after(cache)
    for opinion in opinions:
        before.put(RELU, OTHER, opinion)
    before.write()
    return looked_after(cache)


def test_of_other_targets_every_case_may_be_packed(tmp_path: Path) -> None:
    with closing(Cache(tmp_path / "cache.sqlite")) as cache:
        assert PassedAlone(cache).may_be_packed(RELU, OTHER)
        assert not looked_after(cache).may_be_packed(RELU, OTHER)


def test_a_case_that_passed_alone_may_and_no_other(tmp_path: Path) -> None:
    with closing(Cache(tmp_path / "cache.sqlite")) as cache:
        after = kept(cache, PASSED)
        assert [after.may_be_packed(each, OTHER) for each in (RELU, ABS)] == [True, False]


@pytest.mark.parametrize("opinion", [
    Opinion("other", "unplaced"), Opinion("other", "mismatch"), Opinion("other", "pass", shared=8),
])  # fmt: skip
def test_what_did_not_pass_or_was_packed_does_not_count(tmp_path: Path, opinion: Opinion) -> None:
    with closing(Cache(tmp_path / "cache.sqlite")) as cache:
        assert not kept(cache, opinion).may_be_packed(RELU, OTHER)


def test_another_release_or_other_options_begin_anew(tmp_path: Path) -> None:
    with closing(Cache(tmp_path / "cache.sqlite")) as cache:
        kept(cache, PASSED)
        elsewhere = {"other": {**FACTS["other"], "interpreter": "/elsewhere"}}
        newer = {"other": {**FACTS["other"], "onnxruntime": "1.25.0"}}
        assert looked_after(cache, facts=elsewhere).may_be_packed(RELU, OTHER)
        assert not looked_after(cache, facts=newer).may_be_packed(RELU, OTHER)
        with_options = replace(OTHER, options={"device_type": "GPU"})
        assert not looked_after(cache, with_options).may_be_packed(RELU, with_options)


def verdicts(plan: Plan, cache: Cache) -> tuple[Sequence[tuple[str, str, str]], int]:
    """What came of each case, and how many cases shared a session at most."""
    records: list[Record] = []
    run_plan(plan, records.append, cache=cache)
    found = sorted((record.case_id, record.status, record.reading) for record in records)
    return found, max(record.candidate.shared for record in records)


def test_the_second_run_packs_what_passed_and_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real CPU provider, taken for one whose sample differs: Neg passes, Relu of int16 is declined."""
    monkeypatch.setattr(pack_parity, "PACKS_AGREE", ())
    differs = Parity(9, [Difference("Max-13/float32/one_input[runtime]", "unplaced", "pass")])
    monkeypatch.setattr(run_history, "pack_parity", lambda *_: differs)
    target = replace(resolve("cpu"), expectations=())
    cases = [*suite.cases(["Neg"], ["float32"], limit=12), *suite.cases(["Relu"], ["int16"], limit=3)]
    with closing(Cache(tmp_path / "cache.sqlite")) as cache:
        first, alone = verdicts(Plan(cases, (target,)), cache)
        second, together = verdicts(Plan(cases, (target,)), cache)
    assert {status for _, status, _ in first} == {"pass", "unplaced"}
    assert (first, alone) == (second, 1)
    assert together > 1
