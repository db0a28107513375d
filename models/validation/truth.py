"""The truth of a model's trials: what the oracle computes, as far as it can be had in reasonable time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.feeds.trials import Trial
from epcheck.models.graph import values
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.wiring import Wiring, wire
from epcheck.models.oracle import oracle
from epcheck.models.oracle.node import OracleError
from epcheck.models.oracle.rounding import UNITS, RandomRounding
from epcheck.models.wrong_nodes.node_check import is_random

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
    in the trial of the index `inner_trial`, rounded to their types; empty where they are not known. substitutes:
    for each trial the values of nodes that no oracle computes, which are the baseline's."""

    values: tuple[Mapping[str, Feed] | None, ...]
    words: str
    inner: Mapping[str, Feed] = field(default_factory=dict, repr=False)
    inner_trial: int = 0
    substitutes: tuple[Mapping[str, Feed], ...] = ()


def make_unknown_truth(trials: int, why: str) -> Truth:
    """No truth for so many trials."""
    return Truth((None,) * trials, why)


AskBaseline = Callable[[Trial, Sequence[str]], Mapping[str, Feed]]
"""The baseline's values of these names in a trial; fewer where it has none."""


def of_trials(
    model: onnx.ModelProto,
    tried: Mapping[int, Trial],
    count: int,
    ask: AskBaseline | None = None,
    folder: Path | None = None,
    seconds: float | None = None,
) -> Truth:
    """The truth of the trials, one after the other until the time is up. A node that nobody computes is skipped, and
    the baseline's values take the place of its own.

    tried: index -> trial, of `count` trials. ask: None without a baseline. folder: where the model's external data is;
    None where it has none. seconds: for all of them, ORACLE_S by default.
    """
    started, most = time.monotonic(), ORACLE_S if seconds is None else seconds
    found: dict[int, Mapping[str, Feed]] = {}
    substitutes: dict[int, Mapping[str, Feed]] = {}
    inner: dict[int, Mapping[str, Feed]] = {}
    skipped: dict[str, str] = {}
    operations, why = 0, ""
    outputs = [value.name for value in model.graph.output]
    for at, trial in tried.items():
        kept = () if inner else _inner_values(model, trial)
        wanted = list(dict.fromkeys([*outputs, *kept]))
        try:
            evaluation, substitutes[at] = _evaluate_in_parts(model, trial, wanted, ask, folder, started + most)
        except OracleError as error:
            why = why or str(error)
            continue
        skipped.update(evaluation.skipped)
        if kept:
            known = [name for name in kept if name in evaluation.values]
            inner[at] = dict(_round_to_types(model, trial, known, evaluation.values, ask))
        if values_known := {name: evaluation.values[name] for name in outputs if name in evaluation.values}:
            found[at] = dict(tensors_by_name(values_known))
        operations += evaluation.operations
    took = f"{operations:.2g} operations, {time.monotonic() - started:.1f} s"
    words = _describe(len(found), len(tried), took, why or next(iter(skipped.values()), ""))
    if found and skipped:
        words = f"{words}{_describe_skipped(skipped, set().union(*substitutes.values()))}"
    at = next(iter(inner), 0)
    return Truth(
        tuple(found.get(at) for at in range(count)), words, inner.get(at, {}), at,
        tuple(substitutes.get(at, {}) for at in range(count)),
    )  # fmt: skip


def _describe(found: int, tried: int, took: str, why: str) -> str:
    if not found:
        return f"no oracle for this model: {why}"
    if found < tried:
        return (f"an oracle in float64 computed the truth of {found} of {tried} trials ({took}); not of the others: "
                f"{why}")  # fmt: skip
    which = f"all {tried} trials" if tried > 1 else "the trial"
    return f"an oracle in float64 computed the truth of {which} ({took})"


def _describe_skipped(skipped: Mapping[str, str], substitutes: Set[str]) -> str:
    """Which nodes nobody computed, as the end of a sentence."""
    reasons = list(dict.fromkeys(skipped.values()))
    more = f", and so {len(reasons) - 1} more" if len(reasons) > 1 else ""
    instead = "their values are the baseline's" if substitutes >= skipped.keys() else (
        "what depends on them has no truth, but for what the baseline gives instead" if substitutes
        else "what depends on them has no truth")  # fmt: skip
    return f"; {len(reasons)} node{'s' if len(reasons) > 1 else ''} skipped ({reasons[0]}{more}): {instead}"


def _evaluate_in_parts(
    model: onnx.ModelProto,
    trial: Trial,
    wanted: Sequence[str],
    ask: AskBaseline | None,
    folder: Path | None,
    until: float,
) -> tuple[oracle.Evaluation, Mapping[str, Feed]]:
    """The evaluation, and the values of the baseline in it."""
    substitutes: Mapping[str, Feed] = {}
    left = until - time.monotonic()
    evaluation = oracle.evaluate(model, trial.inputs, wanted, max_seconds=left, substitutes=substitutes, folder=folder)
    if ask is not None and evaluation.skipped:
        names = _unknown_values(wire(model, trial.inputs), evaluation.skipped.keys())
        substitutes = ask(trial, names) if names else {}
        if substitutes:
            left = until - time.monotonic()
            evaluation = oracle.evaluate(
                model, trial.inputs, wanted, max_seconds=left, substitutes=substitutes, folder=folder
            )
    return evaluation, substitutes


def _unknown_values(wiring: Wiring, skipped: Set[str]) -> list[str]:
    """The values that a session can give of nodes that were skipped, and of those behind them, of which more may be
    skipped; but for random numbers, of which no two runs have the same."""
    unknown, random = set(skipped), set[str]()
    for node in range(wiring.nodes):
        outputs = wiring.list_outputs(node)
        if not unknown.isdisjoint((*wiring.reads[node], *outputs)):
            unknown.update(outputs)
        if is_random(wiring, node) or not random.isdisjoint(wiring.reads[node]):
            random.update(outputs)
    return [name for name in wiring.producer if name in unknown - random and wiring.can_be_output(name)]


def _inner_values(model: onnx.ModelProto, trial: Trial) -> tuple[str, ...]:
    """The values that nodes make, in the order of the graph, as far as INNER_BYTES hold them."""
    wiring = wire(model, trial.inputs)
    sizes, room, names = wiring.sizes(trial.shapes), INNER_BYTES, []
    for name in wiring.producer:
        room -= sizes.get(name) or 0
        if name in wiring.last_read and name not in wiring.constants and wiring.can_be_output(name) and room >= 0:
            names.append(name)
    return tuple(names)


def _round_to_types(
    model: onnx.ModelProto, trial: Trial, names: Sequence[str], found: Mapping[str, Feed], ask: AskBaseline | None
) -> Iterator[tuple[str, Feed]]:
    """The values of these names that are tensors of numbers, as a runtime holds them. ONNX infers no types behind an
    operator of another domain: those are the baseline's."""
    types = values.of_graph(values.infer_types(model, trial.shapes).graph)
    dtypes = {name: type_.dtype for name, type_ in types.items() if type_.dtype}
    unknown = [name for name in names if name not in dtypes and _is_wide(found[name])]
    if unknown and ask is not None:
        answers = ask(trial, unknown)
        dtypes |= {name: value.dtype.name for name, value in answers.items() if isinstance(value, np.ndarray)}
    for name in names:
        value = found[name]
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
            continue
        if not _is_wide(value):
            yield name, value
        elif dtypes.get(name) in UNITS:
            with np.errstate(over="ignore"):
                yield name, value.astype(dtypes[name])


def _is_wide(value: Feed) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float64


def evaluate_with_rounding(
    model: onnx.ModelProto,
    trial: Trial,
    substitutes: Mapping[str, Feed],
    seconds: float,
    once: bool = False,
    folder: Path | None = None,
) -> Iterator[Mapping[str, Feed]]:
    """The outputs of a trial with random rounding, RUNS times, each computed when it is asked for; fewer where the time
    is up. substitutes: as of `Truth`. once: as of `RandomRounding`. folder: as of `of_trials`."""
    until = time.monotonic() + seconds
    types = values.of_graph(values.infer_types(model, trial.shapes).graph)
    for seed in range(RUNS):
        left = until - time.monotonic()
        try:
            disturbance = RandomRounding(types, seed, once)
            evaluation = oracle.evaluate(
                model, trial.inputs, max_seconds=left, disturbance=disturbance, substitutes=substitutes, folder=folder
            )
        except OracleError:
            return
        yield dict(tensors_by_name(evaluation.values))


def tensors_by_name(known: Mapping[str, Feed]) -> Iterator[tuple[str, Feed]]:
    for name, value in known.items():
        if isinstance(value, list):
            yield from tensors_by_name({f"{name}[{index}]": element for index, element in enumerate(value)})
        elif isinstance(value, dict):  # a map
            yield f"{name}.keys", _as_sent(np.array(list(value)))
            yield f"{name}.values", np.array(list(value.values()), np.float64)
        elif isinstance(value, np.ndarray):
            yield name, _as_sent(value)


def _as_sent(value: Array) -> Array:
    """Text as a worker sends it, UTF-8 that is padded with zeros along one more axis; other tensors as they are."""
    if value.dtype.kind not in "OSU":
        return value
    encoded = np.char.encode(value.astype(str), "utf-8")
    width = max(encoded.dtype.itemsize, 1)
    return encoded.astype(f"S{width}").reshape(*value.shape, 1).view(np.uint8)
