"""Mutants of GatedDeltaNet and QEmbedLayerNormalization."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs

DELTA, EMBED = "com.microsoft::GatedDeltaNet", "com.microsoft::QEmbedLayerNormalization"

MUTANTS = [
    attribute(DELTA, "scale", None),
    attribute(DELTA, "qk_l2_norm", None),
    attribute(DELTA, "beta_activation", None),
    attribute(DELTA, "gate_activation", None),
    attribute(DELTA, "gate_lower_bound", None),
    inputs(DELTA, "states begin with 0", lambda n, v: np.zeros_like(v) if n == "initial_state" else v),
    inputs(DELTA, "the first state is that of all",
           lambda n, v: np.broadcast_to(v[:1], v.shape).copy() if n == "initial_state" else v),
    inputs(DELTA, "states are of one kind of head", lambda n, v: v[:, ::-1].copy() if n == "initial_state" else v),
    inputs(DELTA, "nothing is forgotten", lambda n, v: np.zeros_like(v) if n == "decay" else v),
    inputs(DELTA, "the rate is 1", lambda n, v: np.ones_like(v) if n == "beta" else v),
    inputs(DELTA, "the bias of gates is left out", lambda n, v: np.zeros_like(v) if n == "dt_bias" else v),
    attribute(EMBED, "epsilon", None),
    inputs(EMBED, "segments are left out", lambda n, v: np.zeros_like(v) if n == "segment_ids" else v),
    inputs(EMBED, "the zero point of gamma is that of words",
           lambda n, v: v - np.array(3, v.dtype) if n == "gamma_zero_point" else v),
    inputs(EMBED, "the scale of positions is that of words",
           lambda n, v: v / 2 if n == "position_embedding_scale" else v),
    inputs(EMBED, "every word counts", lambda n, v: np.ones_like(v) if n == "mask" else v),
]  # fmt: skip
