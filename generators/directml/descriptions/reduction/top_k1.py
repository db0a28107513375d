"""DML_TOP_K1_OPERATOR_DESC (ns-directml-dml_top_k1_operator_desc)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.enumerations import AxisDirection
from epcheck.generators.directml.operator_desc import OperatorDesc, c_name
from epcheck.generators.directml.tensor import TensorDesc


@dataclass(frozen=True)
class TopK1(OperatorDesc):
    """Selects the largest or smallest K elements of each sequence along an axis, sorted, with their indices."""

    NAME: ClassVar[str] = "DML_TOP_K1_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_value_tensor: TensorDesc
    output_index_tensor: TensorDesc
    axis: int
    k: int
    axis_direction: AxisDirection

    def constraints(self) -> Iterator[Violation]:
        """The page's constraints.

        The page wants K *less* than the axis length, where ONNX allows all of it. K equal to the length is therefore
        reported as `k_less_than_axis_length`, a greater K as `k_within_axis_length`.
        """
        source = self.input_tensor
        if source.data_type is not self.output_value_tensor.data_type:
            yield self.violation(
                "same_data_type",
                f"InputTensor is {source.data_type.name} and OutputValueTensor "
                f"{self.output_value_tensor.data_type.name}",
            )
        counts = [tensor.dimension_count for tensor in (source, self.output_value_tensor, self.output_index_tensor)]
        if len(set(counts)) > 1:
            yield self.violation(
                "same_dimension_count",
                "InputTensor, OutputValueTensor and OutputIndexTensor have {}, {} and {} dimensions".format(*counts),
            )
        if self.k < 1:
            yield self.violation("k_positive", f"K is {self.k}")
        if not 0 <= self.axis < source.dimension_count:
            yield self.violation(
                "axis_less_than_dimension_count",
                f"Axis is {self.axis}; InputTensor has {source.dimension_count} dimensions",
            )
            return
        length = source.sizes[self.axis]
        if self.k > length:
            yield self.violation("k_within_axis_length", f"K is {self.k}; axis {self.axis} has {length} elements")
        elif self.k == length:
            yield self.violation(
                "k_less_than_axis_length",
                f"K is {self.k}, all of axis {self.axis}, where the page wants less than the axis length",
            )
        if len(set(counts)) > 1:
            return
        expected = (*source.sizes[: self.axis], self.k, *source.sizes[self.axis + 1 :])
        for name in ("output_value_tensor", "output_index_tensor"):
            sizes = getattr(self, name).sizes
            if sizes != expected:
                yield self.violation(f"{name}_sizes", f"{c_name(name)} has sizes {sizes} instead of {expected}")

    def evaluate(self, input_tensor: Array) -> tuple[Array, Array]:
        """The values, in the input's dtype, and their indices along the axis, in the dtype of OutputIndexTensor.

        INCREASING gives the smallest first, DECREASING the largest; equal values come by ascending index in both. +0
        and -0 are equal. Defined for K up to the axis length, ONNX's bound. The page does not say where NaN goes;
        here it is greater than every number and equal to NaN, as numpy sorts.
        """
        self.require_defined("k_less_than_axis_length")
        self.require_arrays(input_tensor=input_tensor)
        if self.axis_direction is AxisDirection.INCREASING:
            order = np.argsort(input_tensor, axis=self.axis, kind="stable")
        else:
            # Reversing before and after a stable ascending sort gives the descending one with ties still ascending.
            # It never negates a value, which the least signed integer and unsigned ones could not bear.
            reversed_input = np.flip(input_tensor, self.axis)
            last = input_tensor.shape[self.axis] - 1
            order = last - np.flip(np.argsort(reversed_input, axis=self.axis, kind="stable"), self.axis)
        indices = order[(slice(None),) * self.axis + (slice(self.k),)]
        values = np.take_along_axis(input_tensor, indices, self.axis)
        return values, indices.astype(self.output_index_tensor.data_type.dtype)
