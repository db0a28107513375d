"""Compositions that optimisers replace by one operator (GELU, layer normalization), and their neighbours.

Sources: ONNX Runtime, core/optimizer: gelu_fusion, fast_gelu_fusion, bias_gelu_fusion, quick_gelu_fusion,
layer_norm_fusion, skip_layer_norm_fusion, bias_softmax_fusion, div_mul_fusion, relu_clip_fusion, reshape_fusion,
isinf_reducesum_fusion.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from epcheck.generators.graphs.graph_sample import GraphSample, Samples
from epcheck.generators.graphs.sketch import Data, Sketch


def _gelu(root: float, half: float, half_first: bool, sketch: Sketch) -> None:
    """x * 0.5 * (1 + erf(x / sqrt(2))), in two orders."""
    x, unit, factor = sketch.input(3, 8), sketch.constant(1.0), sketch.constant(half)
    phi = sketch.node("Add", sketch.node("Erf", sketch.node("Div", x, sketch.constant(root))), unit)
    if half_first:
        sketch.leave(sketch.node("Mul", sketch.node("Mul", x, factor), phi))
    else:
        sketch.leave(sketch.node("Mul", sketch.node("Mul", x, phi), factor))


def _biased_gelu(axis: int, sketch: Sketch) -> None:
    """The same of a sum with a bias, along the last axis or another."""
    x = sketch.node("Add", sketch.input(3, 8), sketch.weight(8) if axis else sketch.weight(3, 1))
    phi = sketch.node("Erf", sketch.node("Div", x, sketch.constant(math.sqrt(2))))
    phi = sketch.node("Add", phi, sketch.constant(1.0))
    sketch.leave(sketch.node("Mul", sketch.node("Mul", x, phi), sketch.constant(0.5)))


def _fast_gelu(cubic: float, sketch: Sketch) -> None:
    """x * 0.5 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    x = sketch.input(3, 8)
    cube = sketch.node("Mul", sketch.node("Pow", x, sketch.constant(3.0)), sketch.constant(cubic))
    inner = sketch.node("Mul", sketch.node("Add", x, cube), sketch.constant(math.sqrt(2 / math.pi)))
    phi = sketch.node("Add", sketch.node("Tanh", inner), sketch.constant(1.0))
    sketch.leave(sketch.node("Mul", sketch.node("Mul", x, sketch.constant(0.5)), phi))


def _quick_gelu(alpha: float, sketch: Sketch) -> None:
    """x * sigmoid(alpha x); SiLU where alpha is 1."""
    x = sketch.input(3, 8)
    inner = x if alpha == 1.0 else sketch.node("Mul", x, sketch.constant(alpha))
    sketch.leave(sketch.node("Mul", x, sketch.node("Sigmoid", inner)))


def _layer_normalization(axes: list[int], exponent: float, epsilon: Data, centred: bool, sketch: Sketch) -> None:
    """Mean, difference, mean square, root, quotient, scale and bias, each a node."""
    x = sketch.input(3, 4, 8)
    size = 8 if axes == [-1] or axes == [2] else 1
    centre = sketch.node("Sub", x, sketch.node("ReduceMean", x, axes=axes)) if centred else x
    square = sketch.node("ReduceMean", sketch.node("Pow", centre, sketch.constant(exponent)), axes=axes)
    root = sketch.node("Sqrt", sketch.node("Add", square, sketch.constant(epsilon)))
    scaled = sketch.node("Mul", sketch.node("Div", centre, root), sketch.weight(size, low=0.5, high=1.5))
    sketch.leave(sketch.node("Add", scaled, sketch.weight(size)) if centred else scaled)


def _skip_layer_normalization(leaves: bool, sketch: Sketch) -> None:
    """LayerNormalization of a sum, which may leave the graph as well."""
    total = sketch.node("Add", sketch.input(2, 3, 8), sketch.input(2, 3, 8))
    normalized = sketch.node("LayerNormalization", total, sketch.weight(8, low=0.5, high=1.5), sketch.weight(8))
    sketch.leave(normalized, *([total] if leaves else []))


def _biased_softmax(axis: int, shape: tuple[int, ...], sketch: Sketch) -> None:
    total = sketch.node("Add", sketch.input(2, 3, 4, 5), sketch.weight(*shape))
    sketch.leave(sketch.node("Softmax", total, axis=axis))


def _log_of_softmax(axis: int, sketch: Sketch) -> None:
    sketch.leave(sketch.node("Log", sketch.node("Softmax", sketch.input(3, 5), axis=axis)))


def _one_over(sketch: Sketch) -> None:
    """(1 / x) * y: a quotient y / x."""
    inverse = sketch.node("Div", sketch.constant(1.0), sketch.input(3, 5, low=0.5))
    sketch.leave(sketch.node("Mul", inverse, sketch.input(3, 5)))


def _one_of_rank_3_over(sketch: Sketch) -> None:
    """The quotient has a dimension more than x and y."""
    inverse = sketch.node("Div", sketch.constant([[[1.0]]]), sketch.input(5, low=0.5))
    sketch.leave(sketch.node("Mul", inverse, sketch.input(5)))


def _two_over(sketch: Sketch) -> None:
    inverse = sketch.node("Div", sketch.constant(2.0), sketch.input(3, 5, low=0.5))
    sketch.leave(sketch.node("Mul", inverse, sketch.input(3, 5)))


def _two_clips(operator: str, low: float, high: float, sketch: Sketch) -> None:
    """Relu or Clip before a Clip whose range it overlaps, or not."""
    x = sketch.input(3, 5)
    if operator == "Clip":
        x = sketch.node("Clip", x, sketch.constant(-0.5), sketch.constant(1.0))
    else:
        x = sketch.node(operator, x)
    sketch.leave(sketch.node("Clip", x, sketch.constant(low), sketch.constant(high)))


def _integer_clip(dtype: str, sketch: Sketch) -> None:
    """Relu and Clip of a type that has no fraction."""
    x = sketch.feed(np.arange(-7, 8), dtype)
    limits = [sketch.constant(limit, dtype) for limit in (2, 5)]
    sketch.leave(sketch.node("Clip", sketch.node("Relu", x), *limits))


def _clip_below_0(sketch: Sketch) -> None:
    """Limits that are attributes, both below what Relu leaves."""
    sketch.leave(sketch.node("Clip", sketch.node("Relu", sketch.input(3, 5)), min=-3.0, max=-1.0))


def _power(exponent: float, sketch: Sketch) -> None:
    """A power that is a product, a root or 1, and a node after it."""
    sketch.leave(sketch.node("Neg", sketch.node("Pow", sketch.input(3, 5, low=0.5), sketch.constant(exponent))))


def _mean_of_axes(operator: str, axes: list[int], keepdims: int, sketch: Sketch) -> None:
    x = sketch.node("Relu", sketch.input(2, 3, 4, 4))
    sketch.leave(sketch.node(operator, x, axes=axes, keepdims=keepdims))


def _normalizations() -> Samples:
    """Layer and RMS normalization written out."""
    yield GraphSample("fusion", "layer_normalization", partial(_layer_normalization, [-1], 2.0, 1e-5, True))
    yield GraphSample("fusion", "rms_normalization", partial(_layer_normalization, [-1], 2.0, 1e-5, False))
    yield GraphSample(
        "fusion", "layer_normalization_last_axis_is_2", partial(_layer_normalization, [2], 2.0, 1e-5, True)
    )
    yield GraphSample("apart", "layer_normalization_of_axis_1", partial(_layer_normalization, [1], 2.0, 1e-5, True))
    yield GraphSample(
        "apart", "layer_normalization_of_two_axes", partial(_layer_normalization, [1, 2], 2.0, 1e-5, True)
    )
    yield GraphSample(
        "apart", "layer_normalization_of_fourth_powers", partial(_layer_normalization, [-1], 4.0, 1e-5, True)
    )
    yield GraphSample("apart", "layer_normalization_of_epsilon_1", partial(_layer_normalization, [-1], 2.0, 1.0, True))
    yield GraphSample(
        "apart",
        "layer_normalization_epsilon_of_rank_4",
        partial(_layer_normalization, [-1], 2.0, [[[[1e-5]]]], True),
    )
    yield GraphSample(
        "apart",
        "rms_normalization_epsilon_of_rank_4",
        partial(_layer_normalization, [-1], 2.0, [[[[1e-5]]]], False),
    )
    yield GraphSample("apart", "rms_normalization_of_axis_1", partial(_layer_normalization, [1], 2.0, 1e-5, False))
    for leaves in (False, True):
        yield GraphSample(
            "fusion",
            f"skip_layernormalization{'_leaves' if leaves else ''}",
            partial(_skip_layer_normalization, leaves),
        )


def samples() -> Samples:
    """The compositions."""
    root = math.sqrt(2)
    for first in (True, False):
        order = "half_first" if first else "half_last"
        yield GraphSample("fusion", f"gelu_{order}", partial(_gelu, root, 0.5, first))
        yield GraphSample("apart", f"gelu_{order}_of_another_root", partial(_gelu, 1.5, 0.5, first))
        yield GraphSample("apart", f"gelu_{order}_of_another_half", partial(_gelu, root, 0.625, first))
        yield GraphSample("apart", f"gelu_{order}_of_minus_root", partial(_gelu, -root, 0.5, first))
    yield GraphSample("fusion", "bias_gelu", partial(_biased_gelu, 1))
    yield GraphSample("apart", "bias_of_rows_gelu", partial(_biased_gelu, 0))
    yield GraphSample("fusion", "fast_gelu", partial(_fast_gelu, 0.044715))
    yield GraphSample("apart", "fast_gelu_of_another_cube", partial(_fast_gelu, 0.0625))
    for name, alpha in (("1_702", 1.702), ("1", 1.0), ("minus_1", -1.0), ("2", 2.0)):
        yield GraphSample("fusion", f"quick_gelu_{name}", partial(_quick_gelu, alpha))
    yield from _normalizations()
    for axis in (-1, 3, 2, 1):
        name = f"axis_{axis}".replace("-", "minus_")
        yield GraphSample("fusion", f"bias_softmax_{name}", partial(_biased_softmax, axis, (2, 1, 1, 5)))
        yield GraphSample("fusion", f"bias_softmax_{name}_outer", partial(_biased_softmax, axis, (1, 3, 4, 5)))
    for axis in (0, 1):
        yield GraphSample("fusion", f"log_of_softmax_axis_{axis}", partial(_log_of_softmax, axis))
    yield GraphSample("fusion", "one_over_x_times_y", _one_over)
    yield GraphSample("apart", "one_of_rank_3_over_x_times_y", _one_of_rank_3_over)
    yield GraphSample("apart", "two_over_x_times_y", _two_over)
    yield GraphSample("apart", "relu_clip_of_version_6_below", _clip_below_0, opset=10)
    for dtype in ("int8", "int32"):
        yield GraphSample("fusion", f"relu_clip_of_{dtype}", partial(_integer_clip, dtype))
    relu_clip = partial(_two_clips, "Relu", 0.25, 1.0)
    yield GraphSample("fusion", "relu_clip_with_minimum", relu_clip, ("float64",))
    for operator in ("Relu", "Clip"):
        for name, low, high in (
            ("inside", -0.25, 0.5),
            ("outside", -4.0, 4.0),
            ("above", 0.25, 4.0),
            ("apart", 1.25, 2.0),
            ("below", -3.0, -1.0),
        ):
            yield GraphSample("fusion", f"{operator.lower()}_clip_{name}", partial(_two_clips, operator, low, high))
    for name, exponent in (("2", 2.0), ("3", 3.0), ("half", 0.5), ("1", 1.0), ("0", 0.0), ("minus_1", -1.0)):
        yield GraphSample("neutral", f"pow_{name}_neg", partial(_power, exponent))
    for axes in ([2, 3], [1], [0, 2, 3], [-1]):
        name = "_".join(str(axis).replace("-", "minus_") for axis in axes)
        yield GraphSample("fusion", f"relu_reducemean_{name}", partial(_mean_of_axes, "ReduceMean", axes, 1))
        yield GraphSample("fusion", f"relu_reducemax_{name}_dropped", partial(_mean_of_axes, "ReduceMax", axes, 0))
