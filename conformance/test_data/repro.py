"""A case as a folder that anybody can run: ONNX's own test-data layout, and a script that needs onnxruntime only.

model.onnx                    the one-node model
test_data_set_0/input_0.pb    its graph inputs, in order, as serialized TensorProto
test_data_set_0/output_0.pb   the true outputs (none when the node must be refused)
data.npz                      the same, for run.py
run.py                        runs the model on a provider and compares
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np
from onnx import numpy_helper

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.error import EpcheckError
from epcheck.generators.truth import Outputs, Refusal, Selection

DATA_SET = "test_data_set_0"

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


class ReproError(EpcheckError, ValueError):
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
    try:
        write_folder(folder, built.model, built.feeds, true_outputs(built), _script(built))
    except OSError as error:
        raise ReproError(f"case '{built.case.id}' cannot be written to '{folder}': {error.strerror or error}") from None
    return folder


def archive(built: BuiltCase) -> bytes:
    """The folder that `write` makes, as a zip file: the same bytes for the same case."""
    made = io.BytesIO()
    with ZipFile(made, "w", ZIP_DEFLATED) as file:
        for name, content in _files(built.model, built.feeds, true_outputs(built), _script(built)).items():
            file.writestr(ZipInfo(f"{folder_name(built.case.id)}/{name}"), content, ZIP_DEFLATED)
    return made.getvalue()


def write_folder(
    folder: Path, model: bytes, feeds: Mapping[str, Array], outputs: Mapping[str, Array], script: str
) -> None:
    """Write the files that are listed above. feeds, outputs: name -> value in the order of the graph's. Raises
    OSError."""
    (folder / DATA_SET).mkdir(parents=True, exist_ok=True)
    for stale in (folder / DATA_SET).glob("*.pb"):
        stale.unlink()
    for name, content in _files(model, feeds, outputs, script).items():
        (folder / name).write_bytes(content)


def _files(model: bytes, feeds: Mapping[str, Array], outputs: Mapping[str, Array], script: str) -> dict[str, bytes]:
    """Name within the folder -> content."""
    tensors = {
        f"{DATA_SET}/{kind}_{index}.pb": numpy_helper.from_array(value, name).SerializeToString()
        for kind, values in (("input", feeds), ("output", outputs))
        for index, (name, value) in enumerate(values.items())
    }
    arrays = {f"input.{k}": v for k, v in feeds.items()} | {f"output.{k}": v for k, v in outputs.items()}
    data = io.BytesIO()
    np.savez(data, **arrays)  # type: ignore[arg-type]
    return {"model.onnx": model, **tensors, "data.npz": data.getvalue(), "run.py": script.encode()}


def as_literal(words: str) -> str:
    """Words that stand in a docstring of a script, whatever they hold."""
    return words.encode("unicode_escape").decode("ascii").replace('"', '\\"')


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
    return SCRIPT.format(words=as_literal(f"{built.case.id}: {expects}"), options="{}")
