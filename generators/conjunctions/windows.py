"""Windows over images of one and three dimensions: dilations, groups, paddings of the output, in a batch."""

from __future__ import annotations

from epcheck.generators.conjunctions.conjunction import Conjunction, Drawn, Listed, ints

CUBE = Drawn((1, 1, 5, 5, 5))

NODES = (
    Conjunction("Conv", "1d_group_dilation_bias", (Drawn((1, 4, 9)), Drawn((4, 2, 3)), Drawn((4,))),
                {"group": 2, "dilations": (2,)}),
    Conjunction("Conv", "3d_group_strides", (Drawn((1, 4, 5, 5, 5)), Drawn((4, 2, 2, 2, 2))),
                {"group": 2, "strides": (2, 1, 2)}),
    Conjunction("ConvTranspose", "1d_dilation", (Drawn((1, 2, 5)), Drawn((2, 2, 3))), {"dilations": (2,)}),
    Conjunction("ConvTranspose", "3d_dilations", (Drawn((1, 2, 2, 3, 3)), Drawn((2, 2, 2, 2, 2))),
                {"dilations": (2, 1, 3)}),
    Conjunction("ConvTranspose", "3d_output_padding", (Drawn((1, 2, 2, 3, 3)), Drawn((2, 2, 3, 3, 3))),
                {"strides": (2, 2, 2), "pads": (1,) * 6, "output_padding": (1, 0, 0)}),
    Conjunction("ConvTranspose", "group_output_shape", (Drawn((1, 4, 3, 4)), Drawn((4, 2, 2, 2))),
                {"group": 2, "strides": (2, 2), "output_shape": (5, 7)}),
    Conjunction("ConvTranspose", "1d_output_shape", (Drawn((1, 2, 4)), Drawn((2, 2, 3))),
                {"strides": (2,), "output_shape": (8,)}),
    Conjunction("ConvTranspose", "batch_group_strides", (Drawn((2, 4, 3, 3)), Drawn((4, 2, 2, 2))),
                {"group": 2, "strides": (2, 2)}),
    Conjunction("DeformConv", "masks_of_a_batch",
                (Drawn((2, 1, 4, 4)), Drawn((1, 1, 2, 2)), Drawn((2, 8, 3, 3), -0.9, 0.9), None, Drawn((2, 4, 3, 3),
                0, 1)),
                {"kernel_shape": (2, 2)}),
    Conjunction("DeformConv", "offset_groups_of_a_batch",
                (Drawn((2, 2, 4, 4)), Drawn((1, 2, 2, 2)), Drawn((2, 16, 3, 3), -0.9, 0.9)),
                {"kernel_shape": (2, 2), "offset_group": 2}),
    Conjunction("QLinearConv", "group_dilations",
                (Drawn((1, 4, 6, 6), 0, 255), Listed(0.02, "float32"), Listed(120, "uint8"),
                 Drawn((4, 2, 2, 2), -127, 127, "int8"), Listed(0.01, "float32"), Listed(0, "int8"),
                 Listed(0.1, "float32"), Listed(128, "uint8")), {"group": 2, "dilations": (2, 2)}, "uint8-int8-uint8"),
    Conjunction("MaxPool", "3d_dilations", (CUBE,), {"kernel_shape": (2, 2, 2), "dilations": (2, 1, 3)}),
    Conjunction("MaxPool", "1d_indices_of_equal_values", (Listed([[[1.0, 1.0, 1.0, 0.0, 2.0, 2.0]]]),),
                {"kernel_shape": (2,)}, "float32", 2),
    Conjunction("AveragePool", "3d_dilations", (CUBE,), {"kernel_shape": (2, 2, 2), "dilations": (2, 2, 2)},
                "float32", 0,
                19),
    Conjunction("LpPool", "3d_dilations", (CUBE,), {"kernel_shape": (2, 2, 2), "dilations": (2, 2, 2)}, "float32", 0,
                18),
    Conjunction("LpPool", "squares_beyond_float16", (Listed([300.0] * 4, shape=(1, 1, 4)),), {"kernel_shape": (2,)},
                "float16"),
    *(
        Conjunction("RoiAlign", f"region_below_one_pixel_{mode}",
                    (Drawn((1, 1, 8, 8)), Listed([[1.0, 1.0, 1.5, 1.5]]), ints(0)),
                    {"coordinate_transformation_mode": mode, "output_height": 2, "output_width": 2,
                    "sampling_ratio": 1})
        for mode in ("half_pixel", "output_half_pixel")
    ),
    Conjunction("Resize", "nearest_region_beyond_and_value",
                (Drawn((1, 1, 3, 3)), Listed([0.0, 0.0, -0.5, -0.5, 1.0, 1.0, 1.5, 1.5]), None, ints(1, 1, 5, 5)),
                {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.5}),
    Conjunction("Resize", "antialias_3d", (Drawn((1, 1, 4, 4, 4)), None, Listed([1.0, 1.0, 0.5, 0.5, 0.5])),
                {"mode": "linear", "antialias": 1}),
    Conjunction("Resize", "antialias_1d", (Drawn((1, 1, 8)), None, Listed([1.0, 1.0, 0.5])),
                {"mode": "linear", "antialias": 1}),
    Conjunction("Resize", "cubic_exclude_outside_and_coefficient",
                (Drawn((1, 1, 4, 4)), None, Listed([1.0, 1.0, 2.0, 2.0])),
                {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5}),
)  # fmt: skip
