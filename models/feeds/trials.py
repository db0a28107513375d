"""What a model is tried on: the user's data, or generated feeds of several seeds and sizes."""

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
    """One set of feeds. name: of the user's file, or seed and sizes. arguments: of `epcheck reduce`, for the same."""

    name: str
    inputs: Mapping[str, Feed]
    arguments: tuple[str, ...]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the feeds that are tensors."""
        return feed.shapes(self.inputs)


def trials(
    model: onnx.ModelProto, given: Path | None, seeds: Sequence[int], dims: Mapping[str, Sequence[int]]
) -> Iterator[Trial]:
    """Each set of `given`, or each seed at each combination of sizes. Raises FeedError, DimsError, ModelFileError."""
    if given is not None:
        for one in feeds.read(given, model):
            path = given if one.name == given.name else given / one.name
            yield Trial(one.name, one.inputs, ("--feeds", str(path)))
        return
    for sizes in feeds.combinations(model, dims):
        said = [f"{name}={size}" for name, size in sizes.items()]
        more = tuple(word for one in said for word in ("--dim", one))
        for seed in seeds:
            name = ", ".join((f"seed {seed}", *said))
            yield Trial(name, feeds.generate(model, seed, sizes), ("--seed", str(seed), *more))
