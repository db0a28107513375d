"""Mutants of MoEGroupRouter."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs, outputs

ROUTER = "com.microsoft::MoEGroupRouter"

MUTANTS = [
    attribute(ROUTER, "top_k", 1),
    attribute(ROUTER, "group_topk", 1),
    attribute(ROUTER, "topk_group", 1),
    attribute(ROUTER, "n_group", 1),
    attribute(ROUTER, "router_sentinel", -10000.0),
    inputs(ROUTER, "the bias is left out", lambda n, v: np.zeros_like(v) if n == "expert_bias" else v),
    outputs(ROUTER, "a logarithm is one of base 2", lambda v: np.where(v < -500, v, v / np.log(2)).astype(v.dtype)),
]
