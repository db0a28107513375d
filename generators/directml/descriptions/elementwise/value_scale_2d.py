"""DML_VALUE_SCALE_2D_OPERATOR_DESC (ns-directml-dml_value_scale_2d_operator_desc)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.descriptions.elementwise.unary import OneTensor
from epcheck.generators.directml.tensor import TensorDesc


@dataclass(frozen=True)
class ValueScale2D(OneTensor):
    """x * scale + bias of the channel, of [N, C, H, W]; C is 1 or 3."""

    NAME: ClassVar[str] = "DML_VALUE_SCALE_2D_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    scale: float
    channel_count: int = field(init=False)
    bias: tuple[float, ...] = ()

    def __init__(
        self, input_tensor: TensorDesc, output_tensor: TensorDesc, scale: float, bias: tuple[float, ...]
    ) -> None:
        for name, value in (
            ("input_tensor", input_tensor),
            ("output_tensor", output_tensor),
            ("scale", scale),
            ("channel_count", len(bias)),
            ("bias", bias),
        ):
            object.__setattr__(self, name, value)

    def constraints(self) -> Iterator[Violation]:
        """One bias for each channel, and 1 or 3 channels."""
        yield from super().constraints()
        channels = self.input_tensor.sizes[1:2]
        if channels != (self.channel_count,):
            yield self.violation("channel_count", f"ChannelCount is {self.channel_count} for sizes {channels}")
        if self.channel_count not in (1, 3):
            yield self.violation("channel_count_1_or_3", f"ChannelCount is {self.channel_count}")

    def formula(self, x: Array) -> Array:
        return np.asarray(x * self.scale + np.array(self.bias).reshape(-1, 1, 1))

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """The formula is defined for any number of channels."""
        self.require_defined("channel_count_1_or_3")
        self.require_arrays(input_tensor=input_tensor)
        with np.errstate(all="ignore"):
            return (self.formula(input_tensor.astype(np.float64)).astype(input_tensor.dtype),)
