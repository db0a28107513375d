"""Shards: the same on every machine, disjoint, complete, balanced, and taken up again as they were."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from epcheck import reports
from epcheck.conformance.preparation import case_facts
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import CRASH, OK, PASS, TIMEOUT, UNPLACED
from epcheck.conformance.scheduling import shard
from epcheck.conformance.scheduling.shard import Shard, ShardError
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase, Case
from tests.command_line import call, refused
from tests.whole_suite import whole_suite

GROUPS = st.lists(st.integers(1, 70), max_size=8)
COUNTS = st.integers(1, 40)
SECONDS = st.one_of(st.none(), st.floats(0, 5))


def never_built(case: Case) -> BuiltCase:
    raise AssertionError(f"{case.id} is built")


def a_case(sample: str, dtype: str = "float32") -> Case:
    return Case("Identity", "", 16, dtype, sample, "runtime", never_built)


def recorded(sample: str, status: str, target: str = "dml", **changes: Any) -> Record:
    opinion = Opinion(target, status, **changes)
    return Record(case_facts.of_unbuilt(a_case(sample)), opinion, None, {}, status, "", OK, "it is a test", None)


def cases_in_groups(sizes: Sequence[int]) -> list[Case]:
    """For each size so many cases of one operator version and dtype."""
    return [a_case(f"sample_{n}", dtype=f"dtype_{group}") for group, size in enumerate(sizes) for n in range(size)]


def ids(cases: Sequence[Case]) -> list[str]:
    return [case.id for case in cases]


@pytest.mark.parametrize("text", ["0/16", "17/16", "a/b", "3", "3/", "/3", "-1/4", "1/0", "1/4/4", " 1/4", "1.0/4", ""])
def test_what_is_no_shard_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ShardError, match=r"is not valid; write for example 3/16") as error:
        Shard.parse(text)
    assert f"'{text}'" in str(error.value)


def test_a_shard_is_written_as_it_is_read() -> None:
    assert str(Shard.parse("3/16")) == "3/16"
    assert Shard.parse("3/16") == Shard(3, 16)


@pytest.mark.slow
@hypothesis.given(sizes=GROUPS, count=COUNTS, data=st.data())
def test_shards_are_disjoint_complete_and_in_the_order_of_the_suite(
    sizes: list[int], count: int, data: st.DataObject
) -> None:
    cases = cases_in_groups(sizes)
    seconds = {case.id: cost for case in cases if (cost := data.draw(SECONDS)) is not None}
    shards = shard.cut(cases, count, seconds)
    place = {case.id: position for position, case in enumerate(cases)}
    assert len(shards) == count
    assert sorted(place[case.id] for part in shards for case in part) == list(range(len(cases)))
    for part in shards:
        assert [place[case.id] for case in part] == sorted(place[case.id] for case in part)


@hypothesis.given(sizes=GROUPS, count=COUNTS)
def test_without_times_the_sizes_differ_by_one_at_most(sizes: list[int], count: int) -> None:
    lengths = {len(part) for part in shard.cut(cases_in_groups(sizes), count)}
    assert max(lengths) - min(lengths) <= 1


@hypothesis.given(sizes=GROUPS.filter(bool), count=COUNTS, seed=st.integers(0, 10**6))
def test_with_times_no_shard_costs_more_than_its_part_and_the_dearest_case(
    sizes: list[int], count: int, seed: int
) -> None:
    cases, draw = cases_in_groups(sizes), random.Random(seed)
    seconds = {case.id: draw.expovariate(100) for case in cases}
    loads = [sum(seconds[case.id] for case in part) for part in shard.cut(cases, count, seconds)]
    rounding = 2e-6 * len(cases)
    assert max(loads) <= sum(seconds.values()) / count + max(seconds.values()) + rounding


@hypothesis.given(sizes=GROUPS, count=COUNTS, seed=st.integers(0, 10**6))
def test_the_cut_depends_on_nothing_but_cases_number_and_times(sizes: list[int], count: int, seed: int) -> None:
    cases, draw = cases_in_groups(sizes), random.Random(seed)
    seconds = {case.id: draw.random() for case in cases}
    shuffled = dict(draw.sample(list(seconds.items()), len(seconds)))
    assert shard.cut(cases, count, seconds) == shard.cut(cases_in_groups(sizes), count, shuffled)


def test_the_cut_is_the_same_from_release_to_release() -> None:
    """Machines of one matrix may run for days; whoever changes this changes what `--shard` means."""
    cases = cases_in_groups([70, 5, 40])
    first, second, third = shard.cut(cases, 3)
    assert first == (*cases[0:33], *cases[70:75])
    assert second == (*cases[33:64], *cases[75:83])
    assert third == (*cases[64:70], *cases[83:115])
    assert shard.digest_of_cut((first, second, third)) == "4e53c67547338b82"


@pytest.mark.slow
def test_what_could_share_a_session_mostly_stays_together() -> None:
    """Operators, versions and dtypes: most are in one shard of 4, and each in 2.5 of 16 on average."""
    cases = whole_suite()
    every = kinds_of(cases)
    for count, share in ((4, 1.75), (16, 2.5)):
        assert sum(len(kinds_of(part)) for part in shard.cut(cases, count)) <= share * len(every)


def kinds_of(cases: Iterable[Case]) -> set[tuple[str, int, str]]:
    return {(case.operator, case.since_version, case.dtype) for case in cases}


def test_dear_neighbours_are_dealt_to_different_shards() -> None:
    cases = cases_in_groups([128] * 8)
    dear = set(ids(cases)[256:384])
    assert [len(dear & set(ids(part))) for part in shard.cut(cases, 4)] == [32, 32, 32, 32]


def test_what_is_not_known_costs_the_median() -> None:
    cases = cases_in_groups([4])
    seconds = dict(zip(ids(cases), (1.0, 1.0, 1.0), strict=False))
    assert [len(part) for part in shard.cut(cases, 2, seconds)] == [2, 2]


def test_more_shards_than_cases_leave_some_empty() -> None:
    assert [len(part) for part in shard.cut(cases_in_groups([2]), 4)] == [0, 1, 0, 1]
    assert shard.cut((), 3) == ((), (), ())


def test_the_recorded_seconds_of_a_case_are_those_of_all_candidates_and_attempts() -> None:
    quick = recorded("a", PASS, create_s=0.25, run_s=0.5)
    twice = recorded("a", PASS, target="other", create_s=1.0, attempts=2)
    hung, crashed = recorded("b", TIMEOUT, attempts=2), recorded("c", CRASH)
    declined = recorded("d", UNPLACED)
    assert shard.recorded_seconds([quick, twice, hung, crashed, declined]) == {
        quick.case_id: pytest.approx(0.75 + 2.0 + 2 * shard.OTHER_S),
        hung.case_id: pytest.approx(40 + shard.OTHER_S),
        crashed.case_id: pytest.approx(1 + shard.OTHER_S),
    }


CPU = ("run", "--target", "cpu", "--baseline", "none", "--no-reference", "--op", "Slice", "--limit", "60")


def only_run(root: Path) -> Path:
    (folder,) = root.iterdir()
    return folder


def test_a_run_of_a_shard_says_what_it_is_and_runs_nothing_else(tmp_path: Path) -> None:
    done = call(*CPU, "--shard", "2/4", "--root", str(tmp_path))
    assert done.code == 0
    assert "Shard 2/4 of the selection: 15 of 60 cases" in done.out
    run = reports.read_run(only_run(tmp_path))
    whole = list(suite.cases(["Slice"], limit=60))
    expected = ids(shard.cut(whole, 4)[1])
    assert sorted(item.case_id for item in reports.read_records(only_run(tmp_path))) == sorted(expected)
    assert (run.planned, run.selection["shard"]) == (15, "2/4")
    assert run.share is not None
    assert (run.share.cases, run.share.index, run.share.count) == (60, 2, 4)
    assert "This is shard 2 of 4" in (only_run(tmp_path) / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_shard_is_balanced_by_an_earlier_run(tmp_path: Path) -> None:
    assert call(*CPU, "--root", str(tmp_path / "earlier")).code == 0
    earlier = only_run(tmp_path / "earlier")
    assert call(*CPU, "--shard", "1/3", "--balance", str(earlier), "--root", str(tmp_path / "shard")).code == 0
    seconds = shard.recorded_seconds(reports.read_records(earlier))
    expected = shard.cut(list(suite.cases(["Slice"], limit=60)), 3, seconds)[0]
    found = [item.case_id for item in reports.read_records(only_run(tmp_path / "shard"))]
    assert sorted(found) == sorted(ids(expected))


def interrupted(folder: Path, keep: int) -> None:
    """Make the run what it would be after so many records."""
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(b"".join(lines[:keep]))
    reports.write_run(folder, replace(reports.read_run(folder), status="interrupted"))


@pytest.mark.slow
def test_a_shard_is_taken_up_again_as_it_was(tmp_path: Path) -> None:
    assert call(*CPU, "--shard", "2/4", "--root", str(tmp_path)).code == 0
    folder = only_run(tmp_path)
    before = [item.case_id for item in reports.read_records(folder)]
    interrupted(folder, keep=6)
    done = call("run", "--resume", str(folder))
    assert done.code == 0
    assert "Shard 2/4" in done.out
    assert sorted(item.case_id for item in reports.read_records(folder)) == sorted(before)
    assert reports.read_run(folder).status == "complete"


def test_a_shard_that_would_be_another_is_not_taken_up_again(tmp_path: Path) -> None:
    assert call(*CPU, "--shard", "2/4", "--root", str(tmp_path)).code == 0
    folder = only_run(tmp_path)
    interrupted(folder, keep=6)
    run = reports.read_run(folder)
    assert run.share is not None
    reports.write_run(folder, replace(run, share=replace(run.share, cut="another")))
    sentence = refused("run", "--resume", str(folder))
    assert sentence.endswith(
        "its shard 2/4 cannot be reproduced: the suite or the --balance run has changed; start a new run"
    )


@pytest.mark.slow
def test_an_expectation_is_stale_when_no_shard_matches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = list(suite.cases(["Slice"], limit=24))
    monkeypatch.setattr(suite, "cases", lambda *_: iter(few))
    known = tmp_path / "known.toml"
    known.write_text('[[expect]]\ncase = "Nothing-*"\nstatus = "crash"\nreason = "no such operator"\n')
    with known.open("a") as file:
        file.write('[[expect]]\ncase = "None-*"\nstatus = "crash"\nreason = "nor this"\nwhen = {os = "*"}\n')
        file.write('[[expect]]\ncase = "Never-*"\nstatus = "crash"\nreason = "nor this"\nwhen = {vendor = "0x10de"}\n')
    arguments = ("run", "-t", "cpu", "--baseline", "none", "--no-reference", "--strict", "--expect", str(known))
    for part in ("1/2", "2/2"):
        assert call(*arguments, "--shard", part, "--root", str(tmp_path / "runs")).code == 0
    assert all(reports.read_run(folder).stale == () for folder in (tmp_path / "runs").iterdir())
    merged = tmp_path / "merged"
    done = call("merge", str(tmp_path / "runs"), "--out", str(merged), "--strict")
    assert (done.code, "stale expectation cpu: Nothing-*" in done.out) == (1, True)
    stale = reports.read_run(merged).stale
    assert {"cpu: Nothing-*", "cpu: None-*, where os is *"} <= set(stale)
    assert not any("Never-*" in entry for entry in stale)
    assert call("merge", str(tmp_path / "runs"), "--out", str(tmp_path / "again")).code == 0


def verdicts(folder: Path) -> dict[str, tuple[str, str, str]]:
    return {item.case_id: (item.status, item.reading, item.blame) for item in reports.read_records(folder)}


@pytest.mark.slow
def test_merged_shards_say_what_one_run_says(tmp_path: Path) -> None:
    assert call(*CPU, "--root", str(tmp_path / "whole")).code == 0
    for part in ("2/3", "1/3"):
        assert call(*CPU, "--shard", part, "--root", str(tmp_path / "shards")).code == 0
    done = call("merge", str(tmp_path / "shards"), "--out", str(tmp_path / "incomplete"))
    assert (done.code, done.err) == (2, "epcheck: the merged run failed: shard 3/3 of cpu is missing\n")
    assert "Incomplete (40 of 60 cases): " in done.out
    assert call(*CPU, "--shard", "3/3", "--root", str(tmp_path / "shards")).code == 0
    done = call("merge", str(tmp_path / "shards"), "--out", str(tmp_path / "merged"))
    assert (done.code, done.err) == (0, "")
    assert verdicts(tmp_path / "merged") == verdicts(only_run(tmp_path / "whole"))


@pytest.mark.slow
def test_an_incomplete_merged_run_can_be_completed_here(tmp_path: Path) -> None:
    assert call(*CPU, "--shard", "2/3", "--root", str(tmp_path / "shards")).code == 0
    assert call("merge", str(tmp_path / "shards"), "--out", str(tmp_path / "merged")).code == 2
    assert call("run", "--resume", str(tmp_path / "merged")).code == 0
    assert len(verdicts(tmp_path / "merged")) == reports.read_run(tmp_path / "merged").planned == 60


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--shard", "17/16"), "shard '17/16' is not valid; write for example 3/16, from 1/16 to 16/16"),
        (("--balance", "x"), "--balance needs --shard, for example --shard 1/4"),
        (
            ("--shard", "1/2", "--balance", "x"),
            "x: is not a run folder (no run.json); name the folder that `epcheck run` printed",
        ),
    ],
)
def test_bad_input_ends_with_one_sentence(options: tuple[str, ...], sentence: str) -> None:
    assert refused(*CPU, *options) == sentence
