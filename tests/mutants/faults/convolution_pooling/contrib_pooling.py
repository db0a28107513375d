"""Mutants of NhwcMaxPool, MaxpoolWithMask and CropAndResize."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs, outputs

NHWC, MASKED, CROP = (f"com.microsoft::{name}" for name in ("NhwcMaxPool", "MaxpoolWithMask", "CropAndResize"))

MUTANTS = [
    attribute(NHWC, "strides", None),
    attribute(NHWC, "pads", None),
    attribute(NHWC, "dilations", None),
    attribute(NHWC, "ceil_mode", None),
    attribute(NHWC, "auto_pad", None),
    inputs(NHWC, "the first image is that of all", lambda _, v: np.broadcast_to(v[:1], v.shape).copy()),
    attribute(MASKED, "strides", None),
    attribute(MASKED, "pads", None),
    attribute(MASKED, "auto_pad", None),
    inputs(MASKED, "the mask is ignored", lambda n, v: np.ones_like(v) if n == "M" else v),
    inputs(MASKED, "the first mask is that of all channels",
           lambda n, v: np.broadcast_to(v[:1, :1], v.shape).copy() if n == "M" else v),
    attribute(CROP, "extrapolation_value", None),
    attribute(CROP, "mode", None),
    attribute(CROP, "mode", "nearest"),
    inputs(CROP, "the first image is that of all boxes",
           lambda n, v: np.full_like(v, v[0]) if n == "batch_indices" and v.size else v),
    inputs(CROP, "x comes before y", lambda n, v: v[..., [1, 0, 3, 2]] if n == "rois" else v),
    inputs(CROP, "width comes before height", lambda n, v: v[::-1].copy() if n == "crop_size" else v),
    outputs(CROP, "the last column is 0", lambda v: np.where(np.arange(v.shape[-1]) < v.shape[-1] - 1, v, 0)),
]  # fmt: skip
