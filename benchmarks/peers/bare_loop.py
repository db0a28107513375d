"""The least that running a case takes: a session and one run of it, nothing built, judged, repeated or recorded.

    python bare_loop.py CASES [--provider DmlExecutionProvider] [--options JSON] [--package onnxruntime_ep_webgpu]
                              [--unoptimised] [--keep] [--prelude FILE]

Sessions are single-threaded; their other options are ONNX Runtime's own. Start of the process, import, reading of the
file and the first WARM_UP cases are not timed. Needs onnxruntime and numpy only: it runs in the lab's Windows Python,
too.
"""

from __future__ import annotations

import argparse
import importlib
import json
import runpy
import time
from collections.abc import Callable, Sequence
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
    parser.add_argument("--options", type=json.loads, default={}, help="of the provider, as JSON")
    parser.add_argument("--package", help="the plugin package that has the provider")
    parser.add_argument("--keep", action="store_true", help="keep one more session all the time")
    parser.add_argument("--unoptimised", action="store_true", help="switch graph optimisation off, as epcheck does")
    parser.add_argument("--prelude", help="a Python file that is executed before onnxruntime is imported")
    arguments = parser.parse_args()
    if arguments.prelude:
        runpy.run_path(arguments.prelude)
    cases = stored_cases.read(arguments.cases)
    make = session_maker(arguments)
    kept = make(cases[0].model) if arguments.keep else None
    loop(cases[:WARM_UP], make)
    started = time.perf_counter()
    refused = loop(cases, make)
    seconds = time.perf_counter() - started
    del kept
    print(json.dumps({"cases": len(cases), "seconds": seconds, "refused": refused}))


def session_maker(arguments: argparse.Namespace) -> Callable[[bytes], Any]:
    """What makes a session of a model, on the provider that the arguments name."""
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    provider = arguments.provider
    options = session_options(ort, provider, arguments.unoptimised)
    own = {"device_id": "0"} if provider == DML else dict(arguments.options)
    if arguments.package:
        library = importlib.import_module(arguments.package).get_library_path()
        ort.register_execution_provider_library(provider, library)
        devices = [device for device in ort.get_ep_devices() if device.ep_name == provider]
        options.add_provider_for_devices(devices[:1], own)
        return lambda model: ort.InferenceSession(model, options, enable_fallback=0)
    return lambda model: ort.InferenceSession(model, options, providers=[(provider, own)])


def loop(cases: Sequence[StoredCase], make: Callable[[bytes], Any]) -> int:
    """Run every case in a session of its own; returns how many raised."""
    refused = 0
    for case in cases:
        try:
            make(case.model).run(None, dict(case.feeds))
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
