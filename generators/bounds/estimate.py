"""Values in float64 together with how far an implementation may be away from them: running error analysis.

An implementation computes in the precision of a dtype or a better one, in any order of summation, and may flush
denormals to zero (D3D). Each function gives the true result of its operands' true values and a bound of the difference
of any such implementation's result, from the bounds of the operands and the roundings of the step itself: N. J. Higham,
Accuracy and Stability of Numerical Algorithms, 2nd edition, 3.1 (sums of products) and 3.3 (running error analysis).
What an operator gives in the end is judged by `output`: the bound, and 2 ULP for the last rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.citation import Citation, CitationKind, Publisher
from epcheck.generators.truth import Output

SOURCE = Citation(
    CitationKind.DERIVED, f"{bounds.ACCURACY_AND_STABILITY}, 3.3: running error analysis", Publisher.HIGHAM, "3.3"
)
EXP_ULPS = 3.0
"""The error of exp in units of the last place: OpenCL C specification, relative error as ULPs, full profile."""
TANH_ULPS = 5.0
"""The error of tanh: the same table."""


@dataclass(frozen=True)
class Estimate:
    """value: float64, the true one. error: float64 of the same shape, the absolute bound of any implementation's."""

    value: Array
    error: Array

    def __getitem__(self, index: Any) -> Estimate:
        return Estimate(self.value[index], self.error[index])

    def reshape(self, *shape: int) -> Estimate:
        """Both parts reshaped."""
        return Estimate(self.value.reshape(shape), self.error.reshape(shape))

    def transpose(self, *axes: int) -> Estimate:
        """Both parts with their axes permuted."""
        return Estimate(self.value.transpose(axes), self.error.transpose(axes))


@dataclass(frozen=True)
class Precision:
    """The least precise arithmetic that is allowed: that of a floating-point dtype."""

    dtype: np.dtype[Any]

    @property
    def unit(self) -> float:
        """The largest relative error of one rounding."""
        return float(bounds.finfo(self.dtype).eps) / 2

    @property
    def tiny(self) -> float:
        """What may be flushed to zero."""
        return float(bounds.finfo(self.dtype).tiny)

    def add(self, left: Estimate, right: Estimate) -> Estimate:
        """The sum, rounded once."""
        value = left.value + right.value
        finite = np.where(np.isfinite(value), value, 0.0)
        return Estimate(value, left.error + right.error + np.abs(finite) * self.unit + self.tiny)

    def total(self, *parts: Estimate) -> Estimate:
        """The sum of all, added in any order."""
        value, size = sum(part.value for part in parts), sum(np.abs(part.value) + part.error for part in parts)
        roundings = len(parts) - 1
        error = sum(part.error for part in parts) + size * roundings * self.unit * 1.01
        return Estimate(np.asarray(value), np.asarray(error) + self.tiny)

    def sum(self, x: Estimate, axis: int | tuple[int, ...]) -> Estimate:
        """The sum along axes, in any order."""
        size = (np.abs(x.value) + x.error).sum(axis)
        count = x.value.size // max(size.size, 1)
        error = x.error.sum(axis) + size * count * self.unit * 1.01 + self.tiny
        return Estimate(np.asarray(x.value.sum(axis)), np.asarray(error))

    def divide(self, left: Estimate, right: Estimate) -> Estimate:
        """The quotient of all elements of equal index: 2.5 ULP (OpenCL C, full profile)."""
        value = left.value / right.value
        least = np.abs(right.value) - right.error
        error = (left.error + np.abs(value) * right.error) / np.where(least > 0, least, np.nan)
        return Estimate(value, np.nan_to_num(error, nan=np.inf) + np.abs(value) * 5 * self.unit + self.tiny)

    def multiply(self, left: Estimate, right: Estimate, roundings: int = 1) -> Estimate:
        """The product of all elements of equal index, with so many roundings."""
        value = left.value * right.value
        error = np.abs(left.value) * right.error + np.abs(right.value) * left.error + left.error * right.error
        return Estimate(value, error + (np.abs(value) + error) * roundings * self.unit * 1.01 + self.tiny)

    def dot(self, left: Estimate, right: Estimate) -> Estimate:
        """The matrix product over the last axis of the left and the last but one of the right."""
        length = left.value.shape[-1]
        steps = (length + 1) * self.unit
        gamma = steps / (1 - steps) if steps < 0.5 else 2 * steps
        left_size, right_size = np.abs(left.value) + left.error, np.abs(right.value) + right.error
        exact_part = left_size @ right.error + left.error @ np.abs(right.value)
        return Estimate(left.value @ right.value, exact_part + gamma * (left_size @ right_size) + length * self.tiny)

    def softcap(self, score: Estimate, cap: float) -> Estimate:
        """cap * tanh(score / cap): its slope is at most 1; two roundings and tanh's own error."""
        value = cap * np.tanh(score.value / cap)
        slope = np.abs(score.value) * self.unit
        return Estimate(value, score.error + slope + np.abs(value) * (2 * TANH_ULPS + 2) * self.unit + self.tiny)

    def softmax(self, score: Estimate) -> Estimate:
        """Over the last axis; a score of -inf gives 0, and so does every one of a row of nothing else.

        An error e_j of the scores turns p_j = exp(s_j) / sum(exp(s_k)) into p_j exp(e_j) / sum(p_k exp(e_k)), whose
        denominator is within 1 ± D, D = sum(p_k (exp(|e_k|) - 1)). To e_j come the rounding of s_j - max, which is
        relative to the difference, exp itself, the sum over the row and the division.
        """
        unit = self.unit
        masked = np.isneginf(score.value)
        top = np.max(score.value, axis=-1, keepdims=True, initial=-np.inf)
        below = np.where(masked, 0.0, score.value - np.where(np.isneginf(top), 0.0, top))
        weight = np.where(masked, 0.0, np.exp(below))
        total = weight.sum(-1, keepdims=True)
        share = weight / np.where(total == 0, 1.0, total)
        own = 2 * EXP_ULPS * unit + 2 * np.abs(below) * unit + (score.value.shape[-1] + 2) * unit
        drift = np.minimum(score.error + own, 50.0)
        spread = (share * np.expm1(drift)).sum(-1, keepdims=True)
        factor = np.exp(drift) / np.maximum(1 - spread, 1e-300) - 1
        bound = np.where(spread < 0.5, np.minimum(share * factor, 1.0), 1.0)
        return Estimate(share, np.where(masked, 0.0, bound + self.tiny))

    def output(self, name: str, result: Estimate) -> Output:
        """The output of a node whose true value and bound these are."""
        bound = bounds.ulp(2.0, (SOURCE,), self.dtype, floor=result.error)
        return bounds.round_output(name, result.value, self.dtype, bound)


def exact(values: Array) -> Estimate:
    """What every implementation reads alike."""
    wide = np.asarray(values, np.float64)
    return Estimate(wide, np.zeros_like(wide))


def concatenate(parts: tuple[Estimate, ...], axis: int) -> Estimate:
    """Both parts concatenated."""
    return Estimate(
        np.concatenate([part.value for part in parts], axis), np.concatenate([part.error for part in parts], axis)
    )


def split_heads(joined: Estimate, count: int) -> Estimate:
    """The heads that a tensor of queries, keys or values holds side by side: [B, S, N H] -> [B, N, S, H]."""
    batch, sequence, width = joined.value.shape
    return joined.reshape(batch, sequence, count, width // count).transpose(0, 2, 1, 3)


def join_heads(split: Estimate) -> Estimate:
    """The reverse of `split_heads`: [B, N, S, H] -> [B, S, N H]."""
    batch, heads, sequence, head = split.value.shape
    return split.transpose(0, 2, 1, 3).reshape(batch, sequence, heads * head)


def attention(
    precision: Precision,
    query: Estimate,
    key: Estimate,
    value: Estimate,
    *,
    scale: float,
    bias: Estimate | None = None,
    softcap: float = 0.0,
) -> tuple[Estimate, tuple[Estimate, Estimate, Estimate, Estimate]]:
    """softmax(query key^T scale + bias) value, and the scores as they are first, capped, biased and after softmax.

    query [B, N, S, H], key [B, G, T, H], value [B, G, T, H'], N a multiple of G: each head of key and value serves
    N / G successive ones of query. bias: what is added to the scores, -inf where a key is not attended. The scale may
    be applied to the product, or its root to each factor: six roundings in all.
    """
    repeats = query.value.shape[1] // key.value.shape[1]
    key, value = (Estimate(np.repeat(e.value, repeats, 1), np.repeat(e.error, repeats, 1)) for e in (key, value))
    raw = precision.multiply(precision.dot(query, key.transpose(0, 1, 3, 2)), exact(np.array(scale)), roundings=6)
    capped = precision.softcap(raw, softcap) if softcap > 0 else raw
    biased = precision.add(capped, bias) if bias else capped
    weights = precision.softmax(biased)
    return precision.dot(weights, value), (raw, capped, biased, weights)
