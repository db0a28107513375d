"""Callables of stated speed: each waits, and gives y = 0 for the nodes that the tests time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

STEP_S = 3e-3
"""Seconds; what a call takes besides may be tenths of a millisecond on a busy machine."""


def _wait(steps: float, feeds: Mapping[str, Any], value: float = 0.0) -> list[Any]:
    until = time.perf_counter() + steps * STEP_S
    outputs = [np.full(next(iter(feeds.values())).shape, value, np.float32)]  # its memory may take as long as a step
    while time.perf_counter() < until:
        pass
    return outputs


def takes_1(_model: bytes, feeds: Mapping[str, Any]) -> list[Any]:
    return _wait(1.0, feeds)


def takes_1_5(_model: bytes, feeds: Mapping[str, Any]) -> list[Any]:
    return _wait(1.5, feeds)


def gives_1(_model: bytes, feeds: Mapping[str, Any]) -> list[Any]:
    return _wait(1.0, feeds, 1.0)


def fails(_model: bytes, _feeds: Mapping[str, Any]) -> list[Any]:
    raise ValueError("no kernel of mine")
