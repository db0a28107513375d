"""Small faults by Polygraphy's Python API; runs in the environment that has Polygraphy, not epcheck.

    python polygraphy_small.py MODEL FEEDS FAULTS   # FAULTS: a file with a JSON list; '' is the target without a fault

Prints a line of JSON: for each fault and each tolerance the outputs of the model that differ, and of all values those
that differ, in the order of the graph; null where a run failed. ONNX Runtime on CPU is compared with `small_fault`.
"""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import small_fault
from polygraphy import constants
from polygraphy.backend.base import BaseRunner
from polygraphy.backend.onnx import BytesFromOnnx, ModifyOutputs, OnnxFromPath
from polygraphy.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
from polygraphy.common import TensorMetadata
from polygraphy.comparator import Comparator, SimpleCompareFunc
from polygraphy.logger import G_LOGGER

TOLERANCES = (1e-5, 1e-2)
"""Absolute and relative; the first is Polygraphy's default."""


class FaultyRunner(BaseRunner):
    """The target as a runner."""

    def __init__(self, model: bytes, fault: str) -> None:
        super().__init__(name="faulty")
        self._content, self._fault = model, fault

    def get_input_metadata_impl(self, **_options: Any) -> TensorMetadata:
        """Of the model's inputs."""
        found = TensorMetadata()
        for value in onnx.load_from_string(self._content).graph.input:
            element = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            dims = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in value.type.tensor_type.shape.dim]
            found.add(value.name, element, dims)
        return found

    def infer_impl(self, feed_dict: Any) -> Any:
        """One run."""
        self.inference_time = 0.0
        return OrderedDict(small_fault.run_with_fault(self._fault, self._content, feed_dict))


def compare(model: bytes, feeds: Any, fault: str) -> list[list[str]]:
    """For each tolerance the outputs that Polygraphy says differ, in the order of the graph."""
    runners = [OnnxrtRunner(SessionFromOnnx(model, providers=["CPUExecutionProvider"])), FaultyRunner(model, fault)]
    results = Comparator.run(runners, data_loader=[feeds])
    made = [name for node in onnx.load_from_string(model).graph.node for name in node.output]
    found = []
    for tolerance in TOLERANCES:
        function = SimpleCompareFunc(rtol=tolerance, atol=tolerance)
        (compared,) = Comparator.compare_accuracy(results, compare_func=function)
        (iterations,) = compared.values()
        found.append(sorted((name for name, matched in iterations[0].items() if not matched), key=made.index))
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
