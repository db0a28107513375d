"""Windows that slide over the spatial dimensions of a tensor [N, C, *spatial], by the coordinates of what they cover.

It is written apart from `generators/oracle_math/window.py`, on which the truth of the standard rests: two opinions, not
one twice.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from epcheck.generators.array import Array


@dataclass(frozen=True)
class Sliding:
    """sizes: the spatial sizes of what the windows slide over. output: how many windows there are along each."""

    sizes: tuple[int, ...]
    output: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    start_padding: tuple[int, ...]

    def coordinates(self) -> list[Array]:
        """For each spatial dimension the coordinate under each window and tap: [*output, *window] by broadcasting."""
        rank, found = len(self.sizes), []
        for axis in range(rank):
            windows = np.arange(self.output[axis]) * self.strides[axis] - self.start_padding[axis]
            covered = windows[:, None] + np.arange(self.window[axis]) * self.dilations[axis]
            shape = [1] * 2 * rank
            shape[axis], shape[rank + axis] = covered.shape
            found.append(covered.reshape(shape))
        return found

    def inside(self, end_padding: tuple[int, ...] | None = None) -> Array:
        """bool [*output, taps]: what lies on the tensor, or with `end_padding` on the tensor or its padding."""
        mask = np.ones((*self.output, *self.window), bool)
        for axis, covered in enumerate(self.coordinates()):
            low = 0 if end_padding is None else -self.start_padding[axis]
            high = self.sizes[axis] + (0 if end_padding is None else end_padding[axis])
            mask &= (low <= covered) & (covered < high)
        return mask.reshape(*self.output, prod(self.window))

    def _places(self) -> Array:
        """The place in the flattened tensor of what each tap covers, the nearest one where that is padding."""
        place: Array = np.zeros((*self.output, *self.window), np.int64)
        for covered, size in zip(self.coordinates(), self.sizes, strict=True):
            place = place * size + np.clip(covered, 0, size - 1)
        return place

    def gather(self, values: Array, padding: float) -> Array:
        """[N, C, *sizes] becomes [N, C, *output, taps]."""
        flat = values.reshape(*values.shape[:2], prod(self.sizes))
        covered = flat[:, :, self._places().ravel()].reshape(*values.shape[:2], *self.output, prod(self.window))
        return np.where(self.inside(), covered, values.dtype.type(padding))

    def add_up(self, contributions: Array) -> Array:
        """[N, C, *output, taps] becomes [N, C, *sizes]: each element is the sum of what covers it."""
        leading, kept = contributions.shape[:2], np.where(self.inside(), contributions, contributions.dtype.type(0))
        total = np.zeros((prod(self.sizes), prod(leading)), contributions.dtype)
        np.add.at(total, self._places().ravel(), kept.reshape(prod(leading), -1).T)
        return total.T.reshape(*leading, *self.sizes)

    def maximum(self, values: Array) -> tuple[Array, Array]:
        """(the greatest element under each window, its place in the flattened tensor); of equal ones the first."""
        lowest = -np.inf if values.dtype.kind == "f" else float(np.iinfo(values.dtype).min)
        covered, inside = self.gather(values, lowest), self.inside()
        greatest = covered.max(-1)
        image = np.arange(prod(self.sizes)).reshape(1, 1, *self.sizes)
        leading = np.arange(prod(values.shape[:2])).reshape(*values.shape[:2], *(1,) * (len(self.sizes) + 1))
        places = self.gather(image, 0) + leading * prod(self.sizes)
        reached = inside & ((covered == greatest[..., None]) | np.isnan(covered))
        return greatest, np.where(reached, places, values.size).min(-1)

    def convolve(self, values: Array, filters: Array, groups: int) -> Array:
        """[N, C, *sizes] with [M, C / groups, *window] becomes [N, M, *output]."""
        taps, per_group = prod(self.window), filters.shape[0] // groups
        covered = np.moveaxis(self.gather(values, 0), -1, 2).reshape(values.shape[0], groups, -1, prod(self.output))
        rows = filters.reshape(groups, per_group, filters.shape[1] * taps)
        total: Array = rows @ covered
        return total.reshape(values.shape[0], filters.shape[0], *self.output)

    def spread(self, values: Array, filters: Array, groups: int) -> Array:
        """[N, C, *output] with [C, M / groups, *window] becomes [N, M, *sizes]."""
        batch, channels = values.shape[:2]
        columns = values.reshape(batch, groups, channels // groups, prod(self.output))
        rows = filters.reshape(groups, channels // groups, -1)
        products = rows.transpose(0, 2, 1) @ columns
        shaped = products.reshape(batch, groups * filters.shape[1], prod(self.window), *self.output)
        return self.add_up(np.moveaxis(shaped, 2, -1))
