"""The trials of a model: the user's feeds, or generated ones of several seeds and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx

from epcheck.models.feeds import dims as dimensions
from epcheck.models.feeds import feeds, reshape_sizes
from epcheck.models.feeds.feed_files import FeedError
from epcheck.models.graph import feed
from epcheck.models.graph.feed import Feed

SEEDS = (0, 1)
"""Seeds of generated feeds where none are chosen."""


BATCH = 2
"""Samples of a batch in the trials after the first: one sample hides what goes wrong between two."""


@dataclass(frozen=True)
class Feeding:
    """What a model is fed. path: an .npz or a folder of ONNX test data; None to generate feeds: with each of the seeds,
    at every combination of the sizes of `dims`, which maps dynamic dimensions to them; from the second seed on as a
    batch of BATCH, where the model has a dimension for it that `dims` does not name; a dimension of which the graph
    takes one size alone has that. inputs: one set of feeds in
    place of all that; is_generated: whether it is made up. expect: where the expected outputs are, as `feeds.read` has
    it; it may have the feeds as well."""

    path: Path | None = None
    seeds: Sequence[int] = SEEDS
    dims: Mapping[str, Sequence[int]] = field(default_factory=dict)
    inputs: Mapping[str, Feed] | None = None
    is_generated: bool = False
    expect: Path | None = None


@dataclass(frozen=True)
class Trial:
    """One set of feeds. name: of the user's file, or seed and sizes. arguments: of `epcheck reduce`, for these
    feeds. is_generated: whether the feeds are made up. instead: tried where this trial ends with an error: a model may
    declare a batch that it cannot take. expected: outputs that the user's files expect, by name.
    """

    name: str
    inputs: Mapping[str, Feed]
    arguments: tuple[str, ...]
    is_generated: bool = False
    instead: Trial | None = None
    expected: Mapping[str, Feed] = field(default_factory=dict)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Input name -> shape, of the feeds that are tensors."""
        return feed.shapes(self.inputs)


def trials(model: onnx.ModelProto, feeding: Feeding) -> Iterator[Trial]:
    """Each set of feeds at the path; without one, each seed at each combination of sizes.

    Raises FeedError, DimsError, ModelFileError.
    """
    if feeding.inputs is not None:
        yield Trial("the feeds", feeding.inputs, (), feeding.is_generated)
        return
    path = feeding.path
    if path is None and feeding.expect is not None:
        if not feeds.has_inputs(feeding.expect, model):
            raise FeedError(
                f"'{feeding.expect}' has expected outputs alone; give the feeds that they belong to: --feeds"
            )
        path = feeding.expect
    if path is not None:
        for found in feeds.read(path, model, feeding.expect):
            file = path if found.name == path.name else path / found.name
            yield Trial(found.name, found.inputs, ("--feeds", str(file)), expected=found.expected)
        return
    fixed = {name: (size,) for name, size in reshape_sizes.find(model, feeding.dims).items()}
    batch = [name for name in dimensions.of_batch(model) if name not in {**feeding.dims, **fixed}]
    for sizes in feeds.combinations(model, {**feeding.dims, **fixed}):
        for index, seed in enumerate(feeding.seeds):
            single = _generate_trial(model, seed, sizes)
            if index and batch:
                yield replace(_generate_trial(model, seed, {**sizes, **dict.fromkeys(batch, BATCH)}), instead=single)
            else:
                yield single


def _generate_trial(model: onnx.ModelProto, seed: int, sizes: Mapping[str, int]) -> Trial:
    assigned = [f"{name}={size}" for name, size in sizes.items()]
    arguments = ("--seed", str(seed), *(word for text in assigned for word in ("--dim", text)))
    return Trial(", ".join((f"seed {seed}", *assigned)), feeds.generate(model, seed, sizes), arguments, True)
