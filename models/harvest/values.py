"""The values of a model, as far as they are kept: those that say how to compute, and the spread of the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from epcheck.conformance.test_data import model_file
from epcheck.conformance.workers import heartbeat
from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.harvested.value_spread import Spread, is_kept, measure_spread
from epcheck.generators.sources.harvested import HarvestError
from epcheck.models.execution.model_outcome import DONE
from epcheck.models.execution.runner import RunResult
from epcheck.models.graph import feed
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import with_outputs
from epcheck.models.graph.wiring import Wiring

SESSION_BYTES = 1 << 28
"""Of the values that one session returns."""

NUMBERS = frozenset(schema.NUMPY_NAMES.values())

Run = Callable[[onnx.ModelProto], RunResult]
"""Runs a model on the feeds, without optimisation."""


@dataclass(frozen=True)
class KnownValue:
    """A tensor. values: themselves where they are kept, else their spread."""

    dtype: str
    shape: tuple[int, ...]
    values: Array | Spread


def known_values(
    wiring: Wiring, feeds: Mapping[str, Feed], run: Run, folder: Path | None
) -> dict[str, KnownValue | None]:
    """Every value of the main graph; None for one that is no tensor of numbers. Values that no session returns are left
    out. folder: of external data. Raises ModelFileError, and HarvestError where the model does not run."""
    found = {name: known_value(value) for name, value in feeds.items()}
    for tensor in wiring.model.graph.initializer:
        if tensor.name in wiring.constants:
            found[tensor.name] = known_value(model_file.array_of(tensor, folder or Path()))
            heartbeat.beat()
    for name in wiring.constants & wiring.producer.keys():
        constant = wiring.constant(name)
        found[name] = None if constant is None else known_value(constant)
    for names in _sessions(wiring, feed.shapes(feeds)):
        outcome = run(with_outputs(wiring, names))
        if outcome.stage != DONE:
            raise HarvestError(f"the model does not run: {outcome.message}")
        found |= {name: known_value(value) for name, value in outcome.outputs.items()}
        heartbeat.beat()
    return found


def known_value(value: Feed) -> KnownValue | None:
    """What is kept of a value; None of one that is no tensor of numbers."""
    if not isinstance(value, np.ndarray) or value.dtype.name not in NUMBERS:
        return None
    kept = value.copy() if is_kept(value) else measure_spread(value)
    return KnownValue(value.dtype.name, value.shape, kept)


def _sessions(wiring: Wiring, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[list[str]]:
    """The values that a session can return, in groups of SESSION_BYTES at most and of at least one value."""
    largest = max((int(np.prod(shape, dtype=np.int64)) * 4 for shape in shapes.values()), default=0)
    sizes = wiring.sizes(shapes)
    group: list[str] = []
    room = SESSION_BYTES
    for name in wiring.producer:
        if name in wiring.constants or not wiring.can_be_output(name) or wiring.is_sequence(name):
            continue
        size = sizes.get(name)
        size = largest if size is None else size
        if group and size > room:
            yield group
            group, room = [], SESSION_BYTES
        group.append(name)
        room -= size
    if group:
        yield group
