"""The conditions that together separate the failing cases of one operator from its right ones: one for each fault.

A first condition, and then another, is added, replaced or dropped as long as the description of all becomes shorter
(minimum description length, see `condition`). It counts three things: the terms of the conditions; the exceptions, of
which a failing case for which no condition holds counts most, since a fault may stay hidden where its condition holds,
but never shows where it does not; and failing cases whose wrong elements are unlike those of most cases of their
condition, since a fault has one symptom. A condition is added only where it saves bits with every exception counted
once, so what data does not support is not said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epcheck.reports.causes.condition import MARGIN, PURE, Cases, Mask, count_bits, entropy_bits

HIDDEN, MISSED = 2.0, 3.0
"""What an exception's bits count: a right case for which a condition holds, and a failing one for which none holds."""
UNLIKE, UNKNOWN = 0.5, 0.6
"""Bits for a failing case that lacks the trait of most cases of its condition, and the share of them for each case of
a condition whose cases have no trait in common."""
LENIENT = 0.4
"""What hidden exceptions count where conditions are proposed, beside proposals that count them once."""
PAIRED = 300
"""Conditions of which every pair is tried at once; half as many more, of those that hold for no right case."""
EXACT = 3
"""Conditions without a right case beside which others are looked for from the beginning."""
STEPS, LEAST = 24, 0.01
"""Changes at most, and the bits that each has to save."""

Places = tuple[int, ...]
"""A condition: the places of its terms."""


def cover(cases: Cases, showing: Mask, right: Mask, traits: Mask) -> list[Places]:
    """The conditions, in the order in which they were found; none where none saves bits. traits: a row for
    each trait of symptoms, and in it which of the failing cases have it."""
    search = _Cover(cases, showing, right, traits)
    return list(search.find()) if cases.terms and right.any() else []


@dataclass(frozen=True)
class _Choice:
    """Conditions, their bits, and the bits where every exception counts once."""

    bits: float
    plain: float
    chosen: tuple[Places, ...]


class _Cover:
    def __init__(self, cases: Cases, showing: Mask, right: Mask, traits: Mask) -> None:
        self._cases, self._showing, self._right, self._traits = cases, showing, right, traits
        self._yes = cases.weights * showing
        self._all = cases.weights * (showing | right)
        self._lacks = self._yes * ~traits
        self._proposed: dict[Places, None] = {}

    def find(self) -> tuple[Places, ...]:
        """The conditions with the shortest description."""
        self._propose(self._showing)
        for trait in self._traits:
            self._propose(self._showing & trait)
        best, rest = self._measure(()), self._showing
        self._prepare()
        for mask in self._find_exact():
            self._propose(self._showing & ~mask)
        self._prepare()
        for _ in range(STEPS):
            left = self._showing & ~self._hold(best.chosen)
            if (left != rest).any():
                self._propose(left)
                self._prepare()
                rest = left
            found = min(self._options(best), key=lambda choice: choice.bits, default=best)
            if found.bits >= best.bits - LEAST:
                break
            best = found
        return best.chosen

    def _options(self, best: _Choice) -> Iterator[_Choice]:
        """One condition more, or two to begin with; one replaced by one or two others; one dropped."""
        last = best.plain - MARGIN
        yield from self._extend(best.chosen, last, -np.inf if best.chosen else last - MARGIN)
        for place in range(len(best.chosen)):
            kept = best.chosen[:place] + best.chosen[place + 1 :]
            yield self._measure(kept)
            yield from self._extend(kept, np.inf, last)

    def _propose(self, showing: Mask) -> None:
        for hidden in (1.0, LENIENT):
            for terms in self._cases.propose(showing, self._right, hidden):
                self._proposed.setdefault(terms)

    def _prepare(self) -> None:
        """Where each proposed condition holds; without those that mostly hold for right cases."""
        masks = np.array([self._cases.mask(terms) for terms in self._proposed], np.float32)
        masks = masks.reshape(len(self._proposed), len(self._showing))
        pure = masks @ self._yes >= PURE * (masks @ self._all)
        self._conditions = [terms for terms, is_pure in zip(self._proposed, pure, strict=True) if is_pure]
        self._masks = masks[pure]
        self._costs = np.array([self._cases.count_bits(terms) for terms in self._conditions], float)

    def _find_exact(self) -> list[Mask]:
        """Where the conditions hold that hold for no right case and for the most failing ones, but not for all."""
        exact: dict[bytes, Mask] = {}
        hidden = self._masks @ (self._all - self._yes) == 0
        for place in np.argsort(-(self._masks @ self._yes), kind="stable"):
            mask = self._masks[place] > 0
            if hidden[place] and (self._showing & ~mask).any():
                exact.setdefault(mask.tobytes(), mask)
            if len(exact) == EXACT:
                break
        return list(exact.values())

    def _hold(self, chosen: Sequence[Places]) -> Mask:
        """Where any of the conditions holds."""
        held = np.zeros(len(self._showing), bool)
        for terms in chosen:
            held |= self._cases.mask(terms)
        return held

    def _measure(self, chosen: tuple[Places, ...]) -> _Choice:
        held = self._hold(chosen)
        bits, plain = self._count_exceptions(self._all[held].sum(), self._yes[held].sum())
        costs = self._count_costs(chosen)
        return _Choice(float(bits + costs), float(plain + costs), chosen)

    def _extend(self, kept: tuple[Places, ...], limit: float, limit_of_two: float) -> Iterator[_Choice]:
        """The conditions with the best one more, and with the best two more, as far as the plain bits are below a limit
        for each: of two faults that fail alike, none explains much alone."""
        held = self._hold(kept)
        taken, showing = self._all[held].sum(), self._yes[held].sum()
        new, before = self._masks * ~held, self._count_costs(kept)
        n, k, costs = new @ self._all, new @ self._yes, self._costs + self._count_unlike(new)
        bits, plain = self._count_exceptions(n + taken, k + showing)
        yield from _choose(bits + costs + before, plain + costs + before, limit, kept, self._conditions)
        if limit_of_two == -np.inf:
            return
        exact = np.lexsort((plain + costs, n - k > 0))[: PAIRED // 2]
        few = np.union1d(np.argsort(plain + costs, kind="stable")[:PAIRED], exact)
        new, n, k, costs = new[few], n[few], k[few], costs[few]
        bits, plain = self._count_exceptions(
            n[:, None] + n - (new * self._all) @ new.T + taken, k[:, None] + k - (new * self._yes) @ new.T + showing
        )
        both = costs[:, None] + costs + before
        yield from _choose(bits + both, plain + both, limit_of_two, kept, [self._conditions[place] for place in few])

    def _count_costs(self, chosen: tuple[Places, ...]) -> float:
        """The bits of the terms, and of failing cases that are unlike the others of their condition."""
        bits, before = 0.0, np.zeros(len(self._showing), bool)
        for terms in chosen:
            mask = self._cases.mask(terms)
            bits += self._cases.count_bits(terms) + float(
                self._count_unlike((mask & ~before)[None].astype(np.float32))[0]
            )
            before |= mask
        return bits

    def _count_unlike(self, masks: Any) -> Any:
        """For each mask the bits of the failing cases that lack the trait which most of them have."""
        return UNLIKE * np.min([UNKNOWN * (masks @ self._yes), *(masks @ lacks for lacks in self._lacks)], axis=0)

    def _count_exceptions(self, n: Any, k: Any) -> tuple[Any, Any]:
        """The bits of the exceptions, as they count and with each counted once. n, k: the weight of the cases for which
        a condition holds, and of those that show the symptom."""
        total, total_yes = float(self._all.sum()), float(self._yes.sum())
        inside, outside = entropy_bits(n, k), entropy_bits(total - n, total_yes - k)
        counts = count_bits(n) + count_bits(total - n)
        unlike = UNLIKE * UNKNOWN * np.maximum(total_yes - k, 0)
        return HIDDEN * inside + MISSED * outside + counts + unlike, inside + outside + counts


def _choose(
    bits: Any, plain: Any, limit: float, kept: tuple[Places, ...], conditions: Sequence[Places]
) -> Iterator[_Choice]:
    """The choice with the fewest bits whose plain bits are below the limit, if there is one. bits, plain: of each
    condition, or of each pair of them, beside those that are kept."""
    allowed = np.where(plain < limit, bits, np.inf)
    if not allowed.size or not np.isfinite(best := float(allowed.min())):
        return
    place = np.unravel_index(int(allowed.argmin()), allowed.shape)
    yield _Choice(best, float(plain[place]), (*kept, *(conditions[int(each)] for each in place)))
