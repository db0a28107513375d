"""The truth of a model's trials: what the oracle computes, as far as it can be had in reasonable time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.feeds.trials import Trial
from epcheck.models.graph import values
from epcheck.models.graph.feed import Feed
from epcheck.models.oracle import oracle
from epcheck.models.oracle.node import OracleError
from epcheck.models.oracle.rounding import RandomRounding

ORACLE_S = 90.0
"""Seconds that the oracle may take for all trials of a model together."""


RUNS = 3
"""Evaluations with random rounding, of which the largest error counts."""


@dataclass(frozen=True)
class Truth:
    """values: for each trial its true outputs by name, those of a sequence `s` as `s[0]`, `s[1]` ...; None where they
    are not known. words: a sentence that says who computed them, or why nobody did."""

    values: tuple[Mapping[str, Feed] | None, ...]
    words: str


def make_unknown_truth(trials: int, why: str) -> Truth:
    """No truth for so many trials."""
    return Truth((None,) * trials, why)


def of_trials(model: onnx.ModelProto, tried: Sequence[Trial], seconds: float | None = None) -> Truth:
    """The truth of the trials, one after the other until the time is up. model: with all its weights in it.
    seconds: for all of them, ORACLE_S by default."""
    started, most = time.monotonic(), ORACLE_S if seconds is None else seconds
    found: list[Mapping[str, Feed]] = []
    operations, why = 0, ""
    for trial in tried:
        left = most - (time.monotonic() - started)
        try:
            evaluation = oracle.evaluate(model, trial.inputs, max_seconds=left)
        except OracleError as error:
            why = str(error)
            break
        found.append(dict(tensors_by_name(evaluation.values)))
        operations += evaluation.operations
    known = (*found, *[None] * (len(tried) - len(found)))
    if not found:
        return Truth(known, f"no oracle for this model: {why}")
    took = f"{operations:.2g} operations, {time.monotonic() - started:.1f} s"
    which = f"all {len(tried)} trials" if len(tried) > 1 else "the trial"
    if len(found) == len(tried):
        return Truth(known, f"an oracle in float64 computed the truth of {which} ({took})")
    return Truth(
        known, f"an oracle in float64 computed the truth of {len(found)} of {len(tried)} trials ({took}); then {why}"
    )


def evaluate_with_rounding(
    model: onnx.ModelProto, trial: Trial, seconds: float | None = None
) -> Iterator[Mapping[str, Feed]]:
    """The outputs of a trial with random rounding, RUNS times, each computed when it is asked for; fewer where the time
    is up. The arguments are those of `of_trials`."""
    until = time.monotonic() + (ORACLE_S if seconds is None else seconds)
    types = values.of_graph(values.infer_types(model, trial.shapes).graph)
    for seed in range(RUNS):
        left = until - time.monotonic()
        try:
            disturbance = RandomRounding(types, seed)
            evaluation = oracle.evaluate(model, trial.inputs, max_seconds=left, disturbance=disturbance)
        except OracleError:
            return
        yield dict(tensors_by_name(evaluation.values))


def tensors_by_name(known: Mapping[str, Feed]) -> Iterator[tuple[str, Feed]]:
    for name, value in known.items():
        if isinstance(value, list):
            yield from tensors_by_name({f"{name}[{index}]": element for index, element in enumerate(value)})
        elif isinstance(value, np.ndarray):
            yield name, _as_sent(value)


def _as_sent(value: Array) -> Array:
    """Text as a worker sends it, UTF-8 that is padded with zeros along one more axis; other tensors as they are."""
    if value.dtype.kind not in "OSU":
        return value
    encoded = np.char.encode(value.astype(str), "utf-8")
    width = max(encoded.dtype.itemsize, 1)
    return encoded.astype(f"S{width}").reshape(*value.shape, 1).view(np.uint8)
