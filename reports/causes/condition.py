"""The shortest condition that separates cases that show a symptom from cases that are right.

A condition is a conjunction of at most MOST_TERMS terms, each about one fact. Of all conditions the search takes the
one with the shortest description of which cases show the symptom: the bits that name its terms, and the bits that say
which cases among those where it holds, and among the others, are exceptions (minimum description length: Rissanen,
"Modeling by shortest data description", Automatica 14, 1978). No condition is stated that needs more bits than naming
the cases one by one, so what data does not support is not said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np

from epcheck.conformance.records.case_condition import Term, format_condition
from epcheck.conformance.records.facts import ALONE, Fact, FactReader, missing, size_of

MOST_TERMS = 3
BEAM = 64
"""Conditions of one length that are tried with one more term."""
EFFECTIVE = 0.7
"""Of the bits that name one of all terms, the share that counts: many terms are about the same thing."""
MARGIN = 2.0
"""Bits by which a condition has to be shorter than naming the cases one by one."""
OF_RESULTS = 3.0
"""Bits that a fact about the elements of an output costs more: what is computed is seldom why it is wrong."""
PURE = 0.5
"""Of the cases for which a condition holds, the share that has to show the symptom."""
WORDS, THRESHOLDS = 16, 16
"""Different values of a fact up to which each is a term, and up to which each is a bound."""

LARGEST = 2.0**64
"""Numbers beyond have no order here: a record may hold any integer."""

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Numbers = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Condition:
    """Terms that all hold. No term: every case. cases: of those looked at, where it holds. showing: of these, how many
    show the symptom. others, missed: cases where it does not hold, and how many of those show the symptom nevertheless,
    for the same reason as far as anybody can tell."""

    terms: tuple[Term, ...]
    cases: int
    showing: int
    others: int
    missed: int

    def __str__(self) -> str:
        return format_condition(self.terms)


class Cases:
    """Cases with their facts, as a table of terms: which holds where. masks: a row for each term. costs: what each term
    costs in bits beside its name. weights: what each case counts, less than 1 where others differ from it in nothing
    that matters."""

    def __init__(self, terms: Sequence[Term], masks: Mask, costs: Sequence[float], weights: Numbers) -> None:
        self.terms, self.weights, self._costs = tuple(terms), weights, np.array(costs, np.float32)
        self._masks = masks
        self._bits = EFFECTIVE * math.log2(max(2, len(terms))) + self._costs

    @classmethod
    def from_table(cls, table: FactTable, weights: Numbers) -> Self:
        """The cases of a table, with one term of those that hold for the same cases."""
        chosen: dict[bytes, tuple[float, Term, Mask]] = {}
        for term, mask in table.terms():
            count = np.count_nonzero(mask)
            if not count or count == len(mask):
                continue
            key, cost = np.packbits(mask).tobytes(), _cost(term)
            if key not in chosen or (cost, term.fact) < (chosen[key][0], chosen[key][1].fact):
                chosen[key] = cost, term, mask
        ordered = sorted(chosen.values(), key=lambda entry: (entry[0], str(entry[1])))
        masks: Mask = np.array([mask for *_, mask in ordered], bool).reshape(len(ordered), len(weights))
        terms, costs = [term for _, term, _ in ordered], [cost for cost, *_ in ordered]
        del chosen, ordered  # which have every mask once more
        return cls(terms, masks, costs, weights)

    def without_results(self) -> Self:
        """The same without what the elements of outputs have about them: what is refused has computed none. Made anew
        each time, since it has the masks once more."""
        kept = [place for place, term in enumerate(self.terms) if not _is_of_results(term.fact)]
        costs = [self._costs[place] for place in kept]
        return type(self)([self.terms[place] for place in kept], self._masks[kept], costs, self.weights)

    @property
    def size(self) -> int:
        """Bytes of the masks."""
        return self._masks.nbytes

    def search(self, showing: Mask, right: Mask, least: float = 0.0) -> tuple[tuple[int, ...], float]:
        """The terms of the condition with the shortest description, by their places, and how many bits it saves over
        naming each of the cases that show a symptom; () and the least where no condition saves more bits than that."""
        best: tuple[tuple[int, ...], float] = ((), least)
        for found, pure in self._lengthen(showing, right):
            if pure and found[pure] > best[1] + 0.5 * bool(best[0]):
                best = pure, found[pure]
                held = self.mask(best[0])
                if not (held & right).any() and not (showing & ~held).any():
                    break
        return best

    def propose(self, showing: Mask, right: Mask, hidden: float) -> Iterator[tuple[int, ...]]:
        """Conditions of every length with short descriptions, by the places of their terms. hidden: what a right case
        for which one holds counts."""
        for found, _ in self._lengthen(showing, right, hidden):
            yield from found

    def count_bits(self, places: Sequence[int]) -> float:
        """The bits that name the terms at these places."""
        return float(self._bits[list(places)].sum())

    def _lengthen(
        self, showing: Mask, right: Mask, hidden: float = 1.0
    ) -> Iterator[tuple[dict[tuple[int, ...], float], tuple[int, ...]]]:
        """For each number of terms the best conditions with the bits that they save, the best of those first that are
        pure; () where none is."""
        weights, yes = self.weights * (showing | right), self.weights * showing
        total_yes, total = float(yes.sum()), float(weights.sum())
        if not self.terms or not total_yes or total_yes == total:
            return
        masks = self._masks.astype(np.float32)
        alone = float(_name_bits(total, total_yes))
        beam: list[tuple[int, ...]] = [()]
        for _ in range(MOST_TERMS):
            held = np.array([masks[list(chosen)].prod(axis=0) for chosen in beam])
            n, k = masks @ (held * weights).T, masks @ (held * yes).T
            bits = hidden * _name_bits(n, k) + _name_bits(total - n, total_yes - k)
            bits += self._bits[:, None] + np.array([self._bits[list(chosen)].sum() for chosen in beam], np.float32)
            bits[k * (total - n) <= (total_yes - k) * n] = np.inf  # it holds as often for right cases
            is_pure = k >= PURE * n
            found: dict[tuple[int, ...], float] = {}
            pure: tuple[int, ...] = ()
            few = np.argpartition(bits, min(4 * BEAM, bits.size - 1), axis=None)[: 4 * BEAM]
            for flat in few[np.lexsort((few, bits.flat[few]))]:
                place, of = divmod(int(flat), len(beam))
                if np.isfinite(bits[place, of]) and place not in beam[of]:
                    terms = tuple(sorted((*beam[of], place)))
                    found.setdefault(terms, alone - float(bits[place, of]))
                    pure = pure or (terms if is_pure[place, of] else ())
            yield found, pure
            beam = sorted(found, key=lambda terms: (-found[terms], terms))[:BEAM]
            if not beam:
                break

    def count_saved_bits(self, mask: Mask, showing: Mask, right: Mask) -> float:
        """The bits that a condition saves which was found elsewhere, and so need not be named. mask: where it holds."""
        taken = showing | right
        both, yes = self.weights * taken, self.weights * showing
        n, k, total, total_yes = (float(each.sum()) for each in (both * mask, yes * mask, both, yes))
        apart = _name_bits(n, k) + _name_bits(total - n, total_yes - k)
        return float(_name_bits(total, total_yes) - apart) if k >= PURE * n else 0.0

    def mask(self, chosen: Sequence[int]) -> Mask:
        """Where all terms at these places hold."""
        return np.logical_and.reduce(self._masks[list(chosen)]) if len(chosen) else np.ones(len(self.weights), bool)


def _name_bits(n: Any, k: Any) -> Any:
    """The bits that say which k of n cases: n times the entropy of k / n, and how many k there could be."""
    return entropy_bits(n, k) + count_bits(n)


def entropy_bits(n: Any, k: Any) -> Any:
    """n times the entropy of k / n."""
    k = np.clip(k, 0, n)
    return _x_log_x(n) - _x_log_x(k) - _x_log_x(n - k)


def count_bits(n: Any) -> Any:
    """The bits of a number up to n."""
    return np.log2(n + 1)


def _x_log_x(x: Any) -> Any:
    return x * np.log2(np.maximum(x, 1e-9))


_PREFERRED = (
    ("a value of ", 0.0), ("a size of ", 0.5), ("axis ", 0.0), ("dtype of ", 1.5), ("type ", 0.5), ("dtype", 0.0),
    ("kind of dtype", 0.0), ("beside ", 1.5), ("largest power", 8.0), ("smallest power", 8.0),
    ("number of elements", 4.0), ("last size", 1.5), ("first size", 2.5), ("second size", 2.0),
    ("size of the axis", 0.5), ("rank of", 1.0), ("largest rank", 1.5), ("number of inputs", 0.5),
    ("number of reduced axes", 0.5), ("number of", 2.0), ("version", 1.5),
    ("largest value", 1.0), ("smallest value", 1.0), ("first value", 1.0), ("last value", 1.0),
    ("all values of", 1.0), ("the values of", 1.0), ("the first output has a size that differs", 3.0),
)  # fmt: skip
"""Beginning of a fact's name -> bits that a condition about it costs more than one about an attribute."""


_OF_ELEMENTS = (" contains ", " has ties", " has its ", "power of two ")


@cache
def _is_of_results(fact: str) -> bool:
    """Whether a fact is about the elements of an output."""
    return "output" in fact and any(words in fact for words in _OF_ELEMENTS)


@cache
def _cost_of_fact(fact: str) -> float:
    cost = next((bits for begin, bits in _PREFERRED if fact.startswith(begin)), 0.5)
    if "output" in fact:
        cost += OF_RESULTS if _is_of_results(fact) else 1.0
    if "initializer" in fact:
        cost += 2.0
    if fact.endswith(("a positive value", "of a positive value")):  # of which others say the same
        cost += 1.5
    if "any input" in fact:  # operators share these names
        cost -= 0.2
    if "the first input" in fact or "the first output" in fact:
        cost -= 0.1
    return cost


def _cost(term: Term) -> float:
    """Bits: of terms that hold for the same cases the one that a reader expects comes first."""
    cost = _cost_of_fact(term.fact)
    if isinstance(term.value, bool):
        return cost + (0.0 if term.value or term.fact.endswith(" is absent") else 1.0)
    return cost + {"=": 0.0, ">=": 1.0, "<": 1.5, "!=": 3.0}[term.operator]


class FactTable:
    """The facts of cases as a matrix: a row for each case, a column for each fact, and in it the place of the value
    among those of the fact, -1 where the case does not have the fact."""

    def __init__(self, reader: FactReader, cases: Sequence[bytes], operators: Sequence[str] = ()) -> None:
        """cases: the facts of each, as the reader gave them. operators: of each; none where all have one."""
        self._reader = reader
        places = {operator: place for place, operator in enumerate(dict.fromkeys(operators))}
        self._operators = np.array([places[operator] for operator in operators], np.int16)
        expanded = [np.frombuffer(reader.expand(parts), np.int32) for parts in cases]
        numbers = np.concatenate(expanded)
        rows = np.repeat(np.arange(len(cases), dtype=np.int32), [len(each) for each in expanded])
        used = np.flatnonzero(np.bincount(numbers))
        by_name: dict[str, int] = {}
        columns = np.array([by_name.setdefault(reader.facts[n][0], len(by_name)) for n in used.tolist()], np.int32)
        self._names = list(by_name)
        order = np.argsort(columns, kind="stable")
        self._numbers, sorted_columns = used[order].astype(np.int32), columns[order]
        self._starts = np.searchsorted(sorted_columns, np.arange(len(by_name) + 1)).astype(np.int32)
        column, code = np.zeros((2, int(used[-1]) + 1), np.int32)
        column[self._numbers] = sorted_columns
        code[self._numbers] = np.arange(len(used)) - self._starts[sorted_columns]
        narrow = np.min_scalar_type(-int(np.diff(self._starts).max()))
        self.matrix = np.full((len(cases), len(by_name)), -1, narrow)
        self.matrix[rows, column[numbers]] = code[numbers]
        self._is_alone = np.ones(len(cases), bool)
        if ALONE in self._names:
            alone = self.matrix[:, self._names.index(ALONE)]
            self._is_alone = ~np.isin(alone, [c for c, value in enumerate(self._values(ALONE)) if not value])

    def _values(self, name: str) -> list[Fact]:
        """Those that a fact has, in the order of their codes."""
        begin, end = self._starts[(place := self._names.index(name)) : place + 2]
        return [self._reader.facts[number][1] for number in self._numbers[begin:end].tolist()]

    def mask(self, terms: Sequence[Term]) -> Mask:
        """The cases for which all terms hold."""
        mask = np.ones(len(self.matrix), bool)
        for term in terms:
            size = size_of(term.fact)
            known = {size: 0} if size else {}
            unstated = np.where(self._is_alone, term.holds(known), term.holds({**known, ALONE: False}))
            if size:
                unstated &= self._is_known(size)
            if term.fact not in self._names:
                mask &= unstated
                continue
            column = self.matrix[:, self._names.index(term.fact)]
            chosen = [c for c, value in enumerate(self._values(term.fact)) if term.holds({term.fact: value})]
            mask &= np.isin(column, chosen) | ((column < 0) & unstated)
        return mask

    def count_differences(self, case: int, others: Sequence[int]) -> Any:
        """In how many facts each of the others differs from a case."""
        return (self.matrix[list(others)] != self.matrix[case]).sum(axis=1)

    def terms(self) -> Iterator[tuple[Term, Mask]]:
        """Every term about the facts, and the cases for which it holds."""
        for name, column in zip(self._names, self.matrix.T, strict=True):
            values = self._values(name)
            default = missing(name)
            if default is True and not self._is_known_to_all(column):
                continue
            if default is not None and default not in values:
                values.append(default)
            if len(values) > 1 or default is None:
                codes = column.astype(np.int32)
                codes[column < 0] = -1 if default is None else values.index(default)
                if default is not None and missing(name, False) is None:
                    codes[(column < 0) & ~self._is_alone] = -1
                if size := size_of(name):
                    codes[(column < 0) & ~self._is_known(size)] = -1
                yield from _terms_of(name, codes, values)

    def _is_known(self, name: str) -> Mask:
        """Which cases state a fact."""
        if name not in self._names:
            return np.zeros(len(self.matrix), bool)
        known: Mask = self.matrix[:, self._names.index(name)] >= 0
        return known

    def _is_known_to_all(self, column: Any) -> bool:
        """Whether a case of each operator has a fact: that a parameter is absent is none of an operator without it."""
        counts = np.bincount(self._operators)
        return not counts.size or bool(np.bincount(self._operators[column >= 0], minlength=len(counts)).all())


COUNTS = (
    "number of",
    "largest",
    "smallest",
    "first size",
    "second size",
    "last size",
    "first value",
    "last value",
    "size of",
)
"""Beginnings of facts that are counts: that one is not 12 is no condition."""


_LIMITS = (0.25, 0.5, *(2**power for power in range(24)))
_BEYOND = tuple(2**power + 1 for power in range(1, 24))
"""Bounds of a fact with more values: at a power of two, and of a count beyond it."""


def _terms_of(name: str, column: Any, values: Sequence[Fact]) -> Iterator[tuple[Term, Mask]]:
    if all(isinstance(value, bool) for value in values):
        yield from ((Term(name, "=", value), column == code) for code, value in enumerate(values))
        if len(values) == 1:
            yield Term(name, "=", not values[0]), np.zeros(len(column), bool)
        return
    if len(values) <= WORDS:
        for code, value in enumerate(values):
            yield Term(name, "=", value), column == code
            if len(values) > 2 and not name.startswith(COUNTS):
                yield Term(name, "!=", value), (column != code) & (column >= 0)
    numbers = sorted(value for value in values if not isinstance(value, str) and abs(value) < LARGEST)
    if len(numbers) < 2:
        return
    is_few = len(numbers) <= THRESHOLDS or "power of two" in name
    limits = numbers[1:] if is_few else _LIMITS + (_BEYOND if name.startswith(COUNTS) else ())
    known = set(numbers)
    measured = np.array([value if value in known else math.nan for value in values] + [math.nan], float)[column]
    if len(values) > WORDS and 1 in known and name.startswith(COUNTS):
        yield Term(name, "=", 1), measured == 1
    for limit in limits:
        yield Term(name, ">=", limit), measured >= limit
        yield Term(name, "<", limit), measured < limit
