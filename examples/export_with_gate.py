"""An export script that gives out no model which is wrong on the provider, or leaves too much of it to the CPU.

    python export_with_gate.py out/model.onnx --target dml

The model is written beside its place, validated there, and moved only if it passes. `export` stands for your own: most
write the file with `torch.onnx.export(network, inputs, path, dynamo=True)`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import typer
from onnx import TensorProto, helper, numpy_helper

from epcheck import api

PLACED = 0.9
"""The least share of the nodes that have to run on the provider."""


def export(path: Path) -> None:
    """Two layers of a perceptron with a dynamic batch; replace it by your own."""
    rng = np.random.default_rng(0)
    weights = {
        "w1": rng.normal(0, 0.3, (16, 32)), "b1": rng.normal(0, 0.1, 32), "w2": rng.normal(0, 0.3, (32, 4)),
    }  # fmt: skip
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w1"], ["product"], name="first"),
            helper.make_node("Add", ["product", "b1"], ["sum"], name="bias"),
            helper.make_node("Relu", ["sum"], ["hidden"], name="activation"),
            helper.make_node("MatMul", ["hidden", "w2"], ["logits"], name="second"),
            helper.make_node("Softmax", ["logits"], ["y"], name="classes", axis=-1),
        ],
        "perceptron",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


def main(path: Path, target: str | None = None) -> None:
    """Export a model that is right on the target, or none. The target is the best of this machine, unless named."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft, page = path.with_suffix(".draft.onnx"), path.with_suffix(".html")
    export(draft)
    found = api.validate(api.ValidateOptions((draft,), (target,), dims={"batch": (1, 3)}, html=page)).validation
    print(found.headline)
    share = found.placed_share
    if found.status != "right" or (share is not None and share < PLACED):
        sys.exit(f"not exported, see {page}")
    draft.replace(path)
    print(f"exported: {path}")


if __name__ == "__main__":
    typer.run(main)
