"""onnx.reference.ReferenceEvaluator as a backend."""

from __future__ import annotations

import warnings
from typing import Any

import onnx
from onnx.reference import ReferenceEvaluator

from .function import FunctionBackend


class ReferenceBackend(FunctionBackend):
    """Evaluates each model with onnx's reference implementation."""

    def __init__(self) -> None:
        warnings.simplefilter("ignore")
        super().__init__("", _evaluate)

    def facts(self) -> dict[str, str]:
        return {"onnx": onnx.__version__}


def _evaluate(model: bytes, feeds: dict[str, Any]) -> Any:
    return ReferenceEvaluator(onnx.load_from_string(model)).run(None, feeds)
