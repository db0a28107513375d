"""What the search for causes keeps of the records of a run: little of each, and the facts of cases in common parts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epcheck.conformance.records.case_condition import Term
from epcheck.conformance.records.case_facts import CaseFacts
from epcheck.conformance.records.facts import FactReader
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import FAILING, FAILURE, FLAKY, OK, PASS
from epcheck.reports.causes.condition import Cases, FactTable
from epcheck.reports.causes.symptom import Symptom, describe_remark, symptom_of
from epcheck.reports.runtime_message import SOURCE_LINE

WEIGHT = 0.4
"""A sample's cases in n dtypes, versions and bindings count as n to the power of 1 - WEIGHT."""

KEPT = 1 << 27
"""Bytes of tables of facts that are kept at a time, at most about; the newest is kept whatever its size."""

MOST_CASES = 2000
"""Cases of several operators in one table, whose memory grows with them."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What is kept of a record of which something is to be said.

    symptom: of a candidate that is wrong; remark: else, in words. below: what DirectML itself says of the case. place:
    DirectML's operator, where its provider ran the node.
    """

    reading: str = OK
    blame: str = ""
    dtype: str = ""
    symptom: Symptom | None = None
    remark: str = ""
    below: str = ""
    repro: str = ""
    expected: tuple[str, str] | None = None
    place: str = ""


RIGHT = Judged()
"""Of all records of which nothing is to be said."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is kept of a record. number: its place among those of its operator. size: elements of inputs and outputs.
    is_empty: no output has an element. may_refuse: a refusal is right. nodes: of a graph that fails, the operator of
    each node and its facts, as if it were alone."""

    number: int
    operator: str
    case_id: str
    status: str
    size: int
    judged: Judged
    is_empty: bool = False
    may_refuse: bool = False
    nodes: tuple[tuple[str, bytes], ...] = ()

    @property
    def sample(self) -> str:
        """The name of the sample, out of the id `OPERATOR-VERSION/DTYPE/SAMPLE[BINDING]`."""
        return self.case_id.rpartition("[")[0].rpartition("/")[2]

    @property
    def is_right(self) -> bool:
        """Whether the case shows that the candidate is right."""
        return self.status == PASS and self.judged.symptom is None


class Rows:
    """The records of one candidate by operator, and the facts of their cases."""

    def __init__(self, reader: FactReader, explained: Container[str] | None = None) -> None:
        """explained: the operators of which facts are read; None for all."""
        self._explained = explained
        self.by_operator: dict[str, list[Row]] = defaultdict(list)
        self._reader = reader
        self._facts: dict[str, list[bytes]] = defaultdict(list)
        self._tables: dict[tuple[str, ...], tuple[Cases, FactTable, list[Row]]] = {}

    def add(self, record: Record) -> None:
        case, operator = record.case, record.case.operator_key
        rows = self.by_operator[operator]
        size = sum(math.prod(value.shape) for value in case.values)
        judged = _keep(record)
        nodes = case.nodes_alone if record.reading in (FAILURE, FLAKY) else ()
        known = tuple((node.operator_key, self._reader.read(node)) for node in nodes)
        says = _is_empty(case), case.may_refuse
        rows.append(Row(len(rows), operator, case.case_id, record.status, size, judged, *says, known))
        if self.has_facts(operator):
            self._facts[operator].append(self._reader.read(case))

    def has_facts(self, operator: str) -> bool:
        """Whether a condition can be looked for among the cases of an operator."""
        return self._explained is None or operator in self._explained

    def find_nearest_right(self, failing: Row) -> str:
        """The right case of the same operator that differs from a failing one in the fewest facts; empty where none is
        right."""
        _, table, everything = self.cases([failing.operator])
        rows = [row for row in everything if row.is_right and not row.judged.remark]
        differences = table.count_differences(failing.number, [row.number for row in rows])
        keys = [(count, row.size, row.case_id) for count, row in zip(differences, rows, strict=True)]
        return min(keys)[-1] if keys else ""

    def find_graphs(self, rows: Sequence[Row], operators: Container[str], terms: Sequence[Term]) -> list[Row]:
        """The graphs that have a node of one of the operators for which all terms hold."""
        nodes = [(row, facts) for row in rows for operator, facts in row.nodes if operator in operators]
        if not nodes:
            return []
        mask = FactTable(self._reader, [facts for _, facts in nodes]).mask(terms)
        found = {id(row): row for (row, _), holds in zip(nodes, mask, strict=True) if holds}
        return list(found.values())

    def cases(self, operators: Sequence[str]) -> tuple[Cases, FactTable, list[Row]]:
        """The cases of some operators, their facts, and their rows in the same order. Of several operators that have
        more than MOST_CASES together, as many right cases are left out as need be, evenly."""
        key = tuple(operators)
        if key not in self._tables:
            rows = [row for operator in key for row in self.by_operator[operator]]
            rows = _thin_out(rows) if len(key) > 1 else rows
            facts = [self._facts[row.operator][row.number] for row in rows]
            table = FactTable(self._reader, facts, [row.operator for row in rows] if len(key) > 1 else ())
            made = Cases.from_table(table, _weigh(rows)), table, rows
            while self._tables and sum(map(_count_bytes, (made, *self._tables.values()))) > KEPT:
                del self._tables[next(iter(self._tables))]
            self._tables[key] = made
        return self._tables[key]


def _count_bytes(made: tuple[Cases, FactTable, list[Row]]) -> int:
    return made[0].size + made[1].matrix.nbytes


def _is_empty(case: CaseFacts) -> bool:
    outputs = [value for value in case.values if value.where == "output"]
    return bool(outputs) and all(0 in value.shape for value in outputs)


def _keep(record: Record) -> Judged:
    case, opinion, expectation = record.case, record.candidate, record.expectation
    is_wrong = record.reading in FAILING
    remark = "" if is_wrong else describe_remark(record)
    if not is_wrong and not remark and expectation is None:
        return RIGHT
    providers = {provider for provider, _ in opinion.assignment or ()}
    on_directml = "DmlExecutionProvider" in providers or (not providers and opinion.target.startswith("dml"))
    return Judged(
        record.reading,
        record.blame,
        case.dtype,
        symptom_of(record) if is_wrong else None,
        remark,
        record.direct.blame if record.direct else "",
        case.repro,
        (expectation.reason, expectation.link) if expectation else None,
        case.directml.name if on_directml and case.directml and not SOURCE_LINE.search(opinion.message) else "",
    )


def _thin_out(rows: list[Row]) -> list[Row]:
    """The rows, at most MOST_CASES unless more are wrong: of the right ones every nth."""
    wrong = sum(not row.is_right for row in rows)
    step = math.ceil((len(rows) - wrong) / max(1, MOST_CASES - wrong))
    return [row for number, row in enumerate(rows) if not row.is_right or number % step == 0]


def _weigh(rows: Sequence[Row]) -> Any:
    """What each case counts: the cases of one sample differ in dtype, version and binding only."""
    same = Counter((row.operator, row.sample, row.is_right) for row in rows)
    return np.array([same[row.operator, row.sample, row.is_right] ** -WEIGHT for row in rows], np.float32)
