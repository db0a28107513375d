"""Case ids in globs: as few as say the same, and none that says more."""

from __future__ import annotations

import random

import pytest

from epcheck.conformance.targets.case_globs import globs
from epcheck.generators.case_pattern import matches

IDS = [
    f"{operator}-{version}/{dtype}/{sample}[{variant}]"
    for operator in ("Slice", "com.microsoft::Slice")
    for version in (10, 13)
    for dtype in ("float32", "int8")
    for sample in ("rank_1", "rank_12", "start_1_step_2", "nan")
    for variant in ("runtime", "initializer")
]


def test_all_cases_of_an_operator_are_one_glob() -> None:
    wanted = [case_id for case_id in IDS if case_id.startswith("Slice-")]
    assert globs(wanted, IDS) == ("Slice-*/*/*[*]",)


def test_a_glob_is_never_wider_than_its_cases() -> None:
    wanted = [i for i in IDS if i.startswith("Slice-13/") and "/rank_" in i and i != "Slice-13/int8/rank_12[runtime]"]
    found = globs(wanted, IDS)
    assert found == (
        "Slice-13/*/rank_*[initializer]",
        "Slice-13/float32/rank_*[*]",
        "Slice-13/int8/rank_1[runtime]*",  # and not that of com.microsoft
    )
    assert {i for i in IDS if any(matches(i, glob) for glob in found)} == set(wanted)


def test_a_sample_that_only_looks_alike_keeps_a_glob_from_being_written() -> None:
    wanted = ["Slice-13/int8/start_1_step_2[runtime]", "Slice-13/int8/start_3_step_4[runtime]"]
    assert globs(wanted, []) == ("Slice-13/int8/start_*_step_*[runtime]",)
    others = ["Slice-13/int8/start_end_step_4[runtime]"]  # `start_*_step_*` matches it, though it has another stem
    assert globs(wanted, others) == tuple(wanted)


def test_what_fits_no_glob_stands_for_itself() -> None:
    assert globs(["Slice-13/int8/nan[runtime]"], ["Slice-13/int8/rank_1[runtime]"]) == ("Slice-13/int8/nan[runtime]",)
    assert globs(["no case id", "a*b", "c?d"], []) == ("a*b", "c?d", "no case id")
    assert globs([], IDS) == ()


@pytest.mark.parametrize("seed", range(8))
def test_globs_match_exactly_what_is_wanted(seed: int) -> None:
    draw = random.Random(seed)
    ids = [case_id for case_id in IDS if case_id.startswith("Slice-")]
    wanted = draw.sample(ids, draw.randrange(1, len(ids)))
    found = globs(wanted, ids)
    assert {i for i in ids if any(matches(i, glob) for glob in found)} == set(wanted)
    assert len(found) <= len(wanted)
