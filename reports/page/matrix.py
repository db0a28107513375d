"""The matrices of a run: operators x dtypes of one candidate, and operators x candidates side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from epcheck.conformance.records.case_facts import qualified_name
from epcheck.conformance.records.terms import FAILING
from epcheck.reports.dtypes import dtype_order
from epcheck.reports.runs.summary import WORST_FIRST, Cell, TargetSummary


@dataclass(frozen=True)
class MatrixCell:
    """The cases of an operator, in all its versions, whose first varied dtype is the same."""

    passes: int
    total: int
    worst: str


@dataclass(frozen=True)
class Matrix:
    """Operators x dtypes of one candidate: an operator that varies several dtypes stands at the first of them."""

    dtypes: tuple[str, ...]
    rows: tuple[tuple[str, str, dict[str, MatrixCell]], ...]
    """Operator, its worst reading, and its cells by dtype."""


def matrix_of(target: TargetSummary) -> Matrix:
    together: dict[str, dict[str, list[Cell]]] = {}
    for cell in target.matrix:
        row = together.setdefault(qualified_name(cell.operator, cell.domain), {})
        row.setdefault(cell.dtype.partition("-")[0], []).append(cell)
    rows = {operator: {dtype: _joined(cells) for dtype, cells in row.items()} for operator, row in together.items()}
    dtypes = {dtype for row in rows.values() for dtype in row}
    return Matrix(
        tuple(sorted(dtypes, key=dtype_order)),
        tuple(
            (operator, _worst(cell.worst for cell in row.values()), row)
            for operator, row in sorted(rows.items(), key=lambda item: ("::" in item[0], item[0]))
        ),
    )


def _joined(cells: Iterable[Cell]) -> MatrixCell:
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


def side_by_side(targets: Sequence[TargetSummary]) -> tuple[Row, ...]:
    """The candidates side by side; nothing for a single one."""
    if len(targets) < 2:
        return ()
    together: dict[str, dict[str, list[Cell]]] = {}
    for target in targets:
        for cell in target.matrix:
            row = together.setdefault(qualified_name(cell.operator, cell.domain), {})
            row.setdefault(target.target, []).append(cell)
    rows = ((operator, {name: _joined(cells) for name, cells in together[operator].items()}) for operator in together)
    return tuple(
        Row(operator, len({_standing(cell) for cell in cells.values()}) > 1, cells)
        for operator, cells in sorted(rows, key=lambda row: ("::" in row[0], row[0]))
    )


def _standing(cell: MatrixCell) -> str:
    """How it stands for people who compare: a failure that is expected is wrong as well."""
    if cell.worst in FAILING:
        return "wrong"
    return "right" if cell.passes else "declined"
