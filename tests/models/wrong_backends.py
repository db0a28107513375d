"""Targets with a wrong Relu: `python:wrong_backends:doubles_relu`."""

from __future__ import annotations

import ctypes
import sys
import time
from pathlib import Path
from typing import Any

import onnx

sys.path.insert(0, str(Path(__file__).parents[2]))  # a worker is given the folder of this module alone

from tests.models.in_process_targets import Wrong

_calls: list[int] = []


def doubles_relu(model: bytes, feeds: dict[str, Any]) -> Any:
    """Every Relu gives twice what it should."""
    proto = onnx.load_model_from_string(model)
    names = [node.name for node in proto.graph.node if node.op_type == "Relu"]
    return dict(Wrong(wrong={name: lambda _node, value: value * 2 for name in names})(proto, feeds).outputs)


def enlarges_gelu(model: bytes, feeds: dict[str, Any]) -> Any:
    """Every Gelu is 5 % too large."""
    proto = onnx.load_model_from_string(model)
    names = [node.name for node in proto.graph.node if node.op_type == "Gelu"]
    return dict(Wrong(wrong={name: lambda _node, value: value * value.dtype.type(1.05) for name in names})(
        proto, feeds).outputs)  # fmt: skip


def hangs_at_relu(model: bytes, feeds: dict[str, Any]) -> Any:
    """A model with a Relu does not end."""
    proto = onnx.load_model_from_string(model)
    if any(node.op_type == "Relu" for node in proto.graph.node):
        time.sleep(1000)
    return _right(model, feeds)


HANGING = "stands still"


def hangs_in_parts(model: bytes, feeds: dict[str, Any]) -> Any:
    """As `doubles_relu`, but what has fewer than 20 nodes does not end; on Linux the process is called HANGING then."""
    if len(onnx.load_model_from_string(model).graph.node) < 20:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(15, HANGING.encode(), 0, 0, 0)  # PR_SET_NAME
        time.sleep(1000)
    return doubles_relu(model, feeds)


def doubles_every_other_relu(model: bytes, feeds: dict[str, Any]) -> Any:
    """Every second call is wrong."""
    _calls.append(1)
    return (doubles_relu if len(_calls) % 2 == 0 else _right)(model, feeds)


def _right(model: bytes, feeds: dict[str, Any]) -> Any:
    return dict(Wrong(wrong={})(onnx.load_model_from_string(model), feeds).outputs)
