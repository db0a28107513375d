"""The samples of QuantizeLinear and DequantizeLinear, where they apply, and their nodes.

DequantizeLinear reads integers of 4 and 2 bits, as initializers, as models have them. What the standard leaves open has
no sample: NaN, a scale of 0 or below in QuantizeLinear, how integers divide (with an int32 scale x is a multiple of
it), and a division in float16 that is more than a step off: such values stay small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import helper

from epcheck.generators import data, graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operators.quantized.quantize.oracle import broadcast_parameter
from epcheck.generators.oracle_math import quantization
from epcheck.generators.oracle_math.quantization import Ends


@dataclass(frozen=True, kw_only=True)
class QuantizationSample(Sample):
    """One way to quantise, for both directions.

    scale: one number; a tuple for the lengths of a tensor of scales, which are random. zero_point: None leaves it out.
    values: what x looks like, see `_full_precision` and `_levels`. attributes: of the node.
    core: it has a case in every dtype of the versions that no provider knows yet, too.
    int32: DequantizeLinear has it of int32, which has no zero point: samples that only differ in that are one.
    """

    x: tuple[int, ...] = (3, 7)
    scale: float | str | tuple[int, ...] = 0.1
    zero_point: Ends | None = "middle"
    values: str = "random"
    attributes: tuple[tuple[str, Attribute], ...] = ()
    core: bool = False
    int32: bool = False

    @property
    def needs(self) -> frozenset[str]:
        """The attributes that the operator must have for the sample to be expressible."""
        make_blocked = isinstance(self.scale, tuple) and len(self.scale) > 1
        per_axis = isinstance(self.scale, tuple) and not make_blocked
        implied = ("block_size",) * make_blocked + ("axis",) * per_axis
        return frozenset([*(name for name, _ in self.attributes), *implied])


def samples() -> Iterator[QuantizationSample]:
    """What both directions have."""
    yield QuantizationSample(name="per_tensor", every_dtype=True, core=True, int32=True)
    yield QuantizationSample(name="zero_point_low", zero_point="low", every_dtype=True)
    yield QuantizationSample(name="zero_point_high", zero_point="high", every_dtype=True)
    yield QuantizationSample(name="zero_point_omitted", zero_point=None, every_dtype=True)
    yield QuantizationSample(name="zero_point_3_scale_half", zero_point=3, scale=0.5)
    scales: dict[str, float | str] = {"smallest_normal": "tiny", "large": "large", "one": 1.0, "third": 1 / 3}
    for name, scale in scales.items():
        yield QuantizationSample(name=f"scale_{name}", scale=scale, every_dtype=name == "large")
    yield from _per_axis()
    yield from _list_blocked()
    yield from _shapes()
    yield from map(expect_refusal, _list_refused())


def _per_axis() -> Iterator[QuantizationSample]:
    shape = (3, 4, 5)
    yield QuantizationSample(name="per_axis_default", x=shape, scale=(4,), every_dtype=True, int32=True)
    for axis in (0, 1, 2, -1, -2, -3):
        name = f"per_axis_{'minus_' if axis < 0 else ''}{abs(axis)}"
        sample = QuantizationSample(name=name, x=shape, scale=(shape[axis],), attributes=(("axis", axis),))
        yield replace(sample, every_dtype=axis == 0)
        yield replace(sample, name=f"{name}_zero_point_omitted", zero_point=None)
        yield replace(sample, name=f"{name}_of_equal_sizes", x=(4, 4, 4), scale=(4,))
    for axis in (0, 1):  # in every dtype: int8 and uint8 are different defaults of a zero point
        name, attributes = f"scales_of_axis_{axis}_zero_point_omitted", (("axis", axis),)
        yield QuantizationSample(name=name, x=(4, 5), scale=(4 + axis,), zero_point=None, attributes=attributes,
                                 every_dtype=True)  # fmt: skip
    axis_0: tuple[tuple[str, Attribute], ...] = (("axis", 0),)
    yield QuantizationSample(name="per_axis_of_a_vector", x=(6,), scale=(6,), attributes=axis_0)
    yield QuantizationSample(name="per_axis_of_size_1", x=(1, 5), scale=(1,), attributes=axis_0)
    yield QuantizationSample(name="axis_ignored_per_tensor", attributes=(("axis", 0),))
    yield QuantizationSample(name="per_axis_1025", x=(2, 1025), scale=(1025,), attributes=(("axis", 1),))
    for axis in (0, 7):
        shape8 = (2, 1, 2, 1, 3, 1, 2, 3)
        yield QuantizationSample(
            name=f"per_axis_{axis}_rank_8", rank=8, x=shape8, scale=(shape8[axis],), attributes=(("axis", axis),)
        )


def _list_blocked() -> Iterator[QuantizationSample]:
    def make_blocked(name: str, x: tuple[int, ...], scale: tuple[int, ...], axis: int, size: int) -> QuantizationSample:
        attributes: tuple[tuple[str, Attribute], ...] = (("axis", axis), ("block_size", size))
        return QuantizationSample(name=f"blocked_{name}", x=x, scale=scale, attributes=attributes)

    yield replace(make_blocked("2_of_6", (4, 6), (4, 3), 1, 2), every_dtype=True, core=True, int32=True)
    yield replace(make_blocked("3_of_6_axis_0", (6, 4), (2, 4), 0, 3), every_dtype=True)
    yield make_blocked("3_of_6_axis_minus_1", (4, 6), (4, 2), -1, 3)
    yield make_blocked("1_of_6", (4, 6), (4, 6), 1, 1)
    yield make_blocked("6_of_6", (4, 6), (4, 1), 1, 6)
    yield make_blocked("4_of_6", (4, 6), (4, 2), 1, 4)
    yield make_blocked("4_of_9_axis_0", (9, 2), (3, 2), 0, 4)
    yield make_blocked("middle_axis", (2, 6, 3), (2, 2, 3), 1, 3)
    yield replace(make_blocked("rank_4", (2, 3, 4, 2), (2, 3, 2, 2), 2, 2), rank=4)
    yield make_blocked("rank_1", (64,), (4,), 0, 16)
    yield make_blocked("32_of_1024", (2, 1024), (2, 32), 1, 32)
    yield replace(make_blocked("zero_point_omitted", (4, 6), (4, 3), 1, 2), zero_point=None)


def _shapes() -> Iterator[QuantizationSample]:
    for rank in (0, 1, 2, 4, 5, 6, 7, 8):
        yield QuantizationSample(name=f"rank_{rank}", rank=rank, x=tuple(2 + axis % 2 for axis in range(rank)))
    yield QuantizationSample(name="nothing", x=(0,))
    yield QuantizationSample(name="size_0_elsewhere", x=(3, 0))
    yield QuantizationSample(name="one", x=(1, 1))
    for length in (31, 257, 1025, 4097):
        yield QuantizationSample(name=f"length_{length}", x=(length,))


def _list_refused() -> Iterator[QuantizationSample]:
    axis_1: tuple[tuple[str, Attribute], ...] = (("axis", 1),)
    block: tuple[tuple[str, Attribute], ...] = (("axis", 1), ("block_size", 2))
    yield QuantizationSample(name="scales_of_wrong_length", x=(3, 4), scale=(3,), attributes=axis_1)
    yield QuantizationSample(
        name="zero_point_of_wrong_length", x=(3, 4), scale=(4,), values="zero_point_3", attributes=axis_1
    )
    yield QuantizationSample(name="axis_at_rank", x=(3, 4), scale=(4,), attributes=(("axis", 2),))
    yield QuantizationSample(name="axis_below_rank", x=(3, 4), scale=(3,), attributes=(("axis", -3),))
    yield QuantizationSample(name="blocks_of_wrong_count", x=(4, 6), scale=(4, 2), attributes=block)
    yield QuantizationSample(name="blocks_of_another_rank", x=(2, 4, 6), scale=(4, 3), attributes=block)
    yield QuantizationSample(
        name="block_size_negative", x=(4, 6), scale=(4, 3), attributes=(("axis", 1), ("block_size", -2))
    )


def quantize_samples() -> Iterator[QuantizationSample]:
    yield from samples()
    for name, scale in {"1": 1.0, "half": 0.5, "4": 4.0, "2_to_the_minus_10": 2.0**-10}.items():
        yield QuantizationSample(
            name=f"ties_scale_{name}", x=(521,), scale=scale, values="ties", every_dtype=name in ("1", "half")
        )
    for zero_point in (1, 2, "low", "high"):
        yield QuantizationSample(
            name=f"ties_zero_point_{zero_point}", x=(521,), scale=1.0, zero_point=zero_point, values="ties",
            every_dtype=zero_point == 1,
        )  # fmt: skip
    yield QuantizationSample(name="ties_beside_scale_tenth", x=(521,), values="ties")
    yield QuantizationSample(name="saturation", x=(12,), values="saturation", every_dtype=True)
    yield QuantizationSample(name="boundary", x=(24,), values="boundary", every_dtype=True)
    yield QuantizationSample(name="boundary_zero_point_low", x=(24,), values="boundary", zero_point="low")
    yield QuantizationSample(name="boundary_zero_point_high", x=(24,), values="boundary", zero_point="high")
    yield QuantizationSample(name="saturate_0", values="saturation", x=(12,), attributes=(("saturate", 0),))
    yield QuantizationSample(
        name="output_dtype", zero_point=None, attributes=(("output_dtype", "y"),), every_dtype=True
    )
    yield QuantizationSample(name="output_dtype_and_zero_point", attributes=(("output_dtype", "y"),))


def dequantize_samples() -> Iterator[QuantizationSample]:
    yield from samples()
    yield QuantizationSample(name="every_level", x=(256,), values="ascending", scale=0.02, every_dtype=True, int32=True)
    yield QuantizationSample(name="boundary", x=(24,), values="boundary", every_dtype=True, int32=True)
    yield QuantizationSample(name="boundary_zero_point_low", x=(24,), values="boundary", zero_point="low")
    yield QuantizationSample(name="boundary_zero_point_high", x=(24,), values="boundary", zero_point="high")
    yield QuantizationSample(name="zero_points_are_zero", values="zero_point", zero_point=3, scale=0.7)
    yield QuantizationSample(name="scale_zero", scale=0.0)
    yield QuantizationSample(name="scale_negative", scale=-0.3)
    yield QuantizationSample(name="scale_largest", scale="max", values="small", zero_point=1)
    for other in (1, 10):
        yield QuantizationSample(
            name=f"output_dtype_{helper.tensor_dtype_to_np_dtype(other).name}", values="small",
            attributes=(("output_dtype", other),),
        )  # fmt: skip


FIRST = ("float32", "uint8")
"""x and y of QuantizeLinear in which every sample has a case; y and x of DequantizeLinear."""

FOUR_BITS = ("int4", "uint4")
"""Those of DirectML; it has none of 2 bits."""


@dataclass(frozen=True)
class Family:
    """What depends on the operator."""

    name: str
    domain: str = ""

    @property
    def quantizes(self) -> bool:
        return self.name == "QuantizeLinear"

    def attributes(self, since_version: int) -> frozenset[str]:
        return frozenset(schema.schema(self.name, since_version, self.domain).attributes)

    def is_newer(self, since_version: int) -> bool:
        """Whether the version is one after 21, of which only the core has cases: no provider's table has it."""
        last = "precision" if self.quantizes else "output_dtype"
        return last in self.attributes(since_version)

    def find_established(self) -> int:
        """The newest version that providers' tables have; it is tried in every binding."""
        return max(v for v in schema.since_versions(self.name, self.domain) if not self.is_newer(v))

    def bindings(self, sample: QuantizationSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        if not self._applies(sample, since_version, dtypes):
            return ()
        first = dtypes == (FIRST if self.quantizes else FIRST[::-1])
        is_new = not self.quantizes and "output_dtype" in sample.needs
        if self.is_newer(since_version) and not is_new:
            return (graph.INITIALIZER,) if sample.core or (first and sample.every_dtype) else ()
        if not first:
            return (graph.INITIALIZER,) if sample.every_dtype else ()
        if since_version != self.find_established() or self.domain:
            return (graph.INITIALIZER,)
        every = tuple(graph.BINDINGS) if sample.every_dtype else (graph.INITIALIZER, graph.RUNTIME)
        return every if sample.x else tuple(v for v in every if v != graph.SYMBOLIC)

    def _applies(self, sample: QuantizationSample, since_version: int, dtypes: tuple[str, ...]) -> bool:
        attributes = self.attributes(since_version)
        if not sample.needs <= attributes:
            return False
        if self.domain and isinstance(sample.scale, tuple) and "axis" not in dict(sample.attributes):
            return False  # without an axis it is per tensor
        x, other = dtypes
        if not self.quantizes:
            return x != "int32" or sample.int32
        if sample.zero_point is None and other != "uint8" and "output_dtype" not in sample.needs:
            return False
        if x != "int32":
            return True
        integer = self._scale_is_integer(since_version)
        return sample.scale != "large" and (sample.values == "random" or not integer)

    def _scale_is_integer(self, since_version: int) -> bool:
        """Whether the scale of an int32 x is int32, too."""
        inputs = schema.signature(self.name, since_version, self.domain).inputs
        return self.quantizes and inputs[0] == inputs[1]

    def node(self, sample: QuantizationSample, context: CaseContext) -> Node:
        """x; y_scale (x_scale) of x's floating-point dtype, float32 where that is fixed; the zero point; output y."""
        x_dtype, other = context.dtypes
        rng = context.rng
        full, quantised = (x_dtype, other) if self.quantizes else (other, x_dtype)
        scale_type = schema.signature(self.name, context.since_version, self.domain).inputs[1]
        scale_dtype = np.dtype(schema.element_name(scale_type) or full)
        if scale_dtype.kind == "i" and not self._scale_is_integer(context.since_version):
            scale_dtype = np.dtype(np.float32)
        scale = self._scale(sample, scale_dtype, rng)
        has_zero_point = sample.zero_point is not None
        zero_point = self._zero_point(sample, scale.shape, quantised, rng)
        if not self.quantizes and quantised == np.int32:
            has_zero_point = False
        filled = zero_point if has_zero_point else np.zeros(scale.shape, quantised)
        if self.quantizes:
            x = _full_precision(sample, full, scale, filled, rng)
        else:
            x = _levels(sample, quantised, scale_dtype, filled, rng)
        prefix = "y" if self.quantizes else "x"
        # numpy cannot feed 4 or 2 bits: x travels inside the model then, and the scale is what is fed.
        is_narrow = quantised.name in quantization.NARROW
        operands = [
            Operand("x", x, parameter=is_narrow),
            Operand(f"{prefix}_scale", scale, parameter=not is_narrow),
        ]
        if has_zero_point:
            operands.append(Operand(f"{prefix}_zero_point", zero_point, parameter=True))
        attributes = dict(sample.attributes)
        if attributes.get("output_dtype") == "y":
            attributes["output_dtype"] = int(helper.np_dtype_to_tensor_dtype(other))
        return Node(self.name, self.domain, context.since_version, tuple(operands), ("y",), attributes)

    @staticmethod
    def _scale(sample: QuantizationSample, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
        if dtype.kind == "i":
            return rng.integers(1, 8, sample.scale if isinstance(sample.scale, tuple) else (), dtype)
        if isinstance(sample.scale, tuple):
            return np.exp2(rng.uniform(-6, 0, sample.scale)).astype(dtype)
        info = np.finfo(dtype)
        named = {"tiny": float(info.tiny), "large": float(info.max) / 2048, "max": float(info.max)}
        return np.array(named[sample.scale] if isinstance(sample.scale, str) else sample.scale, dtype)

    @staticmethod
    def _zero_point(
        sample: QuantizationSample, shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator
    ) -> Array:
        if sample.values == "zero_point_3":
            shape = (3,)
        if isinstance(sample.scale, tuple):
            return quantization.random_levels(shape, dtype, rng)
        return np.full(shape, quantization.level(sample.zero_point or 0, dtype), dtype)


STEPS_IN_HALF = 250
"""How many steps from 0 a division in float16 is at most a step off; see the module."""


def _full_precision(
    sample: QuantizationSample, dtype: np.dtype[Any], scale: Array, zero_point: Array, rng: np.random.Generator
) -> Array:
    """x of QuantizeLinear, such that it covers what the quantised type holds and a little more."""
    info = np.iinfo(zero_point.dtype)
    limit = STEPS_IN_HALF if dtype == np.float16 else 2**17
    each, zero = np.ones(()), np.zeros((), np.int64)
    if not sample.refused:  # whose parameters do not fit x
        attributes = dict(sample.attributes)
        each, zero = (
            broadcast_parameter(sample.x, scale, attributes),
            broadcast_parameter(sample.x, zero_point, attributes).astype(np.int64),
        )
    low, high = np.maximum(int(info.min) - zero - 9, -limit), np.minimum(int(info.max) - zero + 9, limit)
    count = int(np.prod(sample.x, dtype=np.int64))
    match sample.values:
        case "ties":
            steps = np.resize(np.arange(-260, 261) + 0.5, sample.x)
        case "saturation":
            far = float(np.finfo(dtype).max) if dtype.kind == "f" else 2**31 - 1
            beyond = np.array([-far, far, -far / 3, far / 3, 0, 1, -1])
            return np.resize(beyond, sample.x).astype(dtype)
        case "boundary":
            values = np.concatenate([data.boundary(dtype), -data.boundary(dtype) if dtype.kind == "f" else []])
            return np.resize(values, sample.x).astype(dtype)
        case "random" | "zero_point_3":
            steps = low + (high - low) * rng.random(count).reshape(sample.x)
            if scale.dtype.kind == "i":
                steps = np.rint(steps)  # multiples of the scale: there every kind of division agrees
            if sample.scale == "tiny":
                steps = np.where(abs(steps) < 1, 0, steps)  # no denormals, which hardware may flush
        case other:
            raise ValueError(f"QuantizeLinear sample {sample.name}: unknown kind of data '{other}'")
    with np.errstate(over="ignore"):
        values = np.asarray(steps * each)
        return np.rint(values).astype(dtype) if dtype.kind == "i" else values.astype(dtype)


def _levels(
    sample: QuantizationSample, dtype: np.dtype[Any], full: np.dtype[Any], zero_point: Array, rng: np.random.Generator
) -> Array:
    """x of DequantizeLinear; int32 to float16 stays where float16 is not infinity."""
    match sample.values:
        case "ascending":
            low, high = quantization.ends(dtype)
            middle = (low + high + 1) // 2
            return np.resize(np.arange(max(low, middle - 128), min(high, middle + 127) + 1), sample.x).astype(dtype)
        case "boundary" if dtype.name in quantization.NARROW:
            return np.resize(quantization.ends(dtype), sample.x).astype(dtype)
        case "boundary" if not (dtype.itemsize > 1 and full == np.float16):
            return np.resize(data.boundary_integers(dtype), sample.x)
        case "zero_point":
            return np.full(sample.x, zero_point.ravel()[0], dtype)
        case "small" | "boundary":
            return rng.integers(0, 100, sample.x).astype(dtype)
    if dtype == np.int32 and full == np.float16:
        return rng.integers(-2000, 2000, sample.x).astype(dtype)
    return quantization.random_levels(sample.x, dtype, rng)
