"""A case as a folder that anybody can run: ONNX's own test-data layout, and a script that needs onnxruntime only.

model.onnx                    the one-node model
test_data_set_0/input_0.pb    its graph inputs, in order, as serialized TensorProto
test_data_set_0/output_0.pb   the true outputs (none when the node must be refused)
data.npz                      the same, for run.py
run.py                        runs the model on a provider and compares
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from onnx import numpy_helper

from epcheck.generators.case import Array, BuiltCase, Outputs, Refusal, Selection

SCRIPT = '''\
"""{words}. Usage: python run.py [PROVIDER]"""
import sys
import numpy as np
import onnxruntime as ort

provider = sys.argv[1] if len(sys.argv) > 1 else "DmlExecutionProvider"
data = np.load("data.npz")
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
session = ort.InferenceSession("model.onnx", options, providers=[(provider, {options})], enable_fallback=0)
outputs = session.run(None, {{i.name: data["input." + i.name] for i in session.get_inputs()}})
for output, got in zip(session.get_outputs(), outputs):
    expected = data.get("output." + output.name)
    right = expected is not None and np.array_equal(got, expected, equal_nan=got.dtype.kind == "f")
    print(output.name, "as expected" if right else f"WRONG\\n{{got}}\\nexpected\\n{{expected}}")
'''


class ReproError(ValueError):
    """A case cannot be written out; the message says why."""


def folder_name(case_id: str) -> str:
    """The case id as the name of a folder on any file system."""
    return re.sub(r"[^\w.\-]+", "_", case_id).strip("_")


def command(case_id: str) -> str:
    """The command line that writes the case; in double quotes, since those are all that Windows' cmd.exe knows."""
    return f'epcheck repro "{case_id}" --out repro'


def write(built: BuiltCase, out: Path) -> Path:
    """Write the case into a folder of its own under `out` and return that folder. Raises ReproError."""
    folder = out / folder_name(built.case.id)
    data = folder / "test_data_set_0"
    truth = true_outputs(built)
    try:
        data.mkdir(parents=True, exist_ok=True)
        for stale in data.glob("*.pb"):
            stale.unlink()
        (folder / "model.onnx").write_bytes(built.model)
        for kind, values in (("input", built.feeds), ("output", truth)):
            for index, (name, value) in enumerate(values.items()):
                tensor = numpy_helper.from_array(value, name)
                (data / f"{kind}_{index}.pb").write_bytes(tensor.SerializeToString())
        arrays = {f"input.{k}": v for k, v in built.feeds.items()} | {f"output.{k}": v for k, v in truth.items()}
        np.savez(folder / "data.npz", **arrays)  # type: ignore[arg-type]
        (folder / "run.py").write_text(_script(built), encoding="utf-8")
    except OSError as error:
        raise ReproError(f"case '{built.case.id}' cannot be written to '{folder}': {error.strerror or error}") from None
    return folder


def true_outputs(built: BuiltCase) -> dict[str, Array]:
    """Output name -> the true value, the preferred one where several follow the standard; empty for a refusal."""
    match built.truth:
        case Outputs(outputs=outputs):
            return {output.name: output.value for output in outputs}
        case Selection(accepted=accepted):
            return dict(zip(built.node.results, accepted[0], strict=True))
        case Refusal():
            return {}


def _script(built: BuiltCase) -> str:
    truth = built.truth
    expects = f"must be refused ({truth.reason})" if isinstance(truth, Refusal) else "compares exactly"
    literal = f"{built.case.id}: {expects}".encode("unicode_escape").decode("ascii").replace('"', '\\"')
    return SCRIPT.format(words=literal, options="{}")
