"""MaxUnpool-9, 11, 22 -> DML_MAX_UNPOOLING_OPERATOR_DESC; Col2Im-18 -> DML_FOLD_OPERATOR_DESC.

Sources: the operator pages. How the DML EP lowers them: DmlOperatorMaxUnpool.cpp, DmlOperatorCol2Im.cpp.

MaxUnpool: in which tensor an index counts when output_shape is given, the page does not say (its node test: in the
inferred one, whose corner is then copied). Samples differ from the inferred shape in the first axis only, where both
readings are one. Two equal indices have no meaning. Col2Im: sums stay within the dtype; blocks of bool do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from epcheck.generators import data, graph
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.declaration.undefined_sample import FLOATS, Answer, UndefinedSample, UndefinedSamples, ramp
from epcheck.generators.directml import TensorDesc
from epcheck.generators.directml.descriptions.convolution_pooling.pooling import Fold, MaxUnpooling
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare, spread
from epcheck.generators.oracle_math.window import Windows, scatter, slide, spatial_attributes
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = (
    "MaxUnpool",
    "Col2Im",
)

Attributes = tuple[tuple[str, Attribute], ...]


@dataclass(frozen=True, kw_only=True)
class UnpoolSample(Sample):
    """x: [N, C, *spatial]. order: how the indices lie in the output. output_shape: None leaves the input out."""

    x: tuple[int, ...] = (1, 1, 2, 3)
    kernel: tuple[int, ...] = (2, 2)
    attributes: Attributes = (("strides", (2, 2)),)
    order: str = "random"
    output_shape: tuple[int, ...] | None = None
    values: str = "distinct"


def unpool_samples() -> Iterator[UnpoolSample]:
    yield UnpoolSample(name="defaults", attributes=(), every_dtype=True)
    yield UnpoolSample(name="strides_equal_kernel", every_dtype=True)
    yield UnpoolSample(name="strides_beyond_kernel", attributes=(("strides", (3, 4)),))
    yield UnpoolSample(name="strides_below_kernel", kernel=(3, 3), attributes=(("strides", (2, 1)),))
    yield UnpoolSample(
        name="pads", kernel=(3, 3), attributes=(("strides", (2, 2)), ("pads", (1, 1, 1, 1))), every_dtype=True
    )
    yield UnpoolSample(name="pads_asymmetric", kernel=(3, 3), attributes=(("strides", (2, 3)), ("pads", (0, 1, 2, 0))))
    yield UnpoolSample(name="batch_and_channels", x=(2, 3, 2, 2), every_dtype=True)
    yield UnpoolSample(name="1d", x=(2, 2, 4), kernel=(3,), attributes=(("strides", (3,)),), every_dtype=True)
    yield UnpoolSample(name="3d", x=(1, 2, 2, 2, 2), kernel=(2, 2, 2), attributes=(("strides", (2, 2, 2)),))
    yield UnpoolSample(name="indices_ascending", x=(1, 2, 3, 3), order="ascending")
    yield UnpoolSample(name="indices_descending", x=(1, 2, 3, 3), order="descending")
    yield UnpoolSample(name="indices_first_and_last", x=(1, 1, 1, 2), order="ends")
    yield UnpoolSample(name="values_special", x=(1, 2, 3, 4), values="special", every_dtype=True)
    yield UnpoolSample(name="one_element", x=(1, 1, 1, 1))
    yield UnpoolSample(name="kernel_1x1", kernel=(1, 1), attributes=())
    yield UnpoolSample(name="more_than_a_thread_group", x=(1, 2, 24, 23))
    yield UnpoolSample(name="size_0_batch", x=(0, 1, 2, 3))
    yield UnpoolSample(name="output_shape_inferred", output_shape=(1, 1, 4, 6), every_dtype=True)
    yield UnpoolSample(name="output_shape_one_row_more", output_shape=(1, 1, 5, 6), every_dtype=True)
    yield UnpoolSample(name="output_shape_1d", x=(1, 1, 4), kernel=(2,), attributes=(("strides", (2,)),),
                       output_shape=(1, 1, 9))  # fmt: skip
    yield expect_refusal(UnpoolSample(name="kernel_shape_too_short", kernel=(2,), attributes=(("strides", (2,)),)))
    yield expect_refusal(UnpoolSample(name="pads_too_short", attributes=(("pads", (1, 1)),)))
    yield expect_refusal(UnpoolSample(name="output_shape_too_short", output_shape=(4, 6)))


def unpool_bindings(sample: UnpoolSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if sample.output_shape is None:
        if dtypes[0] != "float32":
            return (graph.RUNTIME,) if sample.every_dtype else ()
        return (graph.RUNTIME, graph.SYMBOLIC) if sample.every_dtype else (graph.RUNTIME,)
    return spread(sample, first=dtypes == ("float32",), newest=since_version == newest_claimed_version("MaxUnpool"))


def unpool_node(sample: UnpoolSample, context: CaseContext) -> Node:
    """X [N, C, *spatial], I int64 of its shape, output_shape int64 [rank]; output of X's dtype."""
    x = data.distinct(sample.x, context.dtype, context.rng)
    if sample.values == "special":
        x = np.resize(data.special_floats(context.dtype), sample.x)
    attributes = {"kernel_shape": sample.kernel, **dict(sample.attributes)}
    shape = None if sample.output_shape is None else np.array(sample.output_shape, np.int64)
    operands = [Operand("X", x), Operand("I", _indices(sample, attributes, context.rng))]
    if shape is not None:
        operands.append(Operand("output_shape", shape, parameter=True))
    return Node("MaxUnpool", "", context.since_version, tuple(operands), ("output",), attributes)


def _indices(sample: UnpoolSample, attributes: dict[str, Attribute], rng: np.random.Generator) -> Array:
    probe = Node("MaxUnpool", "", 11, (Operand("X", np.empty(sample.x)),), ("output",), attributes)
    inferred = inferred_shape(probe)
    room = prod(sample.x) if isinstance(inferred, str) else prod(inferred)
    chosen = rng.permutation(room)[: prod(sample.x)]
    if sample.order == "ends":
        chosen = np.array([room - 1, 0])
    elif sample.order != "random":
        chosen = np.sort(chosen)[:: 1 if sample.order == "ascending" else -1]
    return chosen.astype(np.int64).reshape(sample.x)


def inferred_shape(node: Node) -> tuple[int, ...] | str:
    x, kernel = node.array("X"), node.integers("kernel_shape", ())
    attributes = spatial_attributes(node, x.ndim - 2)
    if isinstance(attributes, str):
        return attributes
    if len(kernel) != x.ndim - 2:
        return f"kernel_shape {kernel} must have a size for each of {x.ndim - 2} spatial axes"
    strides, _, begin, end = attributes
    spatial = (
        (size - 1) * stride - b - e + k
        for size, stride, b, e, k in zip(x.shape[2:], strides, begin, end, kernel, strict=True)
    )
    return (*x.shape[:2], *spatial)


def unpool_truth(node: Node) -> Truth:
    """0, and each element of X where I says, in the inferred shape; its corner is that of output_shape."""
    shapes = _shapes(node)
    if isinstance(shapes, str):
        return Refusal(shapes)
    inferred, shape = shapes
    x = node.array("X")
    flat = np.zeros(prod(inferred), x.dtype)
    flat[node.array("I").ravel()] = x.ravel()
    output = np.zeros(shape, x.dtype)
    corner = tuple(slice(size) for size in inferred)
    output[corner] = flat.reshape(inferred)
    return Outputs((Output("output", output),))


def _shapes(node: Node) -> tuple[tuple[int, ...], tuple[int, ...]] | str:
    inferred, shape = inferred_shape(node), node.value("output_shape")
    if isinstance(inferred, str) or shape is None:
        return inferred if isinstance(inferred, str) else (inferred, inferred)
    if shape.shape != (len(inferred),):
        return f"output_shape must have a size for each of {len(inferred)} axes"
    return inferred, tuple(int(size) for size in shape)


def unpool_lower(node: Node) -> Lowering | None:
    """Ranks below 4 get leading axes of 1; the indices are taken for unsigned ones; output_shape is no tensor there."""
    shapes = _shapes(node)
    x = node.array("X")
    if isinstance(shapes, str) or x.size == 0 or x.ndim > 4 or x.dtype == np.float64:
        return None
    ones = (1,) * (4 - x.ndim)
    x, indices = x.reshape(ones + x.shape), node.array("I").reshape(ones + x.shape).astype(np.uint64)
    desc = MaxUnpooling(TensorDesc.of(x), TensorDesc.of(indices), TensorDesc.of(x, sizes=ones + shapes[1]))
    return Lowering(desc, (x, indices))


@dataclass(frozen=True, kw_only=True)
class FoldSample(Sample):
    """image, block: the sizes of the inputs image_shape and block_shape. blocks_off: how many too many there are."""

    image: tuple[int, ...] = (5, 6)
    block: tuple[int, ...] = (2, 3)
    leading: tuple[int, int] = (1, 2)
    attributes: Attributes = ()
    blocks_off: int = 0
    rows_off: int = 0
    overlaps: bool = True


def fold_samples() -> Iterator[FoldSample]:
    yield FoldSample(name="defaults", every_dtype=True)
    yield FoldSample(name="block_1x1", block=(1, 1), every_dtype=True, overlaps=False)
    yield FoldSample(name="block_is_the_image", block=(5, 6), every_dtype=True, overlaps=False)
    yield FoldSample(name="block_1_by_width", block=(1, 6), overlaps=False)
    yield FoldSample(name="strides", attributes=(("strides", (2, 2)),), every_dtype=True)
    yield FoldSample(name="strides_equal_block", image=(4, 6), attributes=(("strides", (2, 3)),), every_dtype=True,
                     overlaps=False)  # fmt: skip
    yield FoldSample(name="strides_beyond_block", attributes=(("strides", (3, 4)),), image=(8, 11), overlaps=False,
                     every_dtype=True)  # fmt: skip
    yield FoldSample(name="strides_that_leave_a_rest", attributes=(("strides", (2, 2)),), image=(6, 6))
    yield FoldSample(name="pads_symmetric", attributes=(("pads", (1, 1, 1, 1)),), every_dtype=True)
    yield FoldSample(name="pads_asymmetric", attributes=(("pads", (1, 0, 0, 2)),), every_dtype=True)
    yield FoldSample(name="pads_begin_only", attributes=(("pads", (1, 2, 0, 0)),))
    yield FoldSample(name="dilations", attributes=(("dilations", (2, 2)),), every_dtype=True)
    yield FoldSample(name="dilations_pads_strides", attributes=(
        ("dilations", (2, 1)), ("pads", (1, 1, 1, 1)), ("strides", (2, 3)),
    ))  # fmt: skip
    yield FoldSample(name="3d", image=(3, 4, 3), block=(2, 2, 1), every_dtype=True)
    yield FoldSample(name="3d_pads_strides", image=(3, 4, 3), block=(2, 2, 2), attributes=(
        ("pads", (1, 0, 1, 1, 0, 1)), ("strides", (2, 2, 1)),
    ))  # fmt: skip
    yield FoldSample(name="4d", image=(2, 3, 2, 3), block=(1, 2, 2, 2))
    yield FoldSample(name="batch_3_channels_5", leading=(3, 5))
    yield FoldSample(name="one_of_everything", image=(1, 1), block=(1, 1), leading=(1, 1), overlaps=False)
    yield FoldSample(name="more_than_a_thread_group", image=(33, 37), block=(3, 3), leading=(1, 1))
    yield FoldSample(name="size_0_batch", leading=(0, 2))
    yield expect_refusal(FoldSample(name="too_many_blocks", blocks_off=1))
    yield expect_refusal(FoldSample(name="too_few_blocks", blocks_off=-1))
    yield expect_refusal(FoldSample(name="rows_not_a_multiple_of_the_block", rows_off=1))
    yield expect_refusal(FoldSample(name="pads_too_short", attributes=(("pads", (1, 1)),)))


def fold_bindings(sample: FoldSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if dtypes == ("bool",) and sample.overlaps:
        return ()
    ways = spread(sample, first=dtypes == ("float32",), newest=True)
    return ways if sample.every_dtype else tuple(way for way in ways if way in (graph.INITIALIZER, graph.RUNTIME))


def fold_node(sample: FoldSample, context: CaseContext) -> Node:
    """input [N, C * product(block), L], image_shape and block_shape int64; output [N, C, *image_shape]."""
    batch, channels = sample.leading
    operands = (
        Operand("input", np.empty((batch, channels * prod(sample.block), 0), context.dtype)),
        Operand("image_shape", np.array(sample.image, np.int64), parameter=True),
        Operand("block_shape", np.array(sample.block, np.int64), parameter=True),
    )
    attributes = dict(sample.attributes)
    probe = Node("Col2Im", "", context.since_version, operands, ("output",), attributes)
    windows = slide(probe, sample.image, sample.block)
    blocks = 1 if isinstance(windows, str) else prod(windows.output)
    shape = (batch, channels * prod(sample.block) + sample.rows_off, blocks + sample.blocks_off)
    columns = _fold_values(shape, context.dtype, context.rng)
    return Node(
        "Col2Im", "", context.since_version, (Operand("input", columns), *operands[1:]), ("output",), attributes
    )


def _fold_values(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Floats of [-1, 1); integers so small that the sums of overlapping blocks stay within the dtype."""
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "f":
        return rng.uniform(-1, 1, shape).astype(dtype)
    return rng.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)


def fold_truth(node: Node) -> Truth:
    """The sum of the blocks where they lie; what lies in the padding is dropped, what no block reaches is 0."""
    parsed = _fold(node)
    if isinstance(parsed, str):
        return Refusal(parsed)
    under, windows = parsed
    dtype = under.dtype
    if dtype.kind != "f":
        return Outputs((Output("output", scatter(under, windows)),))
    wide = under.astype(np.float64)
    bound = bounds.bound_sum(windows.taps_each, dtype, scatter(abs(wide), windows), roundings=0)
    return Outputs((bounds.round_output("output", scatter(wide, windows), dtype, bound),))


def _fold(node: Node) -> tuple[Array, Windows] | str:
    """(the blocks [N, C, *blocks, *block], their windows), or the rule that the node breaks."""
    columns = node.array("input")
    image, block = (tuple(int(size) for size in node.array(name)) for name in ("image_shape", "block_shape"))
    windows = slide(node, image, block)
    if isinstance(windows, str):
        return windows
    if columns.shape[1] % windows.taps_each or columns.shape[2] != prod(windows.output):
        return f"input {columns.shape} does not hold {prod(windows.output)} blocks of {windows.taps_each} elements"
    under = columns.reshape(columns.shape[0], columns.shape[1] // windows.taps_each, *block, *windows.output)
    rank = len(block)
    return np.moveaxis(under, range(2, 2 + rank), range(2 + rank, 2 + 2 * rank)), windows


def fold_lower(node: Node) -> Lowering | None:
    """As it is; the EP gives DirectML the begins of pads on both sides, here stands what the node says."""
    parsed = _fold(node)
    columns = node.array("input")
    if isinstance(parsed, str) or columns.size == 0:
        return None
    under, windows = parsed
    desc = Fold(
        input_tensor=TensorDesc.of(columns),
        output_tensor=TensorDesc.of(columns, sizes=(*under.shape[:2], *windows.image)),
        window_sizes=windows.kernel,
        strides=windows.strides,
        dilations=windows.dilations,
        start_padding=windows.begin,
        end_padding=windows.end,
    )
    return Lowering(desc, (columns,))


UNPOOLED = "an index of MaxUnpool beyond its output, or twice the same: the page defines none"


def _undefined_indices() -> UndefinedSamples:
    for dtype in FLOATS:
        x = ramp((1, 1, 2, 2), dtype)
        for name, index, places in (
            ("index_twice", (5, 5, 7, 0), (5,)),
            ("index_beyond_the_output", (5, 16, 7, 0), ()),
            ("index_far_beyond_the_output", (5, 2**40, 7, 0), ()),
            ("index_below_0", (5, -1, 7, 0), ()),
        ):
            right, bad = np.zeros((1, 1, 4, 4), dtype), np.zeros(16, bool)
            for place, value in zip(index, x.reshape(-1), strict=True):
                if 0 <= place < 16:
                    right.reshape(-1)[place] = value
            bad[list(places)] = True
            answer = Answer(right, bad.reshape(right.shape), moved=True)
            inputs = (x, np.array(index, np.int64).reshape(x.shape))
            attributes = {"kernel_shape": (2, 2), "strides": (2, 2)}
            yield UndefinedSample(name, dtype, UNPOOLED, inputs, (answer,), attributes)


UNDEFINED = {"MaxUnpool": _undefined_indices}

OPERATORS = declare(
    (
        Operator("MaxUnpool", unpool_samples, unpool_bindings, unpool_node, unpool_truth, unpool_lower, varied=("T1",)),
        Operator(
            "Col2Im", fold_samples, fold_bindings, fold_node, fold_truth, fold_lower, propagates=("NaN", "inf", "-inf")
        ),
    ),
    undefined=UNDEFINED,
)
