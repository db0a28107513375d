"""One run in which two cases in three bring their worker down: every culprit is named, everything else is judged."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from epcheck.conformance.records import terms
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling.case_scheduler import CaseScheduler
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.targets.target import MEBIBYTE
from tests.conformance.faulty_backends import FAULTS
from tests.conformance.small_cases import backend, identities, identity, own_workers, processes_with, records_of

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the faults are made with POSIX signals and pipes"),
    pytest.mark.slow,
]

DEADLINE_S = 3.0

CRASHES = {
    "abort": "the worker process ended: killed by SIGABRT",
    "segfault": "the worker process ended: killed by SIGSEGV",
    "exit": "the worker process ended: exit code 7",
    "system_exit": "the worker process ended: exit code 3",
    "abort_with_a_child": "the worker process ended: killed by SIGABRT",
    "eat_memory": "MiB of memory; the limit is 400 MiB",
    "close_stdout": "it closed its stdout and went on",
    "half_a_frame": "the worker process ended: exit code 0",
    "rubbish": "its worker wrote 16 bytes that are no frame: b'Segmentation fau' to stdout",
    "huge_header": "its worker wrote 16 bytes that are no frame",
    "huge_body": "its worker wrote 16 bytes that are no frame",
    "header_no_json": "its worker wrote 50 bytes that are no frame: b'{{{{",
    "header_deeply_nested": "its worker wrote 200000 bytes that are no frame: b'[[[[",
    "header_no_object": "its worker wrote 6 bytes that are no frame: b'[1, 2]'",
    "wrong_id": "its worker sent an unexpected response: 'another case'",
    "no_id": "its worker sent an unexpected response: 'None'",
    "second_handshake": "its worker sent a malformed handshake",
    "lose_the_device": "the device was lost (removed: unplugged, disabled, its driver updated, or reset",
    "stderr_of_no_encoding": "the worker process ended: killed by SIGABRT",
    "stderr_without_a_newline": "the worker process ended: killed by SIGABRT",
}
TIMEOUTS = dict.fromkeys(("hang", "hang_with_a_child"), "no response within the deadline of 3 s")
REFUSALS = {
    "raise": "bad [red]node[/red] \x00<script>",
    "raise_without_words": "MemoryError",
    "raise_a_book": "... (20000000 characters)",
    "raise_a_surrogate": "lone \udc80 half",
    "return_none": "'NoneType' object is not iterable",
    "return_text": "'y' has the dtype <U1, which is no tensor of numbers",
    "return_objects": "'y' has the dtype object, which is no tensor of numbers",
    "return_ragged": "inhomogeneous",
    "return_a_date": "'y' has the dtype datetime64[D], which is no tensor of numbers",
}
MISMATCHES = {
    "return_nothing": "y: the output is missing",
    "return_too_few": "y: the output is missing",
    "return_wider": "y: the dtype is float64, must be float32",
    "return_reshaped": "y: the shape is [1, 2], must be [2]",
    "return_more_than_asked": "unknown outputs: z",
}
HARMLESS = (
    "return_big_endian", "return_strided", "return_a_sequence", "print", "read_stdin",
)  # fmt: skip
EXPECTED = {
    **{name: (terms.CRASH, words) for name, words in CRASHES.items()},
    **{name: (terms.TIMEOUT, words) for name, words in TIMEOUTS.items()},
    **{name: (terms.REFUSED, words) for name, words in REFUSALS.items()},
    **{name: (terms.MISMATCH, words) for name, words in MISMATCHES.items()},
    **dict.fromkeys(HARMLESS, (terms.PASS, "")),
}


@pytest.fixture(scope="module")
def marker(tmp_path_factory: pytest.TempPathFactory) -> str:
    """In the command line of every worker of the run below, and of no other process."""
    return str(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def records(marker: str) -> Mapping[str, Record]:
    """The run: every fault, with a good case before and after it."""
    faults = [identity(name, number, fault=name) for number, name in enumerate(FAULTS)]
    cases = [case for pair in zip(identities(len(faults)), faults, strict=True) for case in pair]
    target = backend("faulty", deadline_s=DEADLINE_S, memory_bytes=400 * MEBIBYTE)
    return records_of(cases, replace(target, arguments=(*target.arguments, "--path", marker)))


def test_every_fault_is_expected_here() -> None:
    assert EXPECTED.keys() == FAULTS.keys()


@pytest.mark.parametrize("fault", EXPECTED)
def test_the_culprit_is_named_with_what_it_did(records: Mapping[str, Record], fault: str) -> None:
    status, words = EXPECTED[fault]
    found = records[fault]
    assert (found.status, words in found.candidate.message) == (status, True), found.candidate.message
    assert found.blame == (terms.NOBODY if status == terms.PASS else terms.CANDIDATE)
    assert found.reading == (terms.OK if status == terms.PASS else terms.FAILURE)


@pytest.mark.parametrize("fault", [name for name, (status, _) in EXPECTED.items() if status != terms.PASS])
def test_a_fault_is_confirmed_before_it_is_reported(records: Mapping[str, Record], fault: str) -> None:
    assert records[fault].candidate.attempts == 2


def test_every_other_case_is_judged(records: Mapping[str, Record]) -> None:
    others = {name: found.status for name, found in records.items() if name not in FAULTS}
    assert others == {f"number_{number}": terms.PASS for number in range(len(FAULTS))}


def test_what_the_worker_said_last_is_kept(records: Mapping[str, Record]) -> None:
    assert records["stderr_of_no_encoding"].candidate.log_tail.endswith("driver \ufffd\ufffd lost the device")


def test_a_line_that_does_not_end_is_cut(records: Mapping[str, Record]) -> None:
    tail = records["stderr_without_a_newline"].candidate.log_tail
    assert len(tail) < 20_000
    assert tail.endswith("x" * 500)


def test_a_book_of_a_message_is_cut(records: Mapping[str, Record]) -> None:
    assert len(records["raise_a_book"].candidate.message) < 5_000


def test_no_process_is_left(records: Mapping[str, Record], marker: str) -> None:  # noqa: ARG001
    time.sleep(0.2)
    assert processes_with(marker) == []
    assert own_workers() == []


def test_a_refusal_that_must_be_is_not_excused_by_a_crash() -> None:
    case = identity("must_refuse", fault="abort", must_refuse=True)
    assert records_of([case], backend("faulty"))["must_refuse"].status == terms.CRASH


def test_a_clean_error_is_the_refusal_that_must_be() -> None:
    case = identity("must_refuse", fault="raise", must_refuse=True)
    assert records_of([case], backend("faulty"))["must_refuse"].status == terms.PASS


def test_a_worker_killed_from_outside_costs_no_case_its_verdict_and_is_noted(tmp_path: Path) -> None:
    target = backend("slow")
    target = replace(target, arguments=(*target.arguments, "--path", str(tmp_path)), window=4)
    taken: list[Record] = []
    killed = 0
    with CaseScheduler(Plan((), (target,)), taken.append) as session:
        for case in identities(30):
            session.submit(case)
        while session.under_way:
            session.turn()
            if len(taken) == 10 and not killed:
                (running,) = own_workers()
                killed = running.pid
                running.kill()
        notes = list(session.notes())
    assert {found.case_id for found in taken} == {case.id for case in identities(30)}
    assert [found.status for found in taken] == [terms.PASS] * 30
    (repeated,) = (found for found in taken if found.candidate.attempts > 1)
    assert repeated.candidate.attempts == 5
    (note,) = notes
    assert f"a worker ended while it ran {repeated.case_id} (the worker process ended: killed by SIGKILL)" in note
    assert note.endswith("other runs of it say: pass")
