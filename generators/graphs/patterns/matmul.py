"""Matrix products with what is fused into them, and what only looks so.

Sources: ONNX Runtime, core/optimizer: matmul_add_fusion, gemm_activation_fusion, gemm_sum_fusion,
gemm_transpose_fusion, matmul_transpose_fusion, matmul_scale_fusion, matmul_activation_fusion,
matmul_bn_fusion, attention_fusion.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from epcheck.generators.graphs.graph_sample import GraphSample, Samples
from epcheck.generators.graphs.sketch import Sketch


def _plus(bias: tuple[int, ...], left: tuple[int, ...], is_second: bool, sketch: Sketch) -> None:
    """MatMul and Add: a Gemm where ranks and the bias allow it."""
    product = sketch.node("MatMul", sketch.input(*left), sketch.weight(left[-1], 5))
    added = sketch.weight(*bias)
    sketch.leave(sketch.node("Add", *((product, added) if is_second else (added, product))))


def _gemm(sketch: Sketch, bias: bool = True, **attributes: Any) -> str:
    left = (4, 3) if attributes.get("transA") else (3, 4)
    right = (5, 4) if attributes.get("transB") else (4, 5)
    inputs = [sketch.input(*left), sketch.weight(*right), *([sketch.weight(5)] if bias else [])]
    return sketch.node("Gemm", *inputs, **attributes)


def _activation(operator: str, attributes: dict[str, Any], of_gemm: dict[str, Any], sketch: Sketch) -> None:
    sketch.leave(sketch.node(operator, _gemm(sketch, **of_gemm), **attributes))


def _sum(alpha: float, beta: float, shape: tuple[int, ...], sketch: Sketch) -> None:
    """Gemm without a bias, and Sum: the second term can become the bias."""
    product = _gemm(sketch, bias=False, alpha=alpha, beta=beta)
    sketch.leave(sketch.node("Sum", product, sketch.weight(*shape)))


def _transpose(sides: str, perm: list[int], into: str, sketch: Sketch) -> None:
    """Transpose before MatMul or Gemm. sides: which operands are transposed."""
    rank = len(perm)
    batch = (2,) * (rank - 2)
    shapes = {"left": (*batch, 4, 4), "right": (*batch, 4, 4)}
    operands = [
        sketch.node("Transpose", sketch.input(*shapes[side]), perm=perm)
        if side in sides
        else sketch.input(*shapes[side])
        for side in ("left", "right")
    ]
    sketch.leave(sketch.node(into, *operands))


def _vector_product(sketch: Sketch, batch: tuple[int, ...] = ()) -> None:
    """Transpose before a MatMul whose second operand has one dimension."""
    rank = 2 + len(batch)
    perm = [*range(rank - 2), rank - 1, rank - 2]
    turned = sketch.node("Transpose", sketch.input(*batch, 3, 4), perm=perm)
    sketch.leave(sketch.node("MatMul", turned, sketch.input(3)))


def _scale(factor: float, how: str, where: str, sketch: Sketch) -> None:
    """A product scaled by a constant, before it or after it."""
    left, right, scale = sketch.input(2, 3, 4), sketch.input(2, 4, 5), sketch.constant(factor)
    if where == "before":
        left = sketch.node(how, left, scale)
    product = sketch.node("MatMul", left, right)
    sketch.leave(sketch.node(how, product, scale) if where == "after" else product)


def _row_scales(sketch: Sketch) -> None:
    product = sketch.node("MatMul", sketch.input(2, 3, 4), sketch.input(2, 4, 5))
    sketch.leave(sketch.node("Mul", product, sketch.weight(3, 1)))


def _reshape(sketch: Sketch) -> None:
    """Reshape, Gemm, Reshape: one MatMul of a higher rank."""
    rows = sketch.node("Reshape", sketch.input(2, 3, 4), sketch.constant([-1, 4], "int64"))
    product = sketch.node("Gemm", rows, sketch.weight(4, 5), sketch.weight(5))
    sketch.leave(sketch.node("Reshape", product, sketch.constant([2, 3, 5], "int64")))


def _normalization(sketch: Sketch) -> None:
    """MatMul and BatchNormalization: constants that can be multiplied beforehand."""
    product = sketch.node("MatMul", sketch.input(3, 4), sketch.weight(4, 5))
    positive = partial(sketch.weight, 5, low=0.5, high=1.5)
    sketch.leave(sketch.node("BatchNormalization", product, positive(), sketch.weight(5), sketch.weight(5), positive()))


def _attention(scale: str, mask: bool, sketch: Sketch) -> None:
    """Softmax of scaled products, times values: what transformers have."""
    query, key, value = (sketch.input(1, 2, 3, 4) for _ in range(3))
    scores = sketch.node("MatMul", query, sketch.node("Transpose", key, perm=[0, 1, 3, 2]))
    if scale:
        scores = sketch.node(scale, scores, sketch.constant(2.0 if scale == "Div" else 0.5))
    if mask:
        scores = sketch.node("Add", scores, sketch.constant([[[[0.0, 0.0, -8.0]]]]))
    sketch.leave(sketch.node("MatMul", sketch.node("Softmax", scores, axis=-1), value))


def _perceptron(activation: str, sketch: Sketch) -> None:
    hidden = sketch.node(activation, _gemm(sketch))
    sketch.leave(sketch.node("Gemm", hidden, sketch.weight(5, 2), sketch.weight(2)))


def _second_reader(sketch: Sketch) -> None:
    product = sketch.node("MatMul", sketch.input(3, 4), sketch.weight(4, 5))
    sketch.leave(sketch.node("Add", product, sketch.weight(5)), sketch.node("Neg", product))


def samples() -> Samples:
    """The graphs around a matrix product."""
    for second in (True, False):
        side = "matmul_add" if second else "add_to_matmul"
        yield GraphSample("fusion", f"{side}_row", partial(_plus, (5,), (3, 4), second))
        yield GraphSample("fusion", f"{side}_1_row", partial(_plus, (1, 5), (3, 4), second))
        yield GraphSample("fusion", f"{side}_column", partial(_plus, (3, 1), (3, 4), second))
        yield GraphSample("fusion", f"{side}_matrix", partial(_plus, (3, 5), (3, 4), second))
        yield GraphSample("fusion", f"{side}_scalar", partial(_plus, (), (3, 4), second))
        yield GraphSample("apart", f"{side}_of_rank_3", partial(_plus, (5,), (2, 3, 4), second))
        yield GraphSample("apart", f"{side}_bias_of_rank_3", partial(_plus, (2, 3, 5), (3, 4), second))
        yield GraphSample("apart", f"{side}_of_rank_1", partial(_plus, (5,), (4,), second))
        yield GraphSample("apart", f"{side}_of_one_row", partial(_plus, (3, 5), (1, 4), second))
    yield GraphSample("apart", "matmul_read_twice_add", _second_reader)
    activations: dict[str, dict[str, Any]] = {
        "Relu": {}, "Sigmoid": {}, "Tanh": {}, "LeakyRelu": {"alpha": 0.25}, "Elu": {"alpha": 0.5}, "HardSigmoid": {},
        "Selu": {}, "Softplus": {}, "Softsign": {}, "ThresholdedRelu": {"alpha": 0.0625}, "Abs": {},
    }  # fmt: skip
    for operator, attributes in activations.items():
        name = operator.lower()
        yield GraphSample("fusion", f"gemm_{name}", partial(_activation, operator, attributes, {}))
        yield GraphSample(
            "fusion",
            f"gemm_alpha_beta_{name}",
            partial(_activation, operator, attributes, {"alpha": 0.5, "beta": 0.25}),
        )
        yield GraphSample(
            "fusion", f"gemm_transposed_{name}", partial(_activation, operator, attributes, {"transA": 1, "transB": 1})
        )
    yield GraphSample("fusion", "gemm_sum", partial(_sum, 1.0, 1.0, (3, 5)))
    yield GraphSample("fusion", "gemm_sum_row", partial(_sum, 1.0, 1.0, (5,)))
    yield GraphSample("apart", "gemm_alpha_sum", partial(_sum, 0.5, 0.25, (3, 5)))
    yield GraphSample("apart", "gemm_sum_of_rank_3", partial(_sum, 1.0, 1.0, (2, 3, 5)))
    for sides in ("left", "right", "left_right"):
        yield GraphSample("fusion", f"transposed_{sides}_matmul", partial(_transpose, sides, [1, 0], "MatMul"))
        yield GraphSample("fusion", f"transposed_{sides}_gemm", partial(_transpose, sides, [1, 0], "Gemm"))
        for kind, name, perm in (
            ("fusion", f"transposed_{sides}_matmul_of_rank_3", [0, 2, 1]),
            ("fusion", f"transposed_{sides}_matmul_of_rank_4", [0, 1, 3, 2]),
            ("apart", f"transposed_batch_{sides}_matmul", [1, 0, 3, 2]),
            ("apart", f"transposed_without_rows_{sides}_matmul", [1, 0, 2, 3]),
        ):
            yield GraphSample(kind, name, partial(_transpose, sides, perm, "MatMul"))
    yield GraphSample("apart", "transposed_left_matmul_vector", _vector_product)
    yield GraphSample("apart", "transposed_left_of_rank_3_matmul_vector", partial(_vector_product, batch=(2,)))
    for how in ("Mul", "Div"):
        for where in ("before", "after"):
            yield GraphSample("fusion", f"matmul_{how.lower()}_{where}", partial(_scale, 0.125, how, where))
            yield GraphSample("fusion", f"matmul_{how.lower()}_minus_3_{where}", partial(_scale, -3.0, how, where))
    yield GraphSample("apart", "matmul_mul_rows", _row_scales)
    yield GraphSample("fusion", "reshape_gemm_reshape", _reshape)
    yield GraphSample("fusion", "matmul_batchnormalization", _normalization)
    for scale in ("Div", "Mul", ""):
        for mask in (True, False):
            name = f"attention_{scale.lower() or 'unscaled'}{'_masked' if mask else ''}"
            yield GraphSample("fusion", name, partial(_attention, scale, mask))
    for activation in ("Relu", "Tanh", "Sigmoid"):
        yield GraphSample("chain", f"gemm_{activation.lower()}_gemm", partial(_perceptron, activation))
