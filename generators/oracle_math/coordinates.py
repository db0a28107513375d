"""Where an element of a resized axis lies on the original one: the coordinate transformations of Resize, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Axis:
    """One axis: its lengths before and after, the scale, the transformation and the region of interest [start, end]."""

    length: int
    resized: int
    scale: Fraction
    transform: str
    region: tuple[float, float]

    def original(self, position: int) -> Fraction:
        """x_original of x_resized. Where the page divides 0 by 0 (align_corners to a length of 1) it is 0."""
        last = self.length - 1
        start, end = map(Fraction, self.region)
        match self.transform:
            case "half_pixel":
                return (position + HALF) / self.scale - HALF
            case "half_pixel_symmetric":
                adjustment = self.resized / (self.scale * self.length)
                return Fraction(self.length, 2) * (1 - adjustment) + (position + HALF) / self.scale - HALF
            case "pytorch_half_pixel":
                return (position + HALF) / self.scale - HALF if self.resized > 1 else Fraction(0)
            case "align_corners":
                return Fraction(position * last, self.resized - 1) if self.resized > 1 else Fraction(0)
            case "asymmetric":
                return position / self.scale
            case "tf_half_pixel_for_nn":
                return (position + HALF) / self.scale
            case "tf_crop_and_resize" if self.resized > 1:
                return start * last + position * (end - start) * last / (self.resized - 1)
            case "tf_crop_and_resize":
                return HALF * (start + end) * last
        raise ValueError(f"unknown coordinate_transformation_mode '{self.transform}'")

    def find_nearest(self, position: int, mode: str) -> int:
        """The index that nearest_mode takes; it may lie outside of the axis."""
        x = self.original(position)
        match mode:
            case "floor":
                return floor(x)
            case "ceil":
                return ceil(x)
            case "round_prefer_ceil":
                return floor(x + HALF)
        return ceil(x - HALF)

    @property
    def is_identity(self) -> bool:
        """Whether every element stays where it is."""
        shifted = self.transform == "tf_half_pixel_for_nn"
        return self.length == self.resized and self.scale == 1 and self.region == (0.0, 1.0) and not shifted

    @property
    def is_exact(self) -> bool:
        """Whether float32 gives each coordinate exactly, in any order of operations: factors are powers of two."""
        if self.is_identity:
            return True
        if self.transform == "align_corners":
            return self.resized > 1 and _is_power_of_two(Fraction(self.length - 1, self.resized - 1))
        if self.transform == "tf_crop_and_resize":
            start, end = map(Fraction, self.region)
            step = (end - start) * (self.length - 1) / max(1, self.resized - 1)
            return _is_power_of_two(step) and (start * (self.length - 1)).denominator <= 1024
        return _is_power_of_two(self.scale) and self.scale * self.length == self.resized


def _is_power_of_two(number: Fraction) -> bool:
    return number > 0 and all(part & (part - 1) == 0 for part in (number.numerator, number.denominator))
