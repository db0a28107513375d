"""Mutants of the windows."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs, outputs

MUTANTS = [
    mutant
    for name in ("HannWindow", "HammingWindow", "BlackmanWindow")
    for mutant in (
        attribute(name, "periodic", None),
        attribute(name, "periodic", 0),
        inputs(name, "it is one element longer", lambda _, v: v + 1),
        outputs(name, "it begins in the middle", lambda v: np.roll(v, len(v) // 2)),
        outputs(name, "it is squared", lambda v: v * v),
    )
]
