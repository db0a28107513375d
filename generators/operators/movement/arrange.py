"""Elements in another order, or repeated: Transpose, Expand, Tile, DepthToSpace, SpaceToDepth, Crop, ReverseSequence.

Transpose and Expand -> DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC with other strides; Tile -> DML_TILE, DepthToSpace ->
DML_DEPTH_TO_SPACE1, SpaceToDepth -> DML_SPACE_TO_DEPTH, Crop -> DML_SLICE, ReverseSequence ->
DML_REVERSE_SUBSEQUENCES. Sources: the operator pages; SpaceToDepth-28 has the mode CRD, which its page spells out as
the inverse of DepthToSpace. Crop-1 is experimental: its page says "Crop and image to the specified spatial dimensions",
with `scale` (height, width) from the left and top `border` on, without it by the four borders. Left out: sequence
lengths below 0 or beyond the time axis, of which the page of ReverseSequence says nothing, and too few of them, for the
reason that `FEATURES` gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import expect_refusal
from epcheck.generators.declaration.interaction import ABOVE_GROUPS, DISPATCHED, Arange, Interaction, int64s
from epcheck.generators.declaration.parameter_space import Parts, Values
from epcheck.generators.declaration.undefined_sample import LENGTH, Answer, UndefinedSample, UndefinedSamples, ramp
from epcheck.generators.directml.descriptions.movement.layout import (
    DepthSpaceOrder,
    DepthToSpace1,
    ReverseSubsequences,
    Slice,
    SpaceToDepth,
    Tile,
    identity,
)
from epcheck.generators.directml.lowering import Lowering, pad_rank
from epcheck.generators.directml.tensor import TensorDesc
from epcheck.generators.families.movement import (
    MovementSample,
    RefusedError,
    first_input,
    make_movement_space,
    make_ramp,
    movement,
    shape_of_rank,
)
from epcheck.generators.node import Node
from epcheck.generators.operator import declare

DECLARES = (
    "Transpose",
    "Expand",
    "Tile",
    "DepthToSpace",
    "SpaceToDepth",
    "Crop",
    "ReverseSequence",
)


def _permute(name: str, shape: tuple[int, ...], perm: tuple[int, ...] | None, every_dtype: bool = False,
              special: bool = False) -> MovementSample:  # fmt: skip
    arguments = {} if perm is None else {"perm": perm}
    return MovementSample(name=name, shape=shape, arguments=arguments, every_dtype=every_dtype, special=special)


def transpose_samples() -> Iterator[MovementSample]:
    yield _permute("default", (2, 3, 4), None, every_dtype=True)
    yield _permute("special_values", (5, 6), (1, 0), special=True, every_dtype=True)
    for perm in permutations(range(3)):
        yield _permute(f"perm_{''.join(map(str, perm))}", (2, 3, 4), perm)
    yield _permute("nchw_to_nhwc", (2, 3, 5, 7), (0, 2, 3, 1), every_dtype=True)
    yield _permute("nhwc_to_nchw", (2, 5, 7, 3), (0, 3, 1, 2))
    for rank in range(0, 9):
        yield replace(_permute(f"rank_{rank}_default", shape_of_rank(rank), None), rank=rank)
        if rank > 3:
            yield replace(_permute(f"rank_{rank}_rotated", shape_of_rank(rank), (*range(1, rank), 0)), rank=rank)
        if rank > 4:  # a batch of permutations
            for name, perm in (("rotated", (0, *range(2, rank), 1)), ("reversed", (0, *range(rank - 1, 0, -1)))):
                every_dtype = (rank, name) == (6, "rotated")
                kept = _permute(f"rank_{rank}_first_axis_kept_{name}", shape_of_rank(rank), perm, every_dtype)
                yield replace(kept, rank=rank)
    yield _permute("size_1_dimensions", (1, 3, 1, 2), (3, 0, 2, 1))
    yield _permute("size_0", (0, 3, 2), (2, 0, 1))
    yield _permute("more_than_a_thread_group", (3, 1031), (1, 0))
    yield _permute("square", (33, 33), (1, 0))
    yield expect_refusal(_permute("repeated_axis", (2, 3), (0, 0)))
    yield expect_refusal(_permute("axis_at_rank", (2, 3), (0, 2)))
    yield expect_refusal(_permute("too_few_axes", (2, 3, 4), (1, 0)))


def transpose_data(node: Node) -> Array:
    """Dimension i of the output is dimension perm[i] of the input; reversed by default."""
    values = node.array("data")
    perm = node.integers("perm", tuple(reversed(range(values.ndim))))
    if sorted(perm) != list(range(values.ndim)):
        raise RefusedError(f"perm {perm} is not a permutation of the {values.ndim} axes")
    return values.transpose(perm)


def lower_transpose(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """The elements stay where they are; the strides of the input are permuted."""
    return identity(node.array("data").transpose(node.integers("perm", tuple(range(first_input(node).ndim))[::-1])),
                    outputs[0].shape, packed=False)  # fmt: skip


def _expand(name: str, shape: tuple[int, ...], target: tuple[int, ...], every_dtype: bool = False,
            special: bool = False) -> MovementSample:  # fmt: skip
    return MovementSample(name=name, shape=shape, arguments={"shape": target}, every_dtype=every_dtype, special=special)


def expand_samples() -> Iterator[MovementSample]:
    yield _expand("last", (3, 1), (3, 4), every_dtype=True)
    yield _expand("special_values", (1, 15), (3, 15), special=True, every_dtype=True)
    yield _expand("first", (1, 4), (3, 4))
    yield _expand("both", (3, 1), (1, 4))
    yield _expand("shape_keeps_larger", (3, 4), (1, 1))
    yield _expand("shape_shorter", (2, 3, 1), (4,))
    yield _expand("shape_longer", (3,), (2, 4, 3))
    yield _expand("nothing_to_do", (2, 3), (2, 3))
    yield _expand("shape_empty", (2, 3), ())
    yield replace(_expand("scalar", (), (2, 3)), rank=0)
    yield _expand("scalar_to_scalar", (), ())
    yield _expand("one_element", (1,), (7,))
    yield _expand("alternating", (2, 1, 3, 1), (2, 4, 3, 5))
    yield _expand("to_size_0", (1, 3), (0, 3))
    yield _expand("size_0", (0, 1), (0, 4))
    yield _expand("size_0_kept", (2, 0), (1, 1))
    for rank in range(1, 9):
        yield replace(
            _expand(f"rank_{rank}_first", (1, *shape_of_rank(rank)[1:]), (4, *shape_of_rank(rank)[1:])), rank=rank
        )
        if rank != 2:  # that is `scalar`
            yield replace(_expand(f"rank_{rank}_scalar", (), shape_of_rank(rank)), rank=rank)
    yield _expand("more_than_a_thread_group", (3, 1), (3, 1031))
    yield expect_refusal(_expand("sizes_differ", (2, 3), (2, 4)))
    yield expect_refusal(_expand("size_0_against_3", (3,), (0,)))


def expand_data(node: Node) -> Array:
    """Broadcast to the shape, and the shape to it."""
    values = node.array("input")
    try:
        target = np.broadcast_shapes(values.shape, tuple(int(size) for size in node.array("shape")))
    except ValueError:
        raise RefusedError("corresponding dimensions must have the same value, or one of them is 1") from None
    return np.broadcast_to(values, target)


def lower_expand(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """Repeated dimensions have a stride of 0."""
    return identity(np.broadcast_to(node.array("input"), outputs[0].shape), outputs[0].shape, packed=False)


def _tile(name: str, shape: tuple[int, ...], repeats: tuple[int, ...], every_dtype: bool = False,
          special: bool = False) -> MovementSample:  # fmt: skip
    return MovementSample(
        name=name, shape=shape, arguments={"repeats": repeats}, every_dtype=every_dtype, special=special
    )


def tile_samples() -> Iterator[MovementSample]:
    yield _tile("both_axes", (2, 3), (2, 3), every_dtype=True)
    yield _tile("special_values", (15,), (2,), special=True, every_dtype=True)
    yield _tile("first_axis", (2, 3), (4, 1))
    yield _tile("last_axis", (2, 3), (1, 4))
    yield _tile("once", (2, 3), (1, 1))
    yield _tile("odd_sizes", (3, 5, 7), (3, 1, 2))
    yield _tile("size_1", (1, 1), (5, 7))
    yield _tile("zero_times", (2, 3), (0, 2))
    yield _tile("size_0", (0, 3), (2, 2))
    yield replace(_tile("scalar", (), ()), rank=0)
    for rank in range(1, 9):
        yield replace(_tile(f"rank_{rank}_first", shape_of_rank(rank), (2,) + (1,) * (rank - 1)), rank=rank)
        if rank > 1:
            yield replace(_tile(f"rank_{rank}_last", shape_of_rank(rank), (1,) * (rank - 1) + (3,)), rank=rank)
    yield _tile("more_than_a_thread_group", (3, 7), (5, 103))
    yield _tile("many_times", (3,), (1031,))
    yield expect_refusal(_tile("too_few_repeats", (2, 3), (2,)))
    yield expect_refusal(_tile("too_many_repeats", (2, 3), (1, 2, 2)))


def tile_data(node: Node) -> Array:
    """Each axis as often as `repeats` says."""
    values, repeats = node.array("input"), tuple(int(n) for n in node.array("repeats"))
    if len(repeats) != values.ndim:
        raise RefusedError("repeats must have one element for each dimension of the input")
    return np.tile(values, repeats)


def lower_tile(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """Rank padded to four, with repeats of 1."""
    values, repeats = pad_rank(node.array("input")), tuple(int(n) for n in node.array("repeats"))
    result = pad_rank(outputs[0])
    repeats = (1,) * (values.ndim - len(repeats)) + repeats
    return Lowering(Tile(TensorDesc.of(values), TensorDesc.of(result), repeats_count=len(repeats), repeats=repeats),
                    (values,))  # fmt: skip


def _blocks(name: str, shape: tuple[int, ...], blocksize: int, mode: str | None = None, every_dtype: bool = False,
            special: bool = False) -> MovementSample:  # fmt: skip
    arguments: dict[str, int | str] = {"blocksize": blocksize} | ({} if mode is None else {"mode": mode})
    return MovementSample(name=name, shape=shape, arguments=arguments, every_dtype=every_dtype, special=special)


def depth_to_space_samples() -> Iterator[MovementSample]:
    yield _blocks("default_mode", (1, 8, 2, 3), 2, every_dtype=True)
    yield _blocks("special_values", (1, 4, 3, 2), 2, special=True, every_dtype=True)
    for mode in ("DCR", "CRD"):
        yield _blocks(f"{mode.lower()}", (2, 8, 2, 3), 2, mode, every_dtype=mode == "CRD")
        yield _blocks(f"{mode.lower()}_blocksize_1", (2, 3, 2, 3), 1, mode)
        yield _blocks(f"{mode.lower()}_blocksize_3", (1, 18, 2, 1), 3, mode)
        yield _blocks(f"{mode.lower()}_one_output_channel", (1, 4, 3, 2), 2, mode)
        yield _blocks(f"{mode.lower()}_one_pixel", (1, 12, 1, 1), 2, mode)
        yield _blocks(f"{mode.lower()}_more_than_a_thread_group", (1, 12, 11, 13), 2, mode)
        yield _blocks(f"{mode.lower()}_size_0", (0, 4, 2, 2), 2, mode)
    yield _blocks("default_mode_batches", (3, 4, 1, 2), 2)
    yield _blocks("default_mode_blocksize_4", (1, 32, 1, 2), 4)
    yield _blocks("default_mode_size_0_width", (1, 4, 2, 0), 2)
    yield expect_refusal(_blocks("depth_indivisible", (1, 6, 2, 2), 2))
    yield expect_refusal(replace(_blocks("rank_3", (4, 2, 2), 2), rank=3))


def depth_to_space(node: Node) -> Array:
    """[N, C, H, W] -> [N, C / b^2, H b, W b], by the three lines that the page gives for each mode."""
    n, c, h, w, b = _image(node)
    if c % (b * b):
        raise RefusedError(f"the depth {c} must be divisible by the square of the block size {b}")
    depth = c // (b * b)
    if node.text("mode", "DCR") == "DCR":
        return (
            first_input(node).reshape(n, b, b, depth, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, depth, h * b, w * b)
        )
    return first_input(node).reshape(n, depth, b, b, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, depth, h * b, w * b)


def _image(node: Node) -> tuple[int, int, int, int, int]:
    """N, C, H, W and the block size."""
    shape = first_input(node).shape
    if len(shape) != 4:
        raise RefusedError(f"the input must be [N, C, H, W]; it has rank {len(shape)}")
    return *shape, node.integer("blocksize", 0)


def lower_depth_to_space(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """Block size and order."""
    values = first_input(node)
    order = DepthSpaceOrder["DEPTH_COLUMN_ROW" if node.text("mode", "DCR") == "DCR" else "COLUMN_ROW_DEPTH"]
    desc = DepthToSpace1(TensorDesc.of(values), TensorDesc.of(outputs[0]), node.integer("blocksize", 0), order)
    return Lowering(desc, (values,))


def space_to_depth_samples() -> Iterator[MovementSample]:
    yield _blocks("default_mode", (1, 2, 4, 6), 2, every_dtype=True)
    yield _blocks("special_values", (1, 1, 6, 4), 2, special=True, every_dtype=True)
    yield _blocks("batches", (3, 2, 2, 4), 2)
    yield _blocks("blocksize_1", (2, 3, 2, 3), 1)
    yield _blocks("blocksize_3", (1, 2, 6, 3), 3)
    yield _blocks("blocksize_4", (1, 3, 4, 8), 4)
    yield _blocks("one_block", (2, 3, 2, 2), 2)
    yield _blocks("one_channel", (1, 1, 4, 2), 2)
    yield _blocks("size_0", (0, 2, 4, 4), 2)
    yield _blocks("size_0_height", (1, 2, 0, 4), 2)
    yield _blocks("more_than_a_thread_group", (1, 3, 22, 26), 2)
    for mode in ("DCR", "CRD"):
        yield _blocks(mode.lower(), (2, 3, 4, 6), 2, mode)
        yield _blocks(f"{mode.lower()}_blocksize_3", (1, 2, 3, 6), 3, mode)
    yield expect_refusal(_blocks("height_indivisible", (1, 2, 3, 4), 2))
    yield expect_refusal(_blocks("width_indivisible", (1, 2, 4, 3), 2))
    yield expect_refusal(replace(_blocks("rank_3", (2, 4, 4), 2), rank=3))


def space_to_depth(node: Node) -> Array:
    """[N, C, H, W] -> [N, C b^2, H / b, W / b]: the inverse of DepthToSpace in the same mode."""
    n, c, h, w, b = _image(node)
    if h % b or w % b:
        raise RefusedError(f"height {h} and width {w} must be divisible by the block size {b}")
    blocks = first_input(node).reshape(n, c, h // b, b, w // b, b)
    order = (0, 3, 5, 1, 2, 4) if node.text("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return blocks.transpose(order).reshape(n, c * b * b, h // b, w // b)


def lower_space_to_depth(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """The block size; the provider has no kernel for the version with a mode."""
    if node.text("mode", "DCR") != "DCR":
        return None
    values = first_input(node)
    return Lowering(SpaceToDepth(TensorDesc.of(values), TensorDesc.of(outputs[0]), node.integer("blocksize", 0)),
                    (values,))  # fmt: skip


def _crop(name: str, shape: tuple[int, ...], border: tuple[int, ...], scale: tuple[int, ...] | None = None,
          every_dtype: bool = False, special: bool = False) -> MovementSample:  # fmt: skip
    arguments = {"border": border} | ({} if scale is None else {"scale": scale})
    return MovementSample(name=name, shape=shape, arguments=arguments, every_dtype=every_dtype, special=special)


def crop_samples() -> Iterator[MovementSample]:
    yield _crop("borders", (1, 2, 6, 7), (1, 2, 3, 1), every_dtype=True)
    yield _crop("special_values", (1, 1, 5, 6), (1, 1, 0, 0), special=True, every_dtype=True)
    yield _crop("no_borders", (2, 3, 4, 5), (0, 0, 0, 0))
    yield _crop("left_only", (1, 2, 4, 5), (2, 0, 0, 0))
    yield _crop("top_only", (1, 2, 4, 5), (0, 2, 0, 0))
    yield _crop("right_only", (1, 2, 4, 5), (0, 0, 2, 0))
    yield _crop("bottom_only", (1, 2, 4, 5), (0, 0, 0, 2))
    yield _crop("one_pixel_left", (2, 1, 3, 3), (1, 1, 1, 1))
    yield _crop("scale", (1, 2, 6, 7), (1, 2, 0, 0), (3, 4), every_dtype=True)
    yield _crop("scale_from_the_corner", (2, 2, 4, 5), (0, 0, 0, 0), (2, 3))
    yield _crop("scale_is_the_rest", (1, 1, 5, 4), (1, 2, 0, 0), (3, 3))
    yield _crop("more_than_a_thread_group", (2, 3, 20, 19), (1, 1, 2, 3))
    yield expect_refusal(_crop("scale_beyond_the_image", (1, 1, 4, 4), (2, 2, 0, 0), (3, 1)))
    yield expect_refusal(_crop("three_borders", (1, 1, 4, 4), (1, 1, 1)))


def crop_data(node: Node) -> Array:
    """border is left, top, right, bottom; scale, if any, is height, width from the left and top border on."""
    values, border, scale = first_input(node), node.integers("border", ()), node.integers("scale", ())
    if values.ndim != 4 or len(border) != 4:
        raise RefusedError("the input must be [N, C, H, W], and border left, top, right, bottom")
    left, top, right, bottom = border
    height, width = values.shape[2:]
    low, end = (top + scale[0], left + scale[1]) if scale else (height - bottom, width - right)
    if low > height or end > width:
        raise RefusedError(f"rows up to {low} and columns up to {end} lie beyond the image, {height} x {width}")
    return values[:, :, top:low, left:end]


def lower_crop(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """A window of the image, every element of it."""
    values, sizes = first_input(node), outputs[0].shape
    left, top, _, _ = node.integers("border", ())
    desc = Slice(TensorDesc.of(values), TensorDesc.of(outputs[0]), offsets=(0, 0, top, left), sizes=sizes,
                 strides=(1,) * 4)  # fmt: skip
    return Lowering(desc, (values,))


def _sequences(name: str, shape: tuple[int, ...], lengths: tuple[int, ...], every_dtype: bool = False,
               special: bool = False, **axes: int) -> MovementSample:  # fmt: skip
    return MovementSample(
        name=name, shape=shape, arguments={"sequence_lens": lengths, **axes}, every_dtype=every_dtype, special=special
    )


def reverse_sequence_samples() -> Iterator[MovementSample]:
    yield _sequences("default_axes", (4, 3), (4, 2, 3), every_dtype=True)
    yield _sequences("special_values", (6, 5), (6, 5, 4, 3, 1), every_dtype=True, special=True)
    yield _sequences("time_0_batch_1", (4, 3), (1, 4, 2), time_axis=0, batch_axis=1)
    yield _sequences("time_1_batch_0", (3, 4), (3, 1, 4), every_dtype=True, time_axis=1, batch_axis=0)
    yield _sequences("time_1_batch_0_square", (4, 4), (1, 2, 3, 4), time_axis=1, batch_axis=0)
    yield _sequences("square", (4, 4), (4, 3, 2, 1))
    yield _sequences("length_1", (4, 3), (1, 1, 1))
    yield _sequences("length_0", (4, 3), (0, 4, 0))
    yield _sequences("whole", (5, 2), (5, 5))
    yield _sequences("one_sequence", (6, 1), (4,))
    yield _sequences("one_step", (1, 3), (1, 1, 1))
    for rank in (3, 4, 5, 8):
        steps = (4, 3, *(1,) * (rank - 2))
        yield replace(_sequences(f"rank_{rank}_time_0_batch_1", steps, (4, 1, 3), time_axis=0, batch_axis=1), rank=rank)
        yield replace(
            _sequences(f"rank_{rank}_time_1_batch_0", steps, (1, 3, 2, 3), time_axis=1, batch_axis=0), rank=rank
        )
        features = (4, 3, *shape_of_rank(rank - 2))
        yield replace(_sequences(f"rank_{rank}_features", features, (4, 1, 3)), rank=rank)
    yield _sequences("size_0_features", (4, 3, 0), (4, 2, 1))
    yield _sequences("more_than_a_thread_group", (1031, 3), (1031, 700, 2))
    yield _sequences("many_sequences", (3, 1031), tuple(1 + i % 3 for i in range(1031)))
    yield expect_refusal(_sequences("one_axis_for_both", (4, 4), (2, 2, 2, 2), time_axis=1, batch_axis=1))
    yield expect_refusal(_sequences("rank_1", (4,), (2, 2, 2, 2)))
    yield expect_refusal(_sequences("too_few_lengths", (4, 3), (2, 1)))


def reverse_sequences(node: Node) -> Array:
    """The first sequence_lens[i] elements of slice i along the batch axis, in reverse along the time axis."""
    values, lengths = node.array("input"), node.array("sequence_lens")
    time, batch = node.integer("time_axis", 0), node.integer("batch_axis", 1)
    if values.ndim < 2 or {time, batch} != {0, 1}:
        raise RefusedError("the input must have rank 2 or more, and time_axis and batch_axis must be 0 and 1")
    if lengths.shape != (values.shape[batch],):
        raise RefusedError(f"sequence_lens must have shape [{values.shape[batch]}]")
    if any(not 0 <= length <= values.shape[time] for length in lengths):
        raise RefusedError(f"sequence_lens must be within [0, {values.shape[time]}]")
    result = np.moveaxis(values, batch, 0).copy()
    for sequence, length in zip(result, lengths, strict=True):
        sequence[:length] = sequence[:length][::-1].copy()
    return np.moveaxis(result, 0, batch)


def lower_reverse_sequence(node: Node, _outputs: tuple[Array, ...]) -> Lowering | None:
    """DirectML wants a length for each sequence, unsigned, so those of the other dimensions are repeated."""
    values, time = node.array("input"), node.integer("time_axis", 0)
    batch = 1 - time
    sizes = tuple(1 if axis == time else size for axis, size in enumerate(values.shape))
    lengths = (
        node.array("sequence_lens")
        .astype(np.uint64)
        .reshape([-1 if axis == batch else 1 for axis in range(values.ndim)])
    )
    data, repeated = pad_rank(values), pad_rank(np.ascontiguousarray(np.broadcast_to(lengths, sizes)))
    tensor = TensorDesc.of(data)
    axis = time + data.ndim - values.ndim
    return Lowering(ReverseSubsequences(tensor, TensorDesc.of(repeated), tensor, axis), (data, repeated))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "Transpose": (
        Interaction(ABOVE_GROUPS, (Arange((64, DISPATCHED)),), {"perm": (1, 0)}, "int32"),
        Interaction("tiles_of_32_and_rests", (Arange((2, 33, 40)),), {"perm": (0, 2, 1)}),
        Interaction("tile_and_rest", (Arange((33, 40)),), {"perm": (1, 0)}, "uint8"),
        Interaction("tile_and_rest", (Arange((33, 40)),), {"perm": (1, 0)}, "int64"),
        Interaction("tile_and_rest", (Arange((33, 40)),), {"perm": (1, 0)}, "float16"),
        Interaction("rank_6_last_axis_stays", (Arange((2, 3, 2, 2, 2, 3)),), {"perm": (1, 0, 3, 2, 4, 5)}),
        Interaction("channels_of_4_first_in_a_batch", (Arange((2, 3, 5, 4)),), {"perm": (0, 3, 1, 2)}),
    ),
    "DepthToSpace": (
        Interaction("columns_first_by_4", (Arange((1, 32, 2, 3)),), {"blocksize": 4, "mode": "CRD"}),
        Interaction("higher_than_wide_by_4", (Arange((1, 16, 3, 2)),), {"blocksize": 4}),
        Interaction("five_channels", (Arange((1, 20, 2, 2)),), {"blocksize": 2}),
    ),
    "Tile": (
        Interaction("two_axes_beside_one_of_1", (Arange((2, 3, 1)), int64s(1, 2, 3))),
    ),
}  # fmt: skip


def _undefined_lengths() -> UndefinedSamples:
    data = ramp((3, 2), "float32")
    right = data.copy()
    right[:2, 1] = data[1::-1, 1]
    answer = Answer(right, np.array([[True, False]] * 3), moved=True)
    for name, lengths in (
        ("length_beyond_the_steps", (5, 2)),
        ("length_below_0", (-1, 2)),
        ("length_2_to_40", (2**40, 2)),
    ):
        yield UndefinedSample(name, "float32", LENGTH, (data, np.array(lengths, np.int64)), (answer,))


UNDEFINED = {"ReverseSequence": _undefined_lengths}


def _make_transpose(values: Values, _: np.random.Generator) -> Parts:
    perm, data = values["perm"], make_ramp(values)
    if perm is None:
        return Parts((data,))
    data = data if len(perm) == 3 else data.reshape(2, 5, 1, 3)
    return Parts((data,), {"perm": perm})


def _make_tile(values: Values, _: np.random.Generator) -> Parts:
    repeats = np.array([values[name] for name in ("first", "second", "third")], np.int64)
    return Parts((make_ramp(values), repeats), {}, (1,))


def _is_expand(values: Values) -> bool:
    """Where all sizes of data are 1, none is more than that of the shape."""
    return bool(values["ones"] != "all" or values["shape"] != "ones")


def _make_expand(values: Values, _: np.random.Generator) -> Parts:
    """ones: the sizes of data that are 1 and repeated. shape: as long as data is, with ones where data has more,
    without its first dimension, or with one more."""
    full, ones = make_ramp(values), values["ones"]
    axes = tuple(axis for axis, name in enumerate(("outer", "length", "inner")) if name in ones or ones == "all")
    data = full[tuple(slice(0, 1) if axis in axes else slice(None) for axis in range(3))]
    shape = [size if axis in axes or values["shape"] != "ones" else 1 for axis, size in enumerate(full.shape)]
    shape = {"shorter": shape[1:], "longer": [2, *shape]}.get(values["shape"], shape)
    return Parts((data, np.array(shape, np.int64)), {}, (1,))


ORDERS = tuple(order for order in permutations(range(4)) if order != (0, 1, 2, 3))
ANY_EMPTY = ("outer", "length", "inner")

PARAMETER_SPACES = {
    "Transpose": make_movement_space(
        _make_transpose, {"perm": (None, (1, 0, 2), (0, 2, 1), (2, 0, 1), *ORDERS)}, ANY_EMPTY
    ),
    "Tile": make_movement_space(_make_tile, {"first": (1, 2), "second": (2, 1, 3), "third": (1, 4)}, ANY_EMPTY),
    "Expand": make_movement_space(
        _make_expand,
        {
            "ones": ("outer", "length", "inner", "outer_inner", "all", ""),
            "shape": ("same", "ones", "shorter", "longer"),
        },
        ANY_EMPTY,
        _is_expand,
    ),
}

OPERATORS = declare(
    (
        movement("Transpose", transpose_samples, transpose_data, lower_transpose),
        movement("Expand", expand_samples, expand_data, lower_expand),
        movement("Tile", tile_samples, tile_data, lower_tile),
        movement("DepthToSpace", depth_to_space_samples, depth_to_space, lower_depth_to_space),
        movement("SpaceToDepth", space_to_depth_samples, space_to_depth, lower_space_to_depth),
        movement("Crop", crop_samples, crop_data, lower_crop),
        movement("ReverseSequence", reverse_sequence_samples, reverse_sequences, lower_reverse_sequence),
    ),
    interactions=INTERACTIONS,
    undefined=UNDEFINED,
    parameter_spaces=PARAMETER_SPACES,
)
