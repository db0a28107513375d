"""How arbitrary code gets into each kind of jailed process: through the product's own path. Runs in the runner."""

from __future__ import annotations

import base64
import json
import os
import queue
import shutil
import subprocess
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attacks.jailed import all_attempts  # noqa: F401
from benchmarks.attacks.jailed.all_attempts import attack
from epcheck.api.models.examining.examination import examine
from epcheck.conformance.preparation.preparer_pool import PREPARER
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.plugin import Plugin
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import Target, TargetError
from epcheck.conformance.workers.client import WorkerClient, WorkerLost
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import ProcessExited, WorkerProcess
from epcheck.conformance.workers.request import request, run_request, wait_until_ready

PATIENCE_S = 400.0
ROOT = Path(__file__).parents[3]

LIBRARY = """\
#define _GNU_SOURCE
#include <dlfcn.h>
static const char code[] = {};
__attribute__((constructor)) static void begin(void) {{
    int (*ensure)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    void (*release)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    int (*run)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "PyRun_SimpleString");
    if (ensure && release && run) {{
        int state = ensure();
        run(code);
        release(state);
    }}
}}
"""


class NotRunError(Exception):
    """A scene cannot be run here; the message says why."""


@dataclass(frozen=True)
class Order:
    """What the jailed code is to do. outside: as JSON; attempts: their names, parted by commas."""

    outside: str
    attempts: str


def examined(order: Order, say: Callable[[str], None]) -> str:
    """A function as `examine` takes them."""
    say("attacks")
    return attack(order.outside, order.attempts)


def as_backend(model: bytes, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """A callable as a worker calls it: the model is an order."""
    del feeds
    outside, attempts = json.loads(model)
    return {"report": np.frombuffer(attack(outside, attempts).encode(), np.uint8)}


def code_of(order: Order, then: str) -> str:
    """A program that follows an order. then: what it does with `report`."""
    return (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        f"from benchmarks.attacks.jailed import all_attempts, entries_inside\n"
        f"report = all_attempts.attack({order.outside!r}, {order.attempts!r})\n{then}\n"
    )


def in_examination(order: Order, folder: Path) -> str:
    """As `validate`, `doctor`, `reduce` and `harvest` do it: the targets are those whose workers it may start."""
    model = folder / "home" / "models" / "model.onnx"
    return examine(examined, order, model, lambda _words: None, PATIENCE_S, (resolve("cpu"),))


def in_examination_without_targets(order: Order, folder: Path) -> str:
    """As `repro` has a stranger's case built."""
    return examine(examined, order, folder / "home" / "models" / "model.onnx", lambda _words: None, PATIENCE_S)


def _client(target: Target) -> WorkerClient:
    return WorkerClient(
        replace(target, startup_s=PATIENCE_S, deadline_s=PATIENCE_S), queue.SimpleQueue(), IdleWorkers()
    )


def in_worker(order: Order, folder: Path) -> str:
    """A worker of ONNX Runtime's CPU provider, whose prelude the code is: it is executed after the jail is entered."""
    program = folder / "prelude.py"
    program.write_text(code_of(order, "sys._epcheck_facts = lambda: {'report': report}"))
    target = resolve("cpu")
    client = _client(replace(target, arguments=(*target.arguments, "--prelude", str(program))))
    wait_until_ready(client)
    report = client.facts["report"]
    client.kill("it is over")
    return report


def _called(target: Target, order: Order) -> str:
    client = _client(target)
    wait_until_ready(client)
    frame = run_request("1", target, json.dumps([order.outside, order.attempts]).encode(), (), ["report"])
    answer = request(client, "1", frame)
    client.kill("it is over")
    if isinstance(answer, WorkerLost) or not answer.body:
        raise NotRunError(f"the worker gave no answer: {answer}")
    return answer.body.decode()


def in_preparer(order: Order, folder: Path) -> str:
    del folder
    return _called(replace(PREPARER, arguments=("python:benchmarks.attacks.jailed.entries:as_backend",)), order)


def in_callable(order: Order, folder: Path) -> str:
    (folder / "epcheck.toml").write_text(
        '[targets.attacked]\nfunction = "benchmarks.attacks.jailed.entries:as_backend"\njail = true\n'
    )
    return _called(resolve("attacked", load_config(folder / "epcheck.toml")), order)


def _library(order: Order, folder: Path) -> Path:
    if not shutil.which("cc"):
        raise NotRunError("there is no C compiler")
    (folder / "library.c").write_text(LIBRARY.format(json.dumps(code_of(order, "entries_inside.tell(report)"))))
    made = folder / "library.so"
    line = ["cc", "-shared", "-fPIC", "-o", str(made), str(folder / "library.c"), "-ldl"]
    subprocess.run(line, check=True, capture_output=True)
    return made


def report_of(lines: str) -> str:
    """What `entries_inside.tell` wrote, in whatever order and company. Raises NotRunError."""
    parts: dict[str, str] = {}
    for _, number, part in (word.split(":", 2) for word in lines.split() if word.startswith("REPORT:")):
        parts[number] = max(part, parts.get(number, ""), key=len)  # long lines are cut
    if not parts:
        raise NotRunError(f"the library told nothing: {lines[-400:]}")
    return zlib.decompress(base64.b64decode("".join(parts[each] for each in sorted(parts)))).decode()


def in_described_plugin(order: Order, folder: Path) -> str:
    """The process that asks a library which provider it holds."""
    try:
        resolve(f"ep:{_library(order, folder)}")
    except TargetError as error:
        return report_of(str(error))
    raise NotRunError("the library was taken for a provider's")


def in_plugin(order: Order, folder: Path) -> str:
    """A worker that loads a library."""
    arguments = Plugin(library=str(_library(order, folder)), provider="Attacked").arguments()
    target = replace(resolve("cpu"), arguments=("onnxruntime", *arguments), forks=False, is_plugin=True)
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    worker = WorkerProcess(target, events)
    while not isinstance(events.get(timeout=PATIENCE_S), ProcessExited):
        pass
    return report_of(worker.log_tail())


SCENES: dict[str, Callable[[Order, Path], str]] = {
    "examiner": in_examination,
    "examiner of repro": in_examination_without_targets,
    "worker": in_worker,
    "preparer": in_preparer,
    "callable": in_callable,
    "described plugin": in_described_plugin,
    "plugin": in_plugin,
}


def enter(scene: str, folder: Path) -> int:
    """Be the runner of a scene: have the code run inside, and print what it reports. folder: of the arena, which has
    the order."""
    outside, attempts = json.loads((folder / "order.json").read_text())
    with (folder / "inherited-of-runner").open("w") as _held:
        try:
            print("REPORT", SCENES[scene](Order(outside, attempts), folder), flush=True)
        except NotRunError as error:
            print("NOT RUN", error, flush=True)
    print("RUNNER PRIORITY", os.getpriority(os.PRIO_PROCESS, 0), flush=True)
    return 0
