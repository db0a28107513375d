"""The matrices of a run: operators x dtypes of one candidate, and operators x candidates side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from epcheck.conformance.records.case_facts import qualified_name
from epcheck.conformance.records.terms import FAILING
from epcheck.reports.dtypes import dtype_order
from epcheck.reports.family import Family
from epcheck.reports.runs.summary import WORST_FIRST, Cell, TargetSummary


@dataclass(frozen=True)
class MatrixCell:
    """The cases of an operator, in all its versions, whose first varied dtype is the same."""

    passes: int
    total: int
    worst: str


class MatrixRow(NamedTuple):
    """An operator, its worst reading, and its cells from the first dtype to the last: each with its dtype, or None and
    the number of dtypes that it leaves out."""

    operator: str
    worst: str
    cells: tuple[tuple[MatrixCell, str] | tuple[None, int], ...]


@dataclass(frozen=True)
class Matrix:
    """Operators x dtypes of one candidate, by family: an operator that varies several dtypes stands at the first of
    them."""

    dtypes: tuple[str, ...]
    families: tuple[tuple[str, tuple[MatrixRow, ...]], ...]


def matrix_of(target: TargetSummary, family: Family) -> Matrix:
    """family: qualified name of an operator -> the name of its family."""
    together: dict[str, dict[str, list[Cell]]] = {}
    for cell in target.matrix:
        row = together.setdefault(qualified_name(cell.operator, cell.domain), {})
        row.setdefault(cell.dtype.partition("-")[0], []).append(cell)
    rows = {operator: {dtype: _join_cells(cells) for dtype, cells in row.items()} for operator, row in together.items()}
    dtypes = tuple(sorted({dtype for row in rows.values() for dtype in row}, key=dtype_order))
    families: dict[str, list[MatrixRow]] = {}
    for operator, cells in sorted(rows.items(), key=lambda item: ("::" in item[0], item[0])):
        worst = _worst(cell.worst for cell in cells.values())
        families.setdefault(family(operator), []).append(MatrixRow(operator, worst, tuple(_cells(cells, dtypes))))
    return Matrix(dtypes, tuple((name, tuple(families[name])) for name in sorted(families)))


def _cells(row: Mapping[str, MatrixCell], dtypes: Sequence[str]) -> Iterator[tuple[MatrixCell, str] | tuple[None, int]]:
    for has_cell, dtypes_alike in groupby(dtypes, row.__contains__):
        if has_cell:
            yield from ((row[dtype], dtype) for dtype in dtypes_alike)
        else:
            yield None, len(tuple(dtypes_alike))


def _join_cells(cells: Iterable[Cell]) -> MatrixCell:
    cells = tuple(cells)
    return MatrixCell(sum(c.passes for c in cells), sum(c.total for c in cells), _worst(c.worst for c in cells))


def _worst(readings: Iterable[str]) -> str:
    return min(readings, key=WORST_FIRST.index)


@dataclass(frozen=True)
class Row:
    """An operator on each candidate: target -> its cases in all versions and dtypes. differs: on one it is right, and
    on another wrong or declined."""

    operator: str
    differs: bool
    cells: dict[str, MatrixCell]

    @property
    def worst(self) -> str:
        return _worst(cell.worst for cell in self.cells.values())


def side_by_side(targets: Sequence[TargetSummary]) -> tuple[Row, ...]:
    """The candidates side by side; nothing for a single one."""
    if len(targets) < 2:
        return ()
    together: dict[str, dict[str, list[Cell]]] = {}
    for target in targets:
        for cell in target.matrix:
            row = together.setdefault(qualified_name(cell.operator, cell.domain), {})
            row.setdefault(target.target, []).append(cell)
    rows = (
        (operator, {name: _join_cells(cells) for name, cells in together[operator].items()}) for operator in together
    )
    return tuple(
        Row(operator, len({_standing(cell) for cell in cells.values()}) > 1, cells)
        for operator, cells in sorted(rows, key=lambda row: ("::" in row[0], row[0]))
    )


def _standing(cell: MatrixCell) -> str:
    """How it stands for people who compare: a failure that is expected is wrong as well."""
    if cell.worst in FAILING:
        return "wrong"
    return "right" if cell.passes else "declined"
