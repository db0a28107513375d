"""Write a reduced model as a folder in ONNX's test-data layout, with a script that needs onnxruntime only.

The layout is that of `conformance.test_data.repro`; `epcheck replay FOLDER --target dml` runs the folder as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from epcheck.conformance.test_data import repro
from epcheck.conformance.workers.program import protocol
from epcheck.generators.array import Array
from epcheck.models.graph.feed import Feed
from epcheck.models.wrong_nodes.reduce import Reduced, ReduceError


def write(reduced: Reduced, folder: Path, provider: str = "DmlExecutionProvider") -> Path:
    """Write a reduced model into a folder and return the folder. provider: the default of the script. Raises
    ReduceError."""
    feeds = _tensors(reduced.feeds, reduced.inputs)
    if missing := [name for name in reduced.inputs if name not in feeds]:
        raise ReduceError(f"the input '{missing[0]}' is no tensor, and a folder of tensors is what would be written")
    known = {output.name: output for output in reduced.truth}
    outputs = tuple(known[name] for name in reduced.outputs if name in known)
    judged = repro.Judged(words(reduced), outputs, provider, level=protocol.LEVELS[reduced.level])
    try:
        repro.write_folder(folder, reduced.content, feeds, judged)
    except OSError as error:
        raise ReduceError(f"'{folder}' cannot be written: {error.strerror or error}") from None
    return folder


def _tensors(values: Mapping[str, Feed], names: Sequence[str]) -> dict[str, Array]:
    found = ((name, values.get(name)) for name in names)
    return {name: value for name, value in found if isinstance(value, np.ndarray)}


def words(reduced: Reduced) -> str:
    """What fails and how, in a sentence."""
    how = f"{reduced.status} ({reduced.difference})" if reduced.difference else reduced.status
    left = "" if reduced.nodes == reduced.culprit.nodes else f"; left are {', '.join(map(str, reduced.nodes))}"
    return f"{how} at optimisation level '{reduced.level}': {reduced.culprit.words}{left}"
