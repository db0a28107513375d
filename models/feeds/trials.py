"""The trials of a model: the user's feeds, or generated ones of several seeds and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from epcheck.models.feeds import feeds
from epcheck.models.graph import feed
from epcheck.models.graph.feed import Feed


@dataclass(frozen=True)
class Trial:
    """One set of feeds. name: of the user's file, or seed and sizes. arguments: of `epcheck reduce`, for these
    feeds."""

    name: str
    inputs: Mapping[str, Feed]
    arguments: tuple[str, ...]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Input name -> shape, of the feeds that are tensors."""
        return feed.shapes(self.inputs)


def trials(
    model: onnx.ModelProto, path: Path | None, seeds: Sequence[int], dims: Mapping[str, Sequence[int]]
) -> Iterator[Trial]:
    """Each set of feeds at a path; without one, each seed at each combination of sizes.

    Raises FeedError, DimsError, ModelFileError.
    """
    if path is not None:
        for found in feeds.read(path, model):
            file = path if found.name == path.name else path / found.name
            yield Trial(found.name, found.inputs, ("--feeds", str(file)))
        return
    for sizes in feeds.combinations(model, dims):
        assigned = [f"{name}={size}" for name, size in sizes.items()]
        dim_arguments = tuple(word for text in assigned for word in ("--dim", text))
        for seed in seeds:
            name = ", ".join((f"seed {seed}", *assigned))
            yield Trial(name, feeds.generate(model, seed, sizes), ("--seed", str(seed), *dim_arguments))
