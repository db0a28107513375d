"""The benchmark's cases by Polygraphy's Python API; runs in the environment that has Polygraphy and numpy, not epcheck.

    python polygraphy_loop.py rate CASES            # prints {"cases", "seconds", "failed"}
    python polygraphy_loop.py export CASES FOLDER   # 0.onnx and 0.json, 1.onnx ..., as its command line reads them

CPU against CPU as Polygraphy's own example of comparing runners does it: two OnnxrtRunner, Comparator.run, then
Comparator.compare_accuracy. Its log is off. Start, import and the first WARM_UP cases are not timed.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import stored_cases
from polygraphy.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
from polygraphy.comparator import Comparator
from polygraphy.json import save_json
from polygraphy.logger import G_LOGGER
from stored_cases import StoredCase

WARM_UP = 8


def main(what: str, stored: str, *folder: str) -> None:
    """What the first argument says."""
    cases = stored_cases.read(Path(stored))
    if what == "export":
        export(cases, Path(*folder))
        return
    G_LOGGER.module_severity = G_LOGGER.CRITICAL
    warnings.simplefilter("ignore")  # numpy's, about the NaN in the statistics that Polygraphy computes
    for case in cases[:WARM_UP]:
        agrees(case)
    started = time.perf_counter()
    failed = sum(not agrees(case) for case in cases)
    print(json.dumps({"cases": len(cases), "seconds": time.perf_counter() - started, "failed": failed}))


def agrees(case: StoredCase) -> bool:
    """Whether two sessions agree by Polygraphy's default comparison."""
    sessions = (SessionFromOnnx(case.model, providers=["CPUExecutionProvider"]) for _ in range(2))
    runners = [OnnxrtRunner(session, name=f"runner {number}") for number, session in enumerate(sessions)]
    results = Comparator.run(runners, data_loader=[dict(case.feeds)])
    return bool(Comparator.compare_accuracy(results))


def export(cases: list[StoredCase], folder: Path) -> None:
    """Write models and inputs as files."""
    for number, case in enumerate(cases):
        (folder / f"{number}.onnx").write_bytes(case.model)
        save_json([dict(case.feeds)], str(folder / f"{number}.json"))


if __name__ == "__main__":
    main(*sys.argv[1:])
