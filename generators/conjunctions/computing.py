"""What computes: integers that only their own width holds, extremes that fill a row or end it, long products."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from epcheck.generators.conjunctions.conjunction import Conjunction, Counted, Drawn, Listed, ints
from epcheck.generators.node import Attribute

INF = math.inf
SUM_BEYOND = {
    "float32": ([2**24, 1], "int32"),
    "int32": ([2**31, 2**31, 3], "int64"),
    "31_bits": ([2**31, 5], "uint32"),
    "float64": ([2**53, 1], "int64"),
}
"""What holds the numbers, and not their sum -> numbers, and their dtype."""

LSTM: Mapping[str, Mapping[str, Attribute]] = {
    "clip": {"clip": 0.3},
    "peepholes": {},
    "coupled_gates": {"input_forget": 1},
}
"""What meets Relu in an LSTM."""


def _sums() -> tuple[Conjunction, ...]:
    return tuple(
        Conjunction("ReduceSum", f"beyond_{name}", (Listed(values), ints(0)), {}, dtype)
        for name, (values, dtype) in SUM_BEYOND.items()
    )


def _rows_of_infinities() -> tuple[Conjunction, ...]:
    return tuple(
        Conjunction(operator, "infinite_row", (Listed([[sign * INF] * 3, [1, 2, 3]]), ints(1)), {}, dtype)
        for operator, sign in (("ReduceMax", -1), ("ReduceMin", 1))
        for dtype in ("float32", "float16", "float64")
    )


NODES = (
    *_sums(),
    Conjunction("ReduceSum", "many_beyond_float64", (Listed([2**41 + 1] * 4097), ints(0)), {}, "int64"),
    Conjunction("ReduceL1", "beyond_float64", (Listed([2**53 + 1, 1]), ints(0)), {}, "int64"),
    Conjunction("ReduceProd", "beyond_float64", (Listed([2**53 + 1, 1]), ints(0)), {}, "int64"),
    Conjunction("ReduceSumSquare", "beyond_float64", (Listed([94906267, 0]), ints(0)), {}, "int64"),
    *_rows_of_infinities(),
    Conjunction("ReduceMax", "greatest_at_the_end_of_1025", (Counted((1025,)), ints(0))),
    Conjunction("ReduceMin", "least_at_the_end_of_1025", (Listed([-float(i) for i in range(1025)]), ints(0))),
    Conjunction("Hardmax", "greatest_at_the_end_of_257", (Counted((1, 257)),), {"axis": -1}),
    *(
        Conjunction(operator, "axes_0_2_4_of_rank_5", (Drawn((2, 3, 2, 3, 2)), ints(0, 2, 4)))
        for operator in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2")
    ),
    *(
        Conjunction(operator, "rows_beyond_16_bits", (Drawn((65537, 2)), ints(1)))
        for operator in ("ReduceSum", "ReduceMean", "ReduceMax")
    ),
    *(
        Conjunction(operator, name, (Listed(row),), {"axis": -1})
        for operator in ("Softmax", "LogSoftmax")
        for name, row in {
            "minus_infinity_first": [[-INF, 1.0, 2.0]],
            "first_vector_of_minus_infinity": [[-INF] * 4 + [1.0, 2.0]],
        }.items()
    ),
    Conjunction("CumSum", "beyond_32_bits", (Listed([2**31, 1, 2**31]), Listed(0, "int64")), {}, "int64"),
    Conjunction("MatMul", "matrix_by_column_of_64", (Drawn((5, 64)), Drawn((64, 1)))),
    Conjunction("MatMul", "row_of_64_by_matrix", (Drawn((1, 64)), Drawn((64, 5)))),
    Conjunction("MatMul", "dot_of_300", (Drawn((300,)), Drawn((300,)))),
    Conjunction("MatMul", "dot_of_512_ones", (Listed(np.ones((1, 512)).tolist()), Listed(np.ones((512, 1)).tolist())),
                {}, "float16"),
    Conjunction("MatMul", "product_beyond_32_bits", (Listed([[2**20, 1]]), Listed([[2**20], [1]])), {}, "int64"),
    Conjunction("MatMul", "product_beyond_float32", (Listed([[16777217, 1]]), Listed([[1], [0]])), {}, "int32"),
    Conjunction("MatMul", "product_beyond_float32", (Listed([[16777217, 1]]), Listed([[1], [0]])), {}, "uint32"),
    Conjunction("MatMulInteger", "zero_points_of_columns_of_a_batch",
                (Drawn((2, 3, 4), 0, 255, "uint8"), Drawn((4, 5), 0, 255, "uint8"), Listed(7, "uint8"),
                 Listed([3, 9, 0, 250, 17], "uint8")), {}, "uint8-uint8"),
    Conjunction("Einsum", "two_sums_in_another_order", (Drawn((2, 3, 4)), Drawn((4, 3, 5))),
                {"equation": "ijk,kjl->il"}),
    Conjunction("Einsum", "sum_beyond_float64", (Listed([2**53, 1]),), {"equation": "i->"}, "int64"),
    Conjunction("Gemm", "row_of_c_and_alpha", (Drawn((3, 5)), Drawn((5, 2)), Drawn((1, 2))), {"alpha": 0.5}),
    Conjunction("Gemm", "both_transposed_tall", (Drawn((3, 5)), Drawn((2, 3))), {"transA": 1, "transB": 1}),
    Conjunction("Gemm", "column_of_c_and_transposed_a", (Drawn((4, 3)), Drawn((4, 5)), Drawn((3, 1))), {"transA": 1}),
    Conjunction("Where", "condition_of_one_in_the_middle",
                (Listed([True, False, False, True, True, False], "bool", (2, 1, 3)), Drawn((2, 4, 3)), Drawn((2, 4,
                3)))),
    Conjunction("IsNaN", "nan_with_a_sign", (Listed([-math.nan, math.nan, -INF, -0.0, 1.0]),)),
    Conjunction("Pow", "negative_base_and_negative_whole_exponent",
                (Listed([-2.0, -0.5, 3.0]), Listed([-3, -2, -1], "int64")), {}, "float32-int64"),
    Conjunction("Sub", "one_number_less_many", (Listed([9]), Listed([3, 9, 0])), {}, "uint8"),
    Conjunction("PRelu", "integers_beyond_float32", (Listed([-16777217, -5]), Listed([1])), {}, "int64"),
    Conjunction("PRelu", "integers_beyond_float32", (Listed([-16777217, -5]), Listed([1])), {}, "int32"),
    Conjunction("LpNormalization", "squares_beyond_float16", (Listed([300.0, 400.0]),), {"axis": 0}, "float16"),
    Conjunction("GRU", "linear_before_reset_and_64_hidden",
                (Drawn((3, 2, 8), -1, 1), Drawn((1, 192, 8), -0.3, 0.3), Drawn((1, 192, 64), -0.1, 0.1)),
                {"hidden_size": 64, "linear_before_reset": 1}, "float32", 2),
    Conjunction("GRU", "linear_before_reset_and_relu",
                (Drawn((3, 2, 3), -1, 1), Drawn((1, 12, 3), -1, 1), Drawn((1, 12, 4), -0.5, 0.5)),
                {"hidden_size": 4, "linear_before_reset": 1, "activations": ("Sigmoid", "Relu")}, "float32", 2),
    Conjunction("GRU", "clip_and_activations",
                (Drawn((3, 2, 3), -3, 3), Drawn((1, 12, 3), -1, 1), Drawn((1, 12, 4), -0.5, 0.5)),
                {"hidden_size": 4, "clip": 0.3, "activations": ("HardSigmoid", "Tanh")}, "float32", 2),
    Conjunction("RNN", "clip_and_relu",
                (Drawn((3, 2, 3), -3, 3), Drawn((1, 4, 3), -1, 1), Drawn((1, 4, 4), -0.5, 0.5)),
                {"hidden_size": 4, "clip": 0.5, "activations": ("Relu",)}, "float32", 2),
    Conjunction("RNN", "two_directions_of_affine_with_other_numbers",
                (Drawn((3, 2, 3), -1, 1), Drawn((2, 4, 3), -1, 1), Drawn((2, 4, 4), -0.5, 0.5)),
                {"hidden_size": 4, "direction": "bidirectional", "activations": ("Affine", "Affine"),
                 "activation_alpha": (0.3, 0.4), "activation_beta": (0.1, 0.9)}, "float32", 2),
    *(
        Conjunction("LSTM", f"{name}_and_relu",
                    (Drawn((3, 2, 3), -1, 1), Drawn((1, 16, 3), -1, 1), Drawn((1, 16, 4), -0.5, 0.5), None, None,
                    None, None,
                     Drawn((1, 12), -1, 1) if name == "peepholes" else None)[: 8 if name == "peepholes" else 3],
                    {"hidden_size": 4, "activations": ("Sigmoid", "Tanh", "Relu"), **attributes}, "float32", 3)
        for name, attributes in LSTM.items()
    ),
)  # fmt: skip
