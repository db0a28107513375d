"""The causes of a run: cases of one candidate that are not right for one reason, found from their records alone.

Failures are sorted by symptom. Of each symptom the search (see `condition`) looks for the shortest condition that
separates the failing cases from the right ones, first across operators, then for each operator the conditions that
together do (see `cover`). A condition that several operators share is one cause. Expected deviations have a cause
already, the reason that their expectation gives; for those the search finds the condition only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from epcheck.conformance.records.case_condition import OR, Term
from epcheck.conformance.records.facts import FactReader
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import (
    BOTH,
    EXPECTED,
    FAILURE,
    FIXED,
    FLAKY,
    NOTED,
    OK,
    ORACLES_DISAGREE,
    REFUSED,
    UNPLACED,
)
from epcheck.reports.causes.cause import Cause, Causes
from epcheck.reports.causes.condition import MARGIN, Cases, Condition, Mask
from epcheck.reports.causes.cover import cover
from epcheck.reports.causes.rows import Row, Rows
from epcheck.reports.causes.symptom import (
    EVERY,
    KINDS,
    PLACES,
    SHARE,
    WRONG_DTYPE,
    WRONG_SHAPE,
    WRONG_VALUES,
    describe_patterns,
)
from epcheck.reports.checksum import group_key
from epcheck.reports.dtypes import dtype_order

WORST_FIRST = (FAILURE, FLAKY, FIXED, EXPECTED, NOTED)
NOT_ALONE = (BOTH, ORACLES_DISAGREE)
"""Blames of cases for which the baseline, or another oracle, answers as the candidate does."""
WHOLE = 0.9
"""Of the cases of an operator for which a condition holds, the share that are wrong where operators share it although
one of them has a sharper one: a simple rule with a few exceptions is what one fault in several operators looks like."""
SLACK, NEAR = 10.0, 0.8
"""Bits by which a condition that operators share may be longer, for each of them, than its own; and of the bits that
its own saves the share that it saves at least."""
COMMON = ("dtype", "version", "type ", "dtype of ", "bits of ", "number of ", "domain")
"""Beginnings of facts on which operators may agree by chance: each of them has to support a condition about nothing
else by more than MARGIN bits."""
OWN, SEVERAL = 0.4, 4
"""Of the failing cases for which one more condition of an operator holds, the share that no other explains; or of how
many samples such cases are at least."""
FEW_GRAPHS = 3
"""Samples of graphs that alone are wrong of a cause of their own: of fewer a node is thought to be wrong."""
JOINED = 0.1
"""Of the cases of a cause, how many more of the same operator and symptom join it that no condition explains."""


def find_explained(records: Iterable[Record]) -> tuple[frozenset[str], frozenset[str]]:
    """The operators that have failures, and others that have expected deviations whose condition is worth a search: of
    a single sample nothing is known but that one. records: at least all failures and expected deviations."""
    samples: dict[str, set[tuple[str, str]]] = defaultdict(set)
    failing = set[str]()
    for record in records:
        if record.reading in (FAILURE, FLAKY):
            failing.add(record.case.operator_key)
        elif record.reading == EXPECTED and record.expectation is not None:
            samples[record.expectation.reason].add((record.case.operator_key, record.case.sample))
    expected = {operator for each in samples.values() if len(each) > 1 for operator, _ in each}
    return frozenset(failing), frozenset(expected - failing)


def find_causes(records: Iterable[Record], explained: Container[str] | None = None) -> Causes:
    """The causes of what is not right. records: all of the operators that are explained, and whatever else is not
    right. explained: the operators for which conditions are looked for; None for all."""
    reader = FactReader()
    by_target: dict[str, Rows] = defaultdict(lambda: Rows(reader, explained))
    for record in records:
        by_target[record.candidate.target].add(record)
    found = [
        (cause, rows) for target, of_target in by_target.items() for cause, rows in _Search(target, of_target).causes()
    ]
    found.sort(key=lambda each: (WORST_FIRST.index(each[0].reading), each[0].shared, -each[0].cases, each[0].title))
    of_case = {(cause.target, row.case_id): cause for cause, rows in found for row in rows}
    return Causes(tuple(cause for cause, _ in found), of_case)


@dataclass(slots=True)
class _Found:
    """A cause in the making: its rows, and the condition with the operators among whose cases it was found. graphs: how
    many of the rows are graphs that have such a node. other_graphs: or a node of an operator of the cause."""

    rows: list[Row]
    condition: Condition | None = None
    nearest: Condition | None = None
    shared: bool = False
    remark: str = ""
    graphs: int = 0
    other_graphs: int = 0

    @property
    def is_explained(self) -> bool:
        """Whether it has a condition that not every case fulfils."""
        return self.condition is not None and bool(self.condition.terms)


class _Search:
    """The search for the causes of one candidate."""

    def __init__(self, target: str, rows: Rows) -> None:
        self._target = target
        self._rows = rows

    def causes(self) -> Iterator[tuple[Cause, list[Row]]]:
        """Every cause with its rows."""
        groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for rows in self._rows.by_operator.values():
            for row in rows:
                if key := _group(row):
                    groups[key].append(row)
        for (reading, *_), rows in groups.items():
            for found in self._explain(reading, rows):
                yield self._build(reading, found), found.rows

    def _explain(self, reading: str, rows: list[Row]) -> Iterator[_Found]:
        if reading in (FIXED, NOTED):
            yield _Found(rows, remark=rows[0].judged.remark)
        elif reading == EXPECTED:
            yield self._describe(rows)
        else:
            own = [row for row in rows if row.judged.blame not in NOT_ALONE]
            found = list(self._separate(own))
            rest = [row for row in rows if row.judged.blame in NOT_ALONE]
            yield from found
            for shared in self._separate(rest):
                shared.shared = True
                yield shared

    def _describe(self, rows: list[Row]) -> _Found:
        """The condition of cases that are known to have one cause."""
        operators = _operators(rows)
        if len({(row.operator, row.sample) for row in rows}) < 2 or not all(map(self._rows.has_facts, operators)):
            return _Found(rows)
        condition, _ = self._search(rows, operators)
        return _Found(rows, condition and self._count(condition.terms, rows))

    def _separate(self, rows: list[Row]) -> Iterator[_Found]:
        """Rows of one kind of symptom, sorted into causes: those of nodes alone, and then graphs, each with the cause
        that holds for a node of it."""
        graphs = [row for row in rows if row.nodes]
        found = list(self._separate_rows([row for row in rows if not row.nodes]))
        for each in found:
            if each.condition is not None:
                held = self._rows.find_graphs(graphs, {row.operator for row in each.rows}, each.condition.terms)
                graphs = _without(graphs, held)
                each.rows += held
                each.graphs = len(held)
        rest = list(self._separate_rows(graphs))
        for each in rest:
            if len({row.sample for row in each.rows}) < FEW_GRAPHS or each.condition is None:
                each.rows = [row for row in each.rows if not _join_graph(row, found)]
        yield from found
        yield from (each for each in rest if each.rows)

    def _separate_rows(self, rows: list[Row]) -> Iterator[_Found]:
        """Rows of one kind of symptom, sorted into causes by their own facts."""
        rest, explained = rows, list[_Found]()
        while len({row.operator for row in rest}) > 1 and (found := self._find_shared(rest)):
            explained.append(found)
            rest = _without(rest, found.rows)
        unexplained: dict[str, _Found] = {}
        left: list[tuple[str, _Found]] = []
        for operator, of_operator in _by_operator(rest).items():
            for found in self._separate_operator(operator, of_operator):
                if found.is_explained:
                    explained.append(found)
                else:
                    left.append((operator, found))
        for operator, found in left:
            if found.condition is not None or not self._join_few(explained, operator, found):
                _join_details(unexplained, found)
        for found in self._unite(explained):
            message, *others = {_message(row) for row in found.rows}
            if not others and (known := unexplained.get(message)):
                known.rows += found.rows
                known.nearest = None
            else:
                yield found
        yield from unexplained.values()

    def _unite(self, explained: list[_Found]) -> list[_Found]:
        """The causes, of those of several operators that have one condition, or conditions that hold for the same
        cases, and whose wrong elements are alike one; so of those of one operator whose conditions differ in a word
        alone."""
        united: list[_Found] = []
        for found in explained:
            for known in united:
                rows = [*known.rows, *found.rows]
                terms = _join_terms(known, found) or _find_terms_of_both(self._rows, known, found)
                if terms and len(_find_alike(rows)) == len(rows):
                    known.rows, known.condition = rows, self._count(terms, rows)
                    break
            else:
                united.append(found)
        return united

    def _join_few(self, explained: list[_Found], operator: str, found: _Found) -> bool:
        """Whether the cases of an operator that no condition explains joined known causes, at first those whose
        condition holds for them and for none of its right cases."""
        _, table, everything = self._rows.cases([operator])
        _, right = _masks(found.rows, everything)
        for known in explained:
            mask = table.mask(terms := known.condition.terms if known.condition else ())
            held = [row for row in _keep(found.rows, everything, mask) if not _message(row)]
            rows = [*known.rows, *held]
            is_common = all(term.fact.startswith(COMMON) for term in terms)
            if held and not is_common and not (mask & right).any() and len(_find_alike(rows)) == len(rows):
                known.rows, known.condition = rows, self._count(terms, rows)
                found.rows = _without(found.rows, held)
        return not found.rows or self._join(explained, operator, found.rows)

    def _join(self, explained: list[_Found], operator: str, rows: list[Row]) -> bool:
        """Whether the few cases of an operator that no condition explains joined the cause that most of its cases with
        this symptom have: its condition is then not quite the fault's."""
        own = [(sum(row.operator == operator for row in found.rows), found) for found in explained]
        count, found = max(own, key=lambda each: each[0], default=(0, None))
        if found is None or found.condition is None or any(map(_message, rows)) or len(rows) > JOINED * count:
            return False
        found.rows += rows
        found.condition = self._count(found.condition.terms, found.rows)
        return True

    def _find_shared(self, rows: list[Row]) -> _Found | None:
        """The condition that cases of several operators have in common, which says of each operator nearly as much as
        its own best condition; None where there is none."""
        by_operator = _by_operator(rows)
        operators = sorted(by_operator)
        best: tuple[int, float, Condition, list[Row]] | None = None
        own = {operator: self._search(by_operator[operator], [operator]) for operator in operators}
        pooled, _ = self._search(rows, operators)
        tried = {
            str(each): each for each in (pooled, *(condition for condition, _ in own.values())) if each and each.terms
        }
        evaluated = {  # of one operator after the other: the table of each is made once
            (text, operator): self._evaluate(condition, by_operator[operator], operator)
            for operator in operators
            for text, condition in tried.items()
        }
        for text, condition in tried.items():
            joined: list[Row] = []
            bits: dict[str, float] = {}
            least = MARGIN if all(term.fact.startswith(COMMON) for term in condition.terms) else 0.0
            for operator in operators:
                held, saved, is_whole = evaluated[text, operator]
                is_near = saved >= max(own[operator][1] - SLACK, NEAR * own[operator][1]) or is_whole
                if held and saved > least and is_near:
                    joined += held
                    bits[operator] = saved
            alike = _find_alike(joined)
            saved = sum(bits[operator] for operator in {row.operator for row in alike})
            names = len({row.operator for row in alike})
            if names > 1 and (best is None or (names, saved) > best[:2]):
                best = names, saved, condition, alike
        if best is None:
            return None
        *_, condition, joined = best
        return _Found(joined, self._count(condition.terms, joined))

    def _separate_operator(self, operator: str, rows: list[Row]) -> list[_Found]:
        """Rows of one operator by the conditions that explain them together; one without a condition for the rest."""
        cases, everything, showing, right = self._compare(rows, [operator])
        if not right.any():
            return [_Found(rows, self._search(rows, [operator])[0])]
        found: list[_Found] = []
        rest = rows
        chosen = cover(cases, showing, right, _mask_traits(rows, everything))
        for places in sorted(chosen, key=lambda places: -int((cases.mask(places) & showing).sum())):
            mask = cases.mask(places)
            held = _keep(rest, everything, mask)
            if held and (not found or _stands_alone(held, int((mask & showing).sum()))):
                found.append(
                    _Found(held, _make_condition([cases.terms[place] for place in places], mask, showing, right))
                )
                rest = _without(rest, held)
        return [*found, _Found(rest, None, self._search(rest, [operator], -np.inf)[0])] if rest else found

    def _compare(self, rows: Sequence[Row], operators: list[str]) -> tuple[Cases, list[Row], Mask, Mask]:
        """The cases of the operators with the terms that conditions of the rows may have, all rows of them, those meant
        and those that are right."""
        cases, _, everything = self._rows.cases(operators)
        computes = any(row.judged.symptom is None or row.judged.symptom.family == WRONG_VALUES for row in rows)
        return cases if computes else cases.without_results(), everything, *_masks(rows, everything)

    def _search(self, rows: list[Row], operators: list[str], least: float = 0.0) -> tuple[Condition | None, float]:
        """The shortest condition of the rows among right cases, and the bits that it saves: more than least."""
        cases, _, showing, right = self._compare(rows, operators)
        if not right.any():
            return Condition((), int(showing.sum()), int(showing.sum()), 0, 0), 0.0
        places, bits = cases.search(showing, right, least)
        if not places:
            return None, 0.0
        return _make_condition([cases.terms[place] for place in places], cases.mask(places), showing, right), bits

    def _evaluate(self, condition: Condition, rows: list[Row], operator: str) -> tuple[list[Row], float, bool]:
        """Those of an operator's rows for which the condition holds, the bits that it saves there, and whether it holds
        for all of them and few others."""
        cases, table, everything = self._rows.cases([operator])
        showing, right = _masks(rows, everything)
        mask = table.mask(condition.terms)
        held = _keep(rows, everything, mask)
        is_whole = len(held) == len(rows) >= WHOLE * (len(rows) + int((mask & right).sum()))
        return held, cases.count_saved_bits(mask, showing, right), is_whole

    def _count(self, terms: Sequence[Term], rows: list[Row]) -> Condition:
        """The condition of these terms with the numbers of cases of the rows' operators."""
        numbers = np.zeros(4, int)
        for operator in _operators(rows):
            _, table, everything = self._rows.cases([operator])
            counted = _make_condition(list(terms), table.mask(terms), *_masks(rows, everything))
            numbers += counted.cases, counted.showing, counted.others, counted.missed
        return Condition(tuple(terms), *numbers.tolist())

    def _build(self, reading: str, found: _Found) -> Cause:
        rows, condition = found.rows, found.condition
        alone = [row for row in rows if not row.nodes] or rows
        smallest = min(alone, key=lambda row: (row.size, row.case_id))
        first = rows[0].judged
        text, link = found.remark or _describe_symptom(alone), ""
        if first.expected and reading == EXPECTED:
            text, link = first.expected
        words = "" if condition is None else str(condition)
        operators = Counter(row.operator for row in alone)
        stated = words if reading in (FAILURE, FLAKY) else ""
        place = next((row.judged.place for row in rows if row.judged.place), "")
        return Cause(
            key=group_key(self._target, reading, text, stated, *sorted(operators)),
            target=self._target,
            reading=reading,
            text=text,
            condition="" if words == "always" else words,
            evidence=_describe_evidence(found),
            place=place,
            link=link,
            statuses=_counts(row.status for row in rows),
            blames=_counts(row.judged.blame for row in rows),
            below=_counts(row.judged.below for row in rows if row.judged.below),
            operators=tuple(name for name, _ in operators.most_common()),
            dtypes=tuple(sorted({row.judged.dtype for row in rows}, key=dtype_order)),
            smallest=smallest.case_id,
            repro=smallest.judged.repro,
            right=self._rows.find_nearest_right(smallest) if reading in (FAILURE, FLAKY) else "",
            cases=len(rows),
            shared=found.shared,
            terms=condition.terms if condition else (),
        )


def _join_details(known: dict[str, _Found], found: _Found) -> None:
    """Sort cases of an operator that no condition explains by the details of their symptoms; known: detail -> its
    cause. A message is one cause whichever operator it is of; wrong values are the operator's own."""
    for row in found.rows:
        key = _message(row) or row.operator
        if key in known:
            known[key].rows.append(row)
            if row.operator != known[key].rows[0].operator:
                known[key].nearest = None  # it is of the other operator
        else:
            known[key] = replace(found, rows=[row])


def _join_terms(first: _Found, second: _Found) -> tuple[Term, ...]:
    """The terms of two conditions that are the same, or of one operator and the same but for the word that a fact is
    compared with; () of any others."""
    assert first.condition is not None
    assert second.condition is not None
    terms, others = first.condition.terms, second.condition.terms
    if set(terms) == set(others):
        return terms
    apart = [*(each for each in terms if each not in others), *(each for each in others if each not in terms)]
    if len(terms) != len(others) or len(apart) != 2 or _operators(first.rows) != _operators(second.rows):
        return ()
    term, other = apart
    is_word = term.words and other.words and term.operator == other.operator == "="
    if not is_word or term.fact != other.fact:
        return ()
    joined = replace(term, value=OR.join(sorted({*term.words, *other.words})))
    return tuple(joined if each == term else each for each in terms)


def _find_terms_of_both(rows: Rows, known: _Found, found: _Found) -> tuple[Term, ...]:
    """The terms of one of two causes of different operators, where they hold for the same cases of the other's as its
    own do: operators have several words for one thing. () where neither do."""
    if {*_operators(known.rows)} & {*_operators(found.rows)}:
        return ()
    for first, second in ((known, found), (found, known)):
        assert first.condition is not None
        assert second.condition is not None
        tables = [rows.cases([operator])[1] for operator in _operators(second.rows)]
        if all((each.mask(first.condition.terms) == each.mask(second.condition.terms)).all() for each in tables):
            return first.condition.terms
    return ()


def _operators(rows: Iterable[Row]) -> list[str]:
    return sorted({row.operator for row in rows})


def _join_graph(row: Row, explained: Iterable[_Found]) -> bool:
    """Whether a graph joined the largest cause of an operator of its nodes."""
    operators = {operator for operator, _ in row.nodes}
    causes = [each for each in explained if any(other.operator in operators for other in each.rows)]
    if causes:
        largest = max(causes, key=lambda each: len(each.rows))
        largest.rows.append(row)
        largest.other_graphs += 1
    return bool(causes)


def _message(row: Row) -> str:
    """The message of a refusal, by which it is one cause whichever operator it is of; empty of any other symptom."""
    is_told = row.status in (REFUSED, UNPLACED)
    return row.judged.symptom.detail if row.judged.symptom and is_told else ""


def _traits(row: Row) -> Iterator[str]:
    """What a fault does alike in every case that shows it, as far as a symptom says."""
    symptom = row.judged.symptom
    if symptom is None:
        return
    if symptom.family != WRONG_VALUES:
        yield symptom.end or symptom.detail.replace(row.operator.rpartition("::")[2], "…")
        return
    yield from symptom.patterns
    if symptom.kind != WRONG_VALUES:
        yield symptom.kind


def _stands_alone(rows: Sequence[Row], showing: int) -> bool:
    """Whether rows that no other condition explains support one more: more samples than one, and many or no small part
    of the cases for which it holds. showing: how many of those fail."""
    samples = len({row.sample for row in rows})
    return samples > 1 and (samples >= SEVERAL or len(rows) >= OWN * showing)


def _mask_traits(rows: Sequence[Row], everything: Sequence[Row]) -> Mask:
    """For each trait of several rows, which of all cases are rows that have it."""
    places = {id(row): place for place, row in enumerate(everything)}
    having: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        for trait in _traits(row):
            having[trait].append(places[id(row)])
    masks = np.zeros((len(having), len(everything)), bool)
    for mask, having_it in zip(masks, having.values(), strict=True):
        mask[having_it] = True
    shared: Mask = masks[masks.sum(axis=1) > 1]
    return shared


def _find_alike(rows: list[Row]) -> list[Row]:
    """Those of several operators that may have one cause: nothing of what is wrong with one contradicts another. Of
    messages each row has its own; of wrong elements, what most cases of an operator have in common, which may be
    nothing. That every element is wrong does not contradict what others give."""
    common: dict[str, set[str]] = {}
    for operator, own in _by_operator(rows).items():
        counted = Counter(trait for row in own for trait in _traits(row))
        least = 1 if any(map(_message, own)) else SHARE * len(own)
        common[operator] = {trait for trait, count in counted.items() if count >= least}
    count = Counter(trait for traits in common.values() for trait in traits)
    shared = min(count, key=lambda trait: (-count[trait], trait), default="")
    if shared not in PLACES:
        common = {operator: traits - {EVERY} for operator, traits in common.items()}
    return [
        row
        for row in rows
        if (shared in _traits(row) if _message(row) else not common[row.operator] or shared in common[row.operator])
    ]


def _group(row: Row) -> tuple[str, ...]:
    """What rows have in common that may have one cause; empty where nothing is to be said."""
    reading = row.judged.reading
    if reading == OK:
        return ()
    if reading == EXPECTED and row.judged.expected:
        return reading, row.judged.expected[0]
    if row.judged.symptom is None:
        return reading, row.judged.remark or (row.judged.expected or ("an expectation that no longer fails",))[0]
    return reading, row.judged.symptom.family


def _masks(rows: Sequence[Row], everything: Sequence[Row]) -> tuple[Mask, Mask]:
    """Which of all cases are meant, and which are right. A right case without an element in its outputs says nothing of
    wrong values, and one that may be refused nothing of wrong outputs and refusals."""
    meant = {id(row) for row in rows}
    kinds = {row.judged.symptom.kind for row in rows if row.judged.symptom}
    only_values = kinds <= {WRONG_VALUES}
    only_answers = kinds <= {WRONG_VALUES, WRONG_SHAPE, WRONG_DTYPE, KINDS[REFUSED]}
    right = [
        row.is_right and not (only_values and row.is_empty) and not (only_answers and row.may_refuse)
        for row in everything
    ]
    showing = np.array([id(row) in meant for row in everything], bool)
    return showing, np.array(right, bool) & ~showing


def _by_operator(rows: Iterable[Row]) -> dict[str, list[Row]]:
    by_operator: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_operator[row.operator].append(row)
    return by_operator


def _keep(rows: Iterable[Row], everything: Sequence[Row], mask: Mask) -> list[Row]:
    """Those of the rows for which the mask of everything holds."""
    held = {id(row) for row, holds in zip(everything, mask, strict=True) if holds}
    return [row for row in rows if id(row) in held]


def _without(rows: list[Row], others: Iterable[Row]) -> list[Row]:
    taken = {id(row) for row in others}
    return [row for row in rows if id(row) not in taken]


def _make_condition(terms: list[Term], mask: Mask, showing: Mask, right: Mask) -> Condition:
    looked = showing | right
    return Condition(
        tuple(terms),
        int((mask & looked).sum()),
        int((mask & showing).sum()),
        int((~mask & looked).sum()),
        int((~mask & showing).sum()),
    )


def _counts(words: Iterable[str]) -> dict[str, int]:
    return dict(Counter(words).most_common())


def _describe_symptom(rows: Sequence[Row]) -> str:
    """The symptom of most rows in words, with what nearly all have in common."""
    symptoms = [row.judged.symptom for row in rows if row.judged.symptom is not None]
    if not symptoms:
        return rows[0].judged.remark
    kind = Counter(symptom.kind for symptom in symptoms).most_common(1)[0][0]
    of_kind = [symptom for symptom in symptoms if symptom.kind == kind]
    ends = list(dict.fromkeys(symptom.end for symptom in of_kind if symptom.end))
    if ends:
        return f"{kind} ({', '.join(ends)})"
    detail = Counter(symptom.detail for symptom in of_kind).most_common(1)[0][0]
    return ": ".join(filter(None, (kind, describe_patterns(of_kind) or detail)))


def _describe_evidence(found: _Found) -> str:
    """`684 of 684 cases where it holds, 0 of 1,228 others`."""
    condition = found.condition
    if condition is not None:
        if not condition.terms:
            return (
                f"all {condition.cases:,} cases"
                if condition.cases == len(found.rows) - found.graphs - found.other_graphs
                else ""
            )
        graphs = f"; {found.graphs:,} graphs with such a node" if found.graphs else ""
        graphs += f"; {found.other_graphs:,} other graphs of the operator" if found.other_graphs else ""
        return (f"{condition.showing:,} of {condition.cases:,} cases where it holds, {condition.missed:,} of "
                f"{condition.others:,} others{graphs}")  # fmt: skip
    if found.remark:
        return ""
    if found.nearest is not None and found.nearest.showing > 1:
        near = found.nearest
        return (f"no condition separates the cases; the nearest is: {near} ({near.showing:,} of {near.cases:,} cases "
                f"where it holds, {near.missed:,} of {near.others:,} others)")  # fmt: skip
    return "no condition separates the cases"
