"""Nodes whose sizes, counts or widths lie outside of what their pages define."""

from __future__ import annotations

import numpy as np

from epcheck.generators.node import Node

BITS = frozenset({2, 4, 8})
LEAST_BLOCK = 16
"""MatMulNBits: the widths, and the least size of a block; larger ones are powers of two (ContribOperators.md)."""


POOLS = ("pool_int64s", "pool_strings")


def grid(node: Node) -> str:
    """AffineGrid: an image without pixels or channels; and one pixel along an axis whose ends are corners: where it is,
    the page does not say."""
    size = node.value("size")
    sizes = () if size is None else tuple(map(int, size.reshape(-1)))
    spatial = sizes[2:]
    if any(length < 1 for length in sizes):
        return "the image has no pixels"
    aligned = node.integer("align_corners", 0)
    return "one pixel has both corners" if aligned and 1 in spatial else ""


def check_blocks(node: Node) -> str:
    """QuantizeLinear, DequantizeLinear: blocks have a scale each, and a scalar is the scale of all elements."""
    scale = node.inputs[1] if len(node.inputs) > 1 else None
    is_single = scale is not None and not scale.value.ndim
    return "one scale for all elements, and a size of blocks" if is_single and node.integer("block_size", 0) else ""


def check_split(node: Node) -> str:
    """Split: the last chunk is smaller, and the page does not say which others are where it would have less than
    nothing."""
    count, x = node.integer("num_outputs", 0), node.inputs[0]
    axis = node.integer("axis", 0)
    if count < 1 or x is None or not -x.value.ndim <= axis < x.value.ndim:
        return ""
    length = x.value.shape[axis]
    return "the chunks are more than there are elements" if -(-length // count) * (count - 1) > length else ""


def check_selected(node: Node) -> str:
    """Compress: "its length can be less than the input length along the axis", and no more."""
    x, condition = node.inputs[0], node.value("condition")
    axis = node.attributes.get("axis")
    if x is None or condition is None or (isinstance(axis, int) and not -x.value.ndim <= axis < x.value.ndim):
        return ""
    length = x.value.shape[axis] if isinstance(axis, int) else x.value.size
    return "the condition is longer than the axis" if condition.size > length else ""


def hot(node: Node) -> str:
    """OneHot: no classes, or a negative number of them: no index is in the range that the page gives."""
    depth = node.value("depth")
    return "depth is below 1" if depth is not None and bool((depth < 1).any()) else ""


def grams(node: Node) -> str:
    """TfIdfVectorizer: ngram_counts has where the n-grams of each length begin, so it has an entry for each, and what
    stands between two of them are whole n-grams."""
    longest, counts = node.integer("max_gram_length", 1), node.integers("ngram_counts", ())
    pool = max((len(value) for value in map(node.attributes.get, POOLS) if isinstance(value, tuple)), default=0)
    ends = (*counts[1:], pool)
    if any((end - begin) % length for length, (begin, end) in enumerate(zip(counts, ends, strict=False), 1)):
        return "the pool does not hold whole n-grams"
    return "no n-grams of the greatest length" if longest > len(counts) else ""


def check_widths(node: Node) -> str:
    """MatMulNBits: widths and blocks that the page does not list."""
    block = node.integer("block_size", LEAST_BLOCK)
    if block < LEAST_BLOCK or block & (block - 1):
        return f"block_size {block} is no power of two from {LEAST_BLOCK} on"
    bits = node.integer("bits", 4)
    return "" if bits in BITS else f"levels of {bits} bits"


def check_caches(node: Node) -> str:
    """com.microsoft::RotaryEmbedding: the caches have max_sequence_length rows, so a sequence is no longer."""
    x, cache = node.inputs[0], node.value("cos_cache")
    if not node.domain or x is None or cache is None or x.value.ndim not in (3, 4):
        return ""
    sequence = x.value.shape[1 if x.value.ndim == 3 else 2]
    return "the sequence is longer than the caches" if sequence > cache.shape[0] else ""


def check_activation(node: Node) -> str:
    """FusedMatMulActivation: the axis of its Softmax has no default that its page says; in matrices it is the last one
    to all."""
    ranks = {operand.value.ndim for operand in node.inputs if operand is not None}
    return (
        "" if "activation_axis" in node.attributes or ranks == {2} else "no activation_axis beside other ranks than 2"
    )


def check_zero_points(node: Node) -> str:
    """com.microsoft::QLinear*: whether the zero point is added before or after rounding no page says. Ties tell, where
    it is odd; without a rounded scale there may be some."""
    operands = [operand for operand in node.inputs if operand is not None]
    zero_points = [operand.value for operand in operands if operand.name.endswith("zero_point")]
    scales = [operand.value for operand in operands if operand.name.endswith("_scale")]
    if not node.domain or not zero_points or not bool((zero_points[-1].astype(np.int64) % 2).any()):
        return ""
    exact = all(bool((np.frexp(scale)[0] == 0.5).all()) for scale in scales)
    return "ties beside an odd zero point" if exact else ""
