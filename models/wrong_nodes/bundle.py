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
from epcheck.models.accuracy import closeness
from epcheck.models.graph.feed import Feed
from epcheck.models.wrong_nodes.reduce import Reduced, ReduceError

SCRIPT = '''\
"""{words}. Usage: python run.py [PROVIDER]"""
import sys
import numpy as np
import onnxruntime as ort

provider = sys.argv[1] if len(sys.argv) > 1 else "{provider}"
data = np.load("data.npz")
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.{level}
session = ort.InferenceSession("model.onnx", options, providers=[(provider, {options})], enable_fallback=0)
outputs = session.run(None, {{i.name: data["input." + i.name] for i in session.get_inputs()}})
failed = False
for output, got in zip(session.get_outputs(), outputs):
    expected = data.get("output." + output.name)
    if expected is None:
        print(output.name, "nobody knows what is right")
        continue
    same = got.shape == expected.shape and got.dtype == expected.dtype
    with np.errstate(all="ignore"):
        wide, true = got.astype(np.float64), expected.astype(np.float64)
        right = same and np.array_equal(np.isfinite(wide), np.isfinite(true))
        size = np.abs(true[np.isfinite(true)])
        least = np.quantile(size[size > 0], {small}) if size.any() and expected.dtype.kind == "f" else 1.0
        gap = np.abs(wide[np.isfinite(true)] - true[np.isfinite(true)]) / np.maximum(size, least) if right else np.inf
        apart = np.max(gap, initial=0.0)
    right = right and apart <= {tolerance!r}
    print(output.name, "as expected" if right else f"WRONG: up to {{apart:.6g}} of an element away")
    if not right:
        print(got, "expected", expected, sep="\\n")
    failed |= not right
sys.exit(failed)
'''


def write(reduced: Reduced, folder: Path, provider: str = "DmlExecutionProvider") -> Path:
    """Write a reduced model into a folder and return the folder. provider: the default of the script. Raises
    ReduceError."""
    script = SCRIPT.format(
        words=repro.as_literal(words(reduced)),
        provider=repro.as_literal(provider),
        level=protocol.LEVELS[reduced.level],
        tolerance=reduced.tolerance,
        small=closeness.SMALL,
        options="{}",
    )
    order = [value.name for value in reduced.model.graph.input]
    feeds = _tensors(reduced.feeds, order)
    if missing := [name for name in order if name not in feeds]:
        raise ReduceError(f"the input '{missing[0]}' is no tensor, and a folder of tensors is what would be written")
    expected = _tensors(reduced.expected, [value.name for value in reduced.model.graph.output])
    try:
        content = reduced.model.SerializeToString()
        repro.write_folder(folder, content, feeds, expected, script)
    except OSError as error:
        raise ReduceError(f"'{folder}' cannot be written: {error.strerror or error}") from None
    except Exception as error:  # protobuf's own type depends on its version
        raise ReduceError(f"the part cannot be written, probably because it is too large: {error}") from None
    return folder


def _tensors(values: Mapping[str, Feed], names: Sequence[str]) -> dict[str, Array]:
    found = ((name, values.get(name)) for name in names)
    return {name: value for name, value in found if isinstance(value, np.ndarray)}


def words(reduced: Reduced) -> str:
    """What fails and how, in a sentence."""
    how = f"{reduced.status} ({reduced.difference})" if reduced.difference else reduced.status
    left = "" if reduced.nodes == reduced.culprit.nodes else f"; left are {', '.join(map(str, reduced.nodes))}"
    return f"{how} at optimisation level '{reduced.level}': {reduced.culprit.words}{left}"
