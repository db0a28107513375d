"""A backend that is as good, wrong or dead as the file `mood` in the working directory says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import onnxruntime as ort


def answer(model: bytes, feeds: dict[str, Any]) -> list[Any]:
    mood = Path("mood").read_text(encoding="utf-8")
    if mood == "dead":
        os._exit(3)
    outputs = ort.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)
    return [-output - 1 for output in outputs] if mood == "wrong" else list(outputs)
