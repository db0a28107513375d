"""DML_RESAMPLE3_OPERATOR_DESC (ns-directml-dml_resample3_operator_desc) and the enumeration it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.enumerations import AxisDirection
from epcheck.generators.directml.lowering import Lowering, count_missing, pad_rank, padded_sizes
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import TensorDesc
from epcheck.generators.oracle_math.coordinates import Axis

MOST_DIMENSIONS = 4
"""The DML EP has no kernel for more that are resized."""


class InterpolationMode(Enum):
    """DML_INTERPOLATION_MODE (ne-directml-dml_interpolation_mode)."""

    NEAREST_NEIGHBOR = 0
    LINEAR = 1


@dataclass(frozen=True)
class Resample3(OperatorDesc):
    """Resamples elements from the source to the destination tensor, using scale factors and pixel offsets.

    An output coordinate y reads the input at (y - OutputPixelOffset) / Scale - InputPixelOffset.
    """

    NAME: ClassVar[str] = "DML_RESAMPLE3_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    interpolation_mode: InterpolationMode
    rounding_direction: AxisDirection
    dimension_count: int = field(init=False)
    scales: tuple[float, ...]
    input_pixel_offsets: tuple[float, ...]
    output_pixel_offsets: tuple[float, ...]
    antialiased: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension_count", len(self.scales))

    def constraints(self) -> Iterator[Violation]:
        """Input and output agree in type and number of dimensions, and so do the arrays."""
        source, target = self.input_tensor, self.output_tensor
        if source.data_type is not target.data_type:
            yield self.violation(
                "same_data_type",
                f"InputTensor is {source.data_type.name} and OutputTensor {target.data_type.name}",
            )
        counts = {source.dimension_count, target.dimension_count, self.dimension_count,
                  len(self.input_pixel_offsets), len(self.output_pixel_offsets)}  # fmt: skip
        if len(counts) > 1:
            yield self.violation("same_dimension_count", f"tensors and arrays have {sorted(counts)} dimensions")

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """The page's coordinates in float64, clamped to the edges; the result is cast to the type of the tensor.

        Raises ValueError where the page does not define the filter (Antialiased).
        """
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        if self.antialiased:
            raise ValueError(f"the page of {self.NAME} does not define the antialiasing filter")
        found = (
            input_tensor
            if self.interpolation_mode is InterpolationMode.NEAREST_NEIGHBOR
            else input_tensor.astype(float)
        )
        for axis, size in enumerate(self.output_tensor.sizes):
            found = self._along(axis, size, found)
        return (found.astype(input_tensor.dtype),)

    def _along(self, axis: int, size: int, values: Array) -> Array:
        last = values.shape[axis] - 1
        at = (np.arange(size) - self.output_pixel_offsets[axis]) / self.scales[axis] - self.input_pixel_offsets[axis]
        if self.interpolation_mode is InterpolationMode.NEAREST_NEIGHBOR:
            up = self.rounding_direction is AxisDirection.INCREASING
            nearest = np.ceil(at) if up else np.floor(at)
            taken: Array = np.take(values, np.clip(nearest, 0, last).astype(np.int64), axis)
            return taken
        low = np.floor(at).astype(np.int64)
        share = (at - low).reshape((-1,) + (1,) * (values.ndim - axis - 1))
        below, above = (np.take(values, np.clip(low + step, 0, last), axis) for step in (0, 1))
        mixed: Array = below * (1 - share) + above * share
        return mixed


ROUNDING = {
    "round_prefer_floor": (AxisDirection.INCREASING, 0.5),
    "round_prefer_ceil": (AxisDirection.DECREASING, -0.5),
    "floor": (AxisDirection.DECREASING, 0.0),
    "ceil": (AxisDirection.INCREASING, 0.0),
}
"""nearest_mode -> the direction to round to, and what is added to the input's offset before: ceil(x - 0.5)."""


def lower_resize(x: Array, axes: Sequence[Axis], mode: str, nearest_mode: str, antialias: bool) -> Lowering | None:
    """Resize as DirectML sees it: axes of length 1 before and after are left out, ranks below 4 are padded.

    None where nothing is executed, where more than 4 dimensions remain, and where a coordinate lies outside of the
    image of tf_crop_and_resize, which DirectML would clamp.
    """
    kept = [axis for axis in axes if (axis.length, axis.resized) != (1, 1)]
    rows = [_row(axis) for axis in kept]
    if any(axis.length == 0 or axis.resized == 0 for axis in axes) or None in rows or len(kept) > MOST_DIMENSIONS:
        return None
    padding = count_missing(len(kept))
    direction, shift = ROUNDING[nearest_mode] if mode == "nearest" else (AxisDirection.DECREASING, 0.0)
    scales, inputs, outputs = zip(
        *([(1.0, 0.5, -0.5)] * padding + [row for row in rows if row is not None]), strict=True
    )
    values = pad_rank(x.reshape(tuple(axis.length for axis in kept)))
    desc = Resample3(
        input_tensor=TensorDesc.of(values),
        output_tensor=TensorDesc.of(values, sizes=padded_sizes(tuple(axis.resized for axis in kept))),
        interpolation_mode=InterpolationMode.LINEAR if mode == "linear" else InterpolationMode.NEAREST_NEIGHBOR,
        rounding_direction=direction,
        scales=tuple(float(np.float32(scale)) for scale in scales),
        input_pixel_offsets=tuple(float(np.float32(offset + shift)) for offset in inputs),
        output_pixel_offsets=tuple(float(np.float32(offset)) for offset in outputs),
        antialiased=antialias,
    )
    return Lowering(desc, (values,))


FLOAT_MAX = float(np.finfo(np.float32).max)


def _row(axis: Axis) -> tuple[float, float, float] | None:
    """Scale, input offset and output offset of an axis."""
    scale = float(axis.scale)
    match axis.transform:
        case "half_pixel":
            return scale, 0.5, -0.5
        case "half_pixel_symmetric":
            width = float(axis.scale * axis.length)
            return scale, 0.5 - axis.length / 2 * (1 - axis.resized / width), -0.5
        case "pytorch_half_pixel":
            return (scale, 0.5, -0.5) if axis.resized > 1 else (FLOAT_MAX, 0.0, 0.0)
        case "align_corners":
            if axis.resized == 1 or axis.length == 1:
                return FLOAT_MAX, 0.0, 0.0
            return (axis.resized - 1) / (axis.length - 1), 0.0, 0.0
        case "asymmetric":
            return scale, 0.0, 0.0
        case "tf_half_pixel_for_nn":
            return scale, 0.0, -0.5
    return _crop_axis(axis)


def _crop_axis(axis: Axis) -> tuple[float, float, float] | None:
    last = axis.length - 1
    positions = [axis.original(position) for position in range(axis.resized)]
    if any(position < 0 or position > last for position in positions):
        return None
    step = (axis.region[1] - axis.region[0]) * last / max(1, axis.resized - 1)
    if step <= 0 or axis.resized == 1:
        return (FLOAT_MAX, -float(positions[0]), 0.0) if axis.resized == 1 else None
    return 1 / step, -axis.region[0] * last, 0.0
