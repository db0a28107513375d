"""Mutants of operators of com.microsoft that mean what ONNX's do: a few of each, as that its samples tell them."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs, outputs

PAD, TRILU, RANGE, GATHER_ND, GRID, CONV, CAUSAL, LINEAR = (
    f"com.microsoft::{name}"
    for name in (
        "Pad",
        "Trilu",
        "Range",
        "GatherND",
        "GridSample",
        "QLinearConv",
        "CausalConvWithState",
        "LinearAttention",
    )
)

MUTANTS = [
    attribute(PAD, "mode", None),
    inputs(PAD, "begins and ends are exchanged", lambda n, v: np.roll(v, v.size // 2) if n == "pads" else v),
    inputs(PAD, "value is not read", lambda n, v: np.zeros_like(v) if n == "value" else v),
    attribute(TRILU, "upper", None),
    attribute(TRILU, "upper", 0),
    inputs(TRILU, "k is not read", lambda n, v: np.zeros_like(v) if n == "k" else v),
    inputs(RANGE, "delta is 1", lambda n, v: np.ones_like(v) if n == "delta" else v),
    outputs(RANGE, "the last element is left out", lambda v: v[:-1]),
    inputs(GATHER_ND, "the last two indices are exchanged", lambda n, v: v[..., ::-1] if n == "indices" else v),
    outputs(GATHER_ND, "the last slice is that before", lambda v: np.concatenate([v[:-1], v[-2:-1]]) if v.ndim else v),
    attribute(GRID, "align_corners", None),
    attribute(GRID, "padding_mode", None),
    attribute(GRID, "mode", None),
    inputs(GRID, "x and y are exchanged", lambda n, v: v[..., ::-1] if n == "Grid" else v),
    inputs(CONV, "x_zero_point is not read", lambda n, v: np.zeros_like(v) if n == "x_zero_point" else v),
    inputs(CONV, "the bias is not added", lambda n, v: np.zeros_like(v) if n == "B" else v),
    inputs(CONV, "the first channel's scale is that of all",
           lambda n, v: np.full_like(v, v.ravel()[0]) if n == "w_scale" else v),
    attribute(CAUSAL, "activation", None),
    inputs(CAUSAL, "the past is not read", lambda n, v: np.zeros_like(v) if n == "past_state" else v),
    inputs(CAUSAL, "the kernel is flipped", lambda n, v: v[..., ::-1] if n == "weight" else v),
    attribute(LINEAR, "update_rule", "linear"),
    attribute(LINEAR, "scale", None),
    inputs(LINEAR, "the past is not read", lambda n, v: np.zeros_like(v) if n == "past_state" else v),
    inputs(LINEAR, "beta is 1", lambda n, v: np.ones_like(v) if n == "beta" else v),
]  # fmt: skip
