"""A backend that is ONNX Runtime's CPU provider, except that marked inputs end its process: TARGET.

The marks are a file that the environment variable MARKS names. A marked input kills every process that sees it, so
the case crashes in the run that confirms it as well, and what is reported is a crash: two workers die for one case.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import onnxruntime as ort

from benchmarks.peers.stored_cases import Array, StoredCase

TARGET = "python:benchmarks.rates.crashing_backend:run"
MARKS = "EPCHECK_BENCHMARK_MARKS"


def run(model: bytes, feeds: Mapping[str, Array]) -> Any:
    """The outputs, in the model's order; aborts the process when an input is marked."""
    if any(digest(array) in _marks() for array in feeds.values()):
        os.abort()
    return ort.InferenceSession(model, _options(), providers=["CPUExecutionProvider"]).run(None, dict(feeds))


def digest(array: Array) -> str:
    """Names an input by its bytes alone, whatever the model calls it."""
    return blake2b(array.tobytes(), digest_size=8).hexdigest()


def mark(path: Path, cases: Sequence[StoredCase], every: int) -> None:
    """Mark one case in `every`, evenly spread over those that have an input which no other case has."""
    owners = Counter(name for case in cases for name in {digest(array) for array in case.feeds.values()})
    own = [name for case in cases for name in sorted(map(digest, case.feeds.values()))[:1] if owners[name] == 1]
    wanted = len(cases) // every
    path.write_text("\n".join(own[index * len(own) // wanted] for index in range(wanted)), encoding="utf-8")


@cache
def _marks() -> frozenset[str]:
    path = os.environ.get(MARKS)
    return frozenset(Path(path).read_text(encoding="utf-8").split()) if path else frozenset()


@cache
def _options() -> Any:
    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return options
