"""How many workers pay, by what was measured."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from epcheck.conformance.scheduling.pools import worker_count
from epcheck.conformance.targets.target import MEBIBYTE
from tests.conformance.small_cases import backend

H200 = {1: 374.0, 2: 492.0, 4: 457.0}
LLVMPIPE = {"adapter": "llvmpipe (LLVM 19.1.7, 256 bits)", "driver_version": "Mesa 25.0.7"}
NVIDIA = {"adapter": "NVIDIA H200", "vendor_id": "0x10de", "driver_version": "580.95"}


@pytest.mark.parametrize(
    ("rates", "best"),
    [
        ({}, 1),
        ({1: 374.0}, 1),
        (H200, 2),
        ({1: 100.0, 2: 102.0}, 1),
        ({1: 100.0, 2: 103.0 + 1e-9}, 2),
        ({1: 100.0, 2: 190.0, 4: 300.0, 8: 305.0}, 4),
        ({1: 0.0}, 1),
        ({1: 100.0, 2: 0.0}, 1),
    ],
)
def test_the_best_number_is_the_last_that_gained(rates: worker_count.Rates, best: int) -> None:
    assert worker_count.best(rates) == best


@pytest.mark.parametrize(
    ("rates", "at_most", "following"),
    [
        ({}, 16, 1),
        ({1: 374.0}, 16, 2),
        ({1: 374.0, 2: 492.0}, 16, 4),
        (H200, 16, None),
        ({1: 374.0, 2: 492.0}, 3, None),
        ({1: 374.0}, 1, None),
        ({1: 0.0}, 16, None),
    ],
)
def test_numbers_are_doubled_until_that_does_not_pay(
    rates: worker_count.Rates, at_most: int, following: int | None
) -> None:
    assert worker_count.following(rates, at_most) == following


@pytest.mark.parametrize(
    ("answers", "rate"),
    [
        ([], 0.0),
        ([()], 0.0),
        ([(5.0,)], 0.0),
        ([(5.0, 5.5, 6.0)], 2.0),
        ([(5.0, 5.5, 6.0), (5.25, 5.5)], 6.0),
        ([(5.0, 5.0)], 0.0),
    ],
)
def test_the_rate_is_that_of_all_workers_between_their_first_and_their_last_answer(
    answers: list[tuple[float, ...]], rate: float
) -> None:
    assert worker_count.rate(answers) == rate


@pytest.mark.parametrize(
    ("adapter", "software"),
    [
        (LLVMPIPE["adapter"], True),
        ("SwiftShader Device (LLVM 10.0.0)", True),
        ("Microsoft Basic Render Driver", True),
        ("NVIDIA H200", False),
        ("", False),
    ],
)
def test_software_adapters_are_known_by_name(adapter: str, software: bool) -> None:
    assert worker_count.is_software({"adapter": adapter}) == software


@pytest.mark.parametrize(
    ("cores", "free_mib", "most"), [(16, 1 << 20, 16), (16, 6000, 2), (16, 100, 1), (1, 1 << 20, 1)]
)
def test_cores_and_free_memory_bound_the_number(
    cores: int, free_mib: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_count.os, "cpu_count", lambda: cores)
    memory = SimpleNamespace(available=free_mib * MEBIBYTE)
    monkeypatch.setattr(worker_count.psutil, "virtual_memory", lambda: memory)
    assert worker_count.most(backend("right", memory_bytes=4096 * MEBIBYTE)) == most


def test_measurements_belong_to_adapter_driver_and_cores_and_not_to_an_installation() -> None:
    found = worker_count.describe_machine({**NVIDIA, "interpreter": "/usr/bin/python3"})
    assert found.pop("cores").isdecimal()
    assert found == NVIDIA


def test_the_sentence_names_number_adapter_and_what_was_measured() -> None:
    dml = replace(backend("right"), name="dml")
    assert worker_count.in_words(dml, NVIDIA, 2, {1: 11.69, 2: 15.4, 4: 14.3}) == (
        "dml: 2 workers (measured on NVIDIA H200: 11.7, 15.4, 14.3 sessions/s with 1, 2, 4)"
    )
    assert worker_count.in_words(dml, {}, 1, {1: 100.0}) == "dml: 1 worker (measured: 100 sessions/s with 1)"
