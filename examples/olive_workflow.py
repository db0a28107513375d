"""An Olive workflow whose model goes out only if the provider is right on it, and keeps what the workflow gained.

    python olive_workflow.py model.onnx out/model.onnx --target dml

The workflow turns a float32 model into float16; put your own passes in its place. What Olive made is validated with a
page, and compared with the model that it was made of: a pass may change more than you allow.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import typer
from olive.workflows import run

from epcheck import api

PASSES = {"float16": {"type": "OnnxFloatToFloat16", "keep_io_types": True}}
"""See Olive's documentation for others."""


def main(model: Path, path: Path, target: str | None = None) -> None:
    """Run the workflow, and keep its model if it is right on the target: the best of this machine, unless named."""
    path.parent.mkdir(parents=True, exist_ok=True)
    page = path.with_suffix(".html")
    with tempfile.TemporaryDirectory() as folder:
        output = run({
            "input_model": {"type": "ONNXModel", "model_path": str(model)},
            "passes": PASSES,
            "output_dir": str(Path(folder) / "output"),
            "cache_dir": str(Path(folder) / "cache"),
        })  # fmt: skip
        made = Path(output.get_best_candidate().model_path)
        found = api.validate(api.ValidateOptions((made,), (target,), html=page)).validation
        print(found.headline)
        if found.status != "right":
            sys.exit(f"not kept, see {page}")
        shutil.copyfile(made, path)
    print(f"kept: {path}")


if __name__ == "__main__":
    typer.run(main)
