"""Which quantisers of a model saturate, waste their range or have parameters that cannot be right.

    found = examine(wiring, sessions, trials)
    found.faults        # node, fault, words, effect on the outputs

Each QuantizeLinear is judged on the values that the model has in floating point, so that one that is wrong hides no
other: the float64 oracle computes the model without its pairs of QuantizeLinear and DequantizeLinear. What a fault does
to the outputs is measured on the target, with this pair alone in the model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
import onnx

from epcheck.conformance.test_data import model_file
from epcheck.generators.array import Array
from epcheck.models.accuracy.metrics import measure
from epcheck.models.execution.session import Level, ModelSessions
from epcheck.models.feeds.trials import Trial
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.wiring import Wiring
from epcheck.models.oracle import oracle
from epcheck.models.oracle.node import OracleError
from epcheck.models.quantization import float_model, judging, parameters, weights
from epcheck.models.quantization.fault import CERTAIN, Effect, FaultyQuantizer, QuantizerFault
from epcheck.models.quantization.float_model import Pair, Suggested
from epcheck.models.quantization.observed import Observed, Recorder, suggest_parameters
from epcheck.models.quantization.quantizers import Quantizer, quantizers
from epcheck.models.quantization.result import MeasuredQuantizer, Quantization
from epcheck.models.validation.truth import ORACLE_S, tensors_by_name
from epcheck.models.wrong_nodes.options import Limits

MATTERS = 0.01
"""The error of an output, root mean square over root mean square, from which on a fault of a scale matters."""

WORSE = 2.0
"""So many times the error with the suggested scale it has to be as well."""


@dataclass(frozen=True)
class KnownOutputs:
    """A trial, and the outputs of the model in floating point, computed in float64."""

    trial: Trial
    outputs: Mapping[str, Feed]


def examine(wiring: Wiring, sessions: ModelSessions, tried: Sequence[Trial], level: Level,
            limits: Limits) -> Quantization | None:  # fmt: skip
    """What is wrong with the quantisers of a model whose weights are in it; None where it has none.

    sessions: of the target. limits: of the sessions that measure effects. Raises TargetDown, ModelFileError.
    """
    found = quantizers(wiring)
    if not found:
        return None
    return _Examination(wiring, sessions, level, limits).result(found, tried)


class _Examination:
    def __init__(self, wiring: Wiring, sessions: ModelSessions, level: Level, limits: Limits) -> None:
        self._wiring, self._sessions, self._level = wiring, sessions, level
        self._most = sessions.created + limits.sessions
        self._until = time.monotonic() + limits.seconds
        self._folder = wiring.folder if any(True for _ in model_file.external_tensors(wiring.model)) else None
        self._pairs: tuple[Pair, ...] = ()
        self._known: list[KnownOutputs] = []

    def result(self, found: Sequence[Quantizer], tried: Sequence[Trial]) -> Quantization:
        self._pairs = float_model.pairs(self._wiring, found)
        certain = (*parameters.faults(self._wiring, found), *weights.faults(self._wiring, found))
        unusable = {each.node.index for each in certain if each.fault in CERTAIN and each.fault != QuantizerFault.PAIR}
        usable = [pair for pair in self._pairs if judging.can_be_judged(pair) and not _touches(pair, unusable)]
        seen, obstacle = self._compute_truth(usable, tried)
        are_feeds_generated = tried[0].is_generated
        doubtful = [fault for pair in usable if (at := pair.quantizer.node.index) in seen
                    and (fault := judging.fault(pair, seen[at], self._wiring, are_feeds_generated))]  # fmt: skip
        measured = tuple(MeasuredQuantizer.of(pair, seen[pair.quantizer.node.index]) for pair in usable
                         if pair.quantizer.node.index in seen)  # fmt: skip
        error, failure = self._error(self._wiring.model, self._level) if self._known else (None, "")
        faults = [self._with_effect(each, seen) for each in (*certain, *doubtful)]
        if are_feeds_generated:  # a scale was made with other feeds
            faults = [replace(each, matters=False) if each in doubtful else each for each in faults]
        faults.sort(key=lambda each: each.node.index)
        return Quantization(len(found), tuple(faults), measured, error, failure, obstacle)

    def _compute_truth(self, usable: Sequence[Pair], tried: Sequence[Trial]) -> tuple[dict[int, Observed], str]:
        """What each QuantizeLinear makes of the true values, and why that is not known."""
        readers: dict[str, list[Pair]] = {}
        for pair in usable:
            readers.setdefault(pair.quantizer.source, []).append(pair)
        model = float_model.without(self._wiring.model, self._pairs)
        recorder, until = Recorder(readers), time.monotonic() + ORACLE_S
        recorder.add((name, self._wiring.constant(name)) for name in readers if name in self._wiring.constants)
        for trial in tried:
            recorder.add(trial.inputs.items())
            try:
                values = oracle.evaluate(model, trial.inputs, max_seconds=until - time.monotonic(),
                                         disturbance=recorder, folder=self._folder).values  # fmt: skip
            except OracleError as error:
                return recorder.seen, "" if self._known else f"no floating-point oracle: {error}"
            self._known.append(KnownOutputs(trial, dict(tensors_by_name(values))))
        return recorder.seen, ""

    def _with_effect(self, fault: FaultyQuantizer, seen: Mapping[int, Observed]) -> FaultyQuantizer:
        """The fault with what it does to the outputs, where that can be measured."""
        pair = next((pair for pair in self._pairs if fault.node.index in (pair.quantizer.node.index, *pair.readers)),
                    None)  # fmt: skip
        if pair is None or not self._known or pair.quantizer.node.index not in seen:
            return fault
        at = pair.quantizer.node.index
        better = suggest_parameters(pair, seen[at])
        alone, _ = self._error(self._alone(at, {}))
        mended, _ = self._error(self._alone(at, {at: better})) if alone is not None and better.scale > 0 else (0.0, "")
        if alone is None or mended is None:
            return fault
        matters = fault.fault in CERTAIN or (alone >= MATTERS and alone >= WORSE * mended)
        return replace(fault, effect=Effect(alone, mended), matters=matters)

    def _alone(self, at: int, instead: Mapping[int, Suggested]) -> onnx.ModelProto:
        return float_model.without(self._wiring.model, self._pairs, (at,), instead)

    def _error(self, model: onnx.ModelProto, level: Level = "disabled") -> tuple[float | None, str]:
        """The largest error of an output on the target, and why there is none. level: without optimisation no kernel
        reads a bias with the product of other scales."""
        if self._sessions.created >= self._most or time.monotonic() > self._until:
            return None, "search limit reached"
        worst: list[float] = []
        for known in self._known:
            outcome = self._sessions.run(model, known.trial.inputs, level=level, folder=self._folder)
            if not outcome.is_done:
                if known.trial.instead is not None:
                    continue  # a batch that the model does not take
                return None, f"{known.trial.name}: {outcome.during or outcome.stage} ends with: {outcome.message}"
            worst += _errors(outcome.outputs, known.outputs)
        return max(worst, default=None), ""


def _touches(pair: Pair, nodes: Set[int]) -> bool:
    return not nodes.isdisjoint((pair.quantizer.node.index, *pair.readers))


def _errors(got: Mapping[str, Array], truth: Mapping[str, Feed]) -> Iterator[float]:
    """Of each output: root mean square of the error over that of the truth; of integers the share that differs."""
    for name, exact in truth.items():
        value = got.get(name)
        if value is None or not isinstance(exact, np.ndarray) or value.shape != exact.shape:
            continue
        if value.dtype.kind not in "fiu" or not value.size:
            continue
        metrics = measure(value, exact)
        if value.dtype.kind != "f":
            yield metrics.differing / metrics.elements
        else:
            yield math.inf if metrics.nonfinite else 10 ** (-metrics.snr_db / 20)
