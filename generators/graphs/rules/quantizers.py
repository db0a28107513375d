"""Rewrite rules of QuantizeLinear and DequantizeLinear, with each other and with what stands between them."""

from __future__ import annotations

from collections.abc import Iterator

from epcheck.generators.graphs.rewrite_rule import RewriteRule, chain

GROUPS = "optimizer/qdq_transformer/selectors_actions/qdq_selectors.cc"
PROPAGATION = "optimizer/qdq_transformer/qdq_propagation.cc"

REAL, WHOLE = "DequantizeLinear(_, 0.0625, uint8 128)", "QuantizeLinear(_, 0.0625, uint8 128)"
SECOND = "c = QuantizeLinear(b, 0.0625, uint8 128) y = DequantizeLinear(c, 0.0625, uint8 128)"
"""Scales are powers of two, by which quantised numbers are dequantised exactly."""

KEPT = {
    "maxpool": ("uint8[1,2,4,4]", "MaxPool<kernel_shape=[2,2], pads=[1,0,0,1]>(_)"),
    "transpose": ("uint8[2,3,4]", "Transpose<perm=[2,0,1]>(_)"),
    "reshape": ("uint8[2,3,4]", "Reshape(_, [0, -1])"), "slice": ("uint8[2,6]", "Slice(_, [-1], [-7], [1], [-2])"),
    "squeeze": ("uint8[2,1,4]", "Squeeze(_, [1])"),
    "unsqueeze": ("uint8[2,4]", "Unsqueeze(_, [1])"), "gather": ("uint8[3,4]", "Gather<axis=1>(_, [3, -3])"),
    "expand": ("uint8[3,1]", "Expand(_, [3, 4])"), "flatten": ("uint8[2,3,4]", "Flatten<axis=2>(_)"),
    "tile": ("uint8[2,3]", "Tile(_, [2, 1])"), "pad": ("uint8[2,3]", "Pad(_, [1, 0, 0, 2], 0.0)"),
    "relu": ("uint8[3,4]", "Relu(_)"), "clip": ("uint8[3,4]", "Clip(_, -1.0, 2.5)"),
    "depthtospace": ("uint8[1,8,2,3]", "DepthToSpace<blocksize=2>(_)"),
    "resize": ("uint8[1,1,2,3]", "Resize(_, , [1.0, 1.0, 2.0, 3.0])"),
    "reducemax": ("uint8[3,4]", "ReduceMax<axes=[1]>(_)"),
    "where": ("uint8[3,4]", "Where(bool [1, 0, 0, 1], _, 0.5)"), "concat": ("uint8[3,4]", "Concat<axis=1>(_, _)"),
    "cumsum": ("uint8[3,4]", "CumSum(_, 1)"), "neg": ("uint8[3,4]", "Neg(_)"),
    "hardsigmoid": ("uint8[3,4]", "HardSigmoid<alpha=0.25, beta=0.375>(_)"),
    "leakyrelu": ("uint8[3,4]", "LeakyRelu<alpha=0.3>(_)"), "mul": ("uint8[3,4]", "Mul(_, 0.7)"),
    "add": ("uint8[3,4]", "Add(_, 3.0)"),
}  # fmt: skip
"""Name -> type of the quantised input, a node between DequantizeLinear and QuantizeLinear whose results are exact."""


def rules() -> Iterator[RewriteRule]:
    """In a stable order."""
    yield from _keep_groups()
    yield from _join_pairs()
    yield from _quantize_weights()
    yield from _quantize_activations()


def _keep_groups() -> Iterator[RewriteRule]:
    """Groups of DequantizeLinear, a node and QuantizeLinear."""
    for name, (kind, call) in KEPT.items():
        yield chain(
            f"quantized_{name}", PROPAGATION if name in ("transpose", "reshape", "slice", "maxpool", "squeeze",
            "unsqueeze") else GROUPS, f"{kind} q", REAL, call, WHOLE,
            broken={"with_another_zero_point": ("y = QuantizeLinear(b, 0.0625, uint8 128)",
                    "y = QuantizeLinear(b, 0.0625, uint8 3)"),
                    "with_another_scale": ("y = QuantizeLinear(b, 0.0625,", "y = QuantizeLinear(b, 0.1015625,")},
            in_general=name in ("transpose", "maxpool", "relu"),
        )  # fmt: skip
    two = (
        "(uint8[3,4] q, uint8[3,4] r) => (y) {{ a = DequantizeLinear(q, 0.0625, uint8 128) b = DequantizeLinear(r, "
        "{}) c = {} y = QuantizeLinear(c, {}) }}"
    )
    for name, (call, first, last) in {
        "add": ("Add(a, b)", "0.125, uint8 3", "0.1015625, uint8 128"),
        "sub": ("Sub(a, b)", "0.0625, uint8 120", "0.1015625, uint8 77"),
        "mul": ("Mul(a, b)", "0.03125, uint8 99", "0.51171875, uint8 1"),
        "concat": ("Concat<axis=0>(a, b)", "0.25, uint8 77", "0.3515625, uint8 10"),
        "max": ("Max(a, b)", "0.125, uint8 60", "0.1015625, uint8 128"),
        "where": ("Where(bool [1, 0, 0, 1], a, b)", "0.125, uint8 60", "0.1015625, uint8 9"),
        "matmul": ("MatMul(a, b)", "0.03125, uint8 99", "1.51171875, uint8 128"),
        "equal": ("Equal(a, b)", "0.125, uint8 3", ""),
    }.items():  # fmt: skip
        graph = two.format(first, call, last)
        if name == "matmul":
            graph = graph.replace("uint8[3,4] r", "uint8[4,5] r")
        if name == "equal":
            graph = graph.replace("QuantizeLinear(c, )", "Not(c)")
        yield RewriteRule(f"quantized_{name}_of_two", GROUPS, graph, in_general=name in ("add", "concat"))
    yield RewriteRule(
        "quantized_split", GROUPS, "(uint8[5,3] q) => (y, z) { a = DequantizeLinear(q, 0.0625, uint8 128) b, c = "
                "Split<axis=0>(a, [2, 3]) z = QuantizeLinear(c, 0.0625, uint8 128) y = QuantizeLinear(b, 0.0625, "
                "uint8 128) }",
        {"of_two_scales": ("(c, 0.0625,", "(c, 0.1015625,"),
         "of_two_zero_points": ("(c, 0.0625, uint8 128)", "(c, 0.0625, uint8 10)")}, in_general=False,
    )  # fmt: skip
    yield RewriteRule(
        "quantized_argmax", GROUPS, "(uint8[3,7] q) => (y) { a = DequantizeLinear(q, 0.0625, uint8 128) y = "
                "ArgMax<axis=1>(a) }",
        {"with_a_negative_scale_after": ("y = ArgMax", "b = Neg(a) y = ArgMax", ">(a)", ">(b)"),
         "of_rows_with_scales": ("0.0625, uint8 128",
         "[0.5, 0.25, 0.125, 2.0, 1.0, 4.0, 0.0625], uint8 [1, 2, 3, 4, 5, 6, 7]")}, in_general=False,
    )  # fmt: skip


def _join_pairs() -> Iterator[RewriteRule]:
    """QuantizeLinear and DequantizeLinear next to each other."""
    yield chain(
        "dequantize_quantize", "providers/qnn/builder/qnn_node_group/dq_q_fusion.cc", "uint8[3,4] q", REAL, WHOLE,
        broken={"of_another_scale": ("y = QuantizeLinear(a, 0.0625", "y = QuantizeLinear(a, 0.1015625"),
                "of_another_zero_point": ("y = QuantizeLinear(a, 0.0625, uint8 128",
                "y = QuantizeLinear(a, 0.0625, uint8 100"),
                "of_another_type": ("y = QuantizeLinear(a, 0.0625, uint8 128", "y = QuantizeLinear(a, 0.0625, int8 0"),
                "of_columns": ("y = QuantizeLinear(a, 0.0625, uint8 128)",
                "y = QuantizeLinear<axis=1>(a, [0.0625, 0.1015625, 0.25, 0.5], uint8 [128, 0, 3, 255])"),
                "without_zero_point": ("y = QuantizeLinear(a, 0.0625, uint8 128)", "y = QuantizeLinear(a, 0.0625)")},
    )  # fmt: skip
    yield chain(
        "quantize_dequantize", "optimizer/qdq_transformer/qdq_final_cleanup.cc", "float[3,4] x", WHOLE, REAL,
        broken={"of_another_scale": ("y = DequantizeLinear(a, 0.0625", "y = DequantizeLinear(a, 0.125"),
                "of_another_zero_point": ("y = DequantizeLinear(a, 0.0625, uint8 128",
                "y = DequantizeLinear(a, 0.0625, uint8 100"),
                "of_rows": ("y = DequantizeLinear(a, 0.0625, uint8 128)",
                "y = DequantizeLinear<axis=0>(a, [0.0625, 0.125, 0.25], uint8 [128, 0, 3])")},
        values={"x": (0.034, -0.4, 9.0, -9.0, 7.95, -8.01, 1.02)},
    )  # fmt: skip
    yield chain(
        "pair_pair", "optimizer/double_qdq_pairs_remover.cc", "float[3,4] x", WHOLE, REAL, WHOLE, REAL,
        broken={"of_narrower_steps": (SECOND,
                "c = QuantizeLinear(b, 0.03125, uint8 128) y = DequantizeLinear(c, 0.03125, uint8 128)"),
                "of_wider_steps": (SECOND, "c = QuantizeLinear(b, 0.1015625, uint8 128) y = DequantizeLinear(c, "
                        "0.1015625, uint8 128)"),
                "moved": (SECOND, "c = QuantizeLinear(b, 0.0625, uint8 0) y = DequantizeLinear(c, 0.0625, uint8 0)"),
                "with_relu_between": ("c = QuantizeLinear(b,", "d = Relu(b) c = QuantizeLinear(d,")},
        applies={"of_two_types": (SECOND,
                "c = QuantizeLinear(b, 0.0625, int8 0) y = DequantizeLinear(c, 0.0625, int8 0)")},
        values={"x": (0.034, -0.4, 9.0, -9.0, 7.95, -8.01, 1.02)},
    )  # fmt: skip
    for name, call in {"relu": "Relu(_)", "clip": "Clip(_, 0.0, 6.0)"}.items():
        yield chain(
            f"{name}_quantize", f"optimizer/qdq_transformer/{name}_quantizelinear.cc", "float[3,4] x", call,
            "QuantizeLinear(_, 0.0625, uint8 0)",
            broken={"above_zero": ("uint8 0", "uint8 128"), "of_int8": ("uint8 0", "int8 -100"),
                    "of_rows": ("0.0625, uint8 0)", "[0.0625, 0.125, 0.25, 0.5], uint8 [0, 3, 0, 0])"),
                    "narrower": ("QuantizeLinear(a, 0.0625, uint8 0)", "QuantizeLinear(a, 0.015625, int8 -128)"), },
            applies={"without_zero_point": ("0.0625, uint8 0)", "0.0625)")},
            values={"x": (0.53, -0.4, 9.0, -9.0, 7.3, -8.3, 1.03)},
        )  # fmt: skip
    yield chain(
        "cast_quantize", "providers/qnn/builder/qnn_node_group/cast_lone_q_fusion.cc", "int32[3,4] i", "Cast<to=1>(_)",
        "QuantizeLinear(_, 0.5, uint8 128)",
        broken={"of_bool": ("Cast<to=1>(i)", "Cast<to=9>(i)", "QuantizeLinear(a", "QuantizeLinear(t", "y =",
                "t = Cast<to=1>(a) y =")}, values={"i": (5, -7, 70, -90, 1, 0)},
    )  # fmt: skip
    yield chain(
        "quantize_cast", "optimizer/qdq_transformer/qdq_final_cleanup.cc", "float[3,4] x",
        "QuantizeLinear(_, 0.0625, int8 -7)", "Cast<to=6>(_)", broken={"of_uint8": ("int8 -7", "uint8 249")},
        in_general=False,
    )  # fmt: skip


def _quantize_weights() -> Iterator[RewriteRule]:
    """Weights that are dequantised."""
    yield RewriteRule(
        "weights_matmul", "optimizer/qdq_transformer/selectors_actions/qdq_selector_action_transformer.cc",
        "(float[3,4] x) => (y) <int8[4,5] w> { a = DequantizeLinear<axis=1>(w, [0.0625, 0.125, 0.25, 0.5, 1.0]) y = "
        "MatMul(x, a) }",
        {"of_rows": ("<axis=1>(w, [0.0625, 0.125, 0.25, 0.5, 1.0])", "<axis=0>(w, [0.0625, 0.125, 0.25, 0.5])"),
         "of_one_scale": ("<axis=1>(w, [0.0625, 0.125, 0.25, 0.5, 1.0])", "(w, 0.0625)"),
         "from_the_left": ("MatMul(x, a)", "MatMul(a, x)", "float[3,4] x", "float[5,3] x"),
         "transposed": ("y = MatMul(x, a)", "b = Transpose(a) y = MatMul(x, b)", "float[3,4] x", "float[3,5] x"),
         "with_zero_points": ("0.5, 1.0])", "0.5, 1.0], int8 [1, -2, 3, 0, 7])"),
         "read_by_gemm": ("MatMul(x, a)", "Gemm<alpha=0.5>(x, a)")},
    )  # fmt: skip
    yield RewriteRule(
        "weights_matmul_of_blocks", "optimizer/qdq_transformer/selectors_actions/qdq_selectors.cc",
        "(float[3,32] x) => (y) <uint8[32,5] w, float[2,5] p> { a = DequantizeLinear<axis=0, block_size=16>(w, p) y "
        "= MatMul(x, a) }",
        {"of_columns": ("axis=0, block_size=16", "axis=1, block_size=5", "float[2,5] p", "float[32,1] p"),
         "of_8": ("block_size=16", "block_size=8", "float[2,5] p", "float[4,5] p")}, opset=21, in_general=False,
    )  # fmt: skip
    yield RewriteRule(
        "weights_transpose", PROPAGATION,
        "(float[3,4] x) => (y) <int8[4,4] w> { a = DequantizeLinear<axis=0>(w, [0.0625, 0.125, 0.25, 0.5]) b = "
        "Transpose(a) y = MatMul(x, b) }",
        {"of_columns": ("axis=0", "axis=1"), "as_they_are": ("Transpose(a)", "Transpose<perm=[0,1]>(a)")},
        in_general=False,
    )  # fmt: skip
    conv = (
        "(uint8[1,4,5,5] q) => (y) <int8[6,2,3,3] w> { a = DequantizeLinear(q, 0.0625, uint8 128) b = "
        "DequantizeLinear<axis=0>(w, [0.0625, 0.125, 0.25, 0.5, 0.03125, 0.0625]) c = Conv<group=2>(a, b) y = "
        "QuantizeLinear(c, 2.01171875, uint8 128) }"
    )
    yield RewriteRule(
        "quantized_conv_of_channels", GROUPS, conv,
        {"of_input_channels": ("<axis=0>(w, [0.0625, 0.125, 0.25, 0.5, 0.03125, 0.0625])",
         "<axis=1>(w, [0.0625, 0.5])"), "with_relu": ("y = QuantizeLinear(c", "d = Relu(c) y = QuantizeLinear(d"),
         "without_group": ("<group=2>", "", "uint8[1,4,5,5]", "uint8[1,2,5,5]"),
         "as_int8": ("uint8 128) }", "int8 3) }"), "read_by_sigmoid": ("y = QuantizeLinear(c, 2.01171875",
         "d = Sigmoid(c) y = QuantizeLinear(d, 0.00390625")},
    )  # fmt: skip
    yield RewriteRule(
        "quantized_gemm", GROUPS,
        "(uint8[3,4] q) => (y) <int8[5,4] w, int32[5] v> { a = DequantizeLinear(q, 0.0625, uint8 128) b = "
        "DequantizeLinear(w, 0.125, int8 0) d = DequantizeLinear(v, 0.0078125) c = Gemm<transB=1>(a, b, d) y = "
        "QuantizeLinear(c, 1.01171875, uint8 128) }",
        {"with_alpha": ("transB=1", "transB=1, alpha=2.0"), "with_beta": ("transB=1", "transB=1, beta=16.0"),
         "with_bias_of_another_scale": ("0.0078125", "0.25"), "with_weights_zero_point": ("int8 0", "int8 9"),
         "turned": ("transB=1", "transB=1, transA=1", "uint8[3,4] q", "uint8[4,3] q"),
         "without_bias": ("d = DequantizeLinear(v, 0.0078125) ", "", "(a, b, d)", "(a, b)")},
        values={"v": (400, -700, 250, 900, -350)},
    )  # fmt: skip


def _quantize_activations() -> Iterator[RewriteRule]:
    """Activations that are quantised by their own range."""
    yield RewriteRule(
        "dynamic_quantize_matmul", "optimizer/dynamic_quantize_matmul_fusion.cc",
        "(float[3,4] x) => (y) <int8[4,5] w, float[5] v> { a, s, z = DynamicQuantizeLinear(x) b = MatMulInteger(a, w, "
        "z, int8 0) c = Cast<to=1>(b) d = Mul(s, 0.0625) e = Mul(c, d) y = Add(e, v) }",
        {"with_weights_zero_point": ("int8 0", "int8 9"),
         "of_columns": ("Mul(s, 0.0625)", "Mul(s, [0.0625, 0.125, 0.25, 0.5, 1.0])"),
         "without_bias": ("e = Mul(c, d) y = Add(e, v)", "y = Mul(c, d)"),
         "bias_of_rows": ("float[5] v", "float[3,1] v")}, {"without_weights_zero_point": ("z, int8 0", "z")},
        values={"x": (0.34, -0.41, 1.95, -1.2375, 0.765, -0.925, 1.1),  # not close to a tie of their steps of 0.0125
                "w": (64, -63, 17, 5, -31, 48, -7, 22, -56, 33, -19, 60)},  # 7 bits: exact also without VNNI
        special=True, in_general=False,
    )  # fmt: skip
