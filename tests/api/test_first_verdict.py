"""A run of the whole suite begins with a few cases of everything, and says what they come to as soon as it is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from epcheck import api
from epcheck.api.progress import SILENT
from epcheck.api.runs.first_verdict import FirstVerdict, thin_first
from epcheck.api.suite import run as run_module
from epcheck.conformance.records.record import Record, encode
from epcheck.conformance.scheduling.plan import AWAITED
from epcheck.generators import suite
from tests.reports.stored_records import a_run, a_slice, a_wrong_slice


class Sentences:
    """What a run says, and the readings of its records, in their order."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.installing, self.working = SILENT.installing, SILENT.working

    def say(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def recording(self, planned: int, done: int) -> AbstractContextManager[Callable[[str], None]]:  # noqa: ARG002
        return nullcontext(self.sentences.append)

    def report_failure(self, record: Record) -> None:
        pass


def test_the_thin_cases_come_first_and_all_in_their_order() -> None:
    every = list(suite.cases(["Slice"]))
    ordered, thin = thin_first(every)
    assert thin == {case.id for case in suite.cases(["Slice"], thin=True)}
    expected = [case.id for case in every if case.id in thin]
    assert [case.id for case in ordered[: len(expected)]] == expected
    rest = [case.id for case in every if case.id not in thin]
    assert [case.id for case in ordered[len(expected) :]] == rest


def test_the_verdict_comes_once_all_thin_cases_of_all_targets_are_there() -> None:
    now = iter([100.0, 174.0])
    sentences = Sentences()
    run = a_run(802, candidates=("dml", "cpu"))
    on_cpu = replace(a_slice(), candidate=replace(a_slice().candidate, target="cpu"))
    thin = frozenset({a_slice().case_id})
    verdict = FirstVerdict(run, thin, sentences, lambda: next(now))
    for record in (a_wrong_slice(), a_slice(reading="failure", status="mismatch")):
        verdict.take(encode(record))
    assert sentences.sentences == []
    verdict.take(encode(on_cpu))
    verdict.take(encode(on_cpu))
    assert sentences.sentences == [
        "First verdict after 74 s, from a few cases of each operator version and dtype:",
        "  dml: 1 conformance failure, 0 of 1 cases pass.",
        "  cpu: no conformance failure, 1 of 1 cases pass.",
        "The other 799 of 802 cases take about 328 min; Ctrl-C ends the run and keeps what is recorded, and epcheck "
        "run --resume latest goes on.",
    ]


def test_the_verdict_does_not_wait_for_the_last_tenth_of_the_cases() -> None:
    now = iter([0.0, 10.0])
    sentences = Sentences()
    thin = [
        replace(a_slice(), case=replace(a_slice().case, case_id=f"Slice-13/float32/{n}[runtime]")) for n in range(200)
    ]
    verdict = FirstVerdict(a_run(398), frozenset(each.case_id for each in thin), sentences, lambda: next(now))
    for each in thin[:179]:
        verdict.take(encode(each))
    assert sentences.sentences == []
    for each in thin[179:]:
        verdict.take(encode(each))
    assert sentences.sentences[0].startswith("First verdict after 10 s")
    assert sentences.sentences[1] == "  dml: no conformance failure, 180 of 180 cases pass."
    assert sentences.sentences[2].startswith("The other 218 of 398 cases take about 12 s")


@pytest.mark.parametrize(("options", "says"), [({}, True), ({"whole": True}, False), ({"thin": True}, False)])
def test_a_run_of_the_whole_suite_says_it_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, bool], says: bool
) -> None:
    everything = suite.cases  # in place of the suite two operators, of which the whole is not much
    monkeypatch.setattr(
        suite, "cases", lambda operators=(), *rest, **more: everything(operators or ["Relu", "Sign"], *rest, **more)
    )
    sentences = Sentences()
    chosen = api.RunOptions(("cpu",), baseline="none", reference=False, root=tmp_path, **options)
    result = run_module.run(chosen, progress=sentences)
    assert result.complete
    thin = len(list(suite.cases(thin=True)))
    assert result.summary.recorded == (thin if "thin" in options else len(list(suite.cases())))
    first = [at for at, sentence in enumerate(sentences.sentences) if sentence.startswith("First verdict after ")]
    assert bool(first) == says
    if says:
        assert math.ceil(thin * AWAITED) <= first[0] < result.summary.recorded


def test_a_part_of_the_suite_is_run_in_its_order(tmp_path: Path) -> None:
    sentences = Sentences()
    chosen = api.RunOptions(("cpu",), baseline="none", reference=False, operators=("Sign",), root=tmp_path)
    run_module.run(chosen, progress=sentences)
    assert not [sentence for sentence in sentences.sentences if "First verdict" in sentence]
