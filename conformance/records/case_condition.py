"""A condition over the facts of a case, as causes state it and expectations may have it:

    a value of steps < 0 and dtype = float16

It is a conjunction of terms. A term is a fact that is true or false, in words (`axes is absent`, `no value of steps <
0`), or a fact that is compared with a value by `=`, `≠`, `≥` or `<`; with one of several words by `mode = cubic or
linear`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from epcheck.conformance.records.facts import ALONE, Fact, Facts, missing, size_of

AND, OR = " and ", " or "


@dataclass(frozen=True, order=True)
class Term:
    """A fact, how it is compared, and with what: `=`, `!=`, `>=` or `<`."""

    fact: str
    operator: str
    value: Fact

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            return self.fact if self.value else _negate(self.fact)
        return f"{self.fact} {_SIGNS.get(self.operator, self.operator)} {self.value}"

    @property
    def words(self) -> tuple[str, ...]:
        """The words with one of which the fact is compared."""
        return tuple(self.value.split(OR)) if isinstance(self.value, str) else ()

    def holds(self, facts: Facts) -> bool:
        """Whether a case with these facts is meant; never where it does not have the fact."""
        value = facts.get(self.fact, missing(self.fact, bool(facts.get(ALONE, True))))
        size = size_of(self.fact)
        if value is None or (size and size not in facts):
            return False
        if self.operator in ("=", "!="):
            return (value == self.value or value in self.words) == (self.operator == "=")
        if isinstance(value, str) or isinstance(self.value, str):
            return False
        return (value >= self.value) == (self.operator == ">=")


_SIGNS = {"!=": "≠", ">=": "≥"}
_BEGINNINGS = {
    "a value of ": "no value of ", "two values of ": "no two values of ", "a size of ": "no size of ",
    "a pad ": "no pad ", "beside ": "not beside ", "any input contains": "no input contains",
    "any input is": "no input is", "any input has": "no input has",
}  # fmt: skip
_VERBS = {
    " is absent": " is present", " is ": " is not ", " are ": " are not ", " contains ": " does not contain ",
    " has ": " does not have ", " have ": " do not have ", " ascend": " do not ascend",
}  # fmt: skip
"""How facts that are true or false begin, and the verbs of others -> the same where they do not hold."""
_OTHERWISE = "not: "
_COMPARISON = re.compile(r"(.+) (=|≠|≥|<) (?!the size of |the first size of |that of |rank of |its dimension)(.+)")
"""A fact that is compared; `k = the size of the axis` is one that is true or false."""


def _negate(fact: str) -> str:
    """The phrase for a fact that does not hold."""
    return _reword(fact, _BEGINNINGS, _VERBS) or f"{_OTHERWISE}{fact}"


def _affirm(phrase: str) -> str:
    """The fact of which a phrase says that it does not hold; the phrase itself where it says that of none."""
    beginnings, verbs = ({other: words for words, other in each.items()} for each in (_BEGINNINGS, _VERBS))
    return _reword(phrase, beginnings, verbs) or phrase.removeprefix(_OTHERWISE)


def _reword(phrase: str, beginnings: Mapping[str, str], verbs: Mapping[str, str]) -> str:
    """The phrase with another beginning, or else another verb; empty where it has none of them."""
    for words, other in beginnings.items():
        if phrase.startswith(words):
            return other + phrase.removeprefix(words)
    for words, other in verbs.items():
        if words in phrase:
            return phrase.replace(words, other, 1)
    return ""


def parse_condition(text: str) -> tuple[Term, ...]:
    """The terms of a condition. Raises ValueError where a term is empty."""
    return tuple(map(_parse_term, re.split(r"\s+and(?:\s+|$)", text)))


def _parse_term(text: str) -> Term:
    if not (phrase := text.strip()):
        raise ValueError("a term of the condition is empty")
    is_phrase = phrase.startswith((*_BEGINNINGS, *_BEGINNINGS.values(), _OTHERWISE))
    compared = None if is_phrase else _COMPARISON.fullmatch(phrase)
    if compared:
        operator = {sign: name for name, sign in _SIGNS.items()}.get(compared[2], compared[2])
        return Term(compared[1], operator, _parse_value(compared[3]))
    fact = _affirm(phrase)
    return Term(fact, "=", fact == phrase)


def _parse_value(text: str) -> Fact:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def holds(terms: Sequence[Term], facts: Mapping[str, Fact]) -> bool:
    """Whether all terms hold for a case with these facts."""
    return all(term.holds(facts) for term in terms)


def format_condition(terms: Sequence[Term]) -> str:
    """The condition in words; `always` without terms."""
    return AND.join(map(str, terms)) or "always"
