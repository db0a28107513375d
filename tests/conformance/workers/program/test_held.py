"""The session that a worker keeps: of which providers, and until it no longer works."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from epcheck.conformance.targets.target import CPU, DML
from epcheck.conformance.workers.program.backends.canary import MODEL
from epcheck.conformance.workers.program.backends.held import HeldSession
from epcheck.conformance.workers.program.backends.onnxruntime import OnnxRuntimeBackend


class Broken:
    """A session whose device is gone: it raises, or answers with something else."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def run(self, _names: None, _feeds: dict[str, Any]) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("provider", [CPU, DML])
def test_of_cpu_and_directml_no_session_is_kept(provider: str) -> None:
    held = HeldSession()
    held.hold(provider, object())
    held.check()
    assert held.session is None


def test_a_session_that_works_is_kept_after_others_failed() -> None:
    held = HeldSession()
    session = onnxruntime.InferenceSession(MODEL, providers=[CPU])
    held.hold("OtherExecutionProvider", session)
    held.check()
    assert held.session is session


@pytest.mark.parametrize(
    "answer", [RuntimeError("the device is lost"), [np.zeros((2, 2), np.float32)], []], ids=["raises", "wrong", "none"]
)
def test_one_that_no_longer_works_is_let_go(answer: object) -> None:
    held = HeldSession()
    held.hold("OtherExecutionProvider", Broken(answer))
    held.check()
    assert held.session is None


def test_a_session_that_fails_has_the_kept_one_checked() -> None:
    backend = OnnxRuntimeBackend()
    backend.held.hold("OtherExecutionProvider", Broken(RuntimeError("the device is lost")))
    request = {"providers": [[CPU, {}]], "config": {}, "device": None}
    answer, _ = backend.run(request, b"no model", {})
    assert answer["stage"] == "create"
    assert backend.held.session is None
