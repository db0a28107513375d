"""Callables (model_bytes, feeds) -> outputs that misbehave; feeds of zeros are answered in peace."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Feeds = Mapping[str, Array]

_runs: list[int] = []


def _answer(feeds: Feeds) -> dict[str, Array]:
    return {"y": feeds["x"], "z": feeds["x"]}


def dies_in_its_first_run(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    if feeds["x"].any():
        os.abort()
    return _answer(feeds)


def dies_in_its_second_run(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    _runs.append(1)
    if feeds["x"].any() and len(_runs) == 2:
        os.abort()
    return _answer(feeds)


def hangs(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    if feeds["x"].any():
        time.sleep(600)
    return _answer(feeds)


def loses_the_device(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    if feeds["x"].any():
        raise RuntimeError("887A0005 The GPU device instance has been suspended")
    return _answer(feeds)


def never_the_same(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    _runs.append(1)
    return {**_answer(feeds), "y": feeds["x"] + len(_runs)}


def takes_memory(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    hoard = np.ones(400 << 17)  # 400 MiB
    time.sleep(20)
    return {**_answer(feeds), "y": feeds["x"] * hoard[0]}


def relu_is_leaky(model: bytes, feeds: Feeds) -> Any:
    """ONNX Runtime's CPU provider, but Relu leaves a tenth of what is negative."""
    return _with_relu(model, feeds, lambda x: np.where(x > 0, x, x / 10))


def dies_of_relu(model: bytes, feeds: Feeds) -> Any:
    return _with_relu(model, feeds, lambda _x: os.abort())


def _with_relu(content: bytes, feeds: Feeds, relu: Any) -> Any:
    import onnx
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    class Relu(OpRun):  # type: ignore[misc]
        op_domain = ""

        def _run(self, x: Array) -> tuple[Array]:
            return (relu(x).astype(x.dtype),)

    return ReferenceEvaluator(onnx.load_from_string(content), new_ops=[Relu]).run(None, dict(feeds))


def reads_its_weights(model: bytes, feeds: Feeds, folder: str | None) -> dict[str, Array]:
    """An Add of x and what is in the file beside a model that does not have it."""
    import onnx

    (weight,) = onnx.load_from_string(model).graph.initializer or (None,)
    if folder is None:
        raise FileNotFoundError(folder)
    assert not weight.raw_data
    return {"y": feeds["x"] + np.fromfile(f"{folder}/weights.bin", np.float32).reshape(1, 2)}


def one_sample(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    """A Relu that takes a batch of one alone."""
    if len(feeds["x"]) > 1:
        raise RuntimeError("a batch is not supported")
    return {"y": np.maximum(feeds["x"], 0)}
