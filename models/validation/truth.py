"""The truth of a model's trials: what the oracle computes, as far as it can be had in reasonable time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.feeds.trials import Trial
from epcheck.models.graph import values
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.wiring import wire
from epcheck.models.oracle import oracle
from epcheck.models.oracle.node import OracleError
from epcheck.models.oracle.rounding import UNITS, RandomRounding

ORACLE_S = 90.0
"""Seconds that the oracle may take for all trials of a model together."""


INNER_BYTES = 256 << 20
"""Bytes of the values within a model that are kept, in the types of the model; in float64 they are up to four times as
many."""

RUNS = 3
"""Evaluations with random rounding, of which the largest error counts."""


@dataclass(frozen=True)
class Truth:
    """values: for each trial its true outputs by name, those of a sequence `s` as `s[0]`, `s[1]` ...; None where they
    are not known. words: a sentence that says who computed them, or why nobody did. inner: the values of the main graph
    in the trial of the index `inner_trial`, rounded to their types; empty where they are not known."""

    values: tuple[Mapping[str, Feed] | None, ...]
    words: str
    inner: Mapping[str, Feed] = field(default_factory=dict, repr=False)
    inner_trial: int = 0


def make_unknown_truth(trials: int, why: str) -> Truth:
    """No truth for so many trials."""
    return Truth((None,) * trials, why)


def of_trials(model: onnx.ModelProto, tried: Mapping[int, Trial], count: int, seconds: float | None = None) -> Truth:
    """The truth of the trials, one after the other until the time is up. model: with all its weights in it. tried:
    index -> trial, of `count` trials. seconds: for all of them, ORACLE_S by default."""
    started, most = time.monotonic(), ORACLE_S if seconds is None else seconds
    found: dict[int, Mapping[str, Feed]] = {}
    inner: Mapping[str, Feed] = {}
    operations, why = 0, ""
    for at, trial in tried.items():
        left = most - (time.monotonic() - started)
        kept = () if found else _inner_values(model, trial)
        outputs = [value.name for value in model.graph.output]
        try:
            evaluation = oracle.evaluate(model, trial.inputs, list(dict.fromkeys([*outputs, *kept])), max_seconds=left)
        except OracleError as error:
            why = why or str(error)
            continue
        if not found:
            inner = dict(_round_to_types(model, trial, {name: evaluation.values[name] for name in kept}))
        found[at] = dict(tensors_by_name({name: evaluation.values[name] for name in outputs}))
        operations += evaluation.operations
    known = tuple(found.get(at) for at in range(count))
    if not found:
        return Truth(known, f"no oracle for this model: {why}")
    took = f"{operations:.2g} operations, {time.monotonic() - started:.1f} s"
    which = f"all {len(tried)} trials" if len(tried) > 1 else "the trial"
    words = f"an oracle in float64 computed the truth of {which} ({took})"
    if len(found) < len(tried):
        words = (
            f"an oracle in float64 computed the truth of {len(found)} of {len(tried)} trials ({took}); not of the "
            f"others: {why}"
        )
    return Truth(known, words, inner, min(found))


def _inner_values(model: onnx.ModelProto, trial: Trial) -> tuple[str, ...]:
    """The values that nodes make, in the order of the graph, as far as INNER_BYTES hold them."""
    wiring = wire(model, trial.inputs)
    sizes, room, names = wiring.sizes(trial.shapes), INNER_BYTES, []
    for name in wiring.producer:
        room -= sizes.get(name) or 0
        if name in wiring.last_read and name not in wiring.constants and wiring.can_be_output(name) and room >= 0:
            names.append(name)
    return tuple(names)


def _round_to_types(model: onnx.ModelProto, trial: Trial, found: Mapping[str, Feed]) -> Iterator[tuple[str, Feed]]:
    """The values that are tensors of numbers, as a runtime holds them; those of unknown types are left out."""
    types = values.of_graph(values.infer_types(model, trial.shapes).graph)
    for name, value in found.items():
        dtype = types.get(name, values.UNKNOWN).dtype
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
            continue
        if value.dtype != np.float64:
            yield name, value
        elif dtype in UNITS:
            with np.errstate(over="ignore"):
                yield name, value.astype(dtype)


def evaluate_with_rounding(
    model: onnx.ModelProto, trial: Trial, seconds: float | None = None, once: bool = False
) -> Iterator[Mapping[str, Feed]]:
    """The outputs of a trial with random rounding, RUNS times, each computed when it is asked for; fewer where the time
    is up. once: as of `RandomRounding`. The other arguments are those of `of_trials`."""
    until = time.monotonic() + (ORACLE_S if seconds is None else seconds)
    types = values.of_graph(values.infer_types(model, trial.shapes).graph)
    for seed in range(RUNS):
        left = until - time.monotonic()
        try:
            disturbance = RandomRounding(types, seed, once)
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
