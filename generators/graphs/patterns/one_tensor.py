"""One tensor as several inputs of a node: as the data, and as what a provider reads on the CPU to know what to do.

A provider that copies such a parameter to the CPU, or takes it for constant, must leave the data where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from epcheck.generators.graphs.graph_sample import GraphSample, Samples
from epcheck.generators.graphs.sketch import Data, Sketch

ALL = "x"
"""Stands for the one tensor among the inputs of a node."""

OF_INTEGERS: Sequence[tuple[str, Sequence[int], tuple[Any, ...], int]] = (
    ("Reshape", [2, 1], (ALL, ALL), 1),
    ("Expand", [3, 2], (ALL, ALL), 1),
    ("Tile", [2], (ALL, ALL), 1),
    ("Gather", [1, 0, 2], (ALL, ALL), 1),
    ("GatherElements", [2, 0, 1], (ALL, ALL), 1),
    ("ScatterElements", [2, 0, 1], (ALL, ALL, ALL), 1),
    ("Pad", [1, 2], (ALL, ALL), 1),
    ("Unsqueeze", [0], (ALL, ALL), 1),
    ("Squeeze", [0], (ALL, ALL), 1),
    ("ReduceSum", [0], (ALL, ALL), 1),
    ("Slice", [0], (ALL, ALL, [1]), 1),
    ("Slice", [1], (ALL, [0], ALL), 1),
    ("Slice", [0], (ALL, ALL, [1], ALL), 1),
    ("TopK", [1], (ALL, ALL), 2),
    ("Split", [1, 1], (ALL, ALL), 2),
    ("OneHot", [2], (ALL, ALL, [0, 1]), 1),
    ("CumSum", [0], (ALL, ALL), 1),
)
"""Operator, the tensor, its inputs (a list for another, which is an initializer), how many outputs."""

NAMES = ("data", "starts", "ends", "axes")


def _integers(operator: str, values: Sequence[int], inputs: tuple[Any, ...], outputs: int, sketch: Sketch) -> None:
    x = sketch.feed(values, "int64")
    read = [x if each == ALL else sketch.constant(each, "int64") for each in inputs]
    first = sketch.node(operator, *read, outputs=outputs)
    sketch.leave(*(f"{first[:-1]}{number}" for number in range(outputs)))


def _numbers(operator: str, shape: tuple[int, ...], count: int, attributes: dict[str, Any], sketch: Sketch) -> None:
    x = sketch.input(*shape)
    sketch.leave(sketch.node(operator, *(x,) * count, **attributes))


def _scale(values: Data, operator: str, before: tuple[Any, ...], sketch: Sketch) -> None:
    """The data is what it is scaled or limited by. before: inputs between, None for omitted ones."""
    x = sketch.feed(values)
    sketch.leave(sketch.node(operator, x, *before, x))


def _normalization(operator: str, shape: tuple[int, ...], count: int, sketch: Sketch) -> None:
    """All parameters are one tensor."""
    x, weight = sketch.input(*shape), sketch.feed(sketch.draw(shape[1:2] if count > 2 else shape[-1:], 0.5, 1.5))
    sketch.leave(sketch.node(operator, x, *(weight,) * count))


def _training(count: int, sketch: Sketch) -> None:
    """Scale and running mean are one tensor, bias and running variance another. The node trains, and nobody reads what
    it makes of the statistics: whoever writes these to where it read them has another scale and bias."""
    x = sketch.input(2, 3, 4)
    scale, bias = (sketch.constant(sketch.draw((3,), 0.5, 1.5)) for _ in range(2))
    attributes: dict[str, Any] = {"training_mode": 1} if count == 3 else {}
    sketch.leave(sketch.node("BatchNormalization", x, scale, bias, scale, bias, outputs=count, **attributes))


def samples() -> Samples:
    """In a stable order."""
    for operator, values, inputs, outputs in OF_INTEGERS:
        name = operator.lower()
        if operator == "Slice":
            name += "_" + "_".join(NAMES[place] for place, each in enumerate(inputs) if each == ALL and place)
        yield GraphSample(
            "shared", f"data_and_parameter_of_{name}", partial(_integers, operator, values, inputs, outputs)
        )
    yield GraphSample("shared", "data_and_scales_of_resize", partial(_scale, [2.0], "Resize", (None,)))
    yield GraphSample("shared", "data_and_maximum_of_clip", partial(_scale, 0.75, "Clip", (None,)))
    yield GraphSample("shared", "data_and_ratio_of_dropout", partial(_scale, 0.5, "Dropout", ()))
    yield GraphSample("shared", "data_and_weight_of_conv", partial(_numbers, "Conv", (2, 2, 3, 3), 2, {}))
    yield GraphSample(
        "shared", "data_and_weight_of_convtranspose", partial(_numbers, "ConvTranspose", (2, 2, 3, 3), 2, {})
    )
    yield GraphSample(
        "shared", "parameters_of_batchnormalization", partial(_normalization, "BatchNormalization", (2, 3, 4), 4)
    )
    yield GraphSample(
        "shared", "parameters_of_layernormalization", partial(_normalization, "LayerNormalization", (2, 3, 8), 2)
    )
    for count, opset in ((3, 17), (5, 9)):
        name = f"statistics_of_training_batchnormalization_{count}_outputs"
        yield GraphSample("shared", name, partial(_training, count), opset=opset)
