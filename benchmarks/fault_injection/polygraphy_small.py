"""Small faults by Polygraphy's Python API; runs in the environment that has Polygraphy, not epcheck.

    python polygraphy_small.py MODEL FEEDS FAULTS   # FAULTS: a file with a JSON list; '' is the target without a fault

Prints a line of JSON: for each fault and each tolerance the outputs of the model that differ, and of all values those
that differ, in the order of the graph; null where a run failed. ONNX Runtime on CPU is compared with `small_fault`.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import small_fault
from polygraphy import constants
from polygraphy.backend.onnx import BytesFromOnnx, ModifyOutputs, OnnxFromPath
from polygraphy.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
from polygraphy.comparator import Comparator, SimpleCompareFunc
from polygraphy.logger import G_LOGGER
from polygraphy_wrong import WrongRunner, sort_as_made

TOLERANCES = (1e-5, 1e-2)
"""Absolute and relative; the first is Polygraphy's default."""


def compare(model: bytes, feeds: Any, fault: str) -> list[list[str]]:
    """For each tolerance the outputs that Polygraphy says differ, in the order of the graph."""
    target = WrongRunner(model, partial(small_fault.run_with_fault, fault))
    runners = [OnnxrtRunner(SessionFromOnnx(model, providers=["CPUExecutionProvider"])), target]
    results = Comparator.run(runners, data_loader=[feeds])
    found = []
    for tolerance in TOLERANCES:
        function = SimpleCompareFunc(rtol=tolerance, atol=tolerance)
        (compared,) = Comparator.compare_accuracy(results, compare_func=function)
        (iterations,) = compared.values()
        found.append(sort_as_made(model, [name for name, matched in iterations[0].items() if not matched]))
    return found


def main(path: str, stored: str, faults: str) -> None:
    """What the arguments say."""
    G_LOGGER.module_severity = G_LOGGER.CRITICAL
    plain = BytesFromOnnx(OnnxFromPath(path))()
    marked = BytesFromOnnx(ModifyOutputs(OnnxFromPath(path), outputs=constants.MARK_ALL))()
    names = [value.name for value in onnx.load_from_string(plain).graph.input]
    answers = []
    with np.load(stored) as values:
        feeds = {name: values[name] for name in names if name in values}
        for fault in json.loads(Path(faults).read_text(encoding="utf-8")):
            answers.append([])
            for model in (plain, marked):
                try:
                    answers[-1].append(compare(model, feeds, fault))
                except Exception as error:  # whatever it cannot do with this model
                    print(error, file=sys.stderr)
                    answers[-1].append(None)
    print(json.dumps({"answers": answers}))


if __name__ == "__main__":
    main(*sys.argv[1:])
