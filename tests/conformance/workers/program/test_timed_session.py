"""What a worker says of a session that it times."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest

from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.workers.program.backends.timed_session import SAMPLED, TimedSession, sample_values
from epcheck.conformance.workers.program.backends.timing import answer_block
from tests.conformance.small_cases import identity


def session_of(*memories: str) -> Any:
    """A session whose first input and whose outputs lie in these memories."""
    infos = [SimpleNamespace(name=name) for name in memories]
    return SimpleNamespace(
        get_outputs=list, get_input_memory_infos=lambda: infos[:1], get_output_memory_infos=lambda: infos[1:]
    )


@pytest.mark.parametrize(
    ("memories", "copies"),
    [(("Cpu", "Cpu"), False), (("Cpu", "WebGPU_Buf"), True), (("WebGPU_Buf", "Cpu"), True), ((), False)],
)
def test_each_run_copies_where_a_memory_is_not_bound(memories: tuple[str, ...], copies: bool) -> None:
    assert TimedSession(session_of(*memories), "cpu", {}).always_copies is copies


def test_nothing_is_copied_on_the_cpu() -> None:
    prepared = prepared_case.of(identity("a", 7).build())
    session = onnxruntime.InferenceSession(prepared.model, providers=["CPUExecutionProvider"])
    timed = TimedSession(session, "cpu", {})
    assert (timed.always_copies, timed.copies) == (False, None)


def test_every_nth_element_of_large_values_comes_back() -> None:
    small, large = np.zeros((2, 3)), np.arange(2 * SAMPLED + 2).reshape(2, -1)
    found = sample_values({"small": small, "large": large})
    assert found["small"] is small
    assert found["large"].tolist() == list(range(0, 2 * SAMPLED + 2, 3))


@pytest.mark.parametrize(("kept", "copied"), [(False, 5), (True, 0)])
def test_runs_with_copies_are_timed_in_a_new_session(kept: bool, copied: int) -> None:
    ran: list[str] = []
    request = {"runs": 21, "seconds": 0.0, "kept": kept}
    timing = answer_block(request, lambda: ran.append("run") or _wait(), lambda: ran.append("copied"))
    assert [len(timing[name]) for name in ("runs_ns", "copied_ns")] == [21, copied]
    assert ran.count("run") == 21 + 5
    assert ran.count("copied") == (copied + 1 if copied else 0)  # one warms up


def _wait() -> None:
    sum(range(10_000))
