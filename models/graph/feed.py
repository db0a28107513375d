"""The values that a model takes and gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from epcheck.generators.array import Array

Feed = Array | list[Any] | None
"""A tensor, a sequence of feeds, or an optional that is empty."""


def tensors(feed: Feed) -> list[Array]:
    """The tensors in a feed: itself, those of a sequence in order, none for an empty optional."""
    if isinstance(feed, np.ndarray):
        return [feed]
    return [tensor for part in feed or () for tensor in tensors(part)]


def shapes(feeds: Mapping[str, Feed]) -> dict[str, tuple[int, ...]]:
    """Name -> shape of the feeds that are tensors."""
    return {name: feed.shape for name, feed in feeds.items() if isinstance(feed, np.ndarray)}
