"""The shape of an input for which the model declares none, from the nodes that read it.

Sources: the operator pages of ONNX say which rank an operator takes, and which sizes must be those of its weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from epcheck.models.feeds import audio
from epcheck.models.feeds.uses import Use
from epcheck.models.graph.attributes import read_integer

Sizes = tuple[int, ...]
Shapes = Mapping[str, Sizes]
"""Name of a constant -> its sizes."""

SPATIAL, ROWS = 64, 8
"""Sizes that nothing says: of an image, and of a row."""

KEEPS = frozenset(("Cast", "Dropout", "Identity"))
"""Operators behind which a value has the shape that it had before."""

SCALARS = frozenset((("If", 0), ("Loop", 0), ("Loop", 1), ("Range", 0), ("Range", 1), ("Range", 2), ("OneHot", 1)))
"""(operator, index of its input) that is a single number."""

ELEMENTWISE = frozenset(("Add", "Div", "Equal", "Mul", "PRelu", "Pow", "Sub"))


def shape_of(name: str, uses: Sequence[Use], constants: Shapes) -> Sizes:
    """The shape of an input with these uses. An image, a row or a single number where no reader says more."""
    for use in uses:
        if KEEPS.issuperset(use.path):
            if (use.node.op_type, use.index) in SCALARS:
                return ()
            rule = _RULES.get((use.node.op_type, use.index), _by_other)
            if (shape := rule(use, constants)) is not None:
                return shape
    if audio.SAMPLE_RATE.match(name):
        return ()
    return (1, audio.SECOND) if audio.SOUND.search(name) else (1, 3, SPATIAL, SPATIAL) if "image" in name else (1, ROWS)


def _by_other(use: Use, constants: Shapes) -> Sizes | None:
    """The shape of the constant that an element-wise operator combines it with, or the rank that `perm` has."""
    if use.node.op_type in ELEMENTWISE:
        return constants.get(use.input(1 - use.index)) or None
    if use.node.op_type == "Transpose":
        order = next((attribute.ints for attribute in use.node.attribute if attribute.name == "perm"), ())
        return (1, *range(2, len(order) + 1)) if order else None
    return None


def _conv(use: Use, constants: Shapes) -> Sizes | None:
    weights = constants.get(use.input(1), ())
    if len(weights) < 3:
        return None
    channels = weights[0] if use.node.op_type == "ConvTranspose" else weights[1] * read_integer(use.node, "group", 1)
    if len(weights) == 3:
        return (1, channels, audio.SECOND if channels == 1 else SPATIAL)
    return (1, channels, *[SPATIAL] * (len(weights) - 2))


def _channels(use: Use, constants: Shapes) -> Sizes | None:
    scale = constants.get(use.input(1))
    return (1, *scale, SPATIAL, SPATIAL) if scale else None


def _pool(use: Use, _constants: Shapes) -> Sizes | None:
    kernel = next((attribute.ints for attribute in use.node.attribute if attribute.name == "kernel_shape"), ())
    return (1, 3, *[SPATIAL] * len(kernel)) if kernel else None


def _gemm(use: Use, constants: Shapes) -> Sizes | None:
    weights = constants.get(use.input(1), ())
    if len(weights) != 2:
        return None
    inner = weights[1] if read_integer(use.node, "transB", 0) else weights[0]
    return (inner, 1) if read_integer(use.node, "transA", 0) else (1, inner)


def _matmul(use: Use, constants: Shapes) -> Sizes | None:
    weights = constants.get(use.input(1), ())
    return (1, weights[-2]) if len(weights) > 1 else None


def _recurrent(use: Use, constants: Shapes) -> Sizes | None:
    weights = constants.get(use.input(1), ())
    return (ROWS, 1, weights[2]) if len(weights) == 3 else None


def _layer_normalization(use: Use, constants: Shapes) -> Sizes | None:
    scale = constants.get(use.input(1))
    return (1, ROWS, *scale) if scale else None


def _global(_use: Use, _constants: Shapes) -> Sizes:
    return (1, 3, SPATIAL, SPATIAL)


Rule = Callable[[Use, Shapes], Sizes | None]

_RULES: Mapping[tuple[str, int], Rule] = {
    ("Conv", 0): _conv,
    ("ConvTranspose", 0): _conv,
    ("BatchNormalization", 0): _channels,
    ("InstanceNormalization", 0): _channels,
    ("MaxPool", 0): _pool,
    ("AveragePool", 0): _pool,
    ("GlobalAveragePool", 0): _global,
    ("GlobalMaxPool", 0): _global,
    ("Gemm", 0): _gemm,
    ("MatMul", 0): _matmul,
    ("LSTM", 0): _recurrent,
    ("GRU", 0): _recurrent,
    ("RNN", 0): _recurrent,
    ("LayerNormalization", 0): _layer_normalization,
}
"""(operator, index of its input) -> the rule for an input there."""
