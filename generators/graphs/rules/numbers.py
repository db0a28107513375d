"""Rewrite rules of element-wise nodes, casts, reductions and normalizations: joined, or replaced by one operator."""

from __future__ import annotations

from collections.abc import Iterator

from epcheck.generators.graphs.rewrite_rule import ALGEBRA, RewriteRule, chain

NOOP = "optimizer/noop_elimination.cc"
CSE = "optimizer/common_subexpression_elimination.cc"

NAN, INF = float("nan"), float("inf")
NOT_0 = (0.75, -1.25, NAN, INF, -INF, 2.5, -0.5)
SPECIAL = (0.75, -1.25, NAN, INF, -INF, 0.0, 2.5, -0.5)
"""Numbers with which two functions that undo each other elsewhere do not."""

UNDONE: dict[str, tuple[str, str, tuple[float, ...]]] = {
    "exp_log": ("Exp(_)", "Log(_)", (0.75, -1.25, 100.0, -40.0, 3.0, INF, NAN)),
    "log_exp": ("Log(_)", "Exp(_)", (0.75, -1.25, 0.0, INF, 3.0, NAN, 2.5, 0.25)),
    "pow_2_sqrt": ("Pow(_, 2.0)", "Sqrt(_)", NOT_0),
    "sqrt_pow_2": ("Sqrt(_)", "Pow(_, 2.0)", SPECIAL),
    "square_sqrt": ("Mul(_, _)", "Sqrt(_)", NOT_0),
    "pow_half_pow_2": ("Pow(_, 0.5)", "Pow(_, 2.0)", (0.75, -1.25, NAN, INF, 0.0, 2.5)),
    "pow_2_pow_half": ("Pow(_, 2.0)", "Pow(_, 0.5)", NOT_0),
    "neg_neg": ("Neg(_)", "Neg(_)", SPECIAL),
    "neg_abs": ("Neg(_)", "Abs(_)", SPECIAL),
    "abs_neg": ("Abs(_)", "Neg(_)", SPECIAL),
    "abs_relu": ("Abs(_)", "Relu(_)", SPECIAL),
    "relu_abs": ("Relu(_)", "Abs(_)", SPECIAL),
    "relu_relu": ("Relu(_)", "Relu(_)", SPECIAL),
    "neg_relu": ("Neg(_)", "Relu(_)", SPECIAL),
    "exp_relu": ("Exp(_)", "Relu(_)", SPECIAL),
    "reciprocal_reciprocal": ("Reciprocal(_)", "Reciprocal(_)", (0.5, -0.25, 2.0, 8.0, -4.0)),
    "sqrt_reciprocal": ("Sqrt(_)", "Reciprocal(_)", (0.75, 4.0, INF, 2.5, 0.25)),
    "exp_reciprocal": ("Exp(_)", "Reciprocal(_)", (0.75, -1.25, 3.0, -3.0, 0.0)),
    "floor_ceil": ("Floor(_)", "Ceil(_)", SPECIAL),
    "ceil_round": ("Ceil(_)", "Round(_)", (0.5, 1.5, -0.5, 2.5, -2.5, 0.25)),
    "floor_cast": ("Floor(_)", "Cast<to=6>(_)", (0.5, -0.5, -1.25, 2.75, -3.0)),
    "sign_abs": ("Sign(_)", "Abs(_)", SPECIAL),
    "softplus_exp": ("Softplus(_)", "Neg(_)", (0.75, -1.25, 3.0, 30.0, -30.0)),
    "sigmoid_neg": ("Neg(_)", "Sigmoid(_)", (0.75, -1.25, 4.0, -20.0, INF, -INF)),
    "times_0": ("Mul(_, 0.0)", "Add(_, 1.0)", SPECIAL),
    "plus_0": ("Add(_, 0.0)", "Reciprocal(_)", (0.5, -0.25, 2.0, -4.0)),
    "power_1": ("Pow(_, 1.0)", "Abs(_)", SPECIAL),
    "power_0": ("Pow(_, 0.0)", "Neg(_)", SPECIAL),
    "self_sub": ("Sub(_, _)", "Abs(_)", SPECIAL),
    "self_div": ("Div(_, _)", "Neg(_)", SPECIAL),
    "min_max": ("Min(_, 0.5)", "Max(_, -0.75)", SPECIAL),
    "min_max_crossed": ("Min(_, -0.75)", "Max(_, 0.5)", SPECIAL),
    "max_min": ("Max(_, -0.75)", "Min(_, 0.5)", SPECIAL),
    "max_min_crossed": ("Max(_, 0.5)", "Min(_, -0.75)", SPECIAL),
    "max_max_of_rows": ("Max(_, [[0.5], [-0.5]])", "Max(_, [-1.0, 0.0, 1.0, 0.25])", SPECIAL),
    "relu_min_6": ("Relu(_)", "Min(_, 6.0)", (0.75, -1.25, 8.0, NAN, INF, -INF)),
    "clip_clip_crossed": ("Clip(_, 0.0, 1.0)", "Clip(_, 2.0, 3.0)", SPECIAL),
    "clip_of_crossed_limits": ("Clip(_, 1.0, -1.0)", "Neg(_)", SPECIAL),
    "clip_relu": ("Clip(_, -0.5, 0.5)", "Relu(_)", SPECIAL),
    "clip_without_minimum_relu": ("Clip(_, , 0.5)", "Relu(_)", SPECIAL),
    "clip_below_0_relu": ("Clip(_, -2.0, -1.0)", "Relu(_)", SPECIAL),
    "relu_clip_without_minimum": ("Relu(_)", "Clip(_, , 0.5)", SPECIAL),
    "leakyrelu_relu": ("LeakyRelu<alpha=-0.5>(_)", "Relu(_)", SPECIAL),
    "leakyrelu_leakyrelu": ("LeakyRelu<alpha=0.5>(_)", "LeakyRelu<alpha=0.25>(_)", SPECIAL),
    "isnan_not": ("IsNaN(_)", "Not(_)", SPECIAL),
    "less_not": ("Less(_, 0.0)", "Not(_)", SPECIAL),
    "greaterorequal_not": ("GreaterOrEqual(_, 0.75)", "Not(_)", SPECIAL),
    "equal_self_not": ("Equal(_, _)", "Not(_)", SPECIAL),
    "isinf_cast": ("IsInf<detect_negative=0>(_)", "Cast<to=6>(_)", SPECIAL),
    "add_add": ("Add(_, [0.5, -0.25, 1.5, -1.0])", "Add(_, [[0.125], [2.0]])", ()),
    "mul_mul": ("Mul(_, [0.5, -0.25, 1.5, -1.0])", "Mul(_, [[0.125], [2.0]])", ()),
    "mul_mul_beyond_the_range": ("Mul(_, 1e30)", "Mul(_, 1e-30)", (1.5, -2.5, 3e9, -1e20, 0.25)),
    "add_mul": ("Add(_, [0.5, -0.25, 1.5, -1.0])", "Mul(_, [[0.125], [2.0]])", ()),
    "mul_add": ("Mul(_, [0.5, -0.25, 1.5, -1.0])", "Add(_, [[0.125], [2.0]])", ()),
    "sub_from_sub_from": ("Sub(1.5, _)", "Sub(0.25, _)", ()),
    "div_div": ("Div(_, [[0.5], [-0.25]])", "Div(4.0, _)", (0.75, -1.25, 2.0, 8.0)),
    "mul_div": ("Mul(_, 3.0)", "Div(_, 3.0)", SPECIAL),
    "div_sqrt": ("Sqrt(_)", "Div(1.0, _)", (0.75, 4.0, 2.5, 0.25)),
    "erf_neg": ("Neg(_)", "Erf(_)", (0.75, -1.25, 3.0, -0.125, INF, -INF)),
}  # fmt: skip
"""Name, two nodes, and numbers for which each wrong idea of the two has another answer."""

INTEGERS: dict[str, tuple[str, str, str, tuple[int, ...]]] = {
    "div_mul": ("int32", "Div(_, int32 3)", "Mul(_, int32 3)", (7, -7, 8, 9, -2, 1)),
    "div_div": ("int64", "Div(_, 3)", "Div(_, 2)", (7, -7, 8, 17, -17, 5)),
    "neg_abs": ("int32", "Neg(_)", "Abs(_)", (7, -7, 2**31 - 1, 0)),
    "mod_mod": ("int32", "Mod(_, int32 7)", "Mod(_, int32 -3)", (7, -7, 8, 20, -20, 5)),
    "shift": ("uint8", 'BitShift<direction="LEFT">(_, uint8 3)', 'BitShift<direction="RIGHT">(_, uint8 3)',
    (255, 7, 32, 129)),
    "relu_clip": ("int32", "Max(_, int32 0)", "Min(_, int32 -3)", (7, -7, 8, -2)),
    "not_not": ("bool", "Not(_)", "Not(_)", (0, 1, 1)),
    "cast_and": ("bool", "Cast<to=9>(_)", "Or(_, bool [1, 0, 0, 1])", (0, 1, 1, 0)),
}  # fmt: skip
"""The same of other types."""

CASTS: dict[str, tuple[str, tuple[str, ...], tuple[float, ...]]] = {
    "int32_int8_int32": ("int32", ("3", "6"), (0, 127, -128, 128, 300, -129, 70000)),
    "int32_uint8_int32": ("int32", ("2", "6"), (0, 127, 255, 256, 300, -1, 70000)),
    "int64_int32_int64": ("int64", ("6", "7"), (0, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**40 + 5)),
    "int32_bool_int32": ("int32", ("9", "6"), (0, -1, 2, 256, 70000)),
    "uint8_int8_int32": ("uint8", ("3", "6"), (0, 127, 128, 255)),
    "float_int32_float": ("float", ("6", "1"), (0.5, -0.5, 1.75, -1.75, 2.0, 1e6)),
    "float_bool_float": ("float", ("9", "1"), (0.0, 0.25, -0.25, 3.0, 1e-30)),
    "float_float16_float": ("float", ("10", "1"), (0.5, 1e-9, 70000.0, -65520.0, 2048.0, NAN, INF)),
"float_double_float": ("float", ("11", "1"), (0.1, 1 / 3, 1e-6, 70000.0, NAN)),
"float_int64_bool_int32": ("float", ("7", "9", "6"), (0.5, -0.5, 1.75, 0.0, 3.0)),
}  # fmt: skip
"""Name -> element type, TensorProto.DataType of each cast, and numbers that some cast does not keep."""

ISLANDS = {
    "add": ("Add(_, _)", (40000.0, -40000.0, 0.125, 1000.0)),
    "reducesum": ("ReduceSum(_, [1])", (40000.0, 20000.0, 30000.0, 100.0)),
    "transpose": ("Transpose(_)", (70000.0, 0.25, 2048.0, -3.0)),
    "concat": ("Concat<axis=0>(_, _)", (0.25, -70000.0, 2048.0, -3.0)),
    "relu": ("Relu(_)", (0.25, -0.25, NAN, 70000.0)),
}
"""A node in float16 between casts from and to float32, with results beyond its range."""

PAIRS: dict[str, tuple[str, str, str]] = {
    "transpose": ("float[2,3,4] x", "Transpose<perm=[1,2,0]>(x)", "Transpose<perm=[2,0,1]>(x)"),
    "leakyrelu": ("float[2,4] x", "LeakyRelu<alpha=0.5>(x)", "LeakyRelu<alpha=0.25>(x)"),
    "leakyrelu_default": ("float[2,4] x", "LeakyRelu<alpha=0.5>(x)", "LeakyRelu(x)"),
    "elu": ("float[2,4] x", "Elu<alpha=0.5>(x)", "Elu(x)"),
    "cast": ("float[2,4] x", "Cast<to=6>(x)", "Cast<to=7>(x)"),
    "reducesum_keepdims": ("float[2,4] x", "ReduceSum<keepdims=0>(x, [1])", "ReduceSum<keepdims=1>(x, [1])"),
    "reducesum_axes": ("float[3,3] x", "ReduceSum(x, [1])", "ReduceSum(x, [0])"),
    "reducemean_axes": ("float[3,3] x", "ReduceMean<axes=[1]>(x)", "ReduceMean<axes=[0]>(x)"),
    "softmax_axis": ("float[3,3] x", "Softmax<axis=1>(x)", "Softmax<axis=0>(x)"),
    "concat_axis": ("float[3,3] x", "Concat<axis=1>(x, x)", "Concat<axis=0>(x, x)"),
    "gemm_transposed": ("float[3,3] x", "Gemm<transB=1>(x, x)", "Gemm(x, x)"),
    "gemm_alpha": ("float[3,3] x", "Gemm<alpha=0.5>(x, x)", "Gemm(x, x)"),
    "slice_ends": ("float[4,3] x", "Slice(x, [0], [2])", "Slice(x, [0], [3])"),
    "topk_smallest": ("float[7] x", "TopK<largest=1>(x, [3])", "TopK<largest=0>(x, [3])"),
    "argmax_last": ("float[4] x", "ArgMax<select_last_index=1>(x)", "ArgMax<select_last_index=0>(x)"),
    "cumsum_exclusive": ("float[7] x", "CumSum<exclusive=1>(x, 0)", "CumSum<exclusive=0>(x, 0)"),
    "cumsum_reverse": ("float[7] x", "CumSum<reverse=1>(x, 0)", "CumSum(x, 0)"),
    "pad_mode": ("float[4,3] x", 'Pad<mode="reflect">(x, [1, 1, 0, 0])', 'Pad<mode="edge">(x, [1, 1, 0, 0])'),
    "pad_value": ("float[4,3] x", "Pad(x, [1, 1, 0, 0], 0.5)", "Pad(x, [1, 1, 0, 0])"),
    "maxpool_pads": ("float[1,2,4,4] x", "MaxPool<kernel_shape=[2,2], pads=[1,0,0,1]>(x)",
    "MaxPool<kernel_shape=[2,2], pads=[0,1,1,0]>(x)"),
    "averagepool_pads": (
        "float[1,2,4,4] x", "AveragePool<kernel_shape=[2,2], pads=[1,1,0,0], count_include_pad=1>(x)",
        "AveragePool<kernel_shape=[2,2], pads=[1,1,0,0]>(x)",
    ),
    "gather_axis": ("float[3,3] x", "Gather<axis=1>(x, [2, 0])", "Gather<axis=0>(x, [2, 0])"),
    "gather_indices": ("float[3,3] x", "Gather(x, [2, 0])", "Gather(x, [0, 2])"),
    "split_sizes": ("float[5] x", "Slice(x, [0], [2])", "Slice(x, [0], [2], [0], [1])"),
    "clip_limits": ("float[2,4] x", "Clip(x, -0.5)", "Clip(x, , -0.5)"),
    "sub_order": ("float[2,4] x, float[2,4] z", "Sub(x, z)", "Sub(z, x)"),
    "constants": ("float[2,4] x", "Add(x, 0.5)", "Add(x, [0.5, 0.5, 0.5, 0.25])"),
    "signs_of_0": ("float[2,4] x", "Div(p, 0.0)", "Div(p, -0.0)"),
    "depthtospace_mode": ("float[1,8,2,3] x", 'DepthToSpace<blocksize=2, mode="DCR">(x)',
    'DepthToSpace<blocksize=2, mode="CRD">(x)'),
    "resize_mode": ("float[1,1,3,4] x", 'Resize<mode="nearest">(x, , [1.0, 1.0, 2.0, 2.0])',
    'Resize<mode="linear">(x, , [1.0, 1.0, 2.0, 2.0])'),
    "row_and_column": ("float[3,3] x", "Mul(x, [0.5, -1.0, 2.0])", "Mul(x, [[0.5], [-1.0], [2.0]])"),
    "constantofshape_value": ("float[3] x", "ConstantOfShape<value=float[1] {0.5}>([3])", "ConstantOfShape([3])"),
}  # fmt: skip
"""Two nodes that differ in an attribute or a constant alone: they are not one."""

GELU = "d = Div(x, 1.4142135381698608) f = Erf(d) a = Add(f, 1.0) m = Mul(x, a) y = Mul(m, 0.5)"
FAST_GELU = (
    "b = Pow(x, 3.0) c = Mul(b, 0.044714998453855515) d = Add(x, c) e = Mul(d, 0.7978845834732056) f = Tanh(e) g "
    "= Add(f, 1.0)"
)
LAYER_NORMALIZATION = (
    "m = ReduceMean<axes=[-1]>(x) d = Sub(x, m) q = Pow(d, 2.0) v = ReduceMean<axes=[-1]>(q) e = Add(v, 0.001) "
    "r = Sqrt(e) n = Div(d, r) s = Mul(n, p) y = Add(s, w)"
)
"""Nodes of graphs below."""


def rules() -> Iterator[RewriteRule]:
    """In a stable order."""
    for name, (first, second, numbers) in UNDONE.items():
        yield chain(
            name, ALGEBRA, "float[2,4] x", first, second,
            values={"x": numbers} if numbers else {}, special=True,
                in_general=name in ("neg_neg", "relu_min_6", "exp_log", "mul_add"),
        )  # fmt: skip
    for name, (kind, first, second, whole) in INTEGERS.items():
        yield chain(
            f"{name}_of_{kind}", ALGEBRA, f"{kind}[2,4] x", first, second, values={"x": whole}, in_general=False
        )
    yield from _join_casts()
    for name, (entering, first, second) in PAIRS.items():
        if name == "signs_of_0":
            entering = "float[2,4] p"
        i, j = (", i", ", j") if first.startswith("TopK") else ("", "")
        graph = f"({entering}) => (y, b) {{ y{i} = {first} b{j} = {second} }}"
        yield RewriteRule(f"alike_{name}", CSE, graph, special=name == "signs_of_0", in_general=False)
    yield from _choose()
    yield from _reduce()
    yield from SOFTMAXES
    yield from ACTIVATIONS
    yield from NORMALIZATIONS


def _join_casts() -> Iterator[RewriteRule]:
    """Casts after each other, and around a node."""
    for name, (kind, types, numbers) in CASTS.items():
        casts = [f"Cast<to={each}>(_)" for each in types]
        yield chain(
            f"cast_{name}", "optimizer/cast_chain_elimination.cc", f"{kind}[2,4] x", *casts, values={"x": numbers},
            special=True, in_general=name == "float_float16_float",
        )  # fmt: skip
    for name, (call, numbers) in ISLANDS.items():
        yield chain(
            f"float16_{name}", "optimizer/insert_cast_transformer.cc", "float[2,4] x", "Cast<to=10>(_)", call,
            "Cast<to=1>(_)",
            values={"x": numbers}, special=True, in_general=name == "add",
        )  # fmt: skip


def _choose() -> Iterator[RewriteRule]:
    """Where and comparisons."""
    yield RewriteRule(
        "not_where", "optimizer/not_where_fusion.cc",
        "(bool[2,4] k, float[2,4] x, float[2,4] z) => (y) { n = Not(k) y = Where(n, x, z) }",
        {"of_comparison": ("bool[2,4] k", "float[2,4] k", "Not(k)", "Greater(k, x)"),
         "of_a_row": ("bool[2,4] k", "bool[2,1] k"),
         "twice": ("n = Not(k)", "m = Not(k) n = Not(m)"), "of_two_readers": ("y = Where(n, x, z)",
         "t = Where(n, x, z) y = Where(n, t, x)"),
         "of_one_tensor": ("Where(n, x, z)", "Where(n, x, x)")}, values={"x": SPECIAL}, special=True,
    )  # fmt: skip
    yield RewriteRule(
        "where_softmax", "optimizer/attention_fusion.cc",
        "(bool[3,4] k, float[2,3,4] x) => (y) { a = Where(k, x, -Infinity) y = Softmax<axis=-1>(a) }",
        {"finite": ("-Infinity", "-5.0"), "of_the_others": ("(k, x, -Infinity)", "(k, -Infinity, x)"),
         "of_axis_1": ("axis=-1", "axis=1", "bool[3,4] k", "bool[2,3,4] k"),
         "of_rows": ("bool[3,4] k", "bool[3,1] k", "-Infinity", "-1.5"), "of_0": ("-Infinity", "0.0")},
        values={"k": (1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1)}, special=True,
    )  # fmt: skip
    yield RewriteRule(
        "where_of_a_mask_add_softmax", "optimizer/bias_softmax_fusion.cc",
        "(bool[1,1,1,4] k, float[1,2,3,4] x) => (y) { m = Where(k, 0.0, -10000.0) a = Add(x, m) y = "
        "Softmax<axis=-1>(a) }",
        {"the_other_way": ("0.0, -10000.0", "-10000.0, 0.0"), "of_small_numbers": ("-10000.0", "-1.0")},
         values={"k": (1, 0, 1, 1)}, special=True,
        in_general=False,
    )  # fmt: skip
    for name, call in {
        "greater": "Greater(x, z)",
        "less": "Less(x, z)",
        "greaterorequal": "GreaterOrEqual(x, z)",
    }.items():
        yield RewriteRule(
            f"{name}_where", ALGEBRA, f"(float[2,4] x, float[2,4] z) => (y) {{ k = {call} y = Where(k, x, z) }}",
            {"the_other_way": ("Where(k, x, z)", "Where(k, z, x)")},
            values={"x": SPECIAL, "z": (0.5, NAN, 1.0, -1.0, -INF, 0.125, 2.5)}, special=True, in_general=False,
        )  # fmt: skip
    yield RewriteRule(
        "relu_by_where", ALGEBRA, "(float[2,4] x) => (y) { k = Greater(x, 0.0) y = Where(k, x, 0.0) }",
        {"above_1": ("Greater(x, 0.0)", "Greater(x, 1.0)"), "or_a_quarter": ("Where(k, x, 0.0)", "Where(k, x, 0.25)"),
         "the_other_way": ("Where(k, x, 0.0)", "Where(k, 0.0, x)"), "of_less": ("Greater", "Less")},
        values={"x": SPECIAL}, special=True, in_general=False,
    )  # fmt: skip
    yield RewriteRule(
        "isnan_where", ALGEBRA, "(float[2,4] x) => (y) { k = IsNaN(x) y = Where(k, 0.5, x) }",
        {"keeps": ("(k, 0.5, x)", "(k, x, 0.5)"), "isinf": ("IsNaN", "IsInf")}, values={"x": SPECIAL}, special=True,
         in_general=False,
    )  # fmt: skip
    yield RewriteRule(
        "equal_where", ALGEBRA, "(int64[2,4] i, float[2,4] x) => (y) { k = Equal(i, 3) n = Cast<to=1>(k) y = Mul(x, "
                "n) }",
        {"by_where": ("Mul(x, n)", "Where(k, n, x)")}, values={"i": (3, 1, 3, 0, -3)}, in_general=False,
    )  # fmt: skip


def _reduce() -> Iterator[RewriteRule]:
    """Reductions with their neighbours."""
    for first in ("ReduceMax", "ReduceMean", "ReduceL1", "ReduceProd"):
        yield chain(
            f"{first.lower()}_twice", "openvino: common_optimizations/reduce_merge.cpp", "float[2,3,4] x",
            f"{first}<axes=[2], keepdims=0>(_)", f"{first}<axes=[1], keepdims=0>(_)",
            broken={"of_kept": ("axes=[2], keepdims=0", "axes=[2], keepdims=1"), "before": ("axes=[2]", "axes=[0]"),
                    "of_another": (f"y = {first}", "y = ReduceMin")},
            in_general=False,
        )  # fmt: skip
    yield chain(
        "reducesum_reducesum", "openvino: common_optimizations/reduce_merge.cpp", "float[2,3,4] x",
        "ReduceSum<keepdims=0>(_, [2])", "ReduceSum<keepdims=0>(_, [1])",
        broken={"before": ("[2])", "[0])"), "of_kept": ("keepdims=0>(x", "keepdims=1>(x"),
                "mean_after": ("ReduceSum<keepdims=0>(a, [1])", "ReduceMean<axes=[1]>(a)")},
    )  # fmt: skip
    yield chain(
        "reducesum_div", ALGEBRA, "float[2,3,4] x", "ReduceSum(_, [2])",
        "Div(_, 4.0)",
        broken={"by_another": ("4.0", "3.0"), "of_two_axes": ("[2])", "[1, 2])")}, in_general=False,
    )  # fmt: skip
    for name, calls in {
        "logsumexp": ("Exp(_)", "ReduceSum(_, [1])", "Log(_)"), "l2": ("Mul(_, _)", "ReduceSum(_, [1])", "Sqrt(_)"),
        "l1": ("Abs(_)", "ReduceSum(_, [1])", "Neg(_)"), "sumsquare": ("Pow(_, 2.0)", "ReduceSum(_, [1])", "Neg(_)"),
        "logsum": ("Abs(_)", "ReduceSum(_, [1])", "Log(_)"),
    }.items():  # fmt: skip
        yield chain(
            f"reduce_{name}", ALGEBRA, "float[2,3,4] x", *calls,
            broken={"of_two_axes": ("[1])", "[1, 2])"), "dropped": ("ReduceSum(", "ReduceSum<keepdims=0>(")},
                    in_general=False,
        )  # fmt: skip


SOFTMAXES = (
    RewriteRule(
        "softmax_written_out", "openvino: common_optimizations/softmax_fusion.cpp",
        "(float[3,3,3] x) => (y) { m = ReduceMax<axes=[2]>(x) s = Sub(x, m) e = Exp(s) t = ReduceSum(e, [2]) y = "
        "Div(e, t) }",
        {"of_another_maximum": ("axes=[2]", "axes=[1]"), "of_another_sum": ("(e, [2])", "(e, [1])"),
         "of_another_axis": ("axes=[2]", "axes=[1]", "(e, [2])", "(e, [1])"),
         "of_two_axes": ("axes=[2]", "axes=[1,2]", "(e, [2])", "(e, [1, 2])"),
         "the_other_way": ("Div(e, t)", "Div(t, e)"), "dropped": ("ReduceSum(e", "ReduceSum<keepdims=0>(e")},
        also=("float64",),
    ),
    RewriteRule(
        "shift_softmax", ALGEBRA,
        "(float[3,3,3] x) => (y) { m = ReduceMax<axes=[2]>(x) s = Sub(x, m) y = Softmax<axis=2>(s) }",
        {"of_another_maximum": ("axes=[2]", "axes=[1]"), "of_another_axis": ("axis=2", "axis=1"),
         "the_other_way": ("Sub(x, m)", "Sub(m, x)"), "dropped": ("axes=[2]", "axes=[2], keepdims=0")},
        in_general=False,
    ),
    chain(
        "softmax_log", ALGEBRA, "float[3,3] x", "Softmax<axis=1>(_)",
        "Log(_)",
        broken={"of_axis_0": ("axis=1", "axis=0")}, in_general=False,
    ),
    chain(
        "scale_softmax", "providers/qnn/builder/qnn_node_group/scale_softmax_fusion.cc", "float[2,3,4] x",
        "Mul(_, 0.5)", "Softmax<axis=-1>(_)",
        broken={"of_a_vector": ("0.5", "[0.5, 2.0, -1.0, 0.25]"), "of_axis_1": ("axis=-1", "axis=1"),
                "minus_2": ("0.5", "-2.0")}, applies={"by_div": ("Mul(x, 0.5)", "Div(x, 0.5)"),
                "first": ("(x, 0.5)", "(0.5, x)")},
    ),
    chain(
        "softmax_softmax", "openvino: common_optimizations/softmax_fusion.cpp", "float[3,3] x", "Softmax<axis=1>(_)",
        "Softmax<axis=1>(_)",
        broken={"of_axis_0": ("y = Softmax<axis=1>", "y = Softmax<axis=0>")}, in_general=False,
    ),
    RewriteRule(
        "mean_sub", "openvino: common_optimizations/mvn_fusion.cpp",
        "(float[3,3,3] x) => (y) { m = ReduceMean<axes=[2]>(x) y = Sub(x, m) }",
        {"of_another_axis": ("axes=[2]", "axes=[0]"), "the_other_way": ("(x, m)", "(m, x)"),
         "dropped": ("axes=[2]", "axes=[2], keepdims=0")}, in_general=False,
    ),
)  # fmt: skip
"""Softmax with its neighbours, and as several nodes."""


ACTIVATIONS = (
    RewriteRule(
        "swish", "optimizer/quick_gelu_fusion.cc",
        "(float[2,3,4] x, float[2,3,4] z) => (y) { s = Sigmoid(x) y = Mul(x, s) }",
        {"of_another_tensor": ("Mul(x, s)", "Mul(z, s)"), "squared": ("Mul(x, s)", "Mul(s, s)")},
         {"the_other_way": ("(x, s)", "(s, x)")},
    ),
    RewriteRule(
        "quick_gelu", "optimizer/quick_gelu_fusion.cc",
        "(float[2,3,4] x) => (y) { a = Mul(x, 1.702) s = Sigmoid(a) y = Mul(x, s) }",
        {"of_a_vector": ("1.702", "[1.702, 1.0, 2.0, 0.5]"), "of_higher_rank": ("1.702", "[[[[1.702]]]]"),
         "of_the_product": ("Mul(x, s)", "Mul(a, s)")},
        also=("float64",),
    ),
    RewriteRule(
        "hardswish", "openvino: common_optimizations/hswish_fusion.cpp",
        "(float[2,3,4] x) => (y) { a = Add(x, 3.0) c = Clip(a, 0.0, 6.0) m = Mul(x, c) y = Div(m, 6.0) }",
        {"plus_1": ("3.0", "1.0"), "up_to_4": ("6.0) m", "4.0) m"), "by_3": ("m, 6.0", "m, 3.0"),
         "from_1": ("0.0, 6.0", "1.0, 6.0"), "of_the_sum": ("Mul(x, c)", "Mul(a, c)")},
        values={"x": (-4.1, -2.53, -1.07, 0.51, 1.53, 2.77, 3.51, 7.3)},
        also=("float64",),
    ),
    RewriteRule(
        "hardsigmoid_mul", "providers/qnn/builder/qnn_node_group/hardsigmoid_mul_fusion.cc",
        "(float[2,3,4] x, float[2,3,4] z) => (y) { h = HardSigmoid<alpha=0.1666666716, beta=0.5>(x) y = Mul(x, h) }",
        {"of_the_usual_alpha": ("<alpha=0.1666666716, beta=0.5>", ""), "of_beta_1": ("beta=0.5", "beta=1.0"),
         "of_another_tensor": ("Mul(x, h)", "Mul(z, h)")},
        values={"x": (-4.0, -2.75, -1.0, 0.5, 1.5, 2.75, 3.5, 7.0)},
    ),
    RewriteRule(
        "mish", "openvino: common_optimizations/mish_fusion.cpp",
        "(float[2,3,4] x) => (y) { s = Softplus(x) t = Tanh(s) y = Mul(x, t) }",
        {"of_softsign": ("Softplus", "Softsign"), "of_the_inner": ("Mul(x, t)", "Mul(s, t)")}, in_general=False,
    ),
    RewriteRule(
        "softplus", "openvino: common_optimizations/softplus_fusion.cpp",
        "(float[2,4] x) => (y) { e = Exp(x) a = Add(e, 1.0) y = Log(a) }",
        {"plus_2": ("1.0", "2.0")}, in_general=False,
    ),
    RewriteRule(
        "sigmoid", ALGEBRA,
        "(float[2,4] x) => (y) { n = Neg(x) e = Exp(n) a = Add(e, 1.0) y = Div(1.0, a) }",
        {"of_the_opposite": ("Neg(x)", "Abs(x)"), "plus_2": ("(e, 1.0)", "(e, 2.0)"),
         "two_over": ("(1.0, a)", "(2.0, a)")}, in_general=False,
    ),
    RewriteRule(
        "gelu", "optimizer/gelu_fusion.cc", f"(float[2,3,4] x, float[2,3,4] z) => (y) {{ {GELU} }}",
        {"of_another_tensor": ("Mul(x, a)", "Mul(z, a)"), "of_1_41": ("1.4142135381698608", "1.41"),
         "minus_1": ("Add(f, 1.0)", "Sub(f, 1.0)"),
         "of_a_vector": ("m, 0.5", "m, [0.5, 0.5, 0.5, 0.25]"), "of_higher_rank": ("m, 0.5", "m, [[[[0.5]]]]"),
         "of_tanh": ("Erf", "Tanh")},
        {"multiplied": ("Div(x, 1.4142135381698608)", "Mul(x, 0.7071067690849304)")},
        also=("float64",),
    ),
    RewriteRule(
        "bias_gelu", "optimizer/bias_gelu_fusion.cc",
        f"(float[2,3,4] t) => (y) <float[4] w> {{ x = Add(t, w) {GELU} }}",
        {"of_rows": ("float[4] w", "float[3,1] w"), "of_a_scalar": ("float[4] w", "float[1] w"),
         "of_rank_2": ("float[4] w", "float[3,4] w"),
         "of_higher_rank": ("float[4] w", "float[1,1,1,4] w"), "of_two_biases": ("Mul(x, a)", "Mul(t, a)"),
         "subtracted": ("Add(t, w)", "Sub(t, w)")},
        {"first": ("(t, w)", "(w, t)")},
        also=("float64",),
    ),
    RewriteRule(
        "fast_gelu", "optimizer/fast_gelu_fusion.cc",
        f"(float[2,3,4] x, float[2,3,4] z) => (y) {{ {FAST_GELU} h = Mul(x, 0.5) y = Mul(h, g) }}",
        {"of_squares": ("3.0", "2.0"), "of_another_root": ("0.7978845834732056", "0.75"),
         "of_another_tensor": ("Mul(x, 0.5)", "Mul(z, 0.5)"),
         "of_another_sum": ("Add(x, c)", "Add(z, c)"), "plus_2": ("(f, 1.0)", "(f, 2.0)"),
         "of_a_third": ("(x, 0.5)", "(x, 0.333)")},
        also=("float64",),
    ),
)  # fmt: skip
"""Activations as several nodes."""


NORMALIZATIONS = (
    RewriteRule(
        "layer_normalization", "optimizer/layer_norm_fusion.cc",
        f"(float[4,4,4] x, float[4,4,4] z) => (y) <float[4] p, float[4] w> {{ {LAYER_NORMALIZATION} }}",
        {"of_another_mean": ("ReduceMean<axes=[-1]>(x)", "ReduceMean<axes=[0]>(x)"),
         "of_another_variance": ("ReduceMean<axes=[-1]>(q)", "ReduceMean<axes=[1]>(q)"),
         "of_two_axes": ("ReduceMean<axes=[-1]>(x)", "ReduceMean<axes=[1,2]>(x)", "ReduceMean<axes=[-1]>(q)",
         "ReduceMean<axes=[1,2]>(q)"),
         "of_cubes": ("2.0", "3.0", "e = Add(v, 0.001)", "t = Abs(v) e = Add(t, 0.001)"),
         "of_half_powers": ("Pow(d, 2.0)", "Abs(d)"),
         "of_another_tensor": ("Sub(x, m)", "Sub(z, m)"), "the_other_way": ("Sub(x, m)", "Sub(m, x)"),
         "of_the_input": ("Div(d, r)", "Div(x, r)"),
         "without_root": ("Sqrt(e)", "Abs(e)"), "dropped": ("[-1]>(x)", "[-1], keepdims=0>(x)"),
         "scale_of_rows": ("float[4] p", "float[4,1] p"),
         "bias_of_rows": ("float[4] w", "float[4,1] w"), "scale_of_rank_3": ("float[4] p", "float[1,1,4] p"),
         "scale_of_rank_4": ("float[4] p", "float[1,1,1,4] p"),
         "scale_of_one": ("float[4] p", "float[1] p"), "epsilon_of_a_vector": ("(v, 0.001)",
         "(v, [0.001, 0.5, 1.0, 2.0])"), "sum_for_mean": ("v = ReduceMean<axes=[-1]>(q)", "v = ReduceSum(q, [-1])"),
         "bias_subtracted": ("Add(s, w)", "Sub(s, w)"), "divided_by_scale": ("Mul(n, p)", "Div(n, p)"),
         "epsilon_outside": ("e = Add(v, 0.001) r = Sqrt(e)", "e = Sqrt(v) r = Add(e, 0.001)")},
        {"squared_by_mul": ("Pow(d, 2.0)", "Mul(d, d)"), "scale_first": ("(n, p)", "(p, n)")},
        also=("float64",),
    ),
    RewriteRule(
        "skip_layer_normalization", "optimizer/skip_layer_norm_fusion.cc",
        "(float[2,3,4] x, float[2,3,4] z) => (y) <float[4] p, float[4] w, float[4] u> { t = Add(x, u) a = Add(t, z) "
        "y = LayerNormalization<axis=-1>(a, p, w) }",
        {"of_one_row": ("float[2,3,4] z", "float[3,4] z"), "of_one_batch": ("float[2,3,4] z", "float[1,3,4] z"),
         "of_a_vector": ("float[2,3,4] z", "float[4] z"),
         "of_a_scalar": ("float[2,3,4] z", "float[1] z"), "of_axis_1": ("axis=-1", "axis=1", "float[4] p, float[4] w",
         "float[3,4] p, float[3,4] w"),
         "bias_of_rows": ("float[4] u", "float[3,1] u"), "subtracted": ("Add(t, z)", "Sub(t, z)"),
         "of_rank_2": ("float[2,3,4] x", "float[3,4] x", "float[2,3,4] z", "float[3,4] z"),
         "of_rank_4": ("float[2,3,4] x", "float[2,2,3,4] x", "float[2,3,4] z", "float[2,2,3,4] z"),
         "of_columns": ("float[2,3,4] z", "float[2,3,1] z"),
         "of_epsilon_1": ("axis=-1", "axis=-1, epsilon=1.0"), "without_bias": ("(a, p, w)", "(a, p)"),
         "with_residual": ("y = LayerNormalization<axis=-1>(a, p, w)",
         "b = LayerNormalization<axis=-1>(a, p, w) y = Add(b, a)"),
         "with_mean": ("y = LayerNormalization<axis=-1>(a, p, w)", "y, g, h = LayerNormalization<axis=-1>(a, p, w)",
         "=> (y)", "=> (y, g)")},
        {"the_other_way": ("Add(t, z)", "Add(z, t)")},
        also=("float64",),
    ),
    RewriteRule(
        "layer_normalization_add", "optimizer/layer_norm_fusion.cc",
        "(float[2,3,4] x, float[2,3,4] z) => (y) <float[4] p, float[4] w> { a = LayerNormalization<axis=-1>(x, p, w) "
        "y = Add(a, z) }",
        {"of_the_input": ("Add(a, z)", "Add(a, x)"), "of_a_row": ("float[2,3,4] z", "float[3,1] z"),
         "of_a_vector": ("float[2,3,4] z", "float[4] z"), "without_bias": ("(x, p, w)", "(x, p)"),
         "subtracted": ("Add(a, z)", "Sub(z, a)"), "of_axis_1": ("axis=-1", "axis=1", "float[4] p, float[4] w",
         "float[3,4] p, float[3,4] w")},
        applies={"first": ("Add(a, z)", "Add(z, a)")},
        also=("float64",),
    ),
    RewriteRule(
        "layer_normalization_mul_add", "optimizer/layer_norm_fusion.cc",
        "(float[2,3,4] x) => (y) <float[4] p, float[4] w, float[4] u> { a = LayerNormalization<axis=-1>(x, p) b = "
        "Mul(a, w) y = Add(b, u) }",
        {"of_rows": ("float[4] w", "float[3,1] w"), "of_two_tensors": ("Add(b, u)", "Add(b, x)")}, in_general=False,
    ),
    RewriteRule(
        "layer_normalization_twice", "optimizer/layer_norm_fusion.cc",
        "(float[2,3,4] x) => (y) <float[4] p, float[4] w, float[4] pu> { a = LayerNormalization<axis=-1>(x, p, w) y "
        "= LayerNormalization<axis=-1>(a, pu) }",
        {"of_other_axes": ("axis=-1>(x, p, w)", "axis=-1, epsilon=0.5>(x, p, w)")}, in_general=False,
    ),
    RewriteRule(
        "rms_normalization", "optimizer/layer_norm_fusion.cc",
        "(float[4,4,4] x) => (y) <float[4] p> { q = Pow(x, 2.0) v = ReduceMean<axes=[-1]>(q) e = Add(v, 0.001) r = "
        "Sqrt(e) n = Div(x, r) y = Mul(n, p) }",
        {"of_another_axis": ("[-1]", "[1]"), "of_two_axes": ("[-1]", "[1,2]"),
         "scale_of_rows": ("float[4] p", "float[4,1] p"), "sum_for_mean": ("ReduceMean<axes=[-1]>(q)",
         "ReduceSum(q, [-1])"),
         "of_fourth_powers": ("2.0", "4.0"), "without_root": ("Sqrt(e)", "Abs(e)")},
        {"by_reciprocal": ("n = Div(x, r)", "i = Reciprocal(r) n = Mul(x, i)"), "scale_first": ("(n, p)", "(p, n)")},
        also=("float64",),
    ),
    RewriteRule(
        "instance_normalization", "openvino: common_optimizations/mvn_fusion.cpp",
        "(float[2,3,4,4] x) => (y) { m = ReduceMean<axes=[2,3]>(x) d = Sub(x, m) q = Mul(d, d) v = "
        "ReduceMean<axes=[2,3]>(q) e = Add(v, 0.001) r = Sqrt(e) y = Div(d, r) }",
        {"of_channels": ("[2,3]>(x)", "[1,2,3]>(x)", "[2,3]>(q)", "[1,2,3]>(q)"),
         "of_two": ("[2,3]>(q)", "[1,2,3]>(q)")}, in_general=False,
    ),
    chain(
        "instance_normalization_reshaped", "openvino: common_optimizations/group_normalization_fusion.cpp",
        "float[2,4,3,3] x",
        "Reshape(_, [0, 2, -1])", "InstanceNormalization(_, p, w)", "Reshape(_, [2, 4, 3, 3])", "Mul(_, s)",
        weights="float[2] p, float[2] w, float[4,1,1] s",
        broken={"scale_of_rows": ("float[4,1,1] s", "float[3,1] s"),
                "of_four_groups": ("[0, 2, -1]", "[0, 4, -1]", "float[2] p, float[2] w", "float[4] p, float[4] w")},
                in_general=False,
    ),
)  # fmt: skip
"""Normalizations as several nodes, and what stands beside one."""
