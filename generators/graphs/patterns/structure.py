"""The structure of graphs: chains, diamonds, dead ends, inner outputs, and what is there twice.

Sources: ONNX Runtime, core/optimizer: common_subexpression_elimination, identity_elimination, graph_transformer_utils,
constant_sharing; core/graph/graph.cc: removal of nodes and initializers that nobody reads.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from epcheck.generators.graphs.graph_sample import BOTH, GraphSample, Samples
from epcheck.generators.graphs.sketch import Sketch

SAME_INPUT: dict[str, tuple[int, dict[str, Any]]] = {
    "Add": (2, {}), "Sub": (2, {}), "Mul": (2, {}), "Div": (2, {}), "Pow": (2, {}), "Mod": (2, {"fmod": 1}),
    "Max": (3, {}), "Min": (3, {}), "Sum": (3, {}), "Mean": (3, {}), "Equal": (2, {}), "Less": (2, {}),
    "GreaterOrEqual": (2, {}), "PRelu": (2, {}), "MatMul": (2, {}), "Gemm": (3, {"transB": 1}),
    "Concat": (3, {"axis": 1}),
    "Einsum": (2, {"equation": "ij,kj->ik"}),
}  # fmt: skip
"""Operators that take one tensor in so many places: operands that a kernel may take for buffers of its own."""


def _chain(operators: tuple[str, ...], shape: tuple[int, ...], sketch: Sketch) -> None:
    sketch.leave(sketch.chain(sketch.input(*shape), *operators))


def _diamond(left: str, right: str, meet: str, sketch: Sketch) -> None:
    value = sketch.node("Neg", sketch.input(3, 5, low=0.5))
    sketch.leave(sketch.node(meet, sketch.node(left, value), sketch.node(right, value)))


def _repeated_node(meet: str, sketch: Sketch) -> None:
    """The same value as both inputs."""
    value = sketch.node("Tanh", sketch.input(3, 5))
    sketch.leave(sketch.node(meet, value, value))


def _shared_input(operator: str, count: int, attributes: dict[str, Any], sketch: Sketch) -> None:
    """A node that reads a graph input in several places."""
    x = sketch.input(4, 4, low=0.5)
    negative = sketch.node("Neg", x)
    sketch.leave(negative, sketch.node(operator, *([x] * count), **attributes))


def _square(sketch: Sketch) -> None:
    """The same value on both sides of a matrix product."""
    value = sketch.node("Tanh", sketch.input(4, 4))
    sketch.leave(sketch.node("MatMul", value, value))


def _alike_nodes(second: str, meet: str, sketch: Sketch) -> None:
    """Two nodes that are one, or differ in operator or order."""
    left, right = sketch.input(3, 5), sketch.input(3, 5)
    first = sketch.node("Sub", left, right)
    other = sketch.node("Sub", *((left, right) if second == "same" else (right, left)))
    sketch.leave(sketch.node(meet, first, other))


def _alike_reductions(other_axes: list[int], sketch: Sketch) -> None:
    """Two nodes that differ in an attribute alone, or not at all."""
    x = sketch.node("Abs", sketch.input(4, 4))
    both = [sketch.node("ReduceMax", x, axes=axes, keepdims=0) for axes in ([1], other_axes)]
    sketch.leave(sketch.node("Sub", sketch.node("Neg", both[0]), both[1]))


def _inner_output(depth: int, sketch: Sketch) -> None:
    """Every value of a chain leaves the graph."""
    value = sketch.input(3, 5)
    for operator in ("Tanh", "Neg", "Relu", "Abs", "Sigmoid")[:depth]:
        value = sketch.node(operator, value)
        sketch.leave(value)


def _dead_end(sketch: Sketch) -> None:
    x = sketch.node("Tanh", sketch.input(3, 5))
    sketch.node("Exp", x)
    sketch.leave(sketch.node("Neg", x))


def _dead_end_of_two(sketch: Sketch) -> None:
    x = sketch.input(3, 5)
    sketch.node("MatMul", sketch.node("Transpose", x, perm=[1, 0]), x)
    sketch.leave(sketch.node("Neg", x))


def _unread(how: str, sketch: Sketch) -> None:
    """An input or an initializer that nobody reads."""
    x = sketch.input(3, 5)
    if how == "input":
        sketch.input(2, 2)
    else:
        sketch.weight(2, 2)
    sketch.leave(sketch.chain(x, "Tanh", "Neg"))


def _unread_output(sketch: Sketch) -> None:
    """Of a node with several outputs, one is read: the second."""
    part = sketch.node("Split", sketch.input(6, 3), sketch.constant([1, 2, 3], "int64"), outputs=3, axis=0)
    sketch.leave(sketch.node("Neg", part.replace("_0", "_1")))


def _indices_alone(sketch: Sketch) -> None:
    values = sketch.node("TopK", sketch.input(3, 7), sketch.constant([3], "int64"), outputs=2)
    sketch.leave(sketch.node("Cast", values.replace("_0", "_1"), to=1))


def _identity(sketch: Sketch) -> None:
    """An input leaves the graph through Identity, beside a node that reads it."""
    x = sketch.input(3, 5)
    sketch.leave(sketch.node("Identity", x), sketch.node("Neg", x))


def _identities(count: int, sketch: Sketch) -> None:
    value = sketch.node("Tanh", sketch.input(3, 5))
    for _ in range(count):
        value = sketch.node("Identity", value)
    sketch.leave(value, sketch.node("Neg", value))


def _shared_weight(operator: str, sketch: Sketch) -> None:
    """One initializer that two nodes read, one of which is fused with what follows."""
    if operator == "Conv":
        x, weight = sketch.input(1, 3, 5, 5), sketch.weight(3, 3, 3, 3)
    else:
        x, weight = sketch.input(4, 4), sketch.weight(4, 4)
    first = sketch.node("Relu", sketch.node(operator, x, weight))
    second = sketch.node(operator, x, weight)
    sketch.leave(sketch.node("Neg", first), sketch.node("Abs", second))


def _weight_changed_once(sketch: Sketch) -> None:
    """A weight that a fusion would change in place, and a second reader of it."""
    x, weight = sketch.input(1, 3, 5, 5), sketch.weight(3, 3, 3, 3)
    scaled = sketch.node("Mul", sketch.node("Conv", x, weight), sketch.weight(3, 1, 1, low=2.0, high=3.0))
    sketch.leave(scaled, sketch.node("Conv", x, weight, strides=[2, 2]))


def _weight_and_bias(sketch: Sketch) -> None:
    """One initializer in two places of a node and in another node."""
    weight = sketch.weight(4, 4)
    product = sketch.node("Gemm", sketch.input(4, 4), weight, weight)
    sketch.leave(sketch.node("Sub", product, weight))


def _weight_is_output(sketch: Sketch) -> None:
    weight = sketch.weight(4, 4)
    sketch.leave(sketch.node("MatMul", sketch.input(3, 4), weight), sketch.node("Identity", weight))


def _equal_constants(sketch: Sketch) -> None:
    """Initializers with equal values, of two shapes: sharing must keep the shapes."""
    x = sketch.input(2, 3)
    total = sketch.node("Add", x, sketch.constant(0.5))
    sketch.leave(sketch.node("Mul", sketch.node("Sub", total, sketch.constant([[0.5]])), sketch.constant([[[0.5]]])))


def _fan(width: int, sketch: Sketch) -> None:
    """One value, many readers, and one sum."""
    value = sketch.node("Tanh", sketch.input(3, 5))
    parts = [sketch.node("Mul", value, sketch.constant(0.25 * (index + 1))) for index in range(width)]
    sketch.leave(sketch.node("Sum", *parts))


def _cpu_between(operator: str, sketch: Sketch) -> None:
    """Relu, an operator that some providers leave to the CPU, and Neg."""
    if operator == "Det":
        value = sketch.node("Det", sketch.node("Relu", sketch.input(2, 3, 3)))
    elif operator == "Compress":
        condition = sketch.constant([True, False, True], "bool")
        value = sketch.node("Compress", sketch.node("Relu", sketch.input(3, 4)), condition, axis=0)
    else:
        value = sketch.node("Unique", sketch.node("Relu", sketch.input(12)), outputs=1)
    sketch.leave(sketch.node("Neg", value))


def _cpu_at_a_side(sketch: Sketch) -> None:
    """A diamond, one side of which may run on the CPU."""
    x = sketch.node("Relu", sketch.input(2, 3, 3))
    determinant = sketch.node("Unsqueeze", sketch.node("Det", x), sketch.constant([1, 2], "int64"))
    sketch.leave(sketch.node("Add", sketch.node("Neg", x), determinant))


def samples() -> Samples:
    """The graphs that are about their structure."""
    for length in (2, 3, 5, 8, 12):
        operators = tuple(("Tanh", "Neg", "Sigmoid", "Abs", "Softsign", "Relu")[index % 6] for index in range(length))
        yield GraphSample("chain", f"elementwise_{length}", partial(_chain, operators, (3, 5)))
        exact = tuple(("Neg", "Abs", "Floor", "Relu")[index % 4] for index in range(length))
        yield GraphSample("chain", f"exact_{length}", partial(_chain, exact, (3, 5)), BOTH)
    for name, shape in {"scalar": (), "length_1": (1,), "rank_5": (2, 1, 3, 1, 2), "length_1025": (1025,)}.items():
        yield GraphSample("chain", f"elementwise_of_{name}", partial(_chain, ("Tanh", "Neg", "Sigmoid"), shape))
    yield GraphSample("chain", "elementwise_of_size_0", partial(_chain, ("Tanh", "Neg", "Relu"), (0, 3)))
    for meet in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Concat"):
        if meet != "Concat":
            yield GraphSample("diamond", f"tanh_abs_{meet.lower()}", partial(_diamond, "Tanh", "Abs", meet))
            yield GraphSample("diamond", f"same_twice_{meet.lower()}", partial(_repeated_node, meet))
    yield GraphSample("diamond", "same_twice_matmul", _square)
    for operator, (count, attributes) in SAME_INPUT.items():
        yield GraphSample("shared", f"input_of_{operator.lower()}", partial(_shared_input, operator, count, attributes))
    for width in (3, 8):
        yield GraphSample("diamond", f"fan_of_{width}", partial(_fan, width))
    for second in ("same", "swapped"):
        for meet in ("Mul", "Sub"):
            yield GraphSample("shared", f"two_nodes_{second}_{meet.lower()}", partial(_alike_nodes, second, meet))
    yield GraphSample("shared", "two_reductions_same", partial(_alike_reductions, [1]))
    yield GraphSample("shared", "two_reductions_of_other_axes", partial(_alike_reductions, [0]))
    for depth in (2, 3, 5):
        yield GraphSample("ends", f"every_value_leaves_{depth}", partial(_inner_output, depth))
    yield GraphSample("ends", "dead_end", _dead_end)
    yield GraphSample("ends", "dead_end_of_two_nodes", _dead_end_of_two)
    yield GraphSample("ends", "unread_input", partial(_unread, "input"))
    yield GraphSample("ends", "unread_initializer", partial(_unread, "initializer"))
    yield GraphSample("ends", "second_output_alone", _unread_output)
    yield GraphSample("ends", "indices_alone", _indices_alone)
    yield GraphSample("ends", "input_passed_on", _identity)
    for count in (1, 3):
        yield GraphSample("ends", f"identities_{count}", partial(_identities, count))
    for operator in ("Conv", "MatMul"):
        yield GraphSample("shared", f"weight_of_two_{operator.lower()}", partial(_shared_weight, operator))
    yield GraphSample("shared", "weight_changed_by_a_fusion", _weight_changed_once)
    yield GraphSample("shared", "weight_is_bias_and_operand", _weight_and_bias)
    yield GraphSample("shared", "weight_leaves_the_graph", _weight_is_output)
    yield GraphSample("shared", "equal_constants_of_several_shapes", _equal_constants)
    for operator in ("Det", "Compress", "Unique"):
        yield GraphSample("between", operator.lower(), partial(_cpu_between, operator), elsewhere=(operator,))
    yield GraphSample("between", "det_at_a_side", _cpu_at_a_side, elsewhere=("Det",))
