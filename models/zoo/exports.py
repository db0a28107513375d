"""Real exports, with random weights: what torch.onnx makes of torchvision's models, and skl2onnx of a pipeline.

They need the extra `exports` (`pip install 'epcheck[exports]'`), which is why they are no part of `zoo.all()`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import util
from typing import Any

import onnx

from epcheck.models.zoo.architecture import Architecture, ZooError

SEED = 20
CLASSES = 10


class ExportError(ZooError):
    """An exporter is not installed; the message says how to get it."""


def all() -> tuple[Architecture, ...]:  # noqa: A001 - `exports.all()` is how it is read
    """Every export, in a stable order. Their `build` raises ExportError where an exporter is not installed.

    The weights are those of the installed versions' initialisation: the same on each run, not in each version.
    """
    image = {"batch": (1, 2)}
    return (
        Architecture("export_resnet18", "torchvision's resnet18, exported by torch.onnx", _resnet18, image),
        Architecture(
            "export_mobilenet_v3_small", "torchvision's mobilenet_v3_small, exported by torch.onnx", _mobilenet, image
        ),
        Architecture("export_vit", "torchvision's VisionTransformer, small, exported by torch.onnx", _vit, image),
        Architecture(
            "export_boosted_trees", "a scaler and gradient boosting, exported by skl2onnx",
            partial(_pipeline, "GradientBoostingClassifier"), {"batch": (1, 5)},
        ),
        Architecture(
            "export_logistic_regression", "a scaler and logistic regression, exported by skl2onnx",
            partial(_pipeline, "LogisticRegression"), {"batch": (1, 5)},
        ),
    )  # fmt: skip


def _needs(*modules: str) -> None:
    missing = [name for name in modules if util.find_spec(name) is None]
    if missing:
        raise ExportError(f"{', '.join(missing)} not installed; run: pip install 'epcheck[exports]'")


def _resnet18() -> onnx.ModelProto:
    _needs("torch", "torchvision", "onnxscript")
    from torchvision import models

    return _export_module(lambda: models.resnet18(weights=None, num_classes=CLASSES), 64)


def _mobilenet() -> onnx.ModelProto:
    _needs("torch", "torchvision", "onnxscript")
    from torchvision import models

    return _export_module(lambda: models.mobilenet_v3_small(weights=None, num_classes=CLASSES), 64)


def _vit() -> onnx.ModelProto:
    _needs("torch", "torchvision", "onnxscript")
    from torchvision.models import VisionTransformer

    return _export_module(lambda: VisionTransformer(32, 8, 3, 4, 48, 192, num_classes=CLASSES), 32)


def _export_module(make: Callable[[], Any], size: int) -> onnx.ModelProto:
    """What torch.onnx.export makes of a module that takes images [batch, 3, size, size], as a user calls it today."""
    import torch

    torch.manual_seed(SEED)
    module = make().eval()
    _settle(module)
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.onnx.export(
        module, (torch.rand(2, 3, size, size),), dynamo=True, dynamic_shapes=({0: batch},), input_names=["image"],
        output_names=["logits"], verbose=False,
    )  # fmt: skip
    model: onnx.ModelProto = program.model_proto
    return model


def _settle(module: Any) -> None:
    """Give a head that the initialisation leaves at zero weights that matter, and normalisations statistics."""
    import torch

    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, torch.nn.Linear) and not part.weight.any():
                part.weight.normal_(std=0.1)
            if isinstance(part, torch.nn.BatchNorm2d):
                part.running_mean.normal_(std=0.1)
                part.running_var.uniform_(0.5, 1.5)


def _pipeline(classifier: str) -> onnx.ModelProto:
    _needs("sklearn", "skl2onnx")
    import numpy as np
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((200, 6)) * [1, 10, 0.1, 1, 1, 3] + [0, 5, 0, -1, 0, 2]
    y = (x[:, 0] + x[:, 2] * 10 > 0).astype(int) + (x[:, 1] > 8)
    model = {
        "GradientBoostingClassifier": GradientBoostingClassifier(n_estimators=12, max_depth=3, random_state=SEED),
        "LogisticRegression": LogisticRegression(),
    }[classifier]
    pipeline = make_pipeline(StandardScaler(), model).fit(x, y)
    exported: onnx.ModelProto = to_onnx(
        pipeline,
        initial_types=[("features", FloatTensorType([None, 6]))],
        options={"zipmap": False},
        target_opset=17,
    )
    exported.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"  # skl2onnx has no names for sizes
    return exported
