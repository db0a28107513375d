"""What a target's own precision changes in a bound: one that computes float32 in less, one that is no GPU, and one that
keeps to IEEE 754.

The bounds of the suite (`generators/bounds`) hold for every target, so they allow what shaders are allowed: elementary
functions by the tables of Vulkan, Direct3D and WebNN, and denormal results that are zero. A target on a CPU has OpenCL
C's bound alone, and keeps denormals. One that keeps to IEEE 754 gives the correctly rounded result of a sum, a product,
a quotient, a square root and a cast. A target that computes float32 in float16, bfloat16 or TF32, by an option or
because its device does, is held to ULP of that format, where it says so and names the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.citation import Publisher, statement
from epcheck.generators.truth import Exact, OneStep, Output, Outputs, Truth, Ulp


@dataclass(frozen=True)
class Format:
    """bits: of the significand that are stored; float32 has 23. smallest: the least normal number."""

    bits: int
    smallest: float


FORMATS: Mapping[str, Format] = {
    "float16": Format(10, 2.0**-14),
    "bfloat16": Format(7, 2.0**-126),
    "tf32": Format(10, 2.0**-126),
}
"""What float32 may be computed in. Sources: IEEE 754-2008, binary16; Intel, BFLOAT16 hardware numerics definition;
NVIDIA A100 architecture whitepaper (TF32)."""


FAR = 4096.0
"""Times the smallest normal number from which on flushing it changes next to nothing."""

MOVED, COMPUTED = 1.0, 3.0
"""ULP of the format that a result may be off by at least. What is moved is rounded once, to the nearest or not. Of what
is computed, two operands and the result are rounded, each by a relative error of half an ULP at 1, which is at most one
ULP of the result: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition (2002), lemma 3.1."""


@dataclass(frozen=True)
class Precision:
    """What a target computes float32 in: one of FORMATS, and who says so."""

    format: str
    source: str

    def __str__(self) -> str:
        return f"{self.format} ({self.source})"


def apply_precision(truth: Truth, precision: Precision | None, on_cpu: bool, is_ieee: bool = False) -> Truth:
    """The truth with the bounds that hold for a target. on_cpu: it computes on a CPU. is_ieee: it keeps to IEEE 754."""
    if not isinstance(truth, Outputs) or (precision is None and not on_cpu and not is_ieee):
        return truth
    outputs = truth.outputs
    if precision is None and is_ieee:
        outputs = tuple(map(_round_correctly, outputs))
    if precision is not None or on_cpu:  # shaders' allowances of float32, so many times as large, allow all
        outputs = tuple(map(without_shaders, outputs))
    return replace(truth, outputs=tuple(_widen_bound(each, precision) if precision else each for each in outputs))


def _round_correctly(output: Output) -> Output:
    """The output, exact where it is one operation of IEEE 754."""
    is_one = isinstance(output.bound, Ulp) and output.bound.is_one_rounding
    return replace(output, bound=Exact(), exact=None) if is_one else output


def without_shaders(output: Output) -> Output:
    """The output without what only shaders may be off by.

    The floor of an elementary function is what a shader's formula allows; any other is derived from the sum that was
    computed, but for the smallest normal number, below which Direct3D flushes to zero: where the exact value is far
    above it, it is no less than what the sum may be off by.
    """
    bound = output.bound
    if not isinstance(bound, Ulp) or output.value.dtype.kind != "f":
        return output
    tiny = float(np.finfo(output.value.dtype).tiny)
    if bound.citations[0].publisher == Publisher.OPENCL:
        floor: float | Array = 0.0
    elif np.ndim(bound.floor):
        exact = np.abs(np.asarray(output.value, np.float64) if output.exact is None else output.exact)
        floor = np.where((np.asarray(bound.floor) <= tiny) & (exact < FAR * tiny), 0.0, bound.floor)
    else:
        floor = 0.0 if float(bound.floor) <= tiny else bound.floor
    return replace(output, bound=replace(bound, floor=floor))


def _widen_bound(output: Output, precision: Precision) -> Output:
    """The output, where it is float32, with its bound in ULP of the format, at least MOVED or COMPUTED: whatever passes
    through the format is rounded."""
    if output.value.dtype != np.float32 or isinstance(output.bound, OneStep):
        return output
    format_ = FORMATS[precision.format]
    factor = 2.0 ** (23 - format_.bits)
    bound = Ulp(0.0, (statement("exact"),)) if isinstance(output.bound, Exact) else output.bound
    floor = np.maximum(np.asarray(bound.floor, np.float64) * factor, format_.smallest)
    lowered = Ulp(
        max(bound.bound, MOVED if isinstance(output.bound, Exact) else COMPUTED) * factor,
        (*bound.citations, statement(f"float32 is computed in {precision}")),
        floor if floor.ndim else float(floor),
    )
    exact = np.asarray(output.value, np.float64) if output.exact is None else output.exact
    return replace(output, bound=lowered, exact=exact)
