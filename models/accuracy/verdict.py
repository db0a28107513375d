"""Judge a candidate's outputs by a baseline's, and by the true ones where an oracle knows them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.models.accuracy.metrics import Metrics, measure
from epcheck.models.accuracy.thresholds import Threshold
from epcheck.models.graph.feed import Feed

BASELINE, ORACLE = "baseline", "oracle"

AS_GOOD = 4.0
"""A candidate may be so many times as far from the truth as the baseline: a network that amplifies errors amplifies
those of both."""


@dataclass(frozen=True)
class Verdict:
    """One output of one trial against one reference.

    against: `baseline` or `oracle`. shape: of the candidate's output. metrics: None where the two cannot be compared.
    baseline: the metrics of the baseline against the oracle. right: whether the output is within the threshold. why: a
    sentence, also for an output that is right.
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


def judge(
    trial: str,
    candidate: Mapping[str, Array],
    baseline: Mapping[str, Array],
    oracle: Mapping[str, Feed] | None,
    thresholds: Mapping[str, Threshold],
) -> Iterator[Verdict]:
    """The verdicts of a trial: for each output against the baseline and, where it is known, against the truth.

    The truth decides: a candidate that is as near to it as the baseline is right, however far it is from the baseline.
    """
    for name in sorted({*candidate, *baseline}, key=list({**baseline, **candidate}).index):
        threshold = thresholds.get(_value_of(name, thresholds), Threshold(agreement=1.0))
        if name not in candidate or name not in baseline:
            lacks = "candidate" if name not in candidate else "baseline"
            yield Verdict(name, trial, BASELINE, "", (), None, None, threshold, False, f"the {lacks} does not give it")
            continue
        got, expected = candidate[name], baseline[name]
        truth = oracle.get(name) if oracle else None
        first = _against(name, trial, BASELINE, got, expected, None, threshold)
        if truth is None or isinstance(truth, list):
            yield first
            continue
        second = _against(name, trial, ORACLE, got, truth, expected, threshold)
        yield first if first.right == second.right or not second.right else _overruled(first)
        yield second


def _value_of(name: str, known: Mapping[str, Threshold]) -> str:
    """The output that a tensor belongs to: `s` for `s[0]` and for `s.keys`, else itself."""
    return name if name in known else re.split(r"\[\d+\]|\.(?:keys|values)$", name)[0]


def _overruled(verdict: Verdict) -> Verdict:
    return replace(verdict, right=True, why=f"{verdict.why}; but the truth is with the candidate")


def _against(
    name: str, trial: str, against: str, got: Array, reference: Array, baseline: Array | None, threshold: Threshold
) -> Verdict:
    def verdict(metrics: Metrics | None, right: bool, why: str, other: Metrics | None = None) -> Verdict:
        return Verdict(name, trial, against, got.dtype.name, got.shape, metrics, other, threshold, right, why)

    if got.shape != reference.shape:
        return verdict(None, False, f"its shape is {list(got.shape)}; that of the {against} is {list(reference.shape)}")
    widened = against == ORACLE and got.dtype.kind == reference.dtype.kind == "f"
    if got.dtype != reference.dtype and not widened:
        return verdict(None, False, f"it is {got.dtype}; the {against} has {reference.dtype}")
    metrics = measure(got, _rounded(reference, got.dtype) if widened else reference)
    other = None
    if baseline is not None and baseline.shape == reference.shape:
        other = measure(baseline, _rounded(reference, got.dtype) if widened else reference)
    right, why = _within(metrics, other, got, threshold)
    return verdict(metrics, right, why, other)


def _rounded(truth: Array, dtype: np.dtype[Any]) -> Array:
    """The truth in float64, infinite where the dtype cannot hold it."""
    with np.errstate(over="ignore"):
        beyond = ~np.isfinite(truth.astype(dtype))
    return np.where(beyond, truth.astype(dtype).astype(np.float64), truth)


def _within(metrics: Metrics, other: Metrics | None, got: Array, threshold: Threshold) -> tuple[bool, str]:
    """Whether the metrics are within the threshold, and the sentence that says so."""
    if metrics.differing == 0:
        return True, "equal to the last bit"
    if metrics.nonfinite:
        return False, f"{metrics.nonfinite} of {metrics.elements} elements are NaN or infinite on one side only"
    if threshold.agreement is not None:
        share = 1 - metrics.differing / metrics.elements
        count = f"{metrics.differing} of {metrics.elements} elements differ"
        return share >= threshold.agreement, f"{count}; allowed are {1 - threshold.agreement:.2%}"
    if threshold.steps and got.dtype.kind in "iu" and metrics.max_abs > threshold.steps:
        return False, f"{metrics.max_abs:g} quantisation steps away; allowed are {threshold.steps}"
    relative, snr = threshold.relative, threshold.snr_db
    if other is not None and threshold.relative:
        relative = max(relative, AS_GOOD * other.relative)
        snr = None if snr is None else min(snr, other.snr_db - 20 * math.log10(AS_GOOD))
    if relative and metrics.relative > relative:
        return False, f"relative error {metrics.relative:.2g}, {metrics.relative / relative:.3g} times the threshold"
    if snr is not None and metrics.snr_db < snr:
        return False, f"signal to noise {metrics.snr_db:.1f} dB; at least {snr:.1f} dB are wanted"
    if snr is not None:
        return True, f"signal to noise {metrics.snr_db:.1f} dB, where {snr:.1f} dB are wanted"
    return True, f"relative error {metrics.relative:.2g}, {metrics.relative / relative:.2g} of the threshold"
