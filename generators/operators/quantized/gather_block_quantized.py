"""com.microsoft::GatherBlockQuantized: slices of a table that is quantised block by block, dequantised.

Source: ONNX Runtime's ContribOperators.md, of release 1.32. The page says that values of fewer than 8 bits in uint8 are
packed along the last dimension; zero points, which have the same type, are read in the same way, and have a case where
that is the axis of blocks. The number of blocks is that of which each element has one, so the last may be shorter.

The page leaves open, so that there is no case: blocks of 4-bit integers along the gathered axis, `bits` other than 4
with such integers, and an axis of no elements. Scales and results of bfloat16 have no numpy array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values
from epcheck.generators.families import narrow
from epcheck.generators.families.movement import RefusedError, axis_of
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, declare, spread
from epcheck.generators.oracle_math import quantization
from epcheck.generators.oracle_math.packing import pack_levels, unpack_levels
from epcheck.generators.oracle_math.quantization import Ends
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = ("com.microsoft::GatherBlockQuantized",)

MICROSOFT = "com.microsoft"

FIRST = ("float32", "int64")
"""T2 and Tind in which every sample has a case; exporters write indices as int64."""

FLOATS = (*narrow.FLOAT8, narrow.FLOAT4)
"""The types of data without zero points and `bits`."""

INTEGERS = {"uint8_bits_2": 2, "uint8_bits_4": 4, "uint8_bits_8": 8, "uint4": 4, "int4": 4}
"""What the names of samples say of data -> its bits."""

SHAPE, BLOCK = (5, 64), 16
INDICES: tuple[Any, ...] = ((0, 3, 1), (4, 2, 3))


@dataclass(frozen=True, kw_only=True)
class GatherSample(Sample):
    """data: its type. shape: of its elements, before several are packed in a byte. indices: nested tuples, or an int.

    zero_point: None leaves it out. scale: of every block; None for random ones. scales, zero_points: their shapes where
    they do not follow. attributes: instead of those that follow; None leaves one out.
    """

    data: str = "uint8"
    bits: int = 4
    shape: tuple[int, ...] = SHAPE
    indices: Any = INDICES
    gather_axis: int = 0
    quantize_axis: int = -1
    block: int = BLOCK
    zero_point: Ends | None = "random"
    scale: float | None = None
    scales: tuple[int, ...] | None = None
    zero_points: tuple[int, ...] | None = None
    attributes: Mapping[str, Attribute | None] = field(default_factory=dict)


def samples() -> Iterator[GatherSample]:
    for name, bits in INTEGERS.items():
        yield from _integers(name, name.partition("_")[0], bits)
    for name in FLOATS:
        yield from _floats(name)
    yield from _indices()
    yield from _attributes()
    yield from _shapes()
    yield from map(expect_refusal, _list_refused())


def _integers(name: str, data: str, bits: int) -> Iterator[GatherSample]:
    """What each type and number of bits has."""
    yield GatherSample(name=name, data=data, bits=bits, every_dtype=True)
    yield GatherSample(name=f"{name}_zero_point_omitted", data=data, bits=bits, zero_point=None, every_dtype=True)
    for end in ("low", "high"):
        yield GatherSample(name=f"{name}_zero_point_{end}", data=data, bits=bits, zero_point=end)
    yield GatherSample(name=f"{name}_one_block", data=data, bits=bits, shape=(5, 16))
    yield GatherSample(name=f"{name}_odd_blocks", data=data, bits=bits, shape=(5, 48), every_dtype=True)
    yield GatherSample(name=f"{name}_part_of_a_block", data=data, bits=bits, shape=(5, 40))
    yield GatherSample(name=f"{name}_less_than_a_block", data=data, bits=bits, shape=(5, 8))
    yield GatherSample(name=f"{name}_three_axes", data=data, bits=bits, shape=(5, 3, 48))
    yield GatherSample(name=f"{name}_middle_axis", data=data, bits=bits, shape=(5, 40, 8), quantize_axis=1,
                       zero_point=None)  # fmt: skip
    if data != "uint8":
        for gather_axis, quantize_axis in ((1, 0), (1, 2), (2, 0), (2, 1), (-1, -3)):
            axes = f"gather_{'minus_' * (gather_axis < 0)}{abs(gather_axis)}"
            axes += f"_blocks_{'minus_' * (quantize_axis < 0)}{abs(quantize_axis)}"
            yield GatherSample(name=f"{name}_{axes}", data=data, shape=(20, 18, 19), gather_axis=gather_axis,
                               quantize_axis=quantize_axis, every_dtype=gather_axis < 0)  # fmt: skip
        yield GatherSample(name=f"{name}_odd_elements", data=data, shape=(5, 17))


def _floats(name: str) -> Iterator[GatherSample]:
    """Data of float8 and float4, which has a scale and no zero point."""
    every = GatherSample(name=name, data=name, zero_point=None, every_dtype=True)
    yield every
    for label, block, length in (("whole_axis", 0, 64), ("odd_elements", 16, 37)):
        yield GatherSample(name=f"{name}_{label}", data=name, shape=(5, length), block=block, zero_point=None)
    yield GatherSample(name=f"{name}_scales_of_a_row", data=name, zero_point=None, scales=(1, 4))
    yield GatherSample(name=f"{name}_one_scale", data=name, zero_point=None, block=0, scales=(1, 1))
    yield GatherSample(name=f"{name}_bits_2", data=name, zero_point=None, attributes={"bits": 2})
    yield GatherSample(name=f"{name}_gather_1_blocks_0", data=name, shape=(20, 18, 19), gather_axis=1, quantize_axis=0,
                       zero_point=None, scales=(2, 1, 19))  # fmt: skip
    yield expect_refusal(GatherSample(name=f"{name}_zero_points", data=name, zero_points=(5, 4)))


def _indices() -> Iterator[GatherSample]:
    yield GatherSample(name="index_scalar", indices=3, every_dtype=True)
    yield GatherSample(name="index_scalar_minus_1", indices=-1)
    yield GatherSample(name="indices_negative", indices=(-1, -5, -2, 0), every_dtype=True)
    yield GatherSample(name="indices_ends", indices=(0, 4, -5, -1))
    yield GatherSample(name="indices_repeated", indices=(2, 2, -3, 2))
    yield GatherSample(name="indices_none", indices=((), ()))
    yield GatherSample(name="index_one", indices=(4,))
    yield GatherSample(name="indices_of_4_axes", indices=((((0, 4), (1, 3)), ((2, 2), (-1, 0))),))
    yield GatherSample(name="indices_1025", indices=tuple(index * 7 % 10 - 5 for index in range(1025)))
    for data in ("uint8", "int4", "float8_e4m3fn"):
        zero_point = None if data in FLOATS else "random"
        yield GatherSample(name=f"{data}_indices_beyond", data=data, indices=(5, 0, -6, 4, 2**31 - 1, -(2**31)),
                           zero_point=zero_point, every_dtype=True)  # fmt: skip
    yield GatherSample(name="int4_indices_beyond_gather_1", data="int4", shape=(20, 3, 2), gather_axis=1,
                       quantize_axis=0, indices=((3, 0), (-4, 2)))  # fmt: skip


def _attributes() -> Iterator[GatherSample]:
    yield GatherSample(name="bits_default", attributes={"bits": None}, every_dtype=True)
    yield GatherSample(name="block_size_default", shape=(3, 384), indices=(2, 0), block=128,
                       attributes={"block_size": None})  # fmt: skip
    yield GatherSample(name="axes_default", attributes={"gather_axis": None, "quantize_axis": None})
    yield GatherSample(name="quantize_axis_default_of_3", data="uint4", shape=(5, 40, 3), quantize_axis=1,
                       attributes={"quantize_axis": None})  # fmt: skip
    yield GatherSample(name="gather_axis_minus_rank", gather_axis=-2)
    for block in (32, 64, 256, 1024):
        yield GatherSample(name=f"block_{block}", shape=(5, 2048), block=block, every_dtype=block == 32)
    for label, scale in (("0", 0.0), ("negative", -0.3), ("1", 1.0)):
        yield GatherSample(name=f"scale_{label}", scale=scale)


def _shapes() -> Iterator[GatherSample]:
    for rank in range(2, 9):
        shape = (*(2 + axis % 2 for axis in range(rank - 1)), 32)
        yield GatherSample(name=f"rank_{rank}", rank=rank, shape=shape, indices=(1, 0, -1))
    yield GatherSample(name="size_1", data="uint4", shape=(1, 1), indices=(0, 0))
    yield GatherSample(name="one_row", shape=(1, 32), indices=(0, -1))
    yield GatherSample(name="rows_1025", shape=(1025, 16), indices=(1024, 0, 512, -1025))
    yield GatherSample(name="length_4096", shape=(3, 4096), indices=(2, 0))
    yield GatherSample(name="size_0_beside_the_axes", shape=(3, 0, 32), indices=(2, 0))


def _list_refused() -> Iterator[GatherSample]:
    for block in (8, 24, 0, -16):
        label = f"minus_{-block}" if block < 0 else block
        yield GatherSample(name=f"block_size_{label}", attributes={"block_size": block})
    yield GatherSample(name="float8_block_size_8", data="float8_e4m3fn", zero_point=None,
                       attributes={"block_size": 8})  # fmt: skip
    for bits in (0, 3, 16):
        yield GatherSample(name=f"bits_{bits}", attributes={"bits": bits})
    for axis in ("gather_axis", "quantize_axis"):
        for end, value in (("at_rank", 2), ("below_minus_rank", -3)):
            yield GatherSample(name=f"{axis}_{end}", data="uint4", attributes={axis: value})
    for bits in (4, 8):
        yield GatherSample(name=f"uint8_bits_{bits}_gather_axis_1", bits=bits, shape=(5, 6, 32),
                           attributes={"gather_axis": 1})  # fmt: skip
        yield GatherSample(name=f"uint8_bits_{bits}_same_axes", bits=bits, shape=(64, 8), quantize_axis=0)
    for data in ("uint8", "uint4"):
        yield GatherSample(name=f"{data}_scales_of_a_row", data=data, scales=(1, 4))
        yield GatherSample(name=f"{data}_scales_of_wrong_count", data=data, scales=(5, 3))
        yield GatherSample(name=f"{data}_scales_of_another_rank", data=data, scales=(20,))
        yield GatherSample(name=f"{data}_zero_points_of_wrong_count", data=data, zero_points=(4, 4))
    yield GatherSample(name="float8_scales_of_wrong_count", data="float8_e4m3fn", zero_point=None,
                       scales=(5, 1))  # fmt: skip


def bindings(sample: GatherSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """The page: data, scales and zero points are constants."""
    scalar = isinstance(sample.indices, int)
    chosen = spread(sample, first=dtypes == FIRST, newest=True, scalar=scalar)
    return tuple(binding for binding in chosen if binding != graph.RUNTIME)


def random_levels(shape: tuple[int, ...], data: str, bits: int, rng: np.random.Generator) -> Array:
    """Every level as often as the others, in any order; int64."""
    low = quantization.NARROW[data][0] if data in quantization.NARROW else 0
    count = int(np.prod(shape))
    return rng.permutation(np.resize(np.arange(2**bits), count)).reshape(shape) + low


def store_levels(levels: Array, data: str, bits: int) -> Array:
    """Levels as the input has them."""
    return pack_levels(levels, bits) if data == "uint8" else levels.astype(data)


def blocks_of(shape: tuple[int, ...], axis: int, block: int) -> tuple[int, ...]:
    """The shape of the scales. block: 0 for the whole axis."""
    count = -(-shape[axis] // block) if block else 1
    return tuple(count if index == axis % len(shape) else size for index, size in enumerate(shape))


def node(sample: GatherSample, context: CaseContext) -> Node:
    """data of T1, indices of Tind, scales of T2, zero_points of T1; output of T2."""
    rng, data, bits = context.rng, sample.data, sample.bits
    shape = blocks_of(sample.shape, sample.quantize_axis, sample.block)
    if data in FLOATS:
        values = np.resize(narrow.codes(np.dtype(data)), sample.shape)
    else:
        values = store_levels(random_levels(sample.shape, data, bits, rng), data, bits)
    scales = rng.uniform(0.01, 0.1, sample.scales or shape)
    if sample.scale is not None:
        scales[:] = sample.scale
    operands = [
        Operand("data", values, parameter=True),
        Operand("indices", np.array(sample.indices, context.dtypes[1])),
        Operand("scales", scales.astype(context.dtype), parameter=True),
    ]
    if sample.zero_point is not None:
        zero_shape = sample.zero_points or shape
        operands.append(Operand("zero_points", _zero_points(sample, zero_shape, rng), parameter=True))
    attributes: dict[str, Attribute | None] = {
        "bits": bits,
        "block_size": sample.block,
        "gather_axis": sample.gather_axis,
        "quantize_axis": sample.quantize_axis,
        **sample.attributes,
    }
    present = {name: value for name, value in attributes.items() if value is not None}
    return Node("GatherBlockQuantized", MICROSOFT, context.since_version, tuple(operands), ("output",), present)


def _zero_points(sample: GatherSample, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if sample.data in FLOATS:
        return np.zeros(shape, sample.data)
    levels = random_levels(shape, sample.data, sample.bits, rng)
    if sample.zero_point in ("low", "high"):
        low = quantization.NARROW[sample.data][0] if sample.data in quantization.NARROW else 0
        levels[:] = low + (2**sample.bits - 1) * (sample.zero_point == "high")
    return store_levels(levels, sample.data, sample.bits)


def dequantize_table(node: Node) -> tuple[Array, int]:
    """The whole table, float64, and the axis on which it is gathered. Raises RefusedError."""
    data, scales, zero_points = node.array("data"), node.array("scales"), node.value("zero_points")
    is_float = data.dtype.name in FLOATS
    gather_axis = axis_of(node, data.ndim, 0, "gather_axis")
    quantize_axis = axis_of(node, data.ndim, 1, "quantize_axis")
    bits, block = node.integer("bits", 4), node.integer("block_size", 128)
    if not (block >= 16 and block & (block - 1) == 0) and not (is_float and block == 0):
        raise RefusedError(f"block_size must be a power of 2 and not smaller than 16, not {block}")
    if is_float:
        if zero_points is not None:
            raise RefusedError("zero_points must not be provided when data is float8 or float4")
        values = data.astype(np.float32).astype(np.float64)
    else:
        values = _levels(data, bits, gather_axis, quantize_axis)
    shape = blocks_of(values.shape, quantize_axis, block)
    axis_of_blocks = np.arange(values.shape[quantize_axis]) // (block or max(1, values.shape[quantize_axis]))
    _check_scales(scales, shape, quantize_axis, is_float)
    if not is_float:
        zero = _zero_levels(data.dtype, zero_points, bits, shape)
        values = values - np.take(zero, axis_of_blocks, quantize_axis)
    with np.errstate(invalid="ignore"):
        return values * np.take(scales.astype(np.float64), axis_of_blocks, quantize_axis), gather_axis


def _levels(data: Array, bits: int, gather_axis: int, quantize_axis: int) -> Array:
    """The integers, float64. Raises RefusedError."""
    if bits not in (2, 4, 8):
        raise RefusedError(f"bits must be 2, 4 or 8, not {bits}")
    if data.dtype != np.uint8:
        return data.astype(np.float64)
    if gather_axis != 0:
        raise RefusedError(f"for uint8 data gather_axis must be 0, not {gather_axis}")
    if gather_axis == quantize_axis:
        raise RefusedError("for uint8 data gather_axis and quantize_axis must differ")
    return unpack_levels(data, bits).astype(np.float64)


def _check_scales(scales: Array, shape: tuple[int, ...], quantize_axis: int, is_float: bool) -> None:
    """Raises RefusedError. shape: with a scale for each block."""
    if scales.ndim != len(shape):
        raise RefusedError(f"scales must have the rank of data, {len(shape)}, not {scales.ndim}")
    for axis, (size, expected) in enumerate(zip(scales.shape, shape, strict=True)):
        is_broadcast = is_float and axis != quantize_axis and size == 1
        if size != expected and not is_broadcast:
            raise RefusedError(f"scales have {size} elements on axis {axis}, the blocks of data are {expected}")


def _zero_levels(dtype: np.dtype[Any], zero_points: Array | None, bits: int, shape: tuple[int, ...]) -> Array:
    """The zero point of each block, float64 of `shape`. Raises RefusedError."""
    is_packed = dtype == np.uint8
    if zero_points is None:
        return np.full(shape, 2.0 ** (bits - 1) if is_packed else 0.0)
    per_byte = 8 // bits if is_packed else 1
    stored_shape = (*shape[:-1], -(-shape[-1] // per_byte))
    if zero_points.shape != stored_shape:
        raise RefusedError(f"zero_points must have the shape {stored_shape}, not {zero_points.shape}")
    levels = unpack_levels(zero_points, bits)[..., : shape[-1]] if is_packed else zero_points
    return levels.astype(np.float64)


def truth(node: Node) -> Truth:
    """(data - zero point) * scale at each index; 0 at an index beyond the ends."""
    try:
        values, axis = dequantize_table(node)
    except RefusedError as error:
        return Refusal(str(error))
    indices, size = node.array("indices").astype(np.int64), values.shape[axis]
    inside = (indices >= -size) & (indices < size)
    gathered = np.take(values, np.where(inside, indices % size, 0), axis)
    beside = (1,) * (values.ndim - 1 - axis)
    exact = np.where(inside.reshape(*inside.shape, *beside), gathered, 0.0)
    dtype = node.array("scales").dtype
    citation = bounds.D3D.add_remark("an exact difference, and a product within 1 ULP")
    return Outputs((bounds.round_output("output", exact, dtype, bounds.ulp(1.0, (citation,), dtype)),))


def _parts(values: Values, rng: np.random.Generator) -> Parts:
    """Rows [rows, length] of uint8; indices go from the last row to the first, and around."""
    bits, block = values["bits"], values["block_size"]
    shape = (values["rows"], values["length"])
    scales = blocks_of(shape, 1, block)
    indices = (-1 - np.arange(values["indices"])) % values["rows"] - values["negative"] * values["rows"]
    zero = pack_levels(random_levels(scales, "uint8", bits, rng), bits) if values["zero_points"] else None
    inputs = (
        pack_levels(random_levels(shape, "uint8", bits, rng), bits),
        indices.astype(values["tind"]),
        rng.uniform(0.01, 0.1, scales).astype(np.float32),
        zero,
    )
    return Parts(inputs, {"bits": bits, "block_size": block, "quantize_axis": values["quantize_axis"]}, (0, 2, 3))


SPACE = ParameterSpace(
    {"rows": 5, "length": 72, "indices": 7},
    _parts,
    {
        "bits": (4, 8, 2),
        "block_size": (16, 32, 128),
        "zero_points": (True, False),
        "negative": (False, True),
        "quantize_axis": (1, -1),
        "tind": ("int64", "int32"),
    },
    {"rows": (17, 257, 1025), "length": (16, 32, 128, 256, 1032, 4104), "indices": (17, 257, 1025)},
    ("indices",),
)

KEY = "com.microsoft::GatherBlockQuantized"

OPERATORS = declare(
    (
        Operator(
            "GatherBlockQuantized",
            samples,
            bindings,
            node,
            truth,
            NO_KERNEL,
            varied=("T2", "Tind"),
            domain=MICROSOFT,
        ),
    ),
    parameter_spaces={KEY: SPACE},
    optional_io={KEY: (OptionalIO("uint8_bits_4", inputs=each_alone("zero_points")),)},
)
