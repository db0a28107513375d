"""Operators that are next to each other in the real models of docs/validate.md, in the order of how many have them.

Nobody publishes a rule about most of these pairs; a provider that joins two nodes joins such ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from epcheck.generators.graphs.rewrite_rule import RewriteRule, chain

MODELS = "the real models of docs/validate.md"

CHAINS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("unsqueeze_conv", "float[2,3,7] x", ("Unsqueeze(_, [2])", "Conv<pads=[0,1,0,0]>(_, w)", "Squeeze(_, [2])"),
        "float[4,3,1,3] w"),
    ("relu_conv", "float[1,3,4,5] x", ("Relu(_)", "Conv<pads=[1,1,0,0]>(_, w)", "Concat<axis=1>(_, _)", "Conv(_, m)"),
        "float[4,3,3,3] w, float[2,8,1,1] m"),
    ("reshape_slice", "float[2,3,4] x", ("Reshape(_, [4, 6])", "Slice(_, [1], [6], [1], [2])", "Cast<to=6>(_)"), ""),
    ("slice_cast_slice", "float[6,5] x", ("Slice(_, [-1], [-7], [0], [-2])", "Cast<to=7>(_)",
        "Slice(_, [1], [3], [0])"), ""),
    ("unsqueeze_slice", "float[5,3] x", ("Unsqueeze(_, [0])", "Slice(_, [1], [4], [1])", "Squeeze(_, [0])",
        "Mul(_, _)"), ""),
    ("pad_unsqueeze", "float[2,5] x", ("Pad(_, [0, 2, 0, 1])", "Unsqueeze(_, [1])", "Slice(_, [1], [9], [2], [2])"),
        ""),
    ("div_unsqueeze", "float[2,3] x", ("Div(_, 2.5)", "Unsqueeze(_, [1])", "Mul(_, w)"), "float[4,1] w"),
    ("clip_log", "float[2,3,4] x", ("Clip(_, 0.125)", "Log(_)", "Transpose<perm=[0,2,1]>(_)"), ""),
    ("pow_add", "float[2,3,4] x", ("Slice(_, [0], [2], [2])", "Pow(_, 2.0)", "Add(_, _)", "Sqrt(_)"), ""),
    ("sqrt_conv", "float[1,2,4,4] p", ("Sqrt(_)", "Conv(_, w)", "ReduceMean<axes=[1], keepdims=1>(_)",
        "Unsqueeze(_, [0])"), "float[3,2,2,2] w"),
    ("transpose_conv", "float[1,4,5,3] x", ("Transpose<perm=[0,3,1,2]>(_)", "Conv(_, w)", "Sigmoid(_)",
        "Reshape(_, [2, -1])"), "float[4,3,2,2] w"),
    ("globalaveragepool_conv", "float[1,4,3,5] x", ("Div(_, 0.5)", "GlobalAveragePool(_)", "Conv(_, w)",
        "HardSigmoid(_)", "Mul(x, _)"), "float[4,4,1,1] w"),
    ("reducesumsquare_matmul", "float[3,5,2] x", ("ReduceSumSquare<axes=[2], keepdims=0>(_)", "MatMul(_, w)",
        "Clip(_, 0.25)", "Log(_)"), "float[5,4] w"),
    ("reshape_reducesumsquare", "float[2,12] x", ("Reshape(_, [2, 3, 4])", "ReduceSumSquare<axes=[1], keepdims=0>(_)",
        "Transpose<perm=[1,0]>(_)", "Div(_, 4.0)"), ""),
    ("div_where", "float[2,3,4] x, bool[3,1] k", ("Div(_, -2.0)", "Where(k, _, x)", "ReduceSum(_, [1])"), ""),
    ("slice_where", "float[2,6,4] x, bool[3,1] k", ("Slice(_, [1], [6], [1], [2])", "Where(k, _, -1.5)",
        "Pad(_, [0, 0, 1, 0, 0, 0], 0.5)", "Mul(_, _)"), ""),
    ("sub_concat", "float[2,3] x, float[2,3] z", ("Sub(_, z)", "Concat<axis=1>(_, z)", "Unsqueeze(_, [0])"), ""),
    ("add_concat", "float[2,3] x, float[2,3] z", ("Add(_, z)", "Concat<axis=0>(z, _)", "Slice(_, [1], [3], [0])",
        "Sub(_, z)"), ""),
    ("gather_equal", "int64[5,3] i", ("Gather(_, [4, 1])", "Equal(_, 3)", "Not(_)", "Cast<to=1>(_)"), ""),
    ("cast_pow", "int32[2,4] i", ("Cast<to=1>(_)", "Pow(_, 3.0)", "Add(_, 0.5)", "Unsqueeze(_, [2])"), ""),
    ("batchnormalization_mul", "float[2,3,4,4] x", ("BatchNormalization(_, p, v, w, pv)", "Mul(_, u)", "Add(_, v2)"),
        "float[3] p, float[3] v, float[3] w, float[3] pv, float[3,1,1] u, float[3,1,1] v2"),
    ("batchnormalization_add", "float[2,3,4,4] x", ("BatchNormalization(_, p, v, w, pv)", "Add(_, x)",
        "Concat<axis=1>(_, x)"), "float[3] p, float[3] v, float[3] w, float[3] pv"),
    ("split_by_slices", "float[2,6,4] x", ("Slice(_, [3], [6], [1])", "Sigmoid(_)", "Mul(_, _)", "Reshape(_, [0, -1])",
        "MatMul(_, w)"), "float[12,5] w"),
    ("squeeze_mul", "float[2,1,3] x", ("Squeeze(_, [1])", "Mul(_, w)", "Clip(_, -0.5, 0.5)", "Unsqueeze(_, [1])"),
        "float[2,1] w"),
    ("squeeze_sigmoid", "float[2,3,1] x", ("Squeeze(_, [-1])", "Sigmoid(_)", "Transpose<perm=[1,0]>(_)"), ""),
    ("squeeze_cast", "int64[1,4] i", ("Squeeze(_)", "Cast<to=1>(_)", "Div(_, 2.0)", "Cast<to=6>(_)"), ""),
    ("cast_reshape", "int32[2,6] i", ("Cast<to=7>(_)", "Reshape(_, [3, 4])", "Cast<to=6>(_)",
        "Slice(_, [1], [3], [1])"), ""),
    ("unsqueeze_less", "int64[3] i", ("Unsqueeze(_, [1])", "Less([0, 1, 2, 3, 4], _)", "Not(_)", "Cast<to=1>(_)",
        "Reshape(_, [5, 3])"), ""),
    ("gather_mul", "float[5,3] x", ("Gather(_, [4, 0, -2])", "Mul(_, w)", "Concat<axis=1>(_, w)"), "float[3,3] w"),
    ("resize_concat", "float[1,2,3,4] x, float[1,1,6,8] z", ("Resize(_, , [1.0, 1.0, 2.0, 2.0])",
        "Concat<axis=1>(_, z)", "Conv(_, w)"), "float[2,3,1,1] w"),
    ("resize_add", "float[1,2,3,4] x, float[1,2,6,8] z", ("Resize(_, , [1.0, 1.0, 2.0, 2.0])", "Add(z, _)", "Relu(_)"),
        ""),
    ("sub_where", "float[2,3] x, bool[2,3] k", ("Sub(_, 0.5)", "Where(k, _, 0.25)", "ReduceSumSquare<axes=[1]>(_)",
        "Div(x, _)"), ""),
    ("mul_sin", "float[2,3] x", ("Mul(_, 3.0)", "Sin(_)", "Div(_, x)", "Concat<axis=0>(_, x)"), ""),
    ("div_cos", "float[2,3] x", ("Div(_, 0.75)", "Cos(_)", "Pow(_, 2.0)", "Sub(1.0, _)"), ""),
    ("maxpool_reducemax", "float[1,2,5,5] x", ("MaxPool<kernel_shape=[2,2]>(_)", "ReduceMax<axes=[2], keepdims=0>(_)",
        "Unsqueeze(_, [2])"), ""),
    ("log_where", "float[2,3] p, bool[3] k", ("Log(_)", "Where(k, _, p)", "Mul(_, 2.0)"), ""),
    ("div_sub", "float[2,3] x", ("Div(_, 0.5)", "Sub(_, w)", "Max(_, 0.0)"), "float[3] w"),
    ("cast_div", "uint8[2,3] q", ("Cast<to=1>(_)", "Div(_, 255.0)", "Sub(_, w)", "Transpose<perm=[1,0]>(_)"),
        "float[3] w"),
    ("reshape_add", "float[2,6] x", ("Reshape(_, [2, 3, 2])", "Add(_, w)", "Reshape(_, [2, -1])", "Unsqueeze(_, [1])"),
        "float[3,1] w"),
    ("reshape_expand", "float[6] x", ("Reshape(_, [2, 1, 3])", "Expand(_, [2, 4, 3])", "Reshape(_, [8, 3])"), ""),
    ("mul_concat", "float[2,3] x", ("Mul(_, -0.5)", "Concat<axis=1>(_, x)", "Squeeze(_)"), ""),
    ("add_squeeze", "float[2,1,3] x", ("Add(_, w)", "Squeeze(_, [1])", "Sigmoid(_)"), "float[3] w"),
    ("pad_mul", "float[2,3] x", ("Pad(_, [0, 1, 1, 0], 0.5)", "Mul(_, w)", "Slice(_, [0, 1], [2, 4], [0, 1])"),
        "float[4] w"),
    ("reducemax_unsqueeze", "float[2,3,4] x", ("ReduceMax<axes=[1], keepdims=0>(_)", "Unsqueeze(_, [1])", "Sub(x, _)"),
        ""),
)  # fmt: skip
"""Name, inputs, nodes and initializers."""

LENGTHS = "(float[2,5,3] x, int64[2] n) => (y) { "
RECURRENT = (
    "(float[4,2,3] x) => (y) <float[1,{g},3] w, float[1,{g},4] r, float[1,{b}] v> {{ a, h = {op}<hidden_size=4>(x, "
    "w, r, v) b = Squeeze(a, [1]) y = Transpose<perm=[1,0,2]>(b) }}"
)
BEFORE = "t = Reshape(x, [2, 4, 3]) u = Transpose<perm=[1,0,2]>(t) o = Slice(u, [1], [4], [0])"


def rules() -> Iterator[RewriteRule]:
    """In a stable order."""
    for name, entering, calls, weights in CHAINS:
        yield chain(f"neighbours_{name}", MODELS, entering, *calls, weights=weights, in_general=False)
    yield RewriteRule(
        "neighbours_mask_of_lengths", MODELS,
        LENGTHS + "s = Shape(x) g = Gather(s, 1) r = Range(0, g, 1) u = Unsqueeze(r, [0]) m = Unsqueeze(n, [1]) k = "
                "Less(u, m) e = Unsqueeze(k, [2]) y = Where(e, x, -1.0) }",
        values={"n": (2, 5)}, in_general=False, elsewhere=("Shape", "Gather", "Range", "Unsqueeze", "Less"),
    )  # fmt: skip
    yield RewriteRule(
        "neighbours_range_of_half", MODELS,
        LENGTHS + "s = Shape<start=1, end=2>(x) t = Squeeze(s) h = Div(t, 2) r = Range(0, h, 1) y = "
                "Gather<axis=1>(x, r) }",
        values={"n": (2, 5)}, in_general=False, elsewhere=("Shape", "Squeeze", "Div", "Range"),
    )  # fmt: skip
    yield RewriteRule(
        "neighbours_constantofshape_concat", MODELS,
        LENGTHS + "s = Shape(x) b = Gather(s, [0, 2]) e = Concat<axis=0>(b, [2]) c = ConstantOfShape<value=float[1] "
                "{0.5}>(e) t = Transpose<perm=[0,2,1]>(c) y = Concat<axis=1>(t, x) }",
        values={"n": (2, 5)}, in_general=False, elsewhere=("Shape", "Gather", "Concat", "ConstantOfShape"),
    )  # fmt: skip
    for operator, gates in {"LSTM": 16, "GRU": 12}.items():
        text = RECURRENT.format(op=operator, g=gates, b=2 * gates)
        yield RewriteRule(f"neighbours_{operator.lower()}_squeeze", MODELS, text, in_general=False)
        yield RewriteRule(
            f"neighbours_unsqueeze_{operator.lower()}", MODELS,
            text.replace("float[4,2,3] x", "float[2,12] x").replace("{ a", f"{{ {BEFORE} a").replace("4>(x,", "4>(o,"),
            in_general=False,
        )  # fmt: skip
    yield RewriteRule(
        "neighbours_split_sigmoid_tanh", MODELS,
        "(float[2,8] x, float[2,4] z) => (y) { a, b = Split<axis=1>(x, [4, 4]) s = Sigmoid(a) t = Tanh(b) m = Mul(s, "
        "t) y = Add(m, z) }", in_general=False,
    )  # fmt: skip
