"""The rules that a provider has to keep as a part of a process, observed in jailed workers of their own."""

from __future__ import annotations

import contextlib
import queue
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
import onnx
from onnx import TensorProto, helper

from epcheck.conformance import lab
from epcheck.conformance.records.contract import (
    BROKEN,
    HOLDS,
    NOT_ASKED,
    REMARK,
    UNSEEN,
    Contract,
    Device,
    Library,
    Rule,
)
from epcheck.conformance.targets.target import Target, TargetError
from epcheck.conformance.workers.client import TargetDown, WorkerClient, WorkerLost
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import FrameReceived
from epcheck.conformance.workers.program import protocol
from epcheck.conformance.workers.request import Feed, request, run_request, wait_until_ready
from epcheck.conformance.workers.session_options import session_options

T = TypeVar("T")

ASKED = "contract"
"""The `id` of every request: there is one at a time."""

NO_OPTION = "epcheck_no_such_option"
"""An option that no provider has."""

STATUS_ERRORS = (
    "EPFail", "EngineError", "Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoadCanceled",
    "ModelLoaded", "ModelRequiresCompilation", "NoModel", "NoSuchFile", "NotFound", "NotImplemented",
    "RuntimeException",
)  # fmt: skip
"""The exceptions that stand for an OrtStatus (onnxruntime_pybind_exceptions.cc). A provider of the runtime's own also
lets C++ exceptions through, which pybind11 makes RuntimeError."""

SEMANTIC = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
"""A version as https://semver.org has it."""

_AROUND = re.compile(
    r"\[ONNXRuntimeError\] : \d+ : \w+ : |Non-zero status code returned while running \S+ node\. "
    r"Name:'[^']*' Status Message: |(?<![\w.])(?:[A-Za-z]:)?(?:[\w.+-]*[\\/])+(?=[\w.+-]+\.(?:cc|cpp|h)[:(])"
)
"""What ONNX Runtime puts around a message, and the folders of its source files."""


class _Answer(msgspec.Struct):
    """The header of a worker's answer to a `contract` request."""

    stage: str
    error: str = ""
    message: str = ""
    devices: list[Device] = []
    libraries: list[Library] = []
    session: str = ""
    stdout: str = ""
    stdout_bytes: int = 0
    files: list[str] = []
    sockets: int | None = None
    offered: list[int] = []
    same: bool = False
    api_version: int | None = None


class _Ran(msgspec.Struct):
    """The header of a worker's answer to a `run` request."""

    stage: str
    error: str = ""
    message: str = ""


class Fault(NamedTuple):
    """A model with dynamic sizes, feeds that fit, and feeds that its operator must refuse when it is run."""

    name: str
    model: bytes
    right: Sequence[Feed]
    wrong: Sequence[Feed]


class _Worker:
    """A worker of the target; another one after it was lost."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(contextlib.nullcontext() if target.owns_group else lab.in_use())
        idle_workers = self._stack.enter_context(contextlib.closing(IdleWorkers()))
        self.client = WorkerClient(target, queue.SimpleQueue(), idle_workers)

    def __enter__(self) -> _Worker:
        wait_until_ready(self.client)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.retire()
        self._stack.close()

    def ask(self, part: str) -> _Answer | WorkerLost:
        """The answer to a part of the contract. Raises TargetDown."""
        header = {"op": "contract", "id": ASKED, "part": part, **session_options(self.target)}
        answer = self._send(protocol.frame(header, [], []))
        return answer if isinstance(answer, WorkerLost) else self._read(answer, _Answer)

    def run(self, model: bytes, feeds: Sequence[Feed]) -> _Ran | WorkerLost:
        """What became of a model. Raises TargetDown."""
        answer = self._send(run_request(ASKED, self.target, model, feeds, ["y"]))
        return answer if isinstance(answer, WorkerLost) else self._read(answer, _Ran)

    def _send(self, frame: list[bytes]) -> FrameReceived | WorkerLost:
        wait_until_ready(self.client)
        return request(self.client, ASKED, frame)

    def _read(self, answer: FrameReceived, kind: type[T]) -> T:
        try:
            return msgspec.convert(answer.header, kind)
        except msgspec.ValidationError as error:
            raise TargetDown(f"target '{self.target.name}': its worker's answer is not valid: {error}") from None


def observe_contract(target: Target) -> Contract:
    """What the workers of a target say about its provider. Raises TargetError and TargetDown."""
    if target.provider is None or not target.makes_sessions:
        raise TargetError(f"target '{target.name}' has no execution provider; name one that has")
    with _Worker(target) as worker:
        facts = dict(worker.client.facts)
        described = worker.ask("describe")
        errors = list(_observe_errors(worker))
        again = worker.ask("registration") if target.is_plugin else None
        version = worker.ask("version") if target.is_plugin else None
    provider = facts.get("execution_provider") or target.provider
    if isinstance(described, WorkerLost):
        lost = Rule("session", "A session of one Add runs", BROKEN, f"the process ends: {described.why}")
        return Contract(target.name, provider, facts, (), (), (lost, *errors))
    asked = version.api_version if isinstance(version, _Answer) else None
    rules = (
        *_judge_description(target, described),
        _judge_version(target, asked, facts),
        _observe_option(target),
        *errors,
        _judge_registration(again),
        *_judge_process(described, facts.get("jail", "")),
    )
    return Contract(
        target.name, provider, facts, tuple(described.devices), tuple(described.libraries), rules, asked
    )  # fmt: skip


def _judge_description(target: Target, answer: _Answer) -> Iterator[Rule]:
    text = "A session of one Add is created, or refused with a message"
    yield Rule("session", text, HOLDS, answer.session or "created, run and released")
    text = "It offers a device under its name, with a vendor"
    if not target.is_plugin and not answer.devices:
        yield Rule("devices", text, NOT_ASKED, "a provider of the runtime's own, which offers no devices")
    else:
        nameless = [device for device in answer.devices if not device.vendor.strip()]
        offers = ", ".join(f"{device.vendor or 'no vendor'}: {device.hardware}" for device in answer.devices)
        state = HOLDS if answer.devices and not nameless else BROKEN
        yield Rule("devices", text, state, offers or "it offers none")
    text = "The metadata of its devices has a semantic version"
    if not target.is_plugin:
        yield Rule("version", text, NOT_ASKED, "a provider of the runtime's own")
        return
    versions = {device.metadata.get("version", "") for device in answer.devices}
    valid = bool(versions) and all(SEMANTIC.fullmatch(version) for version in versions)
    found = ", ".join(f"version = {version or 'missing'}" for version in sorted(versions))
    yield Rule("version", text, HOLDS if valid else REMARK, found or "no device has any")


def _judge_version(target: Target, asked: int | None, facts: dict[str, str]) -> Rule:
    text = "It asks for a version of the C API that the runtime has"
    if not target.is_plugin:
        return Rule("api", text, NOT_ASKED, "a provider of the runtime's own")
    if asked is None:
        return Rule("api", text, UNSEEN, "it asks once in a process, and keeps what it was given")
    runtime = facts.get("onnxruntime", "")
    newest = int(runtime.split(".")[1]) if re.match(r"1\.\d+\.", runtime) else None
    found = f"it asks for {asked}: onnxruntime 1.{asked} and later; this is {runtime}"
    return Rule("api", text, BROKEN if newest is not None and asked > newest else HOLDS, found)


def _observe_option(target: Target) -> Rule:
    """Whether an option that the provider does not have is refused by its name. Its worker tries no canary, which would
    find the name in no library before the provider sees it."""
    text = "An option that it does not have is refused, and named"
    model, feeds = _add(), [_feed("a", (2, 2)), _feed("b", (2, 2))]
    with _Worker(target) as worker:
        worker.target = replace(target, options={**target.options, NO_OPTION: "1"})
        ran = worker.run(model, feeds)
    if isinstance(ran, WorkerLost):
        return Rule("options", text, BROKEN, f"the process ends: {ran.why}")
    if ran.stage == "done":
        return Rule("options", text, REMARK, f"{NO_OPTION} = 1 is taken without a word")
    named = NO_OPTION in ran.message
    return Rule("options", text, HOLDS if named else REMARK, f"{ran.error}: {_shorten(ran.message)}")


def _observe_errors(worker: _Worker) -> Iterator[Rule]:
    """Whether inputs that do not fit end a run with a status."""
    for fault in list_faults():
        text = f"{fault.name}: sizes that do not fit, known only in the run, give a status"
        name = f"errors {fault.name}"
        taken = worker.run(fault.model, fault.right)
        if isinstance(taken, WorkerLost):
            yield Rule(name, text, BROKEN, f"the process ends with sizes that fit: {taken.why}")
            continue
        if taken.stage != "done":
            yield Rule(name, text, NOT_ASKED, f"it does not take the node: {taken.error}: {_shorten(taken.message)}")
            continue
        ran = worker.run(fault.model, fault.wrong)
        if isinstance(ran, WorkerLost):
            yield Rule(name, text, BROKEN, f"the process ends: {ran.why}")
        elif ran.stage == "done":
            yield Rule(name, text, BROKEN, "the run gives values")
        else:
            is_status = ran.error in STATUS_ERRORS
            found = f"{ran.error}: {_shorten(ran.message)}"
            yield Rule(name, text, HOLDS if is_status else BROKEN, found if is_status else f"an exception, {found}")


def _judge_registration(answer: _Answer | WorkerLost | None) -> Rule:
    text = "Its library is used, unregistered, registered and used again"
    if answer is None:
        return Rule("registration", text, NOT_ASKED, "a provider of the runtime's own")
    if isinstance(answer, WorkerLost):
        return Rule("registration", text, BROKEN, f"the process ends: {answer.why}")
    if answer.stage != "done":
        return Rule("registration", text, BROKEN, f"{answer.error}: {_shorten(answer.message)}")
    before, between, after = answer.offered
    found = f"devices: {before} registered, {between} unregistered, {after} registered again"
    if between or before != after:
        return Rule("registration", text, BROKEN, found)
    return Rule("registration", text, HOLDS if answer.same else BROKEN,
                found if answer.same else f"{found}; the second session gives other bits")  # fmt: skip


def _judge_process(answer: _Answer, jail: str) -> Iterator[Rule]:
    """stdout, files and network. jail: what held the worker, in words."""
    text = "Nothing is written to stdout"
    if answer.stdout_bytes:
        yield Rule("stdout", text, BROKEN, f"{answer.stdout_bytes:,} bytes: {_shorten(answer.stdout)}")
    else:
        yield Rule("stdout", text, HOLDS, "no byte, of one session")
    is_jailed = bool(jail) and not jail.startswith("none")
    text = "A session leaves no file behind, and needs none outside the folders of its worker"
    if not is_jailed:
        yield Rule("files", text, UNSEEN, "the worker ran without a jail: other programs write to the same folders")
    elif answer.files:
        yield Rule("files", text, REMARK, f"it leaves {', '.join(answer.files)}")
    else:
        yield Rule("files", text, HOLDS, f"none; writes elsewhere are refused ({jail}), attempts are not observed")
    text = "It needs no network, and leaves no socket open"
    if answer.sockets:
        yield Rule("network", text, REMARK, f"{answer.sockets} sockets are open after a session")
    elif not is_jailed or answer.sockets is None:
        yield Rule(
            "network", text, UNSEEN, "the system does not list the sockets of a process, or the worker has no jail"
        )
    else:
        yield Rule("network", text, HOLDS, f"none open; the network is refused ({jail}), attempts are not observed")


def list_faults() -> tuple[Fault, ...]:
    """Operators whose inputs fit or not only when they are run."""
    a, b = _feed("a", (2, 3)), _feed("b", (2, 3))
    six, seven = (("b", "int64", (1,), np.array([size], "<i8").tobytes()) for size in (6, 7))
    matmul = helper.make_node("MatMul", ["a", "b"], ["y"], "matmul")
    concat = helper.make_node("Concat", ["a", "b"], ["y"], "concat", axis=0)
    return (
        Fault("Add", _add(), [a, b], [a, _feed("b", (4, 5))]),
        Fault("MatMul", _model(matmul), [a, _feed("b", (3, 2))], [a, b]),
        Fault("Concat", _model(concat), [a, b], [a, _feed("b", (2, 4))]),
        Fault("Reshape", _reshape(), [a, six], [a, seven]),
    )


def _add() -> bytes:
    return _model(helper.make_node("Add", ["a", "b"], ["y"], "add"))


def _model(node: onnx.NodeProto) -> bytes:
    """y = node(a, b), matrices of any size."""
    a, b, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [f"{n}0", f"{n}1"]) for n in ("a", "b", "y"))
    return _serialize(helper.make_graph([node], "fault", [a, b], [y]))


def _reshape() -> bytes:
    """y = Reshape(a, b), where b has one element."""
    a = helper.make_tensor_value_info("a", TensorProto.FLOAT, ["a0", "a1"])
    b = helper.make_tensor_value_info("b", TensorProto.INT64, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["y0"])
    node = helper.make_node("Reshape", ["a", "b"], ["y"], "reshape")
    return _serialize(helper.make_graph([node], "fault", [a, b], [y]))


def _serialize(graph: onnx.GraphProto) -> bytes:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    serialized: bytes = model.SerializeToString()
    return serialized


def _feed(name: str, shape: tuple[int, ...]) -> Feed:
    count = int(np.prod(shape))
    return name, "float32", shape, np.arange(count, dtype="<f4").tobytes()


def _shorten(message: str, most: int = 200) -> str:
    """The message on one line, without what ONNX Runtime puts around it."""
    text = " ".join(_AROUND.sub("", message).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
