"""A PyTorch module goes out as ONNX only if the provider computes what PyTorch does.

    python torch_export.py out/model.onnx --target dml

`Network` stands for your own module. The file is written beside its place, validated with the inputs that it was
exported with and with a batch of another size, and moved only if it passes. The page is out/model.html.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import torch
import typer

from epcheck import api

RTOL, ATOL = 1e-3, 1e-5
"""How far PyTorch and ONNX Runtime may differ: they add in another order."""


class Network(torch.nn.Module):
    """A small image classifier; replace it by your own."""

    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2)
        )
        self.classes = torch.nn.Linear(8 * 8 * 8, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.classes(self.features(image).flatten(1)), dim=-1)


def main(path: Path, target: str | None = None) -> None:
    """Export a module that is right on the target, or none. The target is the best of this machine, unless named."""
    torch.manual_seed(0)
    network, image = Network().eval(), torch.randn(2, 3, 16, 16)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft, page = path.with_suffix(".draft.onnx"), path.with_suffix(".html")
    torch.onnx.export(
        network, (image,), draft, input_names=["image"], output_names=["probabilities"], dynamo=True,
        dynamic_shapes={"image": {0: "batch"}}, external_data=False, verbose=False,
    )  # fmt: skip

    with tempfile.TemporaryDirectory() as folder:
        feeds = Path(folder) / "feeds.npz"
        np.savez(feeds, image=image.numpy())
        by_feeds = api.validate(api.ValidateOptions((draft,), (target,), feeds=feeds, html=page)).validation
        by_size = api.validate(api.ValidateOptions((draft,), (target,), dims={"batch": (1, 5)})).validation
    for found in (by_feeds, by_size):
        print(found.headline)
    if not all(found.status == "right" for found in (by_feeds, by_size)) or not is_as_in_torch(draft, network, image):
        sys.exit(f"not exported, see {page}")
    draft.replace(path)
    print(f"exported: {path}")


def is_as_in_torch(path: Path, network: torch.nn.Module, image: torch.Tensor) -> bool:
    """Whether the file means the module: a provider can compute a wrong export rightly."""
    with torch.no_grad():
        expected = network(image).numpy()
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {"image": image.numpy()})
    return bool(np.allclose(got, expected, RTOL, ATOL))


if __name__ == "__main__":
    typer.run(main)
