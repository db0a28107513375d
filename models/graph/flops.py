"""The multiplications and additions of a node, from shapes alone.

Products of matrices, convolutions and recurrences are counted exactly, two for each multiply-add. An element-wise
operator counts one for each element of its output, an operator that only moves data none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import onnx
from onnx import helper

from epcheck.models.graph.attributes import read_integer

Shape = tuple[int | None, ...] | None
"""None for an unknown rank, a None within for an unknown size."""

MOVES = frozenset((
    "Cast", "CastLike", "Concat", "Constant", "ConstantOfShape", "DepthToSpace", "Dropout", "Expand", "EyeLike",
    "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Loop", "If", "Optional", "OptionalGetElement",
    "OptionalHasElement", "OneHot", "Pad", "Range", "Reshape", "ReverseSequence", "Scan", "ScatterElements",
    "ScatterND", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert",
    "SequenceLength", "Shape", "Size", "Slice", "SpaceToDepth", "Split", "SplitToSequence", "ConcatFromSequence",
    "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where",
))  # fmt: skip
"""Operators that compute nothing."""


def of(node: onnx.NodeProto, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> float | None:
    """The operations of a node; None where a shape that they depend on is not known. Bodies are not counted."""
    if node.op_type in MOVES:
        return 0.0
    count = _COUNTS.get(node.op_type)
    try:
        if count is not None:
            return count(node, inputs, outputs)
        read = inputs if node.op_type.startswith(("Reduce", "Arg", "Global")) else outputs
        return float(_size(read[0])) if read else 0.0
    except (TypeError, IndexError, ZeroDivisionError):  # a size that is not known, an input that is not there
        return None


def _size(shape: Shape) -> int:
    """Raises TypeError where it is not known."""
    return math.prod(_require_sizes(shape))


def _require_sizes(shape: Shape) -> tuple[int, ...]:
    if shape is None or None in shape:
        raise TypeError("a size is not known")
    return tuple(size for size in shape if size is not None)


def _matmul(_node: onnx.NodeProto, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> float:
    return 2.0 * _size(outputs[0]) * _require_sizes(inputs[0])[-1]


def _gemm(node: onnx.NodeProto, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> float:
    inner = _require_sizes(inputs[0])[0 if read_integer(node, "transA", 0) else 1]
    return 2.0 * _size(outputs[0]) * inner


def _conv(_node: onnx.NodeProto, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> float:
    return 2.0 * _size(outputs[0]) * math.prod(_require_sizes(inputs[1])[1:])


def _qlinear_conv(node: onnx.NodeProto, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> float:
    return _conv(node, [inputs[0], inputs[3]], outputs)


def _conv_transpose(_node: onnx.NodeProto, inputs: Sequence[Shape], _outputs: Sequence[Shape]) -> float:
    return 2.0 * _size(inputs[0]) * math.prod(_require_sizes(inputs[1])[1:])


def _recurrent(_node: onnx.NodeProto, inputs: Sequence[Shape], _outputs: Sequence[Shape]) -> float:
    steps = math.prod(_require_sizes(inputs[0])[:2])
    return 2.0 * steps * (_size(inputs[1]) + _size(inputs[2]))


def _pool(node: onnx.NodeProto, _inputs: Sequence[Shape], outputs: Sequence[Shape]) -> float:
    kernel = next((helper.get_attribute_value(a) for a in node.attribute if a.name == "kernel_shape"), [1])
    return float(_size(outputs[0]) * math.prod(int(size) for size in kernel))


def _attention(_node: onnx.NodeProto, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> float:
    """Scores and their product with the values: 4 · queries · keys · width for each batch entry."""
    keys = _require_sizes(inputs[1])[-2]
    return 4.0 * _size(outputs[0]) * keys


def _einsum(node: onnx.NodeProto, inputs: Sequence[Shape], _outputs: Sequence[Shape]) -> float:
    """Two for each combination of the indices that the equation names."""
    equation = str(helper.get_attribute_value(node.attribute[0]).decode())
    terms = equation.partition("->")[0].replace(" ", "").split(",")
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, inputs, strict=True):
        sizes |= dict(zip(term.replace("...", ""), _require_sizes(shape)[-len(term.replace("...", "")) :], strict=True))
    return 2.0 * math.prod(sizes.values())


_COUNTS: Mapping[str, Callable[[onnx.NodeProto, Sequence[Shape], Sequence[Shape]], float]] = {
    **dict.fromkeys(("MatMul", "MatMulInteger", "FusedMatMul", "QLinearMatMul", "MatMulNBits"), _matmul),
    **dict.fromkeys(("Gemm", "FusedGemm"), _gemm),
    **dict.fromkeys(("Conv", "ConvInteger", "FusedConv"), _conv),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    **dict.fromkeys(("Attention", "MultiHeadAttention", "GroupQueryAttention"), _attention),
    "QLinearConv": _qlinear_conv,
    "ConvTranspose": _conv_transpose,
    "Einsum": _einsum,
}

PRODUCTS = frozenset(_COUNTS)
"""Operators of many operations for each element that they give: what a model's arithmetic mostly is."""
