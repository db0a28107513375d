"""DML_ROI_POOLING_OPERATOR_DESC and DML_ROI_ALIGN1_OPERATOR_DESC.

Pages: ns-directml-dml_roi_pooling_operator_desc, ns-directml-dml_roi_align1_operator_desc. The first leaves its
rounding open and the second what an interpolation beyond the image's edge takes, so that neither is evaluated.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import TensorDesc


class ReduceFunction(Enum):
    """The values of DML_REDUCE_FUNCTION that a region may be reduced by."""

    AVERAGE = 2
    MAX = 8


class InterpolationMode(Enum):
    """DML_INTERPOLATION_MODE."""

    NEAREST_NEIGHBOR = 0
    LINEAR = 1


@dataclass(frozen=True)
class RoiPooling(OperatorDesc):
    """The maximum of each bin of each region. `pooled_size` is (width, height), as in DML_SIZE_2D."""

    NAME: ClassVar[str] = "DML_ROI_POOLING_OPERATOR_DESC"

    input_tensor: TensorDesc
    roi_tensor: TensorDesc
    output_tensor: TensorDesc
    spatial_scale: float
    pooled_size: tuple[int, int]

    def constraints(self) -> Iterator[Violation]:
        """Regions of five numbers; an output of [regions, channels, height, width]."""
        if any(size != 1 for size in self.roi_tensor.sizes[:-2]):
            yield self.violation("roi_leading_sizes", f"ROITensor has sizes {self.roi_tensor.sizes}")
        if self.roi_tensor.sizes[-1] != 5:
            yield self.violation("roi_has_five_values", f"ROITensor has sizes {self.roi_tensor.sizes}")
        expected = (self.roi_tensor.sizes[-2], self.input_tensor.sizes[1], self.pooled_size[1], self.pooled_size[0])
        if self.output_tensor.sizes != expected:
            yield self.violation("output_sizes", f"OutputTensor has sizes {self.output_tensor.sizes}, not {expected}")


@dataclass(frozen=True)
class RoiAlign1(OperatorDesc):
    """Samples of each bin of each region, interpolated, and their average or maximum."""

    NAME: ClassVar[str] = "DML_ROI_ALIGN1_OPERATOR_DESC"

    input_tensor: TensorDesc
    roi_tensor: TensorDesc
    batch_indices_tensor: TensorDesc
    output_tensor: TensorDesc
    reduction_function: ReduceFunction
    interpolation_mode: InterpolationMode
    spatial_scale_x: float
    spatial_scale_y: float
    input_pixel_offset: float
    output_pixel_offset: float
    out_of_bounds_input_value: float
    minimum_samples_per_output: int
    maximum_samples_per_output: int
    align_regions_to_corners: bool

    def constraints(self) -> Iterator[Violation]:
        """Regions of four numbers, one batch index for each, samples in order."""
        if self.roi_tensor.sizes[-1] != 4:
            yield self.violation("roi_has_four_values", f"ROITensor has sizes {self.roi_tensor.sizes}")
        leading = (*self.roi_tensor.sizes[:-2], *self.batch_indices_tensor.sizes[:-1])
        if any(size != 1 for size in leading):
            yield self.violation("leading_sizes", "only the last dimensions of ROITensor and BatchIndicesTensor count")
        expected = (self.roi_tensor.sizes[-2], self.input_tensor.sizes[1])
        if self.output_tensor.dimension_count != 4 or self.output_tensor.sizes[:2] != expected:
            yield self.violation("output_sizes", f"OutputTensor has sizes {self.output_tensor.sizes}, not {expected}")
        if self.batch_indices_tensor.sizes[-1] != self.roi_tensor.sizes[-2]:
            yield self.violation("one_batch_index_for_each_roi", "BatchIndicesTensor and ROITensor differ in regions")
        if self.minimum_samples_per_output > self.maximum_samples_per_output:
            yield self.violation("samples_in_order", "MinimumSamplesPerOutput exceeds MaximumSamplesPerOutput")
