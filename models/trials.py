"""What a model is tried on: the user's data, or generated feeds of several seeds and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from epcheck.models import feeds
from epcheck.models.feed_files import Feed


@dataclass(frozen=True)
class Trial:
    """One set of feeds. name: of the user's file, or seed and sizes. dims: the sizes that were asked for."""

    name: str
    inputs: Mapping[str, Feed]
    dims: Mapping[str, int]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the feeds that are tensors."""
        return {name: value.shape for name, value in self.inputs.items() if isinstance(value, np.ndarray)}


def trials(
    model: onnx.ModelProto, given: Path | None, seeds: Sequence[int], dims: Mapping[str, Sequence[int]]
) -> Iterator[Trial]:
    """Each set of `given`, or each seed at each combination of sizes. Raises FeedError, DimsError, ModelFileError."""
    if given is not None:
        yield from (Trial(one.name, one.inputs, {}) for one in feeds.read(given, model))
        return
    for sizes in feeds.combinations(model, dims):
        said = "".join(f", {name}={size}" for name, size in sizes.items())
        yield from (Trial(f"seed {seed}{said}", feeds.generate(model, seed, sizes), sizes) for seed in seeds)
