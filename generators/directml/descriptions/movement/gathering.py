"""DirectML's operators that gather and scatter elements by their indices.

See `layout` for what its descriptions have in common.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.descriptions.movement.layout import LayoutDesc
from epcheck.generators.directml.tensor import TensorDesc


def _positions(indices: Array, length: int) -> Array:
    wide = indices.astype(np.int64)
    return np.where(wide < 0, wide + length, wide)


@dataclass(frozen=True)
class Gather(LayoutDesc):
    """Slices along an axis, at the indices."""

    NAME: ClassVar[str] = "DML_GATHER_OPERATOR_DESC"

    input_tensor: TensorDesc
    indices_tensor: TensorDesc
    output_tensor: TensorDesc
    axis: int
    index_dimensions: int

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_same_type("input_tensor", "output_tensor")
        yield from self.check_same_rank("input_tensor", "indices_tensor", "output_tensor")
        sizes, indices = self.input_tensor.sizes, self.indices_tensor.sizes
        if not (0 <= self.axis < len(sizes) and self.index_dimensions <= len(indices)):
            yield from self.check_within(self.axis, self.input_tensor)
            yield self.violation("dimensions_counted", f"IndexDimensions is {self.index_dimensions}")
            return
        meaningless = len(indices) - self.index_dimensions
        if any(size != 1 for size in indices[:meaningless]):
            yield self.violation("dimensions_counted", f"IndexDimensions is {self.index_dimensions} of {indices}")
        meant = (*sizes[: self.axis], *indices[meaningless:], *sizes[self.axis + 1 :])
        yield from self.check_right_aligned("output_tensor", meant)

    def evaluate(self, input_tensor: Array, indices_tensor: Array) -> tuple[Array]:
        """The last IndexDimensions dimensions of the indices take the place of the axis."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor, indices_tensor=indices_tensor)
        shape = indices_tensor.shape[indices_tensor.ndim - self.index_dimensions :]
        places = _positions(indices_tensor, input_tensor.shape[self.axis]).reshape(shape)
        return (input_tensor.take(places, self.axis).reshape(self.output_tensor.sizes),)


@dataclass(frozen=True)
class GatherElements(LayoutDesc):
    """One element for each index."""

    NAME: ClassVar[str] = "DML_GATHER_ELEMENTS_OPERATOR_DESC"

    input_tensor: TensorDesc
    indices_tensor: TensorDesc
    output_tensor: TensorDesc
    axis: int

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_same_type("input_tensor", "output_tensor")
        yield from self.check_within(self.axis, self.input_tensor)
        yield from self.check_same_sizes("indices_tensor", "output_tensor")
        if self.input_tensor.dimension_count != self.indices_tensor.dimension_count:
            yield from self.check_same_rank("input_tensor", "indices_tensor")
            return
        yield from self.indices_beside(self.axis)

    def evaluate(self, input_tensor: Array, indices_tensor: Array) -> tuple[Array]:
        """The index stands for the coordinate along the axis; that is defined for smaller sizes beside it, too."""
        self.require_defined("sizes_match_except_axis")
        self.require_arrays(input_tensor=input_tensor, indices_tensor=indices_tensor)
        places: list[Array] = list(np.indices(indices_tensor.shape, sparse=True))
        places[self.axis] = _positions(indices_tensor, input_tensor.shape[self.axis])
        return (input_tensor[tuple(places)],)


@dataclass(frozen=True)
class _Indexed(LayoutDesc):
    """What the operators have in common whose indices are tuples, the last dimension of the tensor of indices."""

    def check_indices(self, name: str, batches: int) -> Iterator[Violation]:
        """The slices that the tuples name, and their tensor: it must have the sizes of the indices without the tuples,
        then those of a slice. The page's formula counts the slice's dimensions as if they were a tuple's; its example
        is followed here."""
        counts = {"input_tensor": "input_dimension_count", "indices_tensor": "indices_dimension_count"}
        wrong = [v for of, member in counts.items() for v in self.check_count(of, getattr(self, member), member)]
        yield from wrong
        if wrong:
            return
        inputs, indices = (self.sizes_of(of)[-getattr(self, member) :] for of, member in counts.items())
        depth = indices[-1]
        if batches + depth > len(inputs) or batches >= len(indices):
            yield self.violation("tuples_fit_input", f"{batches} batches of tuples of {depth} in {inputs}")
            return
        if inputs[:batches] != indices[:batches]:
            yield self.violation("same_batches", f"the batches are {inputs[:batches]} and {indices[:batches]}")
        yield from self.check_right_aligned(name, (*indices[:-1], *inputs[batches + depth :]))


@dataclass(frozen=True)
class GatherND1(_Indexed):
    """Slices that index tuples name, batch by batch."""

    NAME: ClassVar[str] = "DML_GATHER_ND1_OPERATOR_DESC"

    input_tensor: TensorDesc
    indices_tensor: TensorDesc
    output_tensor: TensorDesc
    input_dimension_count: int
    indices_dimension_count: int
    batch_dimension_count: int

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_same_type("input_tensor", "output_tensor")
        yield from self.check_same_rank("input_tensor", "indices_tensor", "output_tensor")
        yield from self.check_indices("output_tensor", self.batch_dimension_count)

    def evaluate(self, input_tensor: Array, indices_tensor: Array) -> tuple[Array]:
        """The last dimensions count, as many as the dimension counts say."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor, indices_tensor=indices_tensor)
        values = input_tensor.reshape(input_tensor.shape[input_tensor.ndim - self.input_dimension_count :])
        indices = indices_tensor.reshape(indices_tensor.shape[indices_tensor.ndim - self.indices_dimension_count :])
        batches = self.batch_dimension_count
        shape, depth = values.shape[batches:], indices_tensor.shape[-1]
        places = [_positions(indices[..., i], shape[i]) for i in range(depth)]
        grid = list(np.indices(indices.shape[:-1], sparse=True))[:batches]
        gathered: Array = values[(*grid, *places)]
        return (gathered.reshape(self.output_tensor.sizes),)


@dataclass(frozen=True)
class Scatter(LayoutDesc):
    """A copy of the input with one element replaced for each index."""

    NAME: ClassVar[str] = "DML_SCATTER_OPERATOR_DESC"

    input_tensor: TensorDesc
    indices_tensor: TensorDesc
    updates_tensor: TensorDesc
    output_tensor: TensorDesc
    axis: int

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_same_type("input_tensor", "updates_tensor", "output_tensor")
        yield from self.check_same_sizes("input_tensor", "output_tensor")
        yield from self.check_same_sizes("indices_tensor", "updates_tensor")
        yield from self.check_within(self.axis, self.input_tensor)
        yield from self.indices_beside(self.axis)

    def evaluate(self, input_tensor: Array, indices_tensor: Array, updates_tensor: Array) -> tuple[Array]:
        """The index stands for the coordinate along the axis; that is defined for smaller sizes beside it, too."""
        self.require_defined("sizes_match_except_axis")
        self.require_arrays(input_tensor=input_tensor, indices_tensor=indices_tensor, updates_tensor=updates_tensor)
        places: list[Array] = list(np.indices(indices_tensor.shape, sparse=True))
        places[self.axis] = _positions(indices_tensor, input_tensor.shape[self.axis])
        result = input_tensor.copy()
        result[tuple(np.broadcast_arrays(*places))] = updates_tensor
        return (result,)


@dataclass(frozen=True)
class ScatterND(_Indexed):
    """A copy of the input with a slice replaced for each index tuple."""

    NAME: ClassVar[str] = "DML_SCATTER_ND_OPERATOR_DESC"

    input_tensor: TensorDesc
    indices_tensor: TensorDesc
    updates_tensor: TensorDesc
    output_tensor: TensorDesc
    input_dimension_count: int
    indices_dimension_count: int

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_same_type("input_tensor", "updates_tensor", "output_tensor")
        yield from self.check_same_sizes("input_tensor", "output_tensor")
        yield from self.check_same_rank("input_tensor", "indices_tensor", "updates_tensor")
        yield from self.check_indices("updates_tensor", 0)

    def evaluate(self, input_tensor: Array, indices_tensor: Array, updates_tensor: Array) -> tuple[Array]:
        """The last dimensions count, as many as the dimension counts say."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor, indices_tensor=indices_tensor, updates_tensor=updates_tensor)
        values = input_tensor.reshape(input_tensor.shape[input_tensor.ndim - self.input_dimension_count :]).copy()
        indices = indices_tensor.reshape(indices_tensor.shape[indices_tensor.ndim - self.indices_dimension_count :])
        shape, depth = values.shape, indices_tensor.shape[-1]
        places = tuple(_positions(indices[..., i], shape[i]) for i in range(depth))
        values[places] = updates_tensor.reshape(indices.shape[:-1] + values.shape[depth:])
        return (values.reshape(self.output_tensor.sizes),)
