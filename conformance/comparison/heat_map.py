"""Where the wrong elements of an output lie, squeezed to a few cells that a page can show."""

from __future__ import annotations

import math

import numpy as np

from epcheck.generators.array import Array

HEAT_ROWS, HEAT_COLUMNS = 16, 48


class HeatMap:
    """The share of wrong elements, 0 to 9, over the output as rows x last axis squeezed to HEAT_ROWS x HEAT_COLUMNS."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.length = shape[-1] if shape else 1
        self.rows = _edges(math.prod(shape[:-1]), HEAT_ROWS)
        self.columns = _edges(self.length, HEAT_COLUMNS)
        self.wrong = np.zeros((len(self.rows) - 1, len(self.columns) - 1), np.int64)

    def add(self, at: Array) -> None:
        """at: flat indices of wrong elements."""
        row, column = np.divmod(at, self.length)
        cell_row = np.searchsorted(self.rows, row, "right") - 1
        cell_column = np.searchsorted(self.columns, column, "right") - 1
        cell = cell_row * self.wrong.shape[1] + cell_column
        self.wrong += np.bincount(cell, minlength=self.wrong.size).reshape(self.wrong.shape)

    def shares(self) -> tuple[tuple[int, ...], ...]:
        """Rows of cells, rounded up so that one wrong element shows; none for a single element."""
        if self.rows[-1] * self.columns[-1] < 2:
            return ()
        sizes = np.multiply.outer(self.rows[1:] - self.rows[:-1], self.columns[1:] - self.columns[:-1])
        return tuple(tuple(row) for row in (-(-self.wrong * 9 // sizes)).tolist())


def _edges(size: int, most: int) -> Array:
    """Where each of at most `most` cells of nearly one size begins; `size` at the end."""
    cells = max(1, min(size, most))
    edges: Array = np.arange(cells + 1, dtype=np.int64) * size // cells
    return edges
