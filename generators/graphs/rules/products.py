"""Rewrite rules of convolutions, matrix products and pooling, with what is joined to them."""

from __future__ import annotations

from collections.abc import Iterator

from epcheck.generators.graphs.rewrite_rule import ALGEBRA, Replacements, RewriteRule, chain

DML = "providers/dml/DmlExecutionProvider/src/GraphTransformer.cpp"
NCHWC = "optimizer/nchwc_transformer.cc"

CONV = "Conv<pads=[1,0,0,1]>(_, w, v)"
IMAGE = "float[2,4,5,6] x"

CHANNELS: dict[str, tuple[str, str]] = {
    "add": ("Add(_, u)", "Sub(_, u)"), "mul": ("Mul(_, u)", "Div(_, u)"), "sub": ("Sub(_, u)", "Sub(u, _)"),
    "div": ("Div(_, p)", "Div(p, _)"),
}  # fmt: skip
"""A node with a number for each channel, and a similar one."""

ACTIVATIONS = {
    "relu": "Relu(_)", "tanh": "Tanh(_)", "leakyrelu": "LeakyRelu<alpha=0.25>(_)",
    "hardsigmoid": "HardSigmoid<alpha=0.25, beta=0.25>(_)", "thresholdedrelu": "ThresholdedRelu<alpha=0.25>(_)",
    "clip": "Clip(_, -0.25, 0.5)",
}  # fmt: skip

BEFORE_ACTIVATION: dict[str, tuple[str, str, str]] = {
    "batchnormalization": ("float[2,3,4,4] x", "float[3] p, float[3] w, float[3] v, float[3] pv",
    "BatchNormalization(_, p, w, v, pv)"),
    "instancenormalization": ("float[2,3,4,4] x", "float[3] p, float[3] w", "InstanceNormalization(_, p, w)"),
    "meanvariancenormalization": ("float[2,3,4,4] x", "", "MeanVarianceNormalization(_)"),
    "add": ("float[2,3,4] x, float[2,3,4] z", "", "Add(_, z)"),
    "sum": ("float[2,3,4] x, float[2,3,4] z", "", "Sum(_, z)"),
    "sum_of_three": ("float[2,3,4] x, float[2,3,4] z", "float[4] w", "Sum(_, z, w)"),
    "matmul": ("float[2,3,4] x, float[2,4,5] z", "", "MatMul(_, z)"),
    "gemm": ("float[3,4] x", "float[5,4] w, float[5] v", "Gemm<transB=1, alpha=0.5, beta=-1.0>(_, w, v)"),
    "convtranspose": ("float[1,4,3,3] x", "float[4,2,2,2] w, float[4] v",
    "ConvTranspose<group=2, strides=[2,2]>(_, w, v)"),
    "conv": ("float[1,4,5,5] x", "float[6,2,3,3] w, float[6] v", "Conv<group=2>(_, w, v)"),
}  # fmt: skip
"""Nodes that DirectML's provider joins with an activation: inputs, initializers, node."""

POOLS = {
    "conv": ("Conv<pads=[0,1,1,0]>(_, w)", "float[3,4,3,3] w"),
    "maxpool": ("MaxPool<kernel_shape=[3,3], pads=[0,1,1,0]>(_)", ""),
    "averagepool": ("AveragePool<kernel_shape=[3,3], pads=[0,1,1,0], count_include_pad=1>(_)", ""),
    "averagepool_without_pads": ("AveragePool<kernel_shape=[3,3], pads=[0,1,1,0]>(_)", ""),
    "averagepool_of_no_own": ("AveragePool<kernel_shape=[3,3], pads=[0,0,0,0]>(_)", ""),
    "averagepool_without_attribute": ("AveragePool<kernel_shape=[3,3]>(_)", ""),
    "lppool": ("LpPool<kernel_shape=[3,3], pads=[0,1,1,0]>(_)", ""),
    "convtranspose": ("ConvTranspose<pads=[0,1,1,0]>(_, w)", "float[4,3,3,3] w"),
    "globalmaxpool": ("GlobalMaxPool(_)", ""),
    "instancenormalization": ("InstanceNormalization(_, p, w)", "float[4] p, float[4] w"),
}
"""Nodes with a window that may take up the pads of a Pad, or must not."""


def rules() -> Iterator[RewriteRule]:
    """In a stable order."""
    yield from _join_channels()
    yield from _join_normalizations()
    yield from _join_pads()
    yield from WINDOWS
    yield from _join_activations()
    yield from _change_layouts()
    yield from SUMS_AND_FACTORS
    yield from TRANSPOSED
    yield from ATTENTION


def _join_channels() -> Iterator[RewriteRule]:
    """Numbers for each channel, after a convolution and before one."""
    wrong: Replacements = {
        "of_columns": ("float[6,1,1]", "float[5]"), "of_rows": ("float[6,1,1]", "float[5,1]"),
        "of_one": ("float[6,1,1]", "float[1,1,1]"),
        "of_batch": ("float[6,1,1]", "float[2,1,1,1]"), "of_each": ("float[6,1,1]", "float[6,5,1]"),
        "of_higher_rank": ("float[6,1,1]", "float[1,1,6,1,1]"),
    }  # fmt: skip
    for name, (call, other) in CHANNELS.items():
        own = "float[6,1,1] " + ("p" if name == "div" else "u")
        changed = {key: (own, own.replace(texts[0], texts[1])) for key, texts in wrong.items()}
        used = f"float[6,2,3,3] w, float[6] v, {own}"
        yield chain(
            f"conv_group_{name}", f"optimizer/conv_{'add' if name in ('add', 'sub') else 'mul'}_fusion.cc", IMAGE,
            "Conv<group=2, pads=[1,1,1,0]>(_, w, v)", call,
            weights=used, broken={**changed,
                                  "another": (call.replace("_", "a"), other.replace("_", "a"))},
            in_general=name in ("add", "mul"),
        )  # fmt: skip
        yield chain(
            f"convtranspose_group_{name}", ALGEBRA, IMAGE,
            "ConvTranspose<group=2, strides=[1,2]>(_, w, v)", call,
            weights=used.replace("[6,2,3,3]", "[4,3,3,3]"), in_general=False,
        )  # fmt: skip
        yield chain(
            f"conv_1d_{name}", f"optimizer/conv_{'add' if name in ('add', 'sub') else 'mul'}_fusion.cc",
            "float[2,4,7] x", "Conv(_, w)", call,
            weights=used.replace("[6,2,3,3] w, float[6] v", "[6,4,3] w").replace("[6,1,1]", "[6,1]"), in_general=False,
        )  # fmt: skip
        yield chain(
            f"{name}_conv", ALGEBRA, IMAGE, call, "Conv(_, w)",
            weights="float[3,4,3,3] w, " + own.replace("6", "4"),
            broken={"with_pads": ("Conv(", "Conv<pads=[1,1,1,1]>("),
                    "of_rows": (own.replace("6", "4"), own.replace("[6,1,1]", "[5,1]"))}, in_general=False,
        )  # fmt: skip


def _join_normalizations() -> Iterator[RewriteRule]:
    """BatchNormalization after a convolution and before one."""
    norm = "BatchNormalization<epsilon=0.5>(_, p, t, v2, pv)"
    numbers = "float[6] p, float[6] t, float[6] v2, float[6] pv"
    yield chain(
        "conv_group_batchnormalization", "optimizer/conv_bn_fusion.cc", IMAGE, "Conv<group=2>(_, w, v)", norm,
        weights=f"float[6,2,3,3] w, float[6] v, {numbers}",
        broken={"of_no_bias": ("(x, w, v)", "(x, w)", ", float[6] v,", ",")},
        also=("float64",),
    )  # fmt: skip
    yield chain(
        "convtranspose_batchnormalization", "openvino: common_optimizations/conv_mul_fusion.cpp", IMAGE,
        "ConvTranspose<group=2>(_, w, v)", norm,
        weights=f"float[4,3,2,2] w, float[6] v, {numbers}", in_general=False,
    )  # fmt: skip
    yield chain(
        "convtranspose_batchnormalization_of_equal_channels", "openvino: common_optimizations/conv_mul_fusion.cpp",
        IMAGE, "ConvTranspose(_, w, v)", norm,
        weights=f"float[4,4,2,2] w, float[4] v, {numbers.replace('6', '4')}", in_general=False,
    )  # fmt: skip
    yield chain(
        "conv_1d_batchnormalization", "optimizer/conv_bn_fusion.cc", "float[2,4,7] x", "Conv(_, w, v)", norm,
        weights=f"float[6,4,3] w, float[6] v, {numbers}",
        in_general=False,
    )  # fmt: skip
    yield chain(
        "batchnormalization_conv", ALGEBRA, IMAGE, norm,
        "Conv(_, w)", weights=f"float[3,4,3,3] w, {numbers.replace('6', '4')}",
        broken={"with_pads": ("Conv(", "Conv<pads=[1,1,1,1]>(")}, in_general=False,
    )  # fmt: skip
    yield chain(
        "conv_conv", NCHWC, IMAGE, "Conv<kernel_shape=[1,1]>(_, w)", "Conv<pads=[1,1,1,1]>(_, m)",
        weights="float[3,4,1,1] w, float[5,3,3,3] m",
        broken={"with_bias": ("(x, w)", "(x, w, v)", "[3,4,1,1] w", "[3,4,1,1] w, float[3] v")}, in_general=False,
    )  # fmt: skip


def _join_pads() -> Iterator[RewriteRule]:
    """Pad before a window."""
    for name, (call, weights) in POOLS.items():
        broken: dict[str, tuple[str, ...]] = {
            "by_0_5": ("0.0)", "0.5)"), "of_edges": ("Pad(", 'Pad<mode="edge">('),
            "of_channels": ("[0, 0, 1, 0, 0, 0, 0, 2]", "[0, 1, 1, 0, 0, -1, 0, 2]"),
            "of_the_batch": ("[0, 0, 1, 0, 0, 0, 0, 2]", "[1, 0, 1, 0, 0, 0, 0, 2]"),
            "cropped": ("[0, 0, 1, 0, 0, 0, 0, 2]", "[0, 0, 1, -1, 0, 0, 0, 2]"),
        }  # fmt: skip
        every = name in ("conv", "averagepool_without_pads")
        yield chain(
            f"pad_{name}", "optimizer/pad_fusion.cc", "float[1,4,5,6] x", "Pad(_, [0, 0, 1, 0, 0, 0, 0, 2], 0.0)",
            call, weights=weights,
            broken=broken if every or name in ("maxpool", "averagepool") else {"by_0_5": broken["by_0_5"]},
            in_general=every,
            values={"x": (-1.5, -0.25, -0.75, -1.0, -0.5)} if "maxpool" in name else {},
        )  # fmt: skip


WINDOWS = (
    chain(
        "pad_auto_pad_conv", "optimizer/pad_fusion.cc", "float[1,4,5,6] x", "Pad(_, [0, 0, 1, 0, 0, 0, 0, 2])",
        'Conv<auto_pad="SAME_LOWER", strides=[2,2]>(_, w)', weights="float[3,4,3,3] w",
        broken={"valid": ('auto_pad="SAME_LOWER"', 'auto_pad="VALID"'), "upper": ("SAME_LOWER", "SAME_UPPER")},
                in_general=False,
    ),
    chain(
        "pad_ceil_maxpool", "optimizer/pad_fusion.cc", "float[1,2,5,6] x", "Pad(_, [0, 0, 1, 0, 0, 0, 0, 1], -9.0)",
        "MaxPool<kernel_shape=[2,2], strides=[2,2], pads=[0,0,0,0], ceil_mode=1>(_)",
        broken={"dilated": ("ceil_mode=1", "dilations=[2,1]"), "by_0": ("-9.0", "0.0")}, in_general=False,
    ),
    RewriteRule(
        "pad_of_weights", "optimizer/pad_fusion.cc",
        "(float[1,4,5,6] x, float[3,4,2,1] k) => (y) { a = Pad(k, [0, 0, 0, 1, 0, 0, 1, 0]) y = "
        "Conv<pads=[1,1,0,0]>(x, a) }", in_general=False,
        broken={"of_both": ("(x, a)", "(b, a)", "a = Pad", "b = Pad(x, [0, 0, 1, 0, 0, 0, 0, 2]) a = Pad")},
    ),
    chain(
        "pad_axes_conv", "optimizer/pad_fusion.cc", "float[1,4,5,6] x", "Pad(_, [1, 0, 0, 2], 0.0, [3, 2])",
        "Conv<pads=[1,0,0,1]>(_, w)", weights="float[3,4,3,3] w", opset=18,
        broken={"of_rows": ("[1, 0, 0, 2], 0.0, [3, 2]", "[1, 2], 0.0, [2]")}, in_general=False,
    ),
    chain(
        "relu_maxpool", "optimizer/nchwc_transformer.cc", "float[1,2,5,6] x", "Relu(_)",
        "MaxPool<kernel_shape=[2,2], pads=[1,1,0,0]>(_)",
        broken={"neg": ("Relu(x)", "Neg(x)"), "averaged": ("MaxPool<", "AveragePool<"),
                "leakyrelu": ("Relu(x)", "LeakyRelu<alpha=-0.5>(x)")}, in_general=False,
    ),
    chain(
        "maxpool_maxpool", ALGEBRA, "float[1,2,6,7] x",
        "MaxPool<kernel_shape=[2,2]>(_)", "MaxPool<kernel_shape=[2,2], strides=[2,1]>(_)",
        broken={"averaged": ("y = MaxPool<", "y = AveragePool<"),
                "with_pads": ("kernel_shape=[2,2]>", "kernel_shape=[2,2], pads=[1,0,0,1]>")}, in_general=False,
    ),
    chain(
        "averagepool_whole", ALGEBRA, "float[1,2,3,4] x",
        "AveragePool<kernel_shape=[3,4]>(_)", "Flatten(_)",
        broken={"of_rows": ("[3,4]>", "[1,4]>"), "with_pads": ("[3,4]>",
                "[3,4], pads=[1,0,0,0], count_include_pad=1>")}, in_general=False,
    ),
    chain(
        "globalaveragepool_flatten_gemm", ALGEBRA, "float[2,3,4,5] x",
        "GlobalAveragePool(_)", "Flatten(_)", "Gemm(_, w, v)", weights="float[3,4] w, float[4] v",
        broken={"of_the_maximum": ("GlobalAveragePool", "GlobalMaxPool")},
        applies={"squeezed": ("Flatten(a)", "Squeeze(a)")},
    ),
)  # fmt: skip
"""Nodes before a window, and windows after each other."""


def _join_activations() -> Iterator[RewriteRule]:
    """Activations after a node that can apply them."""
    for name, (entering, weights, call) in BEFORE_ACTIVATION.items():
        for activation, own in ACTIVATIONS.items():
            if (name in ("conv", "gemm") and activation in ("relu", "tanh")) or (
                name == "sum_of_three" and activation != "relu"
            ):
                continue
            yield chain(
                f"{name}_{activation}",
                DML,
                entering,
                call,
                own,
                weights=weights,
                in_general=activation == "relu" and name in ("add", "batchnormalization", "matmul", "convtranspose"),
            )
    yield chain(
        "conv_prelu", "optimizer/conv_activation_fusion.cc", IMAGE, "Conv(_, w)", "PRelu(_, u)",
        weights="float[3,4,3,3] w, float[3,1,1] u",
        broken={"of_columns": ("float[3,1,1] u", "float[4] u"), "of_one": ("float[3,1,1] u", "float[1] u")},
                in_general=False,
    )  # fmt: skip
    yield chain(
        "conv_clip_crossed", "optimizer/conv_activation_fusion.cc", IMAGE, "Conv(_, w)", "Clip(_, 0.5, -0.25)",
        weights="float[3,4,3,3] w",
        broken={"without_minimum": ("0.5, -0.25", ", -0.25"), "without_limits": ("(a, 0.5, -0.25)", "(a)")},
                in_general=False,
    )  # fmt: skip
    for name, call in {"swish": "Mul(a, s)", "squared": "Mul(s, s)", "of_the_input": "Mul(x, s)"}.items():
        yield RewriteRule(
            f"conv_sigmoid_mul_{name}", "optimizer/conv_activation_fusion.cc",
            f"(float[1,3,4,4] x) => (y) <float[3,3,1,1] w, float[3] v> {{ a = Conv(x, w, v) s = Sigmoid(a) y = "
            f"{call} }}",
            in_general=name == "swish",
        )  # fmt: skip
    yield RewriteRule(
        "conv_add_relu", "optimizer/conv_add_act_fusion.cc",
        "(float[1,3,4,4] x, float[1,3,4,4] z) => (y) <float[3,3,1,1] w, float[3] v> { a = Conv(x, w, v) b = Add(a, "
        "z) y = Relu(b) }",
        {"of_channels": ("float[1,3,4,4] z", "float[1,3,1,1] z"),
         "of_lower_rank": ("float[1,3,4,4] z", "float[4,4] z"), "of_a_batch": ("float[1,3,4,4] z", "float[2,3,4,4] z"),
         "of_itself": ("Add(a, z)", "Add(a, a)"),
         "subtracted": ("Add(a, z)", "Sub(z, a)"), "relu_first": ("b = Add(a, z) y = Relu(b)",
         "b = Relu(a) y = Add(b, z)"), "relu_of_the_other": ("b = Add(a, z)", "t = Relu(z) b = Add(a, t)"),
         "of_no_bias": ("(x, w, v)", "(x, w)", ", float[3] v", ""),
         "of_two_convolutions": ("b = Add(a, z)", "t = Conv(z, w) b = Add(a, t)"),
         "of_hardsigmoid": ("Relu(b)", "HardSigmoid(b)"), "clipped": ("Relu(b)", "Clip(b, -0.25, 0.5)")},
        {"first": ("(a, z)", "(z, a)"), "as_sum": ("Add(a, z)", "Sum(a, z)")},
        also=("float64",),
    )  # fmt: skip
    yield chain(
        "matmul_activation", "optimizer/matmul_activation_fusion.cc", "float[2,3,4] x, float[4,5] z", "MatMul(_, z)",
        "Relu(_)",
        broken={"of_softmax": ("Relu(", "Softmax("), "of_vectors": ("float[4,5] z", "float[4] z")},
    )  # fmt: skip


def _change_layouts() -> Iterator[RewriteRule]:
    """Blocks of channels, and channels that come last."""
    for channels in (1, 5, 8, 9, 17, 32):
        yield chain(
            f"blocks_of_{channels}", NCHWC, "float[1,3,5,7] x", "Conv<pads=[1,1,1,1]>(_, w, v)", "Relu(_)",
            "MaxPool<kernel_shape=[2,2]>(_)", f"Conv<group={channels}>(_, m)", "Add(_, u)",
            weights=f"float[{channels},3,3,3] w, float[{channels}] v, float[{channels},1,2,2] m, "
                    f"float[{channels},1,1] u", in_general=channels == 9,
            broken={"averaged": ("MaxPool<kernel_shape=[2,2]>", "AveragePool<kernel_shape=[2,2], pads=[1,0,0,1]>"),
                    "added_by_columns": ("[9,1,1]", "[5]")} if channels == 9 else {},
        )  # fmt: skip
    between = {
        "batchnormalization": ("BatchNormalization(_, p, v, v, p)", "float[8] p"),
        "concat": ("Concat<axis=1>(_, _, x)", ""), "concat_rows": ("Concat<axis=2>(_, _)", ""),
        "upsampled": ("Resize<mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
                "nearest_mode=\"floor\">(_, , [1.0, 1.0, 2.0, 3.0])", ""),
        "upsampled_linearly": ("Resize<mode=\"linear\">(_, , [1.0, 1.0, 2.0, 2.0])", ""),
        "transposed": ("Transpose<perm=[0,2,3,1]>(_)", ""),
        "softmax": ("Softmax<axis=1>(_)", ""), "sliced": ("Slice(_, [1], [7], [1], [2])", ""),
        "reduced": ("ReduceMean<axes=[1]>(_)", ""), "pooled": ("GlobalAveragePool(_)", ""),
        "flattened": ("Flatten(_)", ""),
        "ceiled": ("MaxPool<kernel_shape=[2,2], strides=[2,2], ceil_mode=1>(_)", ""),
        "dilated": ("MaxPool<kernel_shape=[2,2], dilations=[2,2]>(_)", ""), "split": ("Slice(_, [3], [8], [1])", ""),
        "reshaped": ("Reshape(_, [0, 4, -1, 3])", ""), "instancenormalization": ("InstanceNormalization(_, p, v)",
        "float[8] p"), "scaled_by_itself": ("Mul(_, _)", ""), "argmax": ("ArgMax<axis=1>(_)", ""),
        "depthtospace": ("DepthToSpace<blocksize=2>(_)", ""), "lrn": ("LRN<size=3>(_)", ""),
    }  # fmt: skip
    for name, (call, weights) in between.items():
        yield chain(
            f"conv_{name}", "optimizer/layout_transformation/layout_transformation.cc", "float[1,3,4,6] x",
            "Conv<pads=[1,1,1,1]>(_, w, v)", call,
            weights=f"float[8,3,3,3] w, float[8] v{', ' + weights if weights else ''}", in_general=False,
        )  # fmt: skip


SUMS_AND_FACTORS = (
    chain(
        "matmul_add", "optimizer/matmul_add_fusion.cc", "float[3,4] x", "MatMul(_, w)", "Add(_, u)",
        weights="float[4,5] w, float[5] u",
        broken={"of_rank_3": ("float[3,4] x", "float[2,3,4] x"), "bias_of_rank_3": ("float[5] u", "float[1,1,5] u"),
                "bias_of_columns": ("float[5] u", "float[3,1] u"), "of_a_vector": ("float[3,4] x", "float[4] x"),
                "bias_of_more_rows": ("float[3,4] x", "float[1,4] x", "float[5] u", "float[3,5] u"),
                "subtracted": ("Add(a, u)", "Sub(a, u)"), "from_bias": ("Add(a, u)", "Sub(u, a)"),
                "to_one_column": ("float[4,5] w", "float[4,1] w"),
                "of_itself": ("Add(a, u)", "Add(a, a)")},
        applies={"first": ("(a, u)", "(u, a)"), "of_one": ("float[5] u", "float[1] u")},
        also=("float64",),
    ),
    chain(
        "gemm_add", "optimizer/gemm_sum_fusion.cc", "float[3,4] x", "Gemm(_, w)", "Add(_, u)",
        weights="float[4,5] w, float[5] u",
        broken={"with_bias": ("(x, w)", "(x, w, u)"), "with_alpha": ("Gemm(", "Gemm<alpha=0.5>("),
                "bias_of_columns": ("float[5] u", "float[3,1] u"),
                "summed_with_bias": ("(x, w)", "(x, w, u)", "Add(a, u)", "Sum(a, u)"),
                "summed_with_two": ("Add(a, u)", "Sum(a, u, u)"), "of_rank_3": ("float[5] u", "float[2,3,5] u")},
        applies={"with_beta": ("Gemm(", "Gemm<beta=0.25>("), "summed": ("Add(a, u)", "Sum(a, u)"),
                "summed_last": ("Add(a, u)", "Sum(u, a)")}, in_general=False,
        also=("float64",),
    ),
    chain(
        "matmul_scale", "optimizer/matmul_scale_fusion.cc", "float[2,3,4] x, float[2,4,5] z", "Mul(_, 0.25)",
        "MatMul(_, z)", "Div(_, 0.5)",
        broken={"of_a_vector": ("0.25", "[0.25, 0.5, -1.0, 2.0]"), "of_rank_4": ("0.25", "[[[[0.25]]]]"),
                "by_a_vector": ("b, 0.5", "b, [0.5, 0.25, -1.0, 2.0, 4.0]"),
                "divided_into": ("Div(b, 0.5)", "Div(0.5, b)"),
                "by_rank_4": ("b, 0.5", "b, [[[[0.5]]]]"), "by_0": ("0.25", "0.0")},
        applies={"on_the_right": ("a = Mul(x, 0.25) b = MatMul(a, z)", "a = Mul(0.25, z) b = MatMul(x, a)"),
                "minus": ("0.25", "-4.0"), "of_one": ("0.25", "[0.25]")},
        also=("float64",),
    ),
    chain(
        "matmul_batchnormalization", "optimizer/matmul_bn_fusion.cc", "float[3,4] x", "MatMul(_, w)",
        "BatchNormalization<epsilon=0.5>(_, p, u, v, pv)",
        weights="float[4,5] w, float[5] p, float[5] u, float[5] v, float[5] pv",
        also=("float64",),
    ),
    chain(
        "matmul_transpose_batchnormalization", "optimizer/matmul_bn_fusion.cc", "float[6,4] x", "MatMul(_, w)",
        "Reshape(_, [2, 3, 5])", "Transpose<perm=[0,2,1]>(_)", "BatchNormalization(_, p, u, v, pv)",
        weights="float[4,5] w, float[5] p, float[5] u, float[5] v, float[5] pv",
        broken={"of_rows": ("[0,2,1]", "[0,1,2]", "float[5] p, float[5] u, float[5] v, float[5] pv",
                "float[3] p, float[3] u, float[3] v, float[3] pv"),
        "of_the_batch": ("[0,2,1]", "[1,2,0]"), "reshaped_otherwise": ("[2, 3, 5]", "[6, 1, 5]")}, in_general=False,
    ),
    chain(
        "matmul_matmul", ALGEBRA, "float[3,4] x", "MatMul(_, w)",
        "MatMul(_, m)", weights="float[4,5] w, float[5,2] m",
        broken={"with_bias": ("MatMul(a, m)", "Gemm(a, m, u)", "float[5,2] m", "float[5,2] m, float[2] u"),
                "of_the_transposed": ("MatMul(a, m)", "MatMul(m, a)", "float[5,2] m", "float[2,3] m")},
                in_general=False,
    ),
    chain(
        "mul_matmul", "openvino: common_optimizations/matmul_multiply_fusion.cpp", "float[3,4] x", "Mul(_, u)",
        "MatMul(_, w)", weights="float[4] u, float[4,5] w",
        broken={"of_rows": ("float[4] u", "float[3,1] u"), "added": ("Mul(x", "Add(x")}, in_general=False,
    ),
    chain(
        "matmul_mul", "openvino: common_optimizations/matmul_multiply_fusion.cpp", "float[3,4] x", "MatMul(_, w)",
        "Mul(_, u)", weights="float[4,5] w, float[5] u",
        broken={"of_rows": ("float[5] u", "float[3,1] u")}, in_general=False,
    ),
    RewriteRule(
        "matmuls_of_one_input", "openvino: common_optimizations/shared_ops_optimization.cpp",
        "(float[2,3,4] x) => (y) <float[4,4] w, float[4,4] m, float[4,4] u> { a = MatMul(x, w) b = MatMul(x, m) c = "
        "MatMul(x, u) d = Sub(a, b) y = Mul(d, c) }",
        {"one_from_the_left": ("MatMul(x, m)", "MatMul(m, x)", "float[2,3,4] x", "float[2,4,4] x")}, in_general=False,
    ),
    chain(
        "reshape_gemm_reshape", "providers/qnn/builder/qnn_node_group/reshape_gemm_fusion.cc", "float[2,3,4] x",
        "Reshape(_, [-1, 4])", "Gemm<transB=1>(_, w, v)", "Reshape(_, [2, 3, 5])", weights="float[5,4] w, float[5] v",
        broken={"of_rows": ("[-1, 4]", "[4, -1]", "float[5,4] w, float[5] v", "float[5,6] w, float[5] v", "[2, 3, 5]",
                "[2, 2, 5]"), "into_columns": ("[2, 3, 5]", "[5, 2, 3]")},
        also=("float64",),
    ),
)  # fmt: skip
"""Sums and factors at a matrix product."""


TRANSPOSED = (
    chain(
        "transpose_matmul", "optimizer/matmul_transpose_fusion.cc", "float[2,3,4] x, float[2,3,5] z",
        "Transpose<perm=[0,2,1]>(_)", "MatMul(_, z)",
        broken={"of_the_batch": ("[0,2,1]", "[2,0,1]", "float[2,3,5] z", "float[4,3,5] z"),
                "of_all": ("[0,2,1]", "[2,1,0]", "float[2,3,4] x, float[2,3,5] z", "float[4,3,2] x, float[2,4,5] z"),
                "of_a_vector": ("float[2,3,5] z", "float[3] z"),
                "of_one_matrix": ("float[2,3,5] z", "float[3,5] z"),
                "of_another_batch": ("[0,2,1]", "[1,2,0]", "float[2,3,4] x, float[2,3,5] z",
                "float[3,2,4] x, float[2,3,5] z")},
        applies={"on_the_right": ("MatMul(a, z)", "MatMul(z, a)", "float[2,3,5] z", "float[2,5,4] z"),
                "scaled": ("Transpose<perm=[0,2,1]>(x)", "Transpose<perm=[0,2,1]>(s)", "a = ", "s = Mul(x, 0.5) a = ")},
        also=("float64",),
    ),
    chain(
        "matmul_transpose", "optimizer/gemm_transpose_fusion.cc", "float[3,4] x, float[4,5] z", "MatMul(_, z)",
        "Transpose(_)", broken={"of_rank_3": ("float[3,4] x", "float[2,3,4] x", "Transpose(a)",
        "Transpose<perm=[0,2,1]>(a)"),
        "of_all": ("float[3,4] x", "float[2,3,4] x")}, in_general=False,
    ),
    chain(
        "transpose_gemm", "optimizer/gemm_transpose_fusion.cc", "float[4,3] x", "Transpose(_)", "Gemm(_, w, v)",
        weights="float[4,5] w, float[5] v",
        applies={"of_the_right": ("Gemm(a, w, v)", "Gemm(w, a, v)", "float[4,5] w, float[5] v",
                "float[5,3] w, float[4] v"), "turned_again": ("Gemm(a, w, v)", "Gemm<transA=1>(a, w, v)",
                "float[4,5] w", "float[3,5] w")},
        broken={"as_bias": ("Gemm(a, w, v)", "Gemm(w, v, a)", "float[4,5] w, float[5] v",
                "float[3,2] w, float[2,4] v"), "not_turned": ("Transpose(x)", "Transpose<perm=[0,1]>(x)",
                "float[4,3] x", "float[3,4] x")},
    ),
    chain(
        "gemm_transpose", "optimizer/gemm_transpose_fusion.cc", "float[3,4] x", "Gemm(_, w)", "Transpose(_)",
        weights="float[4,5] w",
        applies={"of_the_transposed": ("Gemm(x, w)", "Gemm<transA=1, transB=1>(x, w)", "float[3,4] x", "float[4,3] x",
                "float[4,5] w", "float[5,4] w"), "with_alpha": ("Gemm(", "Gemm<alpha=0.5>(")},
        broken={"with_bias": ("(x, w)", "(x, w, v)", "float[4,5] w", "float[4,5] w, float[5] v"),
                "with_bias_of_columns": ("(x, w)", "(x, w, v)", "float[4,5] w", "float[4,5] w, float[3,1] v"),
                "not_turned": ("Transpose(a)", "Transpose<perm=[0,1]>(a)")},
        also=("float64",),
    ),
    chain(
        "cast_transpose_matmul", "optimizer/matmul_transpose_fusion.cc", "int32[3,4] x, float[3,5] z", "Cast<to=1>(_)",
        "Transpose(_)", "MatMul(_, z)",
        applies={"the_other_way": ("Cast<to=1>(x) b = Transpose(a)", "Transpose(x) b = Cast<to=1>(a)")},
                in_general=False,
    ),
    chain(
        "unsqueeze_matmul_squeeze", ALGEBRA, "float[4] x, float[4,5] z",
        "Unsqueeze(_, [0])", "MatMul(_, z)", "Squeeze(_, [0])", in_general=False,
        broken={"of_columns": ("Unsqueeze(x, [0])", "Unsqueeze(x, [1])", "float[4,5] z", "float[1,5] z",
                "Squeeze(b, [0])", "Squeeze(b)")},
    ),
)  # fmt: skip
"""Transposes around a matrix product."""


ATTENTION = (
    RewriteRule(
        "attention", "optimizer/attention_fusion.cc",
        "(float[2,3,4,5] q, float[2,3,6,5] k, float[2,3,6,7] v, float[1,1,1,6] t) => (y) { a = "
        "Transpose<perm=[0,1,3,2]>(k) b = MatMul(q, a) c = Mul(b, 0.5) d = Add(c, t) e = Softmax<axis=-1>(d) y = "
        "MatMul(e, v) }",
        {"of_queries": ("axis=-1", "axis=2"), "mask_of_queries": ("float[1,1,1,6] t", "float[4,1] t"),
         "mask_of_heads": ("float[1,1,1,6] t", "float[3,1,1] t"),
         "mask_of_batches": ("float[1,1,1,6] t", "float[2,1,1,6] t"),
         "mask_before_scale": ("c = Mul(b, 0.5) d = Add(c, t)", "c = Add(b, t) d = Mul(c, 0.5)"),
         "mask_taken_away": ("Add(c, t)", "Sub(c, t)"), "negative_scale": ("0.5", "-0.5"),
         "of_one_head": ("float[2,3,6,5] k", "float[2,1,6,5] k"),
         "without_mask": ("d = Add(c, t) ", "", "Softmax<axis=-1>(d)", "Softmax<axis=-1>(c)")},
        {"divided": ("Mul(b, 0.5)", "Div(b, 2.0)"), "scaled_before": ("MatMul(q, a) c = Mul(b, 0.5)",
         "Mul(q, 0.5) c = MatMul(b, a)")},
        also=("float64",),
    ),
    RewriteRule(
        "heads_of_attention", "optimizer/attention_fusion.cc",
        "(float[2,3,8] x) => (y) <float[8,8] w, float[8] u> { a = MatMul(x, w) b = Add(a, u) c = Reshape(b, [0, 0, "
        "2, 4]) d = Transpose<perm=[0,2,1,3]>(c) e = MatMul(d, d2) y = Reshape(f, [0, 0, 8]) }".replace(
            "e = MatMul(d, d2) y", "e = Softmax<axis=-1>(d) f = Transpose<perm=[0,2,1,3]>(e) y"),
        {"of_other_heads": ("[0, 0, 2, 4]", "[0, 0, 4, 2]"),
         "of_rows": ("f = Transpose<perm=[0,2,1,3]>", "f = Transpose<perm=[0,1,2,3]>", "[0, 0, 8]", "[0, 3, -1]"),
         "of_keys": ("d = Transpose<perm=[0,2,1,3]>", "d = Transpose<perm=[0,2,3,1]>", "f = Transpose<perm=[0,2,1,3]>",
         "f = Transpose<perm=[0,3,1,2]>")},
    ),
    RewriteRule(
        "rotary_embedding", "openvino: common_optimizations/fuse_rotary_positional_embeddings.cpp",
        "(float[1,2,3,4] x, float[1,1,3,4] c, float[1,1,3,4] s) => (y) { a = Slice(x, [0], [2], [3]) b = Slice(x, "
        "[2], [4], [3]) n = Neg(b) r = Concat<axis=-1>(n, a) d = Mul(x, c) e = Mul(r, s) y = Add(d, e) }",
        {"of_the_other_half": ("Concat<axis=-1>(n, a)", "Concat<axis=-1>(a, n)"), "not_negated": ("Neg(b)", "Abs(b)"),
         "of_one_third": ("[0], [2], [3]", "[0], [1], [3]", "[2], [4], [3]", "[1], [4], [3]"),
         "interleaved": ("[0], [2], [3])", "[0], [4], [3], [2])", "[2], [4], [3])", "[1], [4], [3], [2])")},
    ),
    RewriteRule(
        "embedding_layer_normalization", "optimizer/embed_layer_norm_fusion.cc",
        "(int64[2,3] i) => (y) <float[7,4] w, float[5,4] m, float[4] p, float[4] u> { a = Gather(w, i) b = Gather(m, "
        "[0, 1, 2]) c = Add(a, b) y = LayerNormalization(c, p, u) }",
        {"of_other_positions": ("[0, 1, 2]", "[2, 0, 1]"), "of_columns": ("Gather(m, [0, 1, 2])",
         "Gather<axis=1>(m, [0, 1, 2])", "float[5,4] m", "float[4,5] m", "Add(a, b)", "MatMul(a, b)",
         "float[4] p, float[4] u", "float[3] p, float[3] u")},
        values={"i": (6, 0, 3, -1, 2, 5)},
    ),
)  # fmt: skip
"""Attention as several nodes."""
