"""Judge a candidate's outputs by a baseline's, and by the true ones where an oracle knows them.

The truth decides. A model that is sensitive amplifies rounding errors: where an output is beyond its threshold, what
random rounding of every value does to it (`oracle.rounding`) extends the threshold. So does the baseline's distance
from the truth: a candidate that is about as far from it is right. Both hold up to a hundredth of the output: beyond
that, candidate, baseline or oracle may be the one that is wrong, and the verdict is undecided.

The thresholds of float16, bfloat16 and quantised models allow more than a fault is worth. Where the baseline keeps such
a threshold, an output that is FAR_OFF times as far from the truth as the baseline is judged by the noise of this model
instead: FAR_OFF times the distance of the baseline, or of runs of the oracle in which each node rounds once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epcheck.conformance.comparison.ulp import is_floating
from epcheck.generators.array import Array
from epcheck.models.accuracy.metrics import Metrics, measure, worst
from epcheck.models.accuracy.thresholds import Threshold, ThresholdSource
from epcheck.models.graph.feed import Feed

BASELINE, ORACLE, EXPECTED = "baseline", "oracle", "expected"

AS_GOOD = 4.0
"""A candidate may be so many times as far from the truth as the baseline."""

FAR_OFF = 16.0
"""An output of a coarse model may be so many times as far from the truth as the baseline, or as the model's noise."""

CEILING, CEILING_DB = 0.01, 20.0
"""The relative error or share of different elements, and the signal to noise in decibels, up to which AS_GOOD extends a
threshold. Beyond it a baseline that is wrong in the same way would prove a wrong candidate right."""


@dataclass(frozen=True)
class Verdict:
    """One output of one trial against one reference.

    against: `baseline`, `oracle` or `expected`: the outputs that the user's files expect. shape: of the candidate's
    output. metrics: None where the two cannot be compared. baseline: the metrics of the baseline against the oracle.
    right: whether the output is within the threshold. undecided: it is not, and the baseline is about as far from the
    truth, or rounding alone is. why: a sentence, also for an output that is right. sensitivity: what random rounding
    does to the output; None where it was not needed. blames_model: whether an output that is not as expected is what
    the model says: whoever made the model departs. within_bounds: nodes whose published bounds explain the error of an
    output that is right for that reason, in words; empty for any other.
    """

    output: str
    trial: str
    against: str
    dtype: str
    shape: tuple[int, ...]
    metrics: Metrics | None
    baseline: Metrics | None
    threshold: Threshold
    right: bool
    why: str
    undecided: bool = False
    sensitivity: Metrics | None = None
    blames_model: bool = False
    within_bounds: str = ""

    @property
    def wrong(self) -> bool:
        """Whether the output is neither right nor undecided."""
        return not self.right and not self.undecided

    @property
    def word(self) -> str:
        """`right`, `undecided` or `WRONG`."""
        return "right" if self.right else "undecided" if self.undecided else "WRONG"

    @property
    def is_extended(self) -> bool:
        """Whether the output is right although it is beyond its threshold: `why` says what the reason is."""
        return self.right and self.metrics is not None and not self._keeps(self.metrics)

    @property
    def is_nearer(self) -> bool:
        """Whether the output keeps its threshold against the truth, where the baseline's is beyond AS_GOOD times it."""
        if self.against != ORACLE or self.metrics is None or self.baseline is None:
            return False
        return self._keeps(self.metrics) and not _within(self.baseline, self.dtype, _wider(self.threshold))[0]

    @property
    def is_far_off(self) -> bool:
        """Whether the output is right by a coarse threshold that the baseline keeps as well, and FAR_OFF times as far
        from the truth as the baseline: the noise of the model has to say whether that is right."""
        if not (self.right and self.threshold.is_coarse) or self.against == BASELINE or self.threshold.chosen:
            return False
        if self.metrics is None or self.baseline is None or self.metrics.nonfinite or not self._keeps(self.baseline):
            return False
        return _is_beyond(self.metrics, [self.baseline], self.threshold)

    def _keeps(self, metrics: Metrics) -> bool:
        return _within(metrics, self.dtype, self.threshold)[0]


def judge(
    trial: str,
    candidate: Mapping[str, Array],
    baseline: Mapping[str, Array] | None,
    oracle: Mapping[str, Feed] | None,
    thresholds: Mapping[str, Threshold],
    rounded: Sequence[Mapping[str, Feed]] = (),
    noisy: Sequence[Mapping[str, Feed]] = (),
) -> Iterator[Verdict]:
    """The verdicts of a trial: for each output against the baseline, where there is one, and against the truth, where
    it is known. An output that neither knows has none. rounded: outputs of the oracle with random rounding, also of
    partial sums. noisy: of the oracle where each node rounds once.

    The truth decides: a candidate that is as near to it as the baseline is right, however far it is from the baseline.
    """
    others = candidate if baseline is None else baseline
    for name in sorted({*candidate, *others}, key=list({**others, **candidate}).index):
        threshold = thresholds.get(_value_of(name, thresholds), Threshold(agreement=1.0))
        if name not in candidate or name not in others:
            lacks = "candidate" if name not in candidate else "baseline"
            yield Verdict(name, trial, BASELINE, "", (), None, None, threshold, False, f"the {lacks} does not give it")
            continue
        if name.endswith(".keys") and name not in thresholds:  # of a map, whose threshold is that of its values
            threshold = Threshold(agreement=1.0)
        got, truth = candidate[name], oracle.get(name) if oracle else None
        expected = None if baseline is None else baseline[name]
        first = None if expected is None else _against(name, trial, BASELINE, got, expected, None, threshold)
        if truth is None or isinstance(truth, list):
            if first is not None:
                yield first
            continue
        second = _against(name, trial, ORACLE, got, truth, expected, threshold)
        if noisy and second.is_far_off:
            second = _judge_by_noise(second, got, truth, [values[name] for values in noisy if name in values])
        elif rounded:
            second = _with_sensitivity(second, got, truth, [values[name] for values in rounded if name in values])
        if first is not None:
            yield first if first.right or second.wrong else _overrule_verdict(first, second)
        yield second


def judge_expected(
    trial: str,
    candidate: Mapping[str, Array],
    expected: Mapping[str, Feed],
    known: tuple[Mapping[str, Array] | None, Mapping[str, Feed] | None],
    thresholds: Mapping[str, Threshold],
    noisy: Sequence[Mapping[str, Feed]] = (),
) -> Iterator[Verdict]:
    """The verdict on each output against the one that the user's files expect. Both may have an error, so that AS_GOOD
    times the threshold is allowed, and after a quantisation noise of CEILING_DB.

    known: outputs of the baseline, and of the oracle: where they depart from what is expected as well, the model is at
    fault, and not the target. noisy: as of `judge`.
    """
    baseline, oracle = known
    for name, reference in expected.items():
        if not isinstance(reference, np.ndarray):
            continue
        threshold = thresholds.get(_value_of(name, thresholds), Threshold(agreement=1.0))
        if name not in candidate:
            yield Verdict(name, trial, EXPECTED, "", (), None, None, threshold, False, "the candidate does not give it")
            continue
        got, truth, other = candidate[name], (oracle or {}).get(name), (baseline or {}).get(name)
        bound = threshold if threshold.chosen else _allow_both(threshold)
        found = _against(name, trial, EXPECTED, got, reference, None, bound)
        if isinstance(truth, np.ndarray) and isinstance(other, np.ndarray) and got.shape == truth.shape == other.shape:
            found = replace(found, baseline=measure(other, truth))
            if noisy and bound.snr_db is None and found.is_far_off:
                found = _judge_by_noise(found, got, truth, [values[name] for values in noisy if name in values])
        says = truth if isinstance(truth, np.ndarray) else other
        if not found.right and says is not None:
            alike = says.shape == got.shape and _within(
                measure(got, says), got.dtype.name, _wider(threshold))[0]  # fmt: skip
            who = "the oracle" if isinstance(truth, np.ndarray) else "the baseline"
            words = f"{who} computes the same as the candidate: the model departs from what is expected, not the target"
            found = replace(found, blames_model=alike, why=f"{found.why}; {words}") if alike else found
        yield found


def _allow_both(threshold: Threshold) -> Threshold:
    """A threshold for two values that may each have an error; that of a coarse model allows enough."""
    if threshold.snr_db is not None:
        return replace(_wider(threshold), snr_db=min(threshold.snr_db, CEILING_DB))
    return threshold if threshold.is_coarse else _wider(threshold)


def _judge_by_noise(verdict: Verdict, got: Array, truth: Array, noisy: Sequence[Feed]) -> Verdict:
    """The verdict on an output that is far off, by the noise of the model."""
    metrics, baseline, threshold = verdict.metrics, verdict.baseline, verdict.threshold
    assert metrics is not None
    assert baseline is not None
    honest = [baseline, *_measure_runs(got, truth, noisy)]
    bound = _noise_threshold(threshold, honest)
    if not _is_beyond(metrics, honest, threshold):
        return verdict
    right, why = _within(metrics, got.dtype.name, bound)
    times = max(metrics.relative / baseline.relative if baseline.relative else math.inf, 1.0)
    beside = f"{times:.3g} times as far from the truth as the baseline" if math.isfinite(times) else (
        "the baseline is equal to the truth")  # fmt: skip
    return replace(verdict, right=right, threshold=bound, why=f"{why}; {beside}")


def _is_beyond(metrics: Metrics, honest: Sequence[Metrics], threshold: Threshold) -> bool:
    """Whether an output is farther from the truth than FAR_OFF times the farthest of these."""
    return not _within(metrics, "", _noise_threshold(threshold, honest, math.inf))[0]


def _noise_threshold(threshold: Threshold, honest: Sequence[Metrics], most: float = 1.0) -> Threshold:
    """FAR_OFF times the farthest of these from the truth, and never more than so many times the threshold."""
    farthest = worst(honest)
    snr, relative, absolute = threshold.snr_db, threshold.relative, threshold.absolute
    if absolute is not None:
        absolute = min(most * absolute, FAR_OFF * farthest.max_abs)
    noise = farthest.snr_db - 20 * math.log10(FAR_OFF)
    if snr is None:
        relative = min(most * relative, FAR_OFF * farthest.relative)
    else:
        snr = max(snr, noise) if math.isfinite(most) else noise
    return replace(threshold, relative=relative, absolute=absolute, snr_db=snr, source=ThresholdSource.NOISE)


def _measure_runs(got: Array, truth: Array, runs: Sequence[Feed]) -> list[Metrics]:
    return [
        measure(value.astype(got.dtype), _overflow_truth(truth, got.dtype) if truth.dtype.kind == "f" else truth)
        for value in runs
        if isinstance(value, np.ndarray) and value.shape == truth.shape
    ]


def _with_sensitivity(verdict: Verdict, got: Array, truth: Array, rounded: Sequence[Feed]) -> Verdict:
    """A verdict with what random rounding does to the output, which extends the threshold where it is not right."""
    found = _measure_runs(got, truth, rounded)
    metrics, threshold = verdict.metrics, verdict.threshold
    if metrics is None or not found:
        return verdict
    sensitivity = worst(found)
    verdict = replace(verdict, sensitivity=sensitivity)
    if verdict.right:
        return verdict
    changes = f"rounding alone changes this output by {_amount(sensitivity, threshold)}"
    if metrics.nonfinite:
        is_sensitive = sensitivity.nonfinite > 0
        return replace(verdict, undecided=True, why=f"{verdict.why}; rounding alone also makes them so") if (
            is_sensitive) else verdict  # fmt: skip
    right, why = _within(metrics, got.dtype.name, extend_threshold(threshold, sensitivity))
    if right:
        return replace(
            verdict, right=True, undecided=False, why=f"{why}, which the model's sensitivity extends: {changes}"
        )
    if _within(metrics, got.dtype.name, extend_threshold(threshold, sensitivity, math.inf))[0]:
        return replace(
            verdict, undecided=True, why=f"{verdict.why}; the model is too sensitive on these feeds: {changes}"
        )
    return replace(verdict, why=f"{verdict.why}; {changes}")


def _amount(metrics: Metrics, threshold: Threshold) -> str:
    """The error in the unit of its threshold."""
    if threshold.agreement is not None:
        return f"{metrics.differing} of {metrics.elements} elements"
    if threshold.snr_db is not None:
        return f"noise of {metrics.snr_db:.1f} dB below the signal"
    return f"{metrics.relative:.2g} of its size"


def _value_of(name: str, known: Mapping[str, Threshold]) -> str:
    """The output that a tensor belongs to: `s` for `s[0]` and for `s.keys`, else itself."""
    return name if name in known else re.split(r"\[\d+\]|\.(?:keys|values)$", name)[0]


def _overrule_verdict(verdict: Verdict, by: Verdict) -> Verdict:
    """A verdict against the baseline, where that against the truth is better."""
    says = "the candidate agrees with the truth" if by.right else "both are far from the truth"
    return replace(verdict, right=by.right, undecided=by.undecided, why=f"{verdict.why}; but {says}")


def _against(
    name: str, trial: str, against: str, got: Array, reference: Array, baseline: Array | None, threshold: Threshold
) -> Verdict:
    def verdict(metrics: Metrics | None, word: str, why: str, other: Metrics | None = None) -> Verdict:
        return Verdict(
            name, trial, against, got.dtype.name, got.shape, metrics, other, threshold, word == RIGHT, why,
            word == UNDECIDED,
        )  # fmt: skip

    if got.shape != reference.shape:
        alike = baseline is not None and against == ORACLE and baseline.shape == got.shape
        what = f"its shape is {list(got.shape)}; that of the {_NAMES.get(against, against)} is {list(reference.shape)}"
        return verdict(None, UNDECIDED if alike else WRONG, what)
    widened = against != BASELINE and is_floating(got.dtype) and reference.dtype.kind == "f"
    if got.dtype != reference.dtype and not widened:
        return verdict(None, WRONG, f"it is {got.dtype}; the {_NAMES.get(against, against)} has {reference.dtype}")
    if baseline is not None and got.dtype != baseline.dtype:  # the oracle has no dtype to hold against it
        return verdict(None, WRONG, f"it is {got.dtype}; the baseline has {baseline.dtype}")
    metrics = measure(got, _overflow_truth(reference, got.dtype) if widened else reference)
    other = None
    if baseline is not None and baseline.shape == reference.shape:
        other = measure(baseline, _overflow_truth(reference, got.dtype) if widened else reference)
    right, why = _within(metrics, got.dtype.name, threshold)
    if right or other is None:
        return verdict(metrics, RIGHT if right else WRONG, why, other)
    return verdict(metrics, *_beside(metrics, other, got.dtype.name, threshold), other)


_NAMES = {EXPECTED: "expected output"}

RIGHT, WRONG, UNDECIDED = "right", "wrong", "undecided"


def _overflow_truth(truth: Array, dtype: np.dtype[Any]) -> Array:
    """The truth in float64, infinite where the dtype cannot hold it."""
    with np.errstate(over="ignore"):
        narrow = truth.astype(dtype).astype(np.float64)
    return np.where(np.isfinite(narrow), truth, narrow)


def _beside(metrics: Metrics, other: Metrics, dtype: str, threshold: Threshold) -> tuple[str, str]:
    """The verdict on an output beyond the threshold, beside the baseline's distance from the truth."""
    unlimited, most = extend_threshold(threshold, other, math.inf), extend_threshold(threshold, other)
    right, why = _within(metrics, dtype, most)
    if right:
        return RIGHT, f"{why}, which the baseline's own distance from the truth extends"
    if metrics.nonfinite:
        return (UNDECIDED, f"{why}; of the baseline's {other.nonfinite}") if other.nonfinite else (WRONG, why)
    if _within(metrics, dtype, unlimited)[0]:
        return UNDECIDED, f"{_within(metrics, dtype, threshold)[1]}; the baseline is about as far from the truth"
    return WRONG, why


def extend_threshold(threshold: Threshold, other: Metrics, ceiling: float = CEILING) -> Threshold:
    """The threshold extended to AS_GOOD times another distance from the truth, the baseline's or that of random
    rounding, up to a ceiling: CEILING or infinity. What the user chose, and exact values, are not extended."""
    if threshold.chosen or threshold.source is ThresholdSource.NOISE:
        return threshold
    snr, agreement = threshold.snr_db, threshold.agreement
    if snr is not None:
        least = CEILING_DB if math.isfinite(ceiling) else -math.inf
        snr = min(snr, max(other.snr_db - 20 * math.log10(AS_GOOD), least))
    if agreement is not None and agreement < 1:
        agreement = min(agreement, 1 - min(AS_GOOD * other.differing / max(other.elements, 1), ceiling, 1))
    relative = threshold.relative and max(threshold.relative, min(AS_GOOD * other.relative, ceiling))
    return replace(threshold, relative=relative, snr_db=snr, agreement=agreement)


def _wider(threshold: Threshold) -> Threshold:
    """AS_GOOD times the threshold."""
    absolute, snr, agreement = threshold.absolute, threshold.snr_db, threshold.agreement
    return replace(
        threshold,
        relative=AS_GOOD * threshold.relative,
        absolute=None if absolute is None else AS_GOOD * absolute,
        snr_db=None if snr is None else snr - 20 * math.log10(AS_GOOD),
        agreement=None if agreement is None else 1 - AS_GOOD * (1 - agreement),
    )


def _within(metrics: Metrics, dtype: str, threshold: Threshold) -> tuple[bool, str]:
    """Whether the metrics of an output of this dtype are within the threshold, and the sentence that says so."""
    has_steps = threshold.steps > 0 and dtype.startswith(("int", "uint"))
    if metrics.differing == 0:
        return True, "equal to the last bit"
    if metrics.nonfinite:
        return False, f"{metrics.nonfinite} of {metrics.elements} elements are NaN or infinite on one side only"
    if threshold.agreement is not None:
        share = 1 - metrics.differing / metrics.elements
        count = f"{metrics.differing} of {metrics.elements} elements differ"
        return share >= threshold.agreement, f"{count}; allowed are {1 - threshold.agreement:.2%}"
    if threshold.absolute is not None and metrics.max_abs <= threshold.absolute:
        return True, f"largest error {metrics.max_abs:.2g}, where {threshold.absolute:.2g} is allowed"
    if has_steps and metrics.max_abs > threshold.steps:
        return False, f"{metrics.max_abs:g} quantisation steps away; allowed are {threshold.steps}"
    relative, snr = threshold.relative, threshold.snr_db
    if metrics.relative > relative and not has_steps:
        if threshold.absolute is not None and not relative:
            return False, f"largest error {metrics.max_abs:.2g}; allowed are {threshold.absolute:.2g}"
        times = f"{metrics.relative / relative:.3g} times the threshold" if relative else "where none is allowed"
        return False, f"relative error {metrics.relative:.2g}, {times}"
    if snr is not None and metrics.snr_db < snr:
        return False, f"signal to noise {metrics.snr_db:.1f} dB; at least {snr:.1f} dB are required"
    if snr is not None:
        return True, f"signal to noise {metrics.snr_db:.1f} dB, where {snr:.1f} dB are required"
    return True, f"relative error {metrics.relative:.2g}, {metrics.relative / (relative or 1):.2g} of the threshold"
