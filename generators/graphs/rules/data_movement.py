"""Rewrite rules of nodes that move data: joined, removed where they change nothing, carried past other nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from epcheck.generators.graphs.graph_sample import BOTH
from epcheck.generators.graphs.rewrite_rule import ALGEBRA, Replacements, RewriteRule, chain

TRANSPOSES = "optimizer/transpose_optimization/onnx_transpose_optimization.cc"
NOOP = "openvino: common_optimizations/nop_elimination.cpp"

NEUTRAL: tuple[tuple[str, str, str, Replacements], ...] = (
    (
        "slice_of_all", "optimizer/slice_elimination.cc", "Slice(_, [0], [9223372036854775807], [1], [1])", {
            "but_the_last": ("9223372036854775807", "-1"), "by_steps": ("[1], [1])", "[1], [2])"),
            "but_the_first": ("[0]", "[1]"), "to_the_size_of_another_axis": ("9223372036854775807", "2"),
            "backwards": ("[0], [9223372036854775807], [1], [1]", "[-1], [-9223372036854775807], [1], [-1]"),
        },
    ),
    ("expand_to_own_shape", "optimizer/expand_elimination.cc", "Expand(_, [2, 3, 4])", {
        "of_higher_rank": ("[2, 3, 4]", "[1, 2, 3, 4]"), "doubled": ("[2, 3, 4]", "[2, 2, 3, 4]"),
    }),
    ("transpose_by_nothing", TRANSPOSES, "Transpose<perm=[0,1,2]>(_)", {"but_two_axes": ("[0,1,2]", "[0,2,1]")}),
    ("reshape_to_own_shape", "optimizer/reshape_fusion.cc", "Reshape(_, [0, 0, -1])", {
        "but_zero_copies_another_axis": ("[0, 0, -1]", "[-1, 0, 2]"),
    }),
    ("flatten", "optimizer/reshape_fusion.cc", "Flatten<axis=1>(_)", {
        "of_axis_2": ("axis=1", "axis=2"), "of_axis_0": ("axis=1", "axis=0"),
    }),
    ("tile_once", NOOP, "Tile(_, [1, 1, 1])", {"but_one_axis": ("[1, 1, 1]", "[1, 2, 1]")}),
    ("pad_by_0", "optimizer/pad_fusion.cc", "Pad(_, [0, 0, 0, 0, 0, 0])", {
        "but_one_end": ("0, 0, 0]", "0, 1, 0]"), "but_one_crop": ("[0, 0, 0, 0,", "[0, -1, 0, 0,"),
    }),
    ("concat_of_one", NOOP, "Concat<axis=1>(_)", {"but_twice": ("(x)", "(x, x)")}),
    ("sum_of_one", NOOP, "Sum(_)", {"but_twice": ("(x)", "(x, x)")}),
    ("mean_of_one", NOOP, "Mean(_)", {"and_another": ("(x)", "(x, 0.5)")}),
    ("max_of_one", NOOP, "Max(_)", {"and_another": ("(x)", "(x, 0.5)")}),
    ("sum_of_no_axes", NOOP, "ReduceSum<noop_with_empty_axes=1>(_)", {"but_all": ("axes=1", "axes=0")}),
    ("resize_by_1", NOOP, "Resize(_, , [1.0, 1.0, 1.0])", {"but_one_axis": ("1.0, 1.0]", "2.0, 1.0]")}),
    ("cast_to_own_type", "optimizer/cast_elimination.cc", "Cast<to=1>(_)", {}),
    ("dropout", "optimizer/dropout_elimination.cc", "Dropout(_)", {}),
)  # fmt: skip
"""Name, source, a node that changes nothing, and what is broken of it."""

TRIED_IN_GENERAL = ("slice_of_all", "expand_to_own_shape", "reshape_to_own_shape", "dropout", "cast_to_own_type")

PAST = {
    "add_of_a_vector": "Add(_, w)", "sub_from_a_vector": "Sub(w, _)", "prelu": "PRelu(_, w)",
    "where": "Where(c, _, w)", "clip": "Clip(_, -0.5, 0.75)", "softmax": "Softmax<axis=-1>(_)",
    "logsoftmax_of_axis_1": "LogSoftmax<axis=1>(_)", "reducemax": "ReduceMax<axes=[1], keepdims=1>(_)",
    "reducesum_of_two": "ReduceSum<keepdims=1>(_, [1, -1])", "argmin": "ArgMin<axis=2, keepdims=1>(_)",
    "slice_of_two": "Slice(_, [1, 0], [3, 4], [-1, 1], [1, 2])", "pad_of_one": "Pad(_, [0, 1, 0, 0, 0, 0, 2, 0], 0.5)",
    "gather": "Gather<axis=3>(_, [2, 0])", "tile": "Tile(_, [1, 2, 1, 1])", "concat": "Concat<axis=-1>(_, _)",
    "cumsum": "CumSum<reverse=1>(_, -1)", "layernormalization": "LayerNormalization<axis=-1>(_, w, v)",
    "matmul": "MatMul(_, m)", "resize": "Resize(_, , [1.0, 2.0, 1.0, 1.0])", "squared": "Mul(_, _)",
    "hardmax": "Hardmax<axis=1>(_)",
    "reversed": "Slice(_, [-1], [-9], [2], [-1])", "expand": "Expand(_, [2, 4, 5, 3])", "cast": "Cast<to=10>(_)",
}  # fmt: skip
"""Name -> a node between two transposes, by the layout between them: [2, 4, 5, 3] of [2, 3, 4, 5]."""


def rules() -> Iterator[RewriteRule]:
    """In a stable order."""
    yield from _remove_nodes()
    yield from TRANSPOSES_AND_RESHAPES
    yield from SQUEEZES
    yield from SLICES_AND_CONCATS
    yield from _join_gathers()
    yield from _leave_broadcasting()
    yield from _carry_transposes()
    yield from _know_shapes()


def _remove_nodes() -> Iterator[RewriteRule]:
    """Nodes that change nothing."""
    for name, source, call, broken in NEUTRAL:
        yield chain(name, source, "float[2,3,4] x", call, "Neg(_)", broken=broken, in_general=name in TRIED_IN_GENERAL)
    yield RewriteRule(
        "dropout_mask", "optimizer/dropout_elimination.cc",
        "(float[2,3] x) => (y) { a, m = Dropout(x) y = Neg(a) }", {"leaves": ("(y)", "(y, m)")}, in_general=False,
    )  # fmt: skip
    yield RewriteRule(
        "identity_of_an_input", "optimizer/identity_elimination.cc",
        "(float[2,3] x) => (y) { a = Identity(x) y = Neg(a) }",
        {"leaves_twice": ("(y)", "(a, y)"), "of_a_constant": ("Identity(x)", "Identity(p)", "Neg(a)", "Add(a, x)",
         "=> (y)", "=> (y, a) <float[3] p>")},
    )  # fmt: skip
    yield RewriteRule(
        "cast_before_shape", "optimizer/pre_shape_node_elimination.cc",
        "(float[2,3,4] x) => (y) { a = Cast<to=7>(x) s = Shape(a) y = Mul(s, s) }",
        {"transpose_before_shape": ("Cast<to=7>(x)", "Transpose(x)"),
         "flatten_before_shape": ("Cast<to=7>(x)", "Flatten(x)")}, elsewhere=("Shape",),
    )  # fmt: skip


TRANSPOSES_AND_RESHAPES = (
    chain(
        "transpose_transpose", TRANSPOSES, "float[2,3,4] x",
        "Transpose<perm=[1,2,0]>(_)", "Transpose<perm=[2,0,1]>(_)", dtypes=BOTH,
        broken={"goes_on": ("[2,0,1]", "[1,2,0]"), "of_other_axes": ("[1,2,0]", "[0,2,1]", "[2,0,1]", "[1,0,2]"),
                "without_perm": ("<perm=[2,0,1]>", "")},
    ),
    chain(
        "transpose_transpose_of_layouts", TRANSPOSES, "float[2,3,4,5] x",
        "Transpose<perm=[0,2,3,1]>(_)", "Transpose<perm=[0,3,1,2]>(_)",
        broken={"goes_on": ("[0,3,1,2]", "[0,2,3,1]"), "swaps": ("[0,3,1,2]", "[0,2,1,3]")}, in_general=False,
    ),
    chain(
        "transpose_reshape", TRANSPOSES, "float[1,3,4] x", "Transpose<perm=[1,0,2]>(_)", "Reshape(_, [4, -1])",
        broken={"of_rows": ("[1,0,2]", "[0,2,1]"), "zero_copies": ("[1,0,2]", "[2,0,1]", "[4, -1]", "[0, -1]"),
                "back": ("[1,0,2]", "[2,1,0]", "[4, -1]", "[1, 3, 4]")},
        also=("float16",),
    ),
    chain(
        "reshape_transpose", TRANSPOSES, "float[2,3,4] x", "Reshape(_, [1, 6, 4])", "Transpose<perm=[1,0,2]>(_)",
        broken={"of_rows": ("[1,0,2]", "[0,2,1]"), "of_all": ("[1,0,2]", "[2,1,0]")},
        also=("float16",),
    ),
    chain(
        "channel_shuffle", "providers/qnn/builder/qnn_node_group/channel_shuffle_fusion.cc", "float[1,6,2,5] x",
        "Reshape(_, [1, 2, 3, 2, 5])", "Transpose<perm=[0,2,1,3,4]>(_)", "Reshape(_, [1, 6, 2, 5])",
        broken={"of_other_groups": ("2, 3, 2", "3, 2, 2"), "of_rows": ("[0,2,1,3,4]", "[0,1,3,2,4]"),
                "of_groups_and_rows": ("[0,2,1,3,4]", "[0,3,2,1,4]"),
                "into_another_shape": ("[1, 6, 2, 5]", "[1, 3, 4, 5]")},
        also=("float16",),
    ),
    chain(
        "depth_to_space", "openvino: common_optimizations/depth_to_space_fusion.cpp", "float[1,8,2,3] x",
        "Reshape(_, [1, 2, 2, 2, 2, 3])", "Transpose<perm=[0,3,4,1,5,2]>(_)", "Reshape(_, [1, 2, 4, 6])",
        applies={"depth_first": ("[0,3,4,1,5,2]", "[0,1,4,2,5,3]")},
        broken={"columns_first": ("[0,3,4,1,5,2]", "[0,3,4,2,5,1]"), "rows_last": ("[0,3,4,1,5,2]", "[0,3,1,4,2,5]")},
        also=("float16",),
    ),
    chain(
        "rank_6_transpose", "providers/qnn/builder/qnn_node_group/reshape_transpose_rank5.cc", "float[1,4,6,10] x",
        "Reshape(_, [1, 2, 2, 3, 2, 10])", "Transpose<perm=[0,2,4,1,3,5]>(_)", "Reshape(_, [4, 6, 10])",
        broken={"of_the_last": ("[0,2,4,1,3,5]", "[0,2,4,1,5,3]"), "other_order": ("[0,2,4,1,3,5]", "[0,4,2,3,1,5]")},
        in_general=False,
    ),
    chain(
        "reshape_reshape", "optimizer/reshape_fusion.cc", "float[2,3,4] x", "Reshape(_, [6, 4])", "Reshape(_, [3, -1])",
        broken={"second_copies": ("[3, -1]", "[0, 2, -1]"), "both_copy": ("[6, 4]", "[4, 0, -1]", "[3, -1]", "[0, -1]"),
                "back": ("[3, -1]", "[2, 3, 4]"), "copies_nothing": ("[3, -1]", "[-1, 0]")},
        also=("float16",),
    ),
    chain(
        "reshape_of_nothing", "optimizer/reshape_fusion.cc", "float[2,0,4] x", "Reshape(_, [0, 0, 2, 2])",
        "Reshape(_, [2, 0, 4])", broken={"allowed": ("Reshape(a, [2, 0,", "Reshape<allowzero=1>(a, [3, 0,")},
        in_general=False,
    ),
    chain(
        "flatten_reshape", "optimizer/reshape_fusion.cc", "float[2,2,6] x", "Flatten<axis=1>(_)",
        "Reshape(_, [0, 2, -1])",
        broken={"of_axis_2": ("axis=1", "axis=2"), "of_axis_0": ("axis=1", "axis=0")}, in_general=False,
    ),
    chain(
        "flatten_gemm", ALGEBRA, "float[2,3,4] x",
        "Flatten<axis=1>(_)", "Gemm(_, w, v)", weights="float[12,5] w, float[5] v",
        broken={"of_axis_2": ("axis=1", "axis=2", "[12,5]", "[4,5]")},
    ),
)  # fmt: skip
"""One node of two, or none."""


SQUEEZES = (
    chain(
        "squeeze_unsqueeze", "openvino: common_optimizations/eliminate_unsqueeze_gather.cpp", "float[2,1,3] x",
        "Squeeze(_, [1])", "Unsqueeze(_, [1])",
        broken={"axis_0": ("Unsqueeze(a, [1])", "Unsqueeze(a, [0])"),
                "axis_2": ("Unsqueeze(a, [1])", "Unsqueeze(a, [-1])"),
                "two_axes": ("Unsqueeze(a, [1])", "Unsqueeze(a, [1, 2])")},
        also=("float16",),
    ),
    chain(
        "unsqueeze_squeeze", "openvino: common_optimizations/nop_elimination.cpp", "float[1,3,1] x",
        "Unsqueeze(_, [1])", "Squeeze(_, [1])",
        applies={"axis_0": ("Squeeze(a, [1])", "Squeeze(a, [0])")},
        broken={"axis_3": ("Squeeze(a, [1])", "Squeeze(a, [-1])"),
                "all_axes": ("Squeeze(a, [1])", "Squeeze(a)"), "two_axes": ("Squeeze(a, [1])", "Squeeze(a, [0, 3])")},
        also=("float16",),
    ),
    chain(
        "unsqueeze_unsqueeze", "optimizer/unsqueeze_elimination.cc", "float[2,3] x", "Unsqueeze(_, [0])",
        "Unsqueeze(_, [2])", applies={"at_the_end": ("[2]", "[-1]"), "at_both_ends": ("[2]", "[4, 0]")},
        in_general=False,
    ),
    chain(
        "squeeze_squeeze", ALGEBRA, "float[1,2,1,3,1] x",
        "Squeeze(_, [0])", "Squeeze(_, [1])", applies={"the_last": ("(a, [1])", "(a, [-1])")}, in_general=False,
    ),
    chain(
        "unsqueeze_transpose", TRANSPOSES, "float[2,3] x", "Unsqueeze(_, [0])", "Transpose<perm=[1,0,2]>(_)",
        broken={"of_rows": ("[1,0,2]", "[0,2,1]"), "of_all": ("[1,0,2]", "[2,1,0]")}, in_general=False,
    ),
    chain(
        "transpose_squeeze_of_the_first", TRANSPOSES, "float[2,1,3] x", "Transpose<perm=[1,0,2]>(_)", "Squeeze(_, [0])",
        broken={"of_all": ("[1,0,2]", "[1,2,0]")}, in_general=False,
    ),
    RewriteRule(
        "unsqueeze_of_a_constant", "optimizer/unsqueeze_elimination.cc",
        "(float[2,3,4] x) => (y) <float[3] w> { a = Unsqueeze(w, [1]) y = Add(x, a) }",
        {"before": ("[1]", "[0]", "2,3,4", "2,4,3")}, {"two_axes": ("[1]", "[0, 2]")},
    ),
)  # fmt: skip
"""Squeeze and Unsqueeze after each other."""


SLICES_AND_CONCATS = (
    RewriteRule(
        "concat_split", ALGEBRA,
        "(float[4,3] x, float[4,3] z) => (y, b) { a = Concat<axis=0>(x, z) y, b = Split<axis=0>(a, [4, 4]) }",
        {"of_other_sizes": ("[4, 4]", "[3, 5]"), "of_another_axis": ("Split<axis=0>(a, [4, 4])",
         "Split<axis=1>(a, [1, 2])"),
         "of_halves_of_another_size": ("float[4,3] x", "float[2,3] x", "[4, 4]", "[3, 3]")},
         {"without_sizes": ("(a, [4, 4])", "(a)")},
        also=("float16",),
    ),
    RewriteRule(
        "split_concat", "openvino: common_optimizations/split_squeeze_concat_fusion.cpp",
        "(float[6,3] x) => (y) { a, b = Split<axis=0>(x, [3, 3]) y = Concat<axis=0>(a, b) }",
        {"in_another_order": ("(a, b)", "(b, a)"), "of_another_axis": ("Concat<axis=0>", "Concat<axis=1>"),
         "one_twice": ("(a, b)", "(a, a)"), "of_uneven_parts_in_another_order": ("[3, 3]", "[2, 4]", "(a, b)",
         "(b, a)"),
         "and_one_more": ("(a, b)", "(a, b, a)")},
        also=("float16",),
    ),
    RewriteRule(
        "concat_slice", "optimizer/concat_slice_elimination.cc",
        "(float[2,3] x, float[2,4] z) => (y) { a = Concat<axis=1>(x, z) y = Slice(a, [3], [7], [1]) }",
        {"one_earlier": ("[3]", "[2]"), "one_less": ("[7]", "[6]"), "by_steps": ("[7], [1])", "[7], [1], [2])"),
         "of_another_axis": ("[3], [7], [1]", "[1], [7], [0]"),
         "backwards": ("[3], [7], [1])", "[6], [2], [1], [-1])")},
        {"first": ("[3], [7]", "[0], [3]"), "from_the_end": ("[3]", "[-4]")},
        also=("float16",),
    ),
    RewriteRule(
        "slice_concat", ALGEBRA,
        "(float[6,3] x) => (y) { a = Slice(x, [0], [2], [0]) b = Slice(x, [2], [6], [0]) y = Concat<axis=0>(a, b) }",
        {"in_another_order": ("(a, b)", "(b, a)"), "overlapping": ("[2], [6]", "[1], [6]"),
         "with_a_gap": ("[2], [6]", "[3], [6]"),
         "of_another_axis": ("[0], [2], [0]", "[0], [3], [0]", "[2], [6]", "[3], [6]", "Concat<axis=0>",
         "Concat<axis=1>"),
         "one_backwards": ("[2], [6], [0])", "[5], [1], [0], [-1])")},
        also=("float16",),
    ),
    RewriteRule(
        "concat_concat", "openvino: common_optimizations/concat_fusion.cpp",
        "(float[2,3] x, float[2,3] z, float[2,3] t) => (y) { a = Concat<axis=0>(x, z) y = Concat<axis=0>(a, t) }",
        {"of_another_axis": ("y = Concat<axis=0>(a, t)", "y = Concat<axis=1>(a, a)"),
         "after_the_third": ("(a, t)", "(t, a)")},
    ),
    chain(
        "slice_slice", "openvino: common_optimizations/optimize_strided_slice.cpp", "float[7,6] x",
        "Slice(_, [1], [6], [0], [2])", "Slice(_, [1], [3], [0])",
        broken={"of_another_axis": ("[3], [0]", "[3], [1]"),
                "beyond_the_first": ("[6], [0]", "[4], [0]", "[3], [0]", "[5], [0]"),
                "backwards": ("[1], [3], [0])", "[-1], [-9], [0], [-1])"),
                "both_backwards": ("[1], [6], [0], [2]", "[-2], [-9], [0], [-2]", "[1], [3], [0])",
                "[-1], [-9], [0], [-1])")},
        applies={"from_the_new_end": ("(a, [1], [3]", "(a, [-2], [5]")},
        also=("float16",),
    ),
    chain(
        "pad_slice", "optimizer/pad_fusion.cc", "float[4,5] x", "Pad(_, [1, 2, 0, 0])",
        "Slice(_, [1, 2], [5, 7], [0, 1])",
        broken={"one_earlier": ("[1, 2], [5", "[0, 2], [5"),
                "padded_by_0_5": ("2, 0, 0])", "2, 0, 0], 0.5)", "[1, 2], [5", "[0, 1], [5"),
                "axes_the_other_way": ("[0, 1]", "[1, 0]")}, in_general=False,
        also=("float16",),
    ),
    chain(
        "pad_pad", "openvino: common_optimizations/pad_fusion.cpp", "float[4,5] x", "Pad(_, [1, 0, 0, 2], 0.5)",
        "Pad(_, [0, 1, 1, 0], 0.5)",
        broken={"of_two_values": ("1, 0], 0.5", "1, 0], -0.25"),
                "of_edges": ("Pad(a, [0, 1, 1, 0], 0.5)", 'Pad<mode="edge">(a, [0, 1, 1, 0])'),
                "mirrored": ("Pad(a, [0, 1, 1, 0], 0.5)", 'Pad<mode="reflect">(a, [0, 1, 1, 0])'),
                "cropped": ("[0, 1, 1, 0]", "[0, 1, -1, 0]")},
        in_general=False,
    ),
    RewriteRule(
        "gather_slices_to_split", "optimizer/gather_slice_fusion.cc",
        "(float[2,5,3] x) => (y) { t = Neg(x) a = Slice(t, [0], [2], [1]) b = Gather<axis=1>(t, [2]) c = Slice(t, "
        "[3], [5], [1])"
        " y = Concat<axis=1>(c, b, a) }",
        {"overlapping": ("[0], [2], [1]", "[0], [3], [1]"), "twice": ("Gather<axis=1>(t, [2])",
         "Gather<axis=1>(t, [3])"),
         "with_a_gap": ("[3], [5]", "[4], [5]")},
        {"from_the_end": ("[3], [5]", "[-2], [5]"),
         "of_a_scalar": ("(t, [2])", "(t, 2)", "y = Concat<axis=1>(c, b, a)",
         "e = Unsqueeze(b, [1]) y = Concat<axis=1>(c, e, a)")},
        also=("float16",),
    ),
    chain(
        "space_to_depth_to_space", ALGEBRA, "float[1,8,2,3] x",
        'DepthToSpace<blocksize=2, mode="DCR">(_)', "SpaceToDepth<blocksize=2>(_)",
        broken={"of_the_other_mode": ("DCR", "CRD"), "of_another_size": ('DepthToSpace<blocksize=2, mode="DCR">(x)',
                "Reshape(x, [1, 2, 4, 6])")},
        in_general=False,
    ),
)  # fmt: skip
"""Parts that are joined, and wholes that are taken apart."""


def _join_gathers() -> Iterator[RewriteRule]:
    """Gather with its neighbours."""
    yield chain(
        "gather_squeeze", ALGEBRA, "float[1,3,4] x",
        "Gather<axis=1>(_, [2])", "Squeeze(_, [1])", broken={"of_all_axes": ("Squeeze(a, [1])", "Squeeze(a)"),
        "from_the_end": ("(x, [2])", "(x, [-3])")},
        also=("float16",),
    )  # fmt: skip
    yield chain(
        "gather_unsqueeze", "openvino: common_optimizations/eliminate_unsqueeze_gather.cpp", "float[2,3,4] x",
        "Gather<axis=1>(_, 2)", "Unsqueeze(_, [1])",
        broken={"at_another_axis": ("Unsqueeze(a, [1])", "Unsqueeze(a, [0])")},
        in_general=False,
    )  # fmt: skip
    yield chain(
        "gather_gather", ALGEBRA, "float[4,5] x",
        "Gather<axis=0>(_, [3, 1, 0])", "Gather<axis=0>(_, [2, 0])",
        applies={"from_the_end": ("(a, [2, 0])", "(a, [-1, 0])")},
                broken={"of_columns": ("Gather<axis=0>(a", "Gather<axis=1>(a")}, in_general=False,
    )  # fmt: skip
    yield chain(
        "slice_gather", "optimizer/gather_slice_fusion.cc", "float[6,5] x", "Slice(_, [2], [6], [0])",
        "Gather<axis=0>(_, [1, 0])",
        broken={"from_the_new_end": ("[1, 0]", "[-4, 3]"), "of_columns": ("Gather<axis=0>", "Gather<axis=1>"),
                "backwards": ("[2], [6], [0])", "[4], [0], [0], [-1])")}, in_general=False,
    )  # fmt: skip
    for name, ends in {
        "": (1, 4, 1), "by_steps": (0, 5, 2), "from_the_end": (-3, -1, 1), "around_the_end": (-2, 2, 1),
        "up_to_minus_1": (-3, 0, 1),
        "downwards": (4, 1, -1), "downwards_to_the_first": (2, -1, -1), "downwards_around": (1, -3, -1),
        "of_nothing": (3, 3, 1),
    }.items():  # fmt: skip
        yield RewriteRule(
            "range_gather" + (name and f"_{name}"), "optimizer/gather_fusion.cc",
            "(float[5,3] x, int64 s, int64 l, int64 d) => (y) { r = Range(s, l, d) y = Gather<axis=0>(x, r) }",
            values=dict(zip("sld", ((end,) for end in ends), strict=True)), in_general=not name,
            elsewhere=("Range", "Gather"),
        )  # fmt: skip
    yield RewriteRule(
        "range_gather_of_columns", "optimizer/gather_fusion.cc",
        "(float[3,5] x, int64 s, int64 l, int64 d) => (y) { r = Range(s, l, d) y = Gather<axis=-1>(x, r) }",
        {"as_data": ("Gather<axis=-1>(x, r)", "Gather<axis=-1>(r, [2, 0])")},
        values={"s": (1,), "l": (4,), "d": (1,)}, in_general=False, elsewhere=("Range", "Gather"),
    )  # fmt: skip
    yield RewriteRule(
        "topk_gather", ALGEBRA,
        "(float[7] x) => (y) { v, i = TopK(x, [3]) y = Gather(x, i) }",
        {"smallest": ("TopK(", "TopK<largest=0>("), "of_another_tensor": ("(float[7] x)", "(float[7] x, float[7] z)",
         "Gather(x, i)", "Gather(z, i)")},
        in_general=False,
    )  # fmt: skip
    yield RewriteRule(
        "argmax_gather", ALGEBRA,
        "(float[3,4] x) => (y) { i = ArgMax<axis=1, keepdims=1>(x) y = GatherElements<axis=1>(x, i) }",
        {"least": ("ArgMax", "ArgMin"), "of_rows": ("ArgMax<axis=1", "ArgMax<axis=0", "GatherElements<axis=1>",
         "GatherElements<axis=0>")},
        in_general=False,
    )  # fmt: skip


def _leave_broadcasting() -> Iterator[RewriteRule]:
    """Expand and its like before a node that broadcasts as well."""
    for name, call in {"add": "Add(_, z)", "mul": "Mul(z, _)", "sub": "Sub(_, z)", "max": "Max(_, z)",
    "where": "Where(k, _, z)",
                       "equal": "Equal(_, z)"}.items():  # fmt: skip
        yield chain(
            f"expand_{name}", "openvino: common_optimizations/broadcast_elementwise_fusion.cpp",
            "float[3,1] x, float[3,4] z" + (", bool[3,4] k" if name == "where" else ""), "Expand(_, [3, 4])", call,
            broken={"of_a_smaller": ("float[3,4] z", "float[1,1] z",
                    *(("bool[3,4]", "bool[3,1]") if name == "where" else ())),
                    "to_more_dimensions": ("[3, 4])", "[2, 3, 4])")},
            applies={"of_rows": ("float[3,1] x", "float[4] x")}, in_general=name == "add",
        )  # fmt: skip
    yield chain(
        "expand_matmul", "openvino: common_optimizations/broadcast_matmul_fusion.cpp",
        "float[1,3,4] x, float[2,4,5] z",
        "Expand(_, [2, 3, 4])", "MatMul(_, z)", broken={"of_a_smaller": ("float[2,4,5] z", "float[4,5] z")},
        in_general=False,
    )  # fmt: skip
    yield chain(
        "tile_add", ALGEBRA, "float[1,3] x, float[2,3] z",
        "Tile(_, [2, 1])", "Add(_, z)",
        broken={"of_several": ("float[1,3] x, float[2,3] z", "float[2,3] x, float[4,3] z"),
                "of_a_smaller": ("float[2,3] z", "float[3] z"),
                "of_columns": ("[2, 1]", "[1, 2]", "float[2,3] z", "float[2,6] z")},
    )  # fmt: skip
    yield chain(
        "expand_reducesum", ALGEBRA, "float[3,1] x", "Expand(_, [3, 4])",
        "ReduceSum(_, [1])",
        broken={"of_rows": ("[1])", "[0])")},
                applies={"of_the_greatest": ("ReduceSum(a, [1])", "ReduceMax<axes=[1]>(a)")}, in_general=False,
    )  # fmt: skip
    yield chain(
        "unsqueeze_expand_reshape", ALGEBRA, "float[2,3] x",
        "Unsqueeze(_, [1])",
        "Expand(_, [2, 2, 3])", "Reshape(_, [4, 3])", broken={"after": ("[1])", "[2])", "[2, 2, 3]", "[2, 3, 2]"),
        "before": ("[1])", "[0])")}, in_general=False,
    )  # fmt: skip
    yield RewriteRule(
        "constantofshape_add", "optimizer/noop_elimination.cc",
        "(float[2,3] x) => (y) { a = ConstantOfShape<value=float[1] {0.0}>([2, 3]) y = Add(x, a) }",
        {"of_one_and_a_half": ("0.0", "1.5"), "of_higher_rank": ("[2, 3])", "[1, 2, 3])"),
         "of_more": ("[2, 3])", "[2, 2, 3])")},
        in_general=False,
    )  # fmt: skip


def _carry_transposes() -> Iterator[RewriteRule]:
    """Between two transposes."""
    for name, call in PAST.items():
        entering = "float[2,3,4,5] x" + (", bool[5,3] c" if "(c" in call else "")
        weights = "float[3] w, float[3] v, float[3,2] m"
        if name == "cast":
            yield chain(f"transpose_{name}_transpose", TRANSPOSES, entering, "Transpose<perm=[0,2,3,1]>(_)", call,
                        "Transpose<perm=[0,3,1,2]>(_)", "Cast<to=1>(_)", in_general=False)  # fmt: skip
            continue
        used = ", ".join(each for each in weights.split(", ") if re.search(rf"\b{each[-1]}\b", call))
        yield chain(
            f"transpose_{name}_transpose", TRANSPOSES, entering, "Transpose<perm=[0,2,3,1]>(_)", call,
            "Transpose<perm=[0,3,1,2]>(_)",
            weights=used, broken={"turned_on": ("[0,3,1,2]", "[0,2,3,1]")}, in_general=False,
        )  # fmt: skip
    for name, call in {"squeeze": "Squeeze(_, [1])", "unsqueeze": "Unsqueeze(_, [1, -1])",
    "flatten": "Flatten<axis=2>(_)",
                       "reducemean_dropped": "ReduceMean<axes=[1,2], keepdims=0>(_)",
                       "gather_of_one": "Gather<axis=1>(_, 0)",
                       "argmax_dropped": "ArgMax<axis=-1, keepdims=0>(_)", "shape": "Shape(_)"}.items():  # fmt: skip
        yield chain(
            f"transpose_{name}", TRANSPOSES, "float[2,3,1,5] x", "Transpose<perm=[0,2,3,1]>(_)", call,
            broken={"turned_otherwise": ("[0,2,3,1]", "[3,2,1,0]")}, in_general=False,
                    elsewhere=("Shape",) if name == "shape" else (),
        )  # fmt: skip
    yield RewriteRule(
        "transposes_concat", TRANSPOSES,
        "(float[2,3,4] x, float[2,3,4] z) => (y) { a = Transpose<perm=[0,2,1]>(x) b = Transpose<perm=[0,2,1]>(z) y = "
        "Concat<axis=1>(a, b) }",
        {"of_two_orders": ("b = Transpose<perm=[0,2,1]>(z)", "b = Reshape(z, [2, 4, 3])")},
        {"of_another_axis": ("Concat<axis=1>", "Concat<axis=-1>")},
    )  # fmt: skip
    yield RewriteRule(
        "transposes_add", TRANSPOSES,
        "(float[3,3,3] x, float[3,3,3] z) => (y) { a = Transpose<perm=[1,2,0]>(x) b = Transpose<perm=[1,2,0]>(z) y = "
        "Sub(a, b) }",
        {"of_two_orders": ("[1,2,0]>(z)", "[2,0,1]>(z)"), "one_alone": ("b = Transpose<perm=[1,2,0]>(z) ", "",
         "Sub(a, b)", "Sub(a, z)"),
         "of_lower_rank": ("float[3,3,3] z", "float[3,3] z", "Transpose<perm=[1,2,0]>(z)", "Transpose<perm=[1,0]>(z)")},
    )  # fmt: skip
    yield RewriteRule(
        "transpose_split", TRANSPOSES,
        "(float[4,3,5] x) => (y, b) { a = Transpose<perm=[1,0,2]>(x) c, d = Split<axis=1>(a, [1, 3])"
        " y = Transpose<perm=[1,0,2]>(c) b = Transpose<perm=[1,0,2]>(d) }",
        {"of_two_orders": ("y = Transpose<perm=[1,0,2]>(c)", "y = Transpose<perm=[2,0,1]>(c)")}, in_general=False,
    )  # fmt: skip


def _know_shapes() -> Iterator[RewriteRule]:
    """Shapes that nodes compute."""
    shapes = ("Shape", "Gather", "Unsqueeze", "Concat", "Slice", "Mul", "ReduceProd")
    yield RewriteRule(
        "shape_gather_concat_reshape", "optimizer/reshape_fusion.cc",
        "(float[2,3,4] x, float[3,2,4] z) => (y) { s = Shape(x) b = Gather(s, 0) c = Unsqueeze(b, [0]) t = Gather(s, 1)"
        " u = Unsqueeze(t, [0]) e = Concat<axis=0>(c, u, [2, -1]) y = Reshape(x, e) }",
        {"of_another_place": ("Gather(s, 0)", "Gather(s, 2)"),
         "of_another_tensor": ("Shape(x)", "Shape(z)"), "swapped": ("Concat<axis=0>(c, u,", "Concat<axis=0>(u, c,"),
         "without_a_rest": ("[2, -1]", "[4]")},
        {"from_the_end": ("Gather(s, 1)", "Gather(s, -2)")},
        elsewhere=shapes, in_general=False,
    )  # fmt: skip
    yield RewriteRule(
        "shape_slice_concat_reshape", "optimizer/reshape_fusion.cc",
        "(float[2,3,4] x) => (y) { s = Shape(x) b = Slice(s, [0], [1]) e = Concat<axis=0>(b, [-1]) y = Reshape(x, e) }",
        {"of_another_place": ("[0], [1]", "[1], [2]"), "of_two": ("[0], [1]", "[0], [2]"),
         "after": ("(b, [-1])", "([-1], b)")},
        elsewhere=shapes, in_general=False,
    )  # fmt: skip
    yield RewriteRule(
        "shape_expand", "optimizer/constant_folding.cc",
        "(float[3,1] x, float[2,3,4] z) => (y) { s = Shape(z) y = Expand(x, s) }",
        {"of_itself": ("Shape(z)", "Shape(x)"),
        "of_a_part": ("Shape(z)", "Shape<start=1>(z)")}, elsewhere=shapes, in_general=False,
    )  # fmt: skip
