"""The rules of a provider's contract, as workers observe them and as they are judged."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

from epcheck.conformance.judging import contract
from epcheck.conformance.judging.contract import observe_contract
from epcheck.conformance.records.contract import BROKEN, HOLDS, NOT_ASKED, REMARK, UNSEEN, Device
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import TargetError
from epcheck.conformance.workers.client import WorkerLost
from epcheck.conformance.workers.program.backends import contract as program

ANSWER = contract._Answer


def test_the_cpu_provider_keeps_its_contract() -> None:
    found = observe_contract(resolve("cpu", {}))
    states = {rule.name: rule.state for rule in found.rules}
    assert states == {
        "session": HOLDS, "devices": HOLDS, "version": NOT_ASKED, "api": NOT_ASKED, "options": REMARK,
        "errors Add": HOLDS, "errors MatMul": HOLDS, "errors Concat": HOLDS, "errors Reshape": HOLDS,
        "registration": NOT_ASKED, "stdout": HOLDS,
        "files": HOLDS if found.facts["jail"] != "none" else UNSEEN,
        "network": HOLDS if found.facts["jail"] != "none" else UNSEEN,
    }  # fmt: skip
    (binding,) = (each for each in found.libraries if each.name.startswith("onnxruntime_pybind11_state"))
    folder = Path(onnxruntime.__file__).parent / "capi"
    assert program.hash_file(folder / binding.name) == {"size": binding.size, "sha256": binding.sha256}
    assert found.facts["onnxruntime"] == onnxruntime.__version__


def test_a_callable_has_no_contract() -> None:
    with pytest.raises(TargetError, match="target 'reference' has no execution provider"):
        observe_contract(resolve("reference", {}))


def test_what_a_library_prints_is_captured(capfd: pytest.CaptureFixture[str]) -> None:
    with program.capture_stdout() as written:
        os.write(1, b"hello from a library\n")
    os.write(1, b"after")
    assert written == [b"hello from a library\n"]
    assert capfd.readouterr().out == "after"


@pytest.mark.parametrize(
    ("answer", "jail", "states"),
    [
        (ANSWER("done", sockets=0), "Landlock 7, seccomp", (HOLDS, HOLDS, HOLDS)),
        (ANSWER("done", sockets=0), "none", (HOLDS, UNSEEN, UNSEEN)),
        (ANSWER("done", stdout="hi", stdout_bytes=2, sockets=0), "Landlock 7", (BROKEN, HOLDS, HOLDS)),
        (ANSWER("done", files=["/tmp/x.log"], sockets=2), "Landlock 7", (HOLDS, REMARK, REMARK)),
        (ANSWER("done", sockets=None), "Landlock 7", (HOLDS, HOLDS, UNSEEN)),
    ],
)
def test_stdout_files_and_network(answer: Any, jail: str, states: tuple[str, ...]) -> None:
    rules = list(contract._judge_process(answer, jail))
    assert [rule.name for rule in rules] == ["stdout", "files", "network"]
    assert tuple(rule.state for rule in rules) == states


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (None, NOT_ASKED, "the runtime's own"),
        (ANSWER("done", offered=[1, 0, 1], same=True), HOLDS, "1 registered, 0 unregistered, 1 registered again"),
        (ANSWER("done", offered=[1, 0, 1], same=False), BROKEN, "the second session gives other bits"),
        (ANSWER("done", offered=[1, 1, 1], same=True), BROKEN, "1 unregistered"),
        (ANSWER("done", offered=[2, 0, 1], same=True), BROKEN, "1 registered again"),
        (ANSWER("run", "Fail", "it is still in use"), BROKEN, "Fail: it is still in use"),
        (
            WorkerLost("killed by SIGSEGV", "crashed", "", "", overtaxed=False),
            BROKEN,
            "the process ends: killed by SIGSEGV",
        ),
    ],
)
def test_a_library_is_registered_again(answer: Any, state: str, words: str) -> None:
    rule = contract._judge_registration(answer)
    assert rule.state == state
    assert words in rule.found


@pytest.mark.parametrize(
    ("asked", "runtime", "state"),
    [(29, "1.30.0", HOLDS), (30, "1.30.0", HOLDS), (31, "1.30.0", BROKEN), (None, "1.30.0", UNSEEN)],
)
def test_the_version_of_the_api_is_one_of_the_runtime(asked: int | None, runtime: str, state: str) -> None:
    target = replace(resolve("cpu", {}), is_plugin=True)
    assert contract._judge_version(target, asked, {"onnxruntime": runtime}).state == state


@pytest.mark.parametrize(
    ("devices", "states"),
    [
        ([Device("EP", "Me", "cpu", {"version": "1.2.3-rc1"})], [HOLDS, HOLDS, HOLDS]),
        ([Device("EP", " ", "cpu", {"version": "1.2"})], [HOLDS, BROKEN, REMARK]),
        ([Device("EP", "Me", "cpu")], [HOLDS, HOLDS, REMARK]),
        ([], [HOLDS, BROKEN, REMARK]),
    ],
)
def test_devices_have_a_vendor_and_a_version(devices: list[Device], states: list[str]) -> None:
    target = replace(resolve("cpu", {}), is_plugin=True)
    assert [rule.state for rule in contract._judge_description(target, ANSWER("done", devices=devices))] == states


def test_a_message_is_shown_without_what_surrounds_it() -> None:
    message = (
        "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Concat node. Name:'concat' "
        "Status Message: /onnxruntime_src/onnxruntime/core/concatbase.h:135 Axis 1 has  mismatched\ndimensions"
    )
    assert contract._shorten(message) == "concatbase.h:135 Axis 1 has mismatched dimensions"
    assert contract._shorten("x" * 300) == "x" * 199 + "…"
