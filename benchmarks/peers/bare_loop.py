"""The least that running a case takes: a session and one run of it, nothing built, judged, repeated or recorded.

    python bare_loop.py CASES [--provider DmlExecutionProvider] [--unoptimised] [--prelude FILE]

Sessions are single-threaded; their other options are ONNX Runtime's own. Start of the process, import, reading of the
file and the first WARM_UP cases are not timed. Needs onnxruntime and numpy only: it runs in the lab's Windows Python,
too.
"""

from __future__ import annotations

import argparse
import json
import runpy
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import stored_cases
from stored_cases import StoredCase

CPU, DML = "CPUExecutionProvider", "DmlExecutionProvider"
WARM_UP = 32
"""Cases that run before the clock starts: the provider's device and threads are made with the first session."""


def main() -> None:
    """Print {"cases", "seconds", "refused"} as one line of JSON; a model that raises counts as a case, too."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--provider", default=CPU)
    parser.add_argument("--unoptimised", action="store_true", help="switch graph optimisation off, as epcheck does")
    parser.add_argument("--prelude", help="a Python file that is executed before onnxruntime is imported")
    arguments = parser.parse_args()
    if arguments.prelude:
        runpy.run_path(arguments.prelude)
    cases = stored_cases.read(arguments.cases)
    loop(cases[:WARM_UP], arguments.provider, arguments.unoptimised)
    started = time.perf_counter()
    refused = loop(cases, arguments.provider, arguments.unoptimised)
    seconds = time.perf_counter() - started
    print(json.dumps({"cases": len(cases), "seconds": seconds, "refused": refused}))


def loop(cases: Sequence[StoredCase], provider: str, unoptimised: bool) -> int:
    """Run every case in a session of its own; returns how many raised."""
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    options = session_options(ort, provider, unoptimised)
    providers = [(provider, {"device_id": "0"} if provider == DML else {})]
    refused = 0
    for case in cases:
        try:
            session = ort.InferenceSession(case.model, options, providers=providers)
            session.run(None, dict(case.feeds))
        except Exception:  # ONNX Runtime's errors have no common class
            refused += 1
    return refused


def session_options(ort: Any, provider: str, unoptimised: bool) -> Any:
    """Single-threaded; memory patterns are off where DirectML's provider demands it."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if unoptimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if provider == DML:
        options.enable_mem_pattern = False
    return options


if __name__ == "__main__":
    main()
