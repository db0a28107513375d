"""Architectures with random weights, as models on disk."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import onnx

from epcheck.api.option import Option
from epcheck.generators.array import Array
from epcheck.models import zoo
from epcheck.models.feeds import feeds
from epcheck.models.graph.feed import Feed
from epcheck.models.oracle import oracle
from epcheck.models.oracle.oracle import OracleError
from epcheck.models.zoo import Architecture, exports

RTOL = 1e-3
"""As ONNX's own backend tests have it (onnx.backend.test, TestCase)."""

ALL = "all"
"""The name that stands for every architecture."""


@dataclass(frozen=True)
class WriteZooOptions:
    """Which architecture or export, and where. seed: of the feeds' random numbers."""

    name: Annotated[str, Option(f"Architecture or export; '{ALL}' for every architecture.", argument=True)]
    out: Annotated[Path, Option("Output folder, with one subfolder per model.")]
    seed: Annotated[int, Option("Seed of the random feeds.", minimum=0)] = 0


def architectures() -> tuple[Architecture, ...]:
    """Every architecture and, last, every real export."""
    return (*zoo.all(), *exports.all())


def write_zoo(options: WriteZooOptions) -> Iterator[Path]:
    """Write models, and feeds for them as ONNX test data: what `replay` reads. Gives each path once it is written.
    Raises ZooError for an unknown name."""
    for architecture in zoo.all() if options.name == ALL else (zoo.named(options.name),):
        yield from write_architecture(architecture, options.out / architecture.name, options.seed)


def write_architecture(architecture: Architecture, folder: Path, seed: int = 0) -> Iterator[Path]:
    """Write `model.onnx` and, for each combination of the architecture's dimensions, a `test_data_set_*` with feeds,
    the outputs that the float64 oracle computes from them, and how far each element may be from those."""
    model = architecture.build()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString(deterministic=True))
    yield path
    for index, dims in enumerate(feeds.combinations(model, architecture.dims)):
        data = folder / f"test_data_set_{index}"
        data.mkdir(exist_ok=True)
        inputs = feeds.generate(model, seed, dims)
        feeds.save(data, model, inputs)
        with contextlib.suppress(OracleError):  # `replay` then asks its baseline what is right
            write_outputs(data, model, oracle.evaluate(model, inputs).values)
        yield data


def write_outputs(folder: Path, model: onnx.ModelProto, truth: Mapping[str, Feed]) -> None:
    """Write `output_0.pb` and so on: the truth, float64, rounded once to the type of each output, and beside those of
    floating point `allowed_0.pb`, float64 of the same shape. Writes none where an output is no tensor, which ONNX test
    data has no place for."""
    types = {value.name: value.type for value in model.graph.output}
    if all(isinstance(truth[name], np.ndarray) and kind.HasField("tensor_type") for name, kind in types.items()):
        for index, (name, kind) in enumerate(types.items()):
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)
            exact = np.asarray(truth[name])
            _write(folder / f"output_{index}.pb", exact.astype(dtype), name)
            if dtype.kind == "f":
                _write(folder / f"allowed_{index}.pb", compute_tolerance(exact), name)


def compute_tolerance(exact: Array) -> Array:
    """How far each element of an output of a whole model may be from the exact one, float64 of the same shape: RTOL of
    the element or of the root mean square of all, whichever is larger.

    The rounding error of a sum is relative to its terms, not to what is left where they cancel: N. J. Higham, Accuracy
    and Stability of Numerical Algorithms, 2nd edition, section 4.2.
    """
    size = np.abs(exact.astype(np.float64))
    finite = size[np.isfinite(size)]
    scale = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    return np.asarray(RTOL * np.maximum(size, scale))


def _write(path: Path, values: Array, name: str) -> None:
    path.write_bytes(onnx.numpy_helper.from_array(values, name).SerializeToString(deterministic=True))
