"""A wrong node by Polygraphy's Python API; runs in the environment that has Polygraphy, not epcheck.

    python polygraphy_wrong.py run MODEL VALUES     # prints {"first": the first output that differs, or null,
                                                    #         "differing": all of them}
    python polygraphy_wrong.py check MODEL VALUES   # exit code 1 where outputs differ, for `polygraphy debug reduce`

ONNX Runtime on CPU against the candidate of `wrong_node`, as Polygraphy's example of a custom runner does it: every
value is marked as an output, `Comparator` runs and compares with its default tolerances. VALUES: an .npz with the feeds
and, for the parts of a model, what its nodes receive on CPU.
"""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import wrong_node
from polygraphy import constants
from polygraphy.backend.base import BaseRunner
from polygraphy.backend.common import BytesFromPath
from polygraphy.backend.onnx import BytesFromOnnx, ModifyOutputs, OnnxFromPath
from polygraphy.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
from polygraphy.common import TensorMetadata
from polygraphy.comparator import Comparator
from polygraphy.logger import G_LOGGER


class WrongRunner(BaseRunner):
    """A candidate as a runner. run: computes the outputs of the model."""

    def __init__(self, model: bytes, run: Callable[[bytes, Any], Mapping[str, Any]] = wrong_node.run) -> None:
        super().__init__(name="wrong")
        self._content, self._run = model, run

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
        return OrderedDict(self._run(self._content, feed_dict))


def differing(model: bytes, values: Any) -> list[str]:
    """The outputs that Polygraphy says differ, in their order."""
    names = [value.name for value in onnx.load_from_string(model).graph.input]
    feeds = {name: values[name] for name in names}
    runners = [OnnxrtRunner(SessionFromOnnx(model, providers=["CPUExecutionProvider"])), WrongRunner(model)]
    (compared,) = Comparator.compare_accuracy(Comparator.run(runners, data_loader=[feeds]))
    (iterations,) = compared.values()
    return [name for name, matched in iterations[0].items() if not matched]


def main(what: str, path: str, stored: str) -> int:
    """What the first argument says."""
    G_LOGGER.module_severity = G_LOGGER.CRITICAL
    with np.load(stored) as values:
        if what == "check":
            return int(bool(differing(BytesFromPath(path)(), values)))
        marked = BytesFromOnnx(ModifyOutputs(OnnxFromPath(path), outputs=constants.MARK_ALL))()
        names = sort_as_made(marked, differing(marked, values))
        print(json.dumps({"first": next(iter(names), None), "differing": names}))
    return 0


def sort_as_made(model: bytes, names: list[str]) -> list[str]:
    """The values in the order of the graph."""
    made = [name for node in onnx.load_from_string(model).graph.node for name in node.output]
    return sorted(names, key=made.index)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
