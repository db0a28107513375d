"""Nodes that move, cast or fold: what optimisers remove, join, or carry past other nodes.

Sources: ONNX Runtime, core/optimizer: constant_folding, transpose_optimization, cast_elimination,
cast_chain_elimination, propagate_cast_ops, unsqueeze_elimination, slice_elimination, concat_slice_elimination,
slice_concat_to_space_to_depth, noop_elimination, expand_elimination, eliminate_dropout, reshape_fusion, gather_fusion,
not_where_fusion.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from epcheck.generators.graphs.graph_sample import BOTH, GraphSample, Samples
from epcheck.generators.graphs.sketch import Sketch

FLOAT, FLOAT16, INT32, INT64, BOOL = 1, 10, 6, 7, 9
"""TensorProto.DataType."""


def _neutral(operator: str, value: float, shape: tuple[int, ...], first: bool, sketch: Sketch) -> None:
    """Adding 0, multiplying by 1; of a shape that may broadcast the other operand."""
    x, other = sketch.node("Tanh", sketch.input(3, 1)), sketch.constant(sketch.draw(shape, value, value))
    made = sketch.node(operator, *((x, other) if first else (other, x)))
    sketch.leave(sketch.node("Neg", made))


def _two_transposes(first: list[int], second: list[int], sketch: Sketch) -> None:
    value = sketch.node("Transpose", sketch.input(2, 3, 4), perm=first)
    sketch.leave(sketch.node("Transpose", sketch.node("Neg", value), perm=second))


def _transpose_past(operator: str, attributes: dict[str, Any], sketch: Sketch) -> None:
    """A layout change, an operator, and the change back."""
    value = sketch.node("Transpose", sketch.input(1, 4, 4, 3), perm=[0, 3, 1, 2])
    if operator in ("Add", "Mul"):
        value = sketch.node(operator, value, sketch.weight(3, 1, 1))
    elif operator == "Concat":
        value = sketch.node("Concat", value, sketch.node("Relu", value), **attributes)
    elif operator == "Pad":
        value = sketch.node("Pad", value, sketch.constant([0, 0, 1, 0, 0, 0, 0, 2], "int64"))
    elif operator == "Slice":
        ends = ([0, 1], [2, 4], [1, 3])
        value = sketch.node("Slice", value, *(sketch.constant(end, "int64") for end in ends))
    elif operator == "ReduceSum":
        value = sketch.node("ReduceSum", value, sketch.constant([2], "int64"), keepdims=1)
    else:
        value = sketch.node(operator, value, **attributes)
    sketch.leave(sketch.node("Transpose", value, perm=[0, 2, 3, 1]))


def _reshapes(shapes: tuple[tuple[int, ...], ...], sketch: Sketch) -> None:
    value = sketch.node("Tanh", sketch.input(2, 3, 4))
    for shape in shapes:
        value = sketch.node("Reshape", value, sketch.constant(shape, "int64"))
    sketch.leave(sketch.node("Neg", value))


def _cast(types: tuple[int, ...], sketch: Sketch) -> None:
    """A value cast from type to type and back to float. Its values are multiples of 1/4."""
    values = sketch.rng.integers(-8, 9, (3, 5)) / 4
    value = sketch.feed(values)
    for kind in types:
        value = sketch.node("Cast", value, to=kind)
    sketch.leave(sketch.node("Abs", value))


def _cast_past(operator: str, sketch: Sketch) -> None:
    """Casts to float16 and back around an operator."""
    value = sketch.node("Cast", sketch.feed(sketch.rng.integers(-8, 9, (3, 5)) / 4), to=FLOAT16)
    sketch.leave(sketch.node("Cast", sketch.node(operator, value), to=FLOAT))


def _two_slices(first: tuple[list[int], ...], second: tuple[list[int], ...], sketch: Sketch) -> None:
    """first, second: starts, ends, axes and steps."""
    value = sketch.node("Tanh", sketch.input(6, 7))
    for each in (first, second):
        value = sketch.node("Slice", value, *(sketch.constant(part, "int64") for part in each))
    sketch.leave(sketch.node("Neg", value))


def _unsqueeze(axes: list[int], back: list[int], sketch: Sketch) -> None:
    value = sketch.node("Unsqueeze", sketch.input(2, 3), sketch.constant(axes, "int64"))
    sketch.leave(sketch.node("Squeeze", sketch.node("Tanh", value), sketch.constant(back, "int64")))


def _constant_node(operator: str, sketch: Sketch) -> None:
    """A node with constant inputs alone, whose result a node with a runtime input reads."""
    if operator in ("MatMul", "Add", "Mul", "Sub"):
        made = sketch.node(operator, sketch.weight(4, 4), sketch.weight(4, 4))
    elif operator == "Transpose":
        made = sketch.node("Transpose", sketch.weight(4, 3, 4), perm=[1, 2, 0])
    elif operator == "ConstantOfShape":
        value = sketch.draw((1,), 0.5, 0.75)
        made = sketch.node("ConstantOfShape", sketch.constant([4, 4], "int64"), value=value)
    elif operator == "Range":
        made = sketch.node("Range", *(sketch.constant(end) for end in (0.0, 4.0, 1.0)))
    elif operator == "Cast":
        made = sketch.node("Cast", sketch.constant([1, -2, 3, 7], "int64"), to=FLOAT)
    elif operator == "DequantizeLinear":
        made = sketch.node(
            operator, sketch.bytes(4, 4, is_input=False), sketch.constant(0.0625), sketch.constant(128, "uint8")
        )
    else:
        made = sketch.node(operator, sketch.weight(4, 4, low=0.25))
    sketch.leave(sketch.node("Sub", sketch.input(4, 4), made))


def _constant_nodes(sketch: Sketch) -> None:
    """Five constant nodes, one of which leaves the graph."""
    weight = sketch.node("Transpose", sketch.weight(4, 4), perm=[1, 0])
    scaled = sketch.node("Mul", sketch.node("Relu", weight), sketch.constant(0.5))
    sketch.leave(scaled, sketch.node("MatMul", sketch.input(3, 4), sketch.node("Neg", scaled)))


def _shape_of(sketch: Sketch) -> None:
    """A shape that is known before the run makes another shape."""
    x = sketch.input(2, 3, 4)
    size = sketch.node("Gather", sketch.node("Shape", x), sketch.constant([2, 0], "int64"), axis=0)
    shape = sketch.node("Concat", size, sketch.constant([-1], "int64"), axis=0)
    sketch.leave(sketch.node("Reshape", sketch.node("Tanh", x), shape))


def _expand_by_shape(sketch: Sketch) -> None:
    x, y = sketch.input(3, 1), sketch.input(3, 4)
    sketch.leave(sketch.node("Mul", sketch.node("Expand", x, sketch.node("Shape", y)), y))


def _expand(shape: list[int], sketch: Sketch) -> None:
    value = sketch.node("Expand", sketch.node("Tanh", sketch.input(3, 4)), sketch.constant(shape, "int64"))
    sketch.leave(sketch.node("Neg", value))


def _where_not(sketch: Sketch) -> None:
    condition = sketch.node("Not", sketch.node("Greater", sketch.input(3, 4), sketch.constant(0.0)))
    sketch.leave(sketch.node("Where", condition, sketch.input(3, 4), sketch.weight(3, 4)))


def _gathers(indices: list[int], axis: int, sketch: Sketch) -> None:
    """Gathers of successive parts of one value: they look like a Split."""
    x = sketch.node("Tanh", sketch.input(3, 3, 3))
    parts = [sketch.node("Gather", x, sketch.constant(index, "int64"), axis=axis) for index in indices]
    sketch.leave(sketch.node("Sub", sketch.node("Add", parts[0], parts[1]), parts[2]))


def _split_and_concat(order: tuple[int, ...], sketch: Sketch) -> None:
    part = sketch.node("Split", sketch.input(6, 3), sketch.constant([1, 2, 3], "int64"), outputs=3, axis=0)
    joined = sketch.node("Concat", *(part.replace("_0", f"_{index}") for index in order), axis=0)
    sketch.leave(sketch.node("Neg", joined))


def _space_to_depth(offsets: tuple[tuple[int, int], ...], sketch: Sketch) -> None:
    """Slices with a step of 2 and a Concat: a SpaceToDepth, where the offsets are in its order."""
    x = sketch.input(1, 2, 4, 6)
    ends = [sketch.constant(values, "int64") for values in ([2**31 - 1] * 2, [2, 3], [2, 2])]
    parts = [sketch.node("Slice", x, sketch.constant(offset, "int64"), *ends) for offset in offsets]
    sketch.leave(sketch.node("Concat", *parts, axis=1))


def _no_padding(sketch: Sketch) -> None:
    value = sketch.node("Pad", sketch.node("Tanh", sketch.input(3, 4)), sketch.constant([0, 0, 0, 0], "int64"))
    sketch.leave(sketch.node("Neg", value))


def samples() -> Samples:
    """The graphs whose nodes are moved, joined or removed."""
    for operator, value in (("Add", 0.0), ("Sub", 0.0), ("Mul", 1.0), ("Div", 1.0)):
        for name, shape in {"scalar": (), "same_shape": (3, 1), "wider": (1, 4), "of_higher_rank": (1, 1, 1)}.items():
            yield GraphSample(
                "neutral", f"{operator.lower()}_{value:g}_{name}", partial(_neutral, operator, value, shape, True)
            )
    for operator, value in (("Add", 0.0), ("Sub", 0.0), ("Mul", 1.0), ("Mul", 0.0)):
        yield GraphSample(
            "neutral", f"{operator.lower()}_{value:g}_comes_first", partial(_neutral, operator, value, (), False)
        )
    perms = {
        "back": ([1, 2, 0], [2, 0, 1]),
        "on": ([1, 2, 0], [1, 2, 0]),
        "ends": ([2, 1, 0], [2, 1, 0]),
        "other": ([0, 2, 1], [1, 0, 2]),
    }
    for name, (first, second) in perms.items():
        yield GraphSample("neutral", f"transposed_{name}", partial(_two_transposes, first, second), BOTH)
    yield from _list_moved_nodes()
    yield from _list_adjacent_nodes()
    yield from _list_constant_nodes()
    yield from _list_splits_and_concats()


def _list_moved_nodes() -> Samples:
    """Transposes and casts that are carried past other nodes."""
    past: dict[str, dict[str, Any]] = {
        "Relu": {}, "Add": {}, "Mul": {}, "Concat": {"axis": 1}, "Pad": {}, "Slice": {}, "ReduceSum": {},
        "ReduceMean": {"axes": [2, 3], "keepdims": 1}, "Softmax": {"axis": 1}, "ArgMax": {"axis": 1, "keepdims": 1},
        "GlobalAveragePool": {}, "MaxPool": {"kernel_shape": [2, 2]}, "Softplus": {}, "LpNormalization": {"axis": 1},
    }  # fmt: skip
    for operator, attributes in past.items():
        yield GraphSample(
            "moved", f"transpose_{operator.lower()}_transpose", partial(_transpose_past, operator, attributes)
        )
    for name, types in {
        "float16_float": (FLOAT16, FLOAT), "int32_float": (INT32, FLOAT), "int64_int32_float": (INT64, INT32, FLOAT),
        "bool_float": (BOOL, FLOAT), "float_float": (FLOAT, FLOAT), "float16_int32_float": (FLOAT16, INT32, FLOAT),
        "bool_int32_float": (BOOL, INT32, FLOAT), "int32_bool_float": (INT32, BOOL, FLOAT),
    }.items():  # fmt: skip
        yield GraphSample("moved", f"cast_{name}", partial(_cast, types))
    for operator in ("Relu", "Neg", "Abs", "Identity", "Sign"):
        yield GraphSample("moved", f"cast_float16_{operator.lower()}_cast", partial(_cast_past, operator))


def _list_adjacent_nodes() -> Samples:
    """Two nodes of one operator, or one and its converse."""
    slices: dict[str, tuple[tuple[list[int], ...], tuple[list[int], ...]]] = {
        "of_one_axis": (([1], [5], [0], [1]), ([1], [3], [0], [1])),
        "of_two_axes": (([1], [5], [0], [1]), ([2], [6], [1], [2])),
        "backwards": (([-1], [-100], [0], [-1]), ([-1], [-100], [0], [-1])),
        "by_steps": (([0], [6], [0], [2]), ([2], [-100], [0], [-2])),
        "to_the_end": (([0], [2**63 - 1], [0], [1]), ([0], [2**63 - 1], [1], [1])),
        "to_nothing": (([1], [5], [0], [1]), ([4], [2], [0], [1])),
    }
    for name, (one_slice, other_slice) in slices.items():
        yield GraphSample("neutral", f"sliced_twice_{name}", partial(_two_slices, one_slice, other_slice))
    for name, shapes in {
        "twice": ((6, 4), (4, 6)), "back": ((24,), (2, 3, 4)), "by_0": ((0, -1), (3, 8)),
        "thrice": ((24,), (6, -1), (2, 12)),
    }.items():  # fmt: skip
        yield GraphSample("neutral", f"reshaped_{name}", partial(_reshapes, shapes))
    for name, axes, back in (("0_0", [0], [0]), ("1_2", [1, 2], [1, 2]), ("minus_1_2", [-1], [2])):
        yield GraphSample("neutral", f"unsqueezed_and_squeezed_{name}", partial(_unsqueeze, axes, back))


def _on_axes(operator: str, axes: list[int], sketch: Sketch) -> None:
    """Between two transposes, an operator whose sizes are those of the axes that it names."""
    turned = sketch.node("Transpose", sketch.input(1, 3, 4, 5), perm=[0, 2, 3, 1])
    if operator == "Resize":
        scales = sketch.constant([2.0, 3.0, 1.0, 1.0][: len(axes)], "float32")
        changed = sketch.node("Resize", turned, None, scales, axes=axes, mode="nearest")
    else:
        pads = sketch.constant([1, 2, 0, 0][: len(axes)] + [0] * len(axes), "int64")
        changed = sketch.node("Pad", turned, pads, None, sketch.constant(axes, "int64"))
    sketch.leave(sketch.node("Transpose", changed, perm=[0, 3, 1, 2]))


def _blocked_scale(sketch: Sketch) -> None:
    """Between two transposes, DequantizeLinear with a scale for every two elements along an axis."""
    turned = sketch.node("Transpose", sketch.bytes(2, 3, 4, 5), perm=[0, 2, 3, 1])
    scales = sketch.weight(2, 2, 5, 3, low=0.5, high=1.0)
    real = sketch.node("DequantizeLinear", turned, scales, axis=1, block_size=2)
    sketch.leave(sketch.node("Transpose", real, perm=[0, 3, 1, 2]))


def _list_constant_nodes() -> Samples:
    """Nodes of constants alone, and shapes that are known."""
    for operator in (
        "Add", "Sub", "Mul", "MatMul", "Transpose", "ConstantOfShape", "Range", "Cast", "DequantizeLinear", "Exp",
        "Sqrt", "Erf", "Softmax", "Tanh", "Reciprocal", "Log", "Sin", "Round", "ReduceMean", "Identity",
    ):  # fmt: skip
        yield GraphSample("folding", f"{operator.lower()}_of_constants", partial(_constant_node, operator))
    yield GraphSample("folding", "five_nodes_of_constants", _constant_nodes)
    yield GraphSample("folding", "reshape_by_own_shape", _shape_of, elsewhere=("Shape", "Gather", "Concat"))
    yield GraphSample("folding", "expand_by_a_shape", _expand_by_shape)


def _list_splits_and_concats() -> Samples:
    """Expand, Where, and values that are taken apart and put together."""
    for name, shape in {"same": [3, 4], "ones": [1, 1], "higher": [2, 3, 4], "one": [1]}.items():
        yield GraphSample("neutral", f"expanded_to_{name}", partial(_expand, shape))
    yield GraphSample("neutral", "where_not", _where_not)
    for axis in (0, 1, 2):
        yield GraphSample("fusion", f"gathers_of_axis_{axis}", partial(_gathers, [0, 1, 2], axis))
    yield GraphSample("apart", "gathers_in_another_order", partial(_gathers, [2, 0, 1], 1))
    yield GraphSample("apart", "gathers_from_the_end", partial(_gathers, [-1, 0, -2], 1))
    yield GraphSample("neutral", "split_and_joined", partial(_split_and_concat, (0, 1, 2)))
    yield GraphSample("apart", "split_and_joined_in_another_order", partial(_split_and_concat, (2, 0, 1)))
    corners = ((0, 0), (0, 1), (1, 0), (1, 1))
    yield GraphSample("fusion", "slices_concat_rows_first", partial(_space_to_depth, corners))
    yield GraphSample(
        "fusion", "slices_concat_columns_first", partial(_space_to_depth, ((0, 0), (1, 0), (0, 1), (1, 1)))
    )
    yield GraphSample("apart", "slices_concat_backwards", partial(_space_to_depth, corners[::-1]))
    yield GraphSample("neutral", "padded_by_0", _no_padding)
    for operator in ("Resize", "Pad"):
        for name, axes in {"two_axes": [1, 2], "all_axes_backwards": [3, 2, 1, 0]}.items():
            yield GraphSample(
                "moved", f"transpose_{operator.lower()}_{name}_transpose", partial(_on_axes, operator, axes), opset=18
            )
    yield GraphSample("moved", "transpose_dequantizelinear_of_blocks_transpose", _blocked_scale, opset=21)
