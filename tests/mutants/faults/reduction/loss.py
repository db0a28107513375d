"""Mutants of NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs, outputs

LABELS = ("target", "labels")
WEIGHTS = ("weight", "weights")

MUTANTS = [
    mutant
    for name in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
    for mutant in (
        attribute(name, "reduction", None),
        attribute(name, "reduction", "sum"),
        attribute(name, "ignore_index", 1),
        inputs(name, "weights are of the neighbour", lambda n, v: np.roll(v, 1) if n in WEIGHTS else v),
        inputs(name, "weights are 1", lambda n, v: np.ones_like(v) if n in WEIGHTS else v),
        inputs(name, "the first label is that of all", lambda n, v: np.full_like(v, v[0]) if n in LABELS else v),
        outputs(name, "the sign is left", np.negative),
    )
]
