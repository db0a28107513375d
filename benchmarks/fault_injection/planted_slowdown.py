"""How many planted slow-downs `epcheck speed` tells, and how many it invents.

    python benchmarks/fault_injection/planted_slowdown.py                  # 20 planted, and 20 of a target with itself
    python benchmarks/fault_injection/planted_slowdown.py --each 8         # seconds for each

The targets are functions of this file: `slow_110` runs the model by ONNX Runtime's CPU provider, and then waits until
1.10 times the run's own time is over. A slow-down is reported where the interval of the ratio lies above 1.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnxruntime

NODES = (
    "MatMul-13/float32/square_256",
    "Conv-11/float32/resnet50_1x1_256_batch_1",
    "Relu-14/float32/256_ki",
    "Softmax-13/float32/bert_batch_8",
    "GRU-14/float32/16_steps",
)
"""Of short runs, 30 µs, and longer ones, 1 ms."""

PERCENT = (5, 10, 20, 50)
"""That each of the nodes is slowed down by."""

CALLS = 2 * len(PERCENT)
"""Of `compare_speed`, which share an error rate of 5 %."""

_sessions: dict[int, Any] = {}


def __getattr__(name: str) -> Callable[[bytes, Mapping[str, Any]], list[Any]]:
    """`slow_110` and so on."""
    prefix, _, percent = name.partition("_")
    if prefix != "slow" or not percent.isdecimal():
        raise AttributeError(name)

    def run(model: bytes, feeds: Mapping[str, Any]) -> list[Any]:
        started = time.perf_counter_ns()
        values = _find_session(model).run(None, dict(feeds))
        until = started + (time.perf_counter_ns() - started) * int(percent) // 100
        while time.perf_counter_ns() < until:
            pass
        return list(values)

    return run


def _find_session(model: bytes) -> Any:
    """The session of the model, made once: a worker has the same bytes object for all runs of a model."""
    if id(model) not in _sessions:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        _sessions.clear()
        _sessions[id(model)] = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return _sessions[id(model)]


def compare(percent: int, seconds: float, root: Path) -> Sequence[Any]:
    """The `SpeedComparison` of each node. percent: of the time that B takes, 100 for A's."""
    from epcheck import api

    targets = tuple(f"python:planted_slowdown:slow_{time}" for time in (100, percent))
    options = api.SpeedOptions(targets, patterns=NODES, size="small", seconds=seconds, alpha=0.05 / CALLS, root=root)
    return api.compare_speed(options).report.comparisons


def main() -> int:
    """Print a line for each comparison, then the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=float, default=14.0, help="seconds for each comparison")
    arguments = parser.parse_args()
    os.chdir(Path(__file__).parent)
    reported: dict[int, int] = dict.fromkeys((0, *PERCENT), 0)
    with tempfile.TemporaryDirectory() as folder:
        for percent in (*PERCENT, *(0,) * len(PERCENT)):
            for found in compare(100 + percent, arguments.each * len(NODES), Path(folder)):
                run = found.phase("run")
                reported[percent] += run is not None and run.verdict in ("slower", "faster")
                words = run.words if run else found.trouble
                print(f"+{percent:2} %  {found.case:45} {words:40} {found.rounds:3} rounds, {found.seconds:4.1f} s "
                      f"{'; '.join(found.notes)}", flush=True)  # fmt: skip
    for percent in PERCENT:
        print(f"{reported[percent]} of {len(NODES)} slow-downs of {percent} % are reported")
    print(f"{reported[0]} of {len(NODES) * len(PERCENT)} comparisons of a target with itself give a difference")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
