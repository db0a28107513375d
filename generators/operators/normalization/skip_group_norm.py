"""com.microsoft::SkipGroupNorm: GroupNorm of x + skip + bias, and that sum.

Source: ONNX Runtime's ContribOperators.md. Kernels of GPUs may round the sum to T before they normalize it; the bound
has room for that. Bounds: `propagation.Moments`, `normalize` and `rescale`, as of GroupNorm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds, propagation
from epcheck.generators.bounds.estimate import Estimate, Precision, exact
from epcheck.generators.bounds.propagation import Moments
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families.drawn import Drawn, DrawnSample
from epcheck.generators.node import Attribute, Node
from epcheck.generators.operators.normalization.layer_normalization import SOURCES
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = ("com.microsoft::SkipGroupNorm",)

FOUR = "X has 4 dimensions"
DEFAULT_EPSILON = 1e-5


@dataclass(frozen=True, kw_only=True)
class SkipSample(DrawnSample):
    """shape: of X, channels last. skip: which dimensions skip has in common with it: `all`, `ones` for N 1 1 C, or
    `matrix` for N C. size: of the values."""

    shape: tuple[int, ...] = (2, 3, 5, 8)
    skip: str = "all"
    size: float = 2.0


def samples() -> Iterator[SkipSample]:
    base: Mapping[str, Attribute] = {"groups": 4, "activation": 0}
    for skip in ("all", "ones", "matrix"):
        for present in ((), ("bias",)):
            for outputs in (1, 2):
                label = f"skip_{skip}{'_bias' if present else ''}{'_sum' if outputs > 1 else ''}"
                yield SkipSample(name=label, attributes=base, skip=skip, present=present, outputs=outputs,
                                 every_dtype=bool(present) and outputs > 1)  # fmt: skip
    silu: Mapping[str, Attribute] = {**base, "activation": 1}
    yield SkipSample(name="silu", attributes=silu, present=("bias",), outputs=2, every_dtype=True)
    yield SkipSample(name="silu_large", attributes=silu, size=30.0, outputs=2)
    for epsilon, name in ((0.5, "large"), (1e-3, "small")):
        yield SkipSample(name=f"epsilon_{name}", attributes={**base, "epsilon": epsilon}, every_dtype=epsilon > 0.1)
    yield SkipSample(name="channels_last_1", attributes={**base, "channels_last": 1}, present=("bias",), outputs=2)
    first: Mapping[str, Attribute] = {**base, "channels_last": 0}
    yield SkipSample(name="channels_first", attributes=first, present=("bias",), outputs=2, every_dtype=True)
    for groups in (1, 2, 8):
        yield SkipSample(name=f"groups_{groups}", attributes={**base, "groups": groups}, outputs=2)
    for shape in ((1, 1, 1, 8), (3, 1, 5, 8), (1, 33, 35, 4), (2, 2, 2, 320), (65, 2, 2, 4), (0, 3, 5, 8)):
        name = "shape_" + "_".join(map(str, shape))
        yield SkipSample(name=name, attributes=base, shape=shape, skip="ones", present=("bias",), outputs=2)
    yield expect_refusal(SkipSample(name="groups_do_not_divide", attributes={**base, "groups": 3}))
    yield expect_refusal(SkipSample(name="skip_of_one_row", attributes=base, skip="row"))


def draw(sample: SkipSample, context: CaseContext) -> Mapping[str, Array]:
    """T of X, skip and bias; M of gamma and beta."""
    rng, of_x, of_gamma = context.rng, context.dtype, context.dtypes[1]
    batch, *image, channels = sample.shape
    skip = {"ones": (batch, 1, 1, channels), "matrix": (batch, channels), "row": (1, *image, channels)}
    shapes = {"X": sample.shape, "skip": skip.get(sample.skip, sample.shape), "bias": (channels,)}
    found = {name: (sample.size * rng.uniform(-1, 1, shape)).astype(of_x) for name, shape in shapes.items()}
    if sample.attributes.get("channels_last") == 0:
        found |= {name: np.ascontiguousarray(np.moveaxis(found[name], -1, 1)) for name in ("X", "skip")}
    gamma = rng.uniform(0.5, 2, channels) * rng.choice([-1.0, 1.0], channels)
    return {**found, "gamma": gamma.astype(of_gamma), "beta": rng.uniform(-2, 2, channels).astype(of_gamma)}


def _sum(node: Node, precision: Precision) -> Estimate | str:
    """x + skip + bias with channels last."""
    x, skip, bias = node.array("X"), node.array("skip"), node.value("bias")
    if not node.integer("channels_last", 1):
        x, skip = (np.moveaxis(each, 1, -1) if each.ndim == 4 else each for each in (x, skip))
    batch, _, _, channels = x.shape
    if skip.shape not in (x.shape, (batch, 1, 1, channels), (batch, channels)):
        return f"skip must have the shape of X {x.shape}, ({batch}, 1, 1, {channels}) or ({batch}, {channels})"
    parts = [exact(x), exact(np.broadcast_to(skip.reshape(batch, 1, 1, channels) if skip.ndim == 2 else skip, x.shape))]
    if bias is not None:
        parts.append(exact(np.broadcast_to(bias, x.shape)))
    return precision.total(*parts)


def _normalize(node: Node, total: Estimate, dtype: np.dtype[np.generic]) -> Estimate:
    batch, high, wide, channels = total.value.shape
    groups = node.integer("groups", 1)
    grouped = total.reshape(batch, high, wide, groups, channels // groups)
    unit = propagation.unit(dtype)
    noise = grouped.error + unit * np.abs(grouped.value)  # the sum may be rounded to T
    with np.errstate(all="ignore"):
        moments = Moments.of(grouped.value, (1, 2, 4), dtype, noise)
        inverse = moments.inverse_deviation(node.number("epsilon", DEFAULT_EPSILON), dtype)
        y, error = propagation.normalize(grouped.value, moments, inverse, dtype, noise)
        y, error = y.reshape(total.value.shape), (error + unit * np.abs(y)).reshape(total.value.shape)
        gamma, beta = (node.array(name).astype(np.float64) for name in ("gamma", "beta"))
        y, error = propagation.rescale(y, error, gamma, beta, dtype)
        if node.integer("activation", 0) == 1:
            value = y / (1 + np.exp(-y))
            own = np.minimum(propagation.exp_error(y, dtype) + 4 * unit, 1)
            y, error = value, 1.1 * error + np.abs(value) * own  # SiLU is nowhere steeper than 1.1
    return Estimate(y, np.nan_to_num(error, nan=0.0, posinf=0.0))


def truth(node: Node) -> Truth:
    """The formula of the page in float64."""
    dtype = node.array("X").dtype
    total = _sum(node, Precision(dtype))
    if isinstance(total, str):
        return Refusal(total)
    if total.value.shape[-1] % node.integer("groups", 1):
        return Refusal(f"{node.integer('groups', 1)} groups do not divide {total.value.shape[-1]} channels")
    found = _normalize(node, total, dtype) if total.value.size else total
    made = []
    for name, result in zip(node.results, (found, total), strict=False):
        if not node.integer("channels_last", 1):
            result = result.transpose(0, 3, 1, 2)
        bound = bounds.ulp(2.0, SOURCES, dtype, result.error)
        made.append(bounds.round_output(name, np.ascontiguousarray(result.value), dtype, bound))
    return Outputs(tuple(made))


OPERATORS = (
    Drawn("SkipGroupNorm", samples, draw, truth, ("gamma", "beta", "bias"), ("T", "M"), ("float32", "float32")).declare(
        without_rank_dtypes=FOUR
    ),
)
