"""com.microsoft::NhwcMaxPool and ::MaxpoolWithMask: MaxPool with channels last, and with elements left out.

Sources: ONNX Runtime's ContribOperators.md, which has no text of the first beyond its name and attributes, those of
MaxPool-12, and of the second "For internal use"; its tests (maxpool_mask_test.cc) have masks of ones. A mask of 0 may
leave out one element or end the row: the masks of the cases are 0 at the ends of rows, where both mean the same. A
window that holds nothing but such elements has no value that the page defines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families.drawn import MICROSOFT, Drawn, DrawnSample
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator
from epcheck.generators.operators.convolution_pooling import pooling
from epcheck.generators.operators.convolution_pooling.pooling import PoolSample
from epcheck.generators.oracle_math.window import columns, is_image, slide
from epcheck.generators.truth import Output, Outputs, Refusal, Truth, Undefined

DECLARES = (
    "com.microsoft::NhwcMaxPool",
    "com.microsoft::MaxpoolWithMask",
)

OF_MAX_POOL = 12
"""The version of MaxPool whose attributes NhwcMaxPool has."""
IMAGES = "an image has one dimension or more beside batch and channels"


def nhwc_samples() -> Iterator[PoolSample]:
    """Those of MaxPool that ask for no indices, have a batch and no order of storage."""
    for sample in pooling.samples("MaxPool"):
        fits = sample.since <= OF_MAX_POOL and not sample.indices and "nan" not in sample.values
        if fits and "storage_order" not in dict(sample.attributes):
            yield sample
            if sample.name in ("defaults", "pads_strides", "1d", "3d"):
                yield replace(sample, name=f"{sample.name}_batch_3", x=(3, 5, *sample.x[2:]), every_dtype=True)

    falling = (("kernel_shape", (2, 3)), ("dilations", (3, 1)))
    yield PoolSample(name="dilations_falling", x=(2, 3, 6, 7), attributes=falling, every_dtype=True)


def nhwc_bindings(sample: PoolSample, _version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if dtypes != ("uint8",):
        return (graph.RUNTIME,) if sample.every_dtype else ()
    return (graph.RUNTIME, graph.SYMBOLIC) if sample.every_dtype else (graph.RUNTIME,)


def nhwc_node(sample: PoolSample, context: CaseContext) -> Node:
    """x [N, *spatial, C]."""
    made = pooling.node(sample, context, name="MaxPool")
    x = Operand("x", np.ascontiguousarray(np.moveaxis(made.array("X"), 1, -1)))
    return Node("NhwcMaxPool", MICROSOFT, context.since_version, (x,), ("y",), made.attributes)


def nhwc_truth(node: Node) -> Truth:
    """What MaxPool says of the image with channels first."""
    x = Operand("X", np.moveaxis(node.array("x"), -1, 1))
    found = pooling.max_truth(Node("MaxPool", "", OF_MAX_POOL, (x,), ("Y",), node.attributes))
    if not isinstance(found, Outputs):
        return found
    return Outputs((Output("y", np.ascontiguousarray(np.moveaxis(found.outputs[0].value, 1, -1))),))


@dataclass(frozen=True, kw_only=True)
class MaskSample(DrawnSample):
    """x: of X. m: of the mask, where it has another shape. masked: how many elements at the end of each row have the
    mask 0; one more or less of the next channels. values: `plain`, or `negative`."""

    x: tuple[int, ...] = (2, 3, 6, 7)
    m: tuple[int, ...] = ()
    masked: int = 0
    values: str = "plain"


def mask_samples() -> Iterator[MaskSample]:
    images: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
        "1d": ((2, 3, 11), (3,)), "2d": ((2, 3, 6, 7), (2, 3)), "3d": ((2, 3, 4, 5, 6), (2, 2, 3)),
    }  # fmt: skip
    for name, (x, kernel) in images.items():
        rank = len(kernel)
        base: Mapping[str, Attribute] = {"kernel_shape": kernel, "strides": (1,) * rank}
        for masked in (0, 1, 2):
            yield MaskSample(name=f"{name}_masked_{masked}", x=x, attributes=base, masked=masked)
            yield MaskSample(name=f"{name}_one_channel_masked_{masked}", x=(1, 1, *x[2:]), attributes=base,
                             masked=masked)  # fmt: skip
            yield MaskSample(name=f"{name}_negative_masked_{masked}", x=x, attributes=base, masked=masked,
                             values="negative")  # fmt: skip
        strided = {**base, "strides": (2,) * rank}
        yield MaskSample(name=f"{name}_strides", x=x, attributes=strided, masked=2)
        padded = {**base, "pads": (*(1,) * rank, *(0,) * rank)}
        yield MaskSample(name=f"{name}_pads", x=x, attributes=padded, masked=1)
        for mode in ("SAME_UPPER", "SAME_LOWER", "VALID"):
            yield MaskSample(name=f"{name}_{mode.lower()}", x=x, attributes={**base, "auto_pad": mode}, masked=1)
    for kernel, strides in (((3, 2), (1, 1)), ((2, 2), (3, 1)), ((2, 3), (1, 2))):
        own: Mapping[str, Attribute] = {"kernel_shape": kernel, "strides": strides}
        name = "2d_kernel_" + "_".join(map(str, (*kernel, *strides)))
        yield MaskSample(name=name, attributes=own, masked=1)
    usual: Mapping[str, Attribute] = {"kernel_shape": (3, 3), "strides": (1, 1)}
    yield MaskSample(name="more_than_a_thread_group", x=(1, 2, 35, 33), attributes=usual, masked=2)
    yield MaskSample(name="no_batch", x=(0, 2, 6, 7), attributes=usual)
    yield expect_refusal(MaskSample(name="mask_of_another_size", m=(2, 3, 6, 6), attributes=usual))
    yield expect_refusal(MaskSample(name="mask_of_another_rank", m=(2, 3, 6), attributes=usual))
    yield expect_refusal(MaskSample(name="kernel_beyond_image", attributes={"kernel_shape": (7, 7)}))


def draw_masked(sample: MaskSample, context: CaseContext) -> Mapping[str, Array]:
    low, high = (-9, -1) if sample.values == "negative" else (-4, 4)
    x = context.rng.uniform(low, high, sample.x).astype(np.float32)
    shape = sample.m or sample.x
    mask = np.ones(shape, np.int32)
    if sample.masked:
        flat = mask.reshape(-1, *shape[2:])
        for channel in range(len(flat)):
            flat[channel, ..., shape[-1] - max(sample.masked - channel % 2, 0) :] = 0
    return {"X": x, "M": mask}


def mask_truth(node: Node) -> Truth:
    """The greatest element of each window that the mask leaves."""
    x, mask = node.array("X"), node.array("M")
    if mask.shape != x.shape:
        return Refusal(f"the mask must have the shape of X, {x.shape}, not {mask.shape}")
    windows = slide(node, x.shape[2:], node.integers("kernel_shape", ()))
    if isinstance(windows, str):
        return Refusal(windows)
    counts = columns(mask != 0, windows, False) & is_image(windows)
    found = np.where(counts, columns(x, windows, -np.inf), -np.inf).max(-1)
    open_ones: Array = np.asarray(~counts.any(-1))
    return Outputs((Output("Y", found, undefined=Undefined(open_ones) if open_ones.any() else None),))


OPERATORS = (
    Operator("NhwcMaxPool", nhwc_samples, nhwc_bindings, nhwc_node, nhwc_truth, NO_KERNEL, domain=MICROSOFT,
             without_rank_dtypes=IMAGES),
    Drawn("MaxpoolWithMask", mask_samples, draw_masked, mask_truth).declare(without_rank_dtypes=IMAGES),
)  # fmt: skip
