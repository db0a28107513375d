"""DML_SLICE1_OPERATOR_DESC (ns-directml-dml_slice1_operator_desc)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.operator_desc import INT, OperatorDesc
from epcheck.generators.directml.tensor import TensorDesc


@dataclass(frozen=True)
class Slice1(OperatorDesc):
    """Extracts a single subregion (a 'slice') of an input tensor.

    In each dimension a window of the input begins at an offset and has a size. A positive stride walks it from its
    first element, a negative one from its last. The output may have fewer elements than the walk can reach.
    `dimension_count` is the length of the window arrays.
    """

    NAME: ClassVar[str] = "DML_SLICE1_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    dimension_count: int = field(init=False)
    input_window_offsets: tuple[int, ...]
    input_window_sizes: tuple[int, ...]
    input_window_strides: tuple[int, ...] = field(metadata=INT)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension_count", len(self.input_window_offsets))

    def constraints(self) -> Iterator[Violation]:
        """The page's constraints.

        MaxCopiedElements divides by |stride|: the page writes InputWindowStrides[i], which would make it less than 1
        for any negative stride and forbid the page's own second example.
        """
        source, target = self.input_tensor, self.output_tensor
        if source.data_type is not target.data_type:
            yield self.violation(
                "same_data_type",
                f"InputTensor is {source.data_type.name} and OutputTensor {target.data_type.name}",
            )
        lengths = [
            len(self.input_window_offsets),
            len(self.input_window_sizes),
            len(self.input_window_strides),
        ]
        if len(set(lengths)) > 1:
            yield self.violation(
                "window_arrays_have_dimension_count",
                "InputWindowOffsets, InputWindowSizes and InputWindowStrides have {}, {} and {} values".format(
                    *lengths
                ),
            )
            return
        if source.dimension_count != target.dimension_count:
            yield self.violation(
                "same_dimension_count",
                f"InputTensor has {source.dimension_count} dimensions and OutputTensor {target.dimension_count}",
            )
            return
        if self.dimension_count != source.dimension_count:
            yield self.violation(
                "dimension_count_matches_tensors",
                f"DimensionCount is {self.dimension_count}; the tensors have {source.dimension_count} dimensions",
            )
            return
        for axis in range(self.dimension_count):
            yield from self._axis_constraints(axis)

    def _axis_constraints(self, axis: int) -> Iterator[Violation]:
        offset, size = self.input_window_offsets[axis], self.input_window_sizes[axis]
        stride = self.input_window_strides[axis]
        input_size, output_size = self.input_tensor.sizes[axis], self.output_tensor.sizes[axis]
        if offset + size > input_size:
            yield self.violation(
                "window_within_input",
                f"in dimension {axis} the window of offset {offset} and size {size} ends at {offset + size}; "
                f"the input ends at {input_size}",
            )
        if size < 1:
            yield self.violation("window_not_empty", f"in dimension {axis} the window has size {size}")
        if stride == 0:
            yield self.violation("stride_nonzero", f"in dimension {axis} the stride is 0")
        if size < 1 or stride == 0:
            return
        max_copied_elements = 1 + (size - 1) // abs(stride)
        if not 1 <= output_size <= max_copied_elements:
            yield self.violation(
                "output_size_within_max_copied_elements",
                f"in dimension {axis} the output has size {output_size}; a window of size {size} "
                f"with stride {stride} gives 1 to {max_copied_elements}",
            )

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """OutputTensor[c] = InputTensor[CopyStart + InputWindowStrides * c] for all coordinates c of the output.

        CopyStart is the window's first element, or its last where the stride is negative. Bits are copied, whatever
        the type; bool stays bool.
        """
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        coordinates = []
        for axis, stride in enumerate(self.input_window_strides):
            copy_start = self.input_window_offsets[axis]
            if stride < 0:
                copy_start += self.input_window_sizes[axis] - 1
            coordinates.append(copy_start + stride * np.arange(self.output_tensor.sizes[axis]))
        return (np.asarray(input_tensor[np.ix_(*coordinates)]),)
