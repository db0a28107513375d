"""Cases of one element and no mystery: y = Identity(x). `x` is (fault number, case number)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from onnx import TensorProto, helper

from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.process import find_guarded_worker
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Output, Outputs, Refusal, Truth
from tests.conformance.faulty_backends import FAULTS

HERE = Path(__file__).parent


def identity(name: str, number: int = 0, fault: str = "", must_refuse: bool = False) -> Case:
    """The case `Identity-16/float32/NAME[runtime]`; `fault` is what `faulty_backends:faulty` does with it."""
    x = np.array([list(FAULTS).index(fault) if fault else -1, number], np.float32)
    node = Node("Identity", "", 16, (Operand("x", x),), ("y",))
    truth: Truth = Refusal("it is a test") if must_refuse else Outputs((Output("y", x),))
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "g",
        [info("x", TensorProto.FLOAT, [2])],
        [info("y", TensorProto.FLOAT, [2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8).SerializeToString()

    def build(case: Case) -> BuiltCase:
        return BuiltCase(case, node, 16, model, {"x": x}, truth, {"V": "float32"}, None)

    return Case("Identity", "", 16, "float32", name, "runtime", build)


def identities(count: int) -> list[Case]:
    return [identity(f"number_{number}", number) for number in range(count)]


def backend(function: str, module: str = "faulty_backends", **changes: Any) -> Target:
    """The target `python:MODULE:FUNCTION`."""
    with contextlib.chdir(HERE):
        return replace(resolve(f"python:{module}:{function}"), **changes)


def records_of(cases: Sequence[Case], *candidates: Target, **further: Any) -> dict[str, Record]:
    """Run the cases; sample name -> record of the only candidate."""
    taken: list[Record] = []
    run_plan(Plan(cases, candidates, **further), taken.append)
    assert len(taken) == len({r.case_id for r in taken}) == len(cases)
    return {record.case.sample: record for record in taken}


def own_workers() -> list[psutil.Process]:
    """The workers that this process has started or had forked, zombies, guards and fork servers aside."""

    def found() -> Iterator[psutil.Process]:
        for process in _workers_of(psutil.Process()):
            with contextlib.suppress(psutil.Error):  # it has ended since it was listed
                worker = psutil.Process(find_guarded_worker(process.pid))
                yield from _workers_of(worker) if _is_fork_server(worker) else [worker]

    return list(found())


def _workers_of(parent: psutil.Process) -> list[psutil.Process]:
    def found() -> Iterator[psutil.Process]:
        for child in parent.children():
            with contextlib.suppress(psutil.Error):
                if any(word.endswith("worker.py") for word in child.cmdline()):
                    yield child

    with contextlib.suppress(psutil.Error):
        return list(found())
    return []


def _is_fork_server(process: psutil.Process) -> bool:
    """Of a process that this one started; what it forks has its command line, too."""
    with contextlib.suppress(psutil.Error):
        return "--fork-server" in process.cmdline()
    return False


def processes_with(text: str) -> list[psutil.Process]:
    """Every process below this one, or without a parent, zombies aside, that has `text` in its command line."""

    def found() -> Iterator[psutil.Process]:
        orphans = (process for process in psutil.process_iter(["ppid"]) if process.info["ppid"] == 1)
        for process in (*psutil.Process().children(recursive=True), *orphans):
            with contextlib.suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE and any(text in word for word in process.cmdline()):
                    yield process

    return list(found())
