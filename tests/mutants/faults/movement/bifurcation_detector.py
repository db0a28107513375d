"""Mutants of BifurcationDetector."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs, outputs

DETECTOR = "com.microsoft::BifurcationDetector"

MUTANTS = [
    attribute(DETECTOR, "min_ngram_size", 1),
    attribute(DETECTOR, "max_ngram_size", 9),
    inputs(DETECTOR, "the last current token is lost",
           lambda n, v: np.concatenate([v[:-1] * 0, v[-1:]]) if n == "cur_tokens" else v),
    outputs(DETECTOR, "no match is 0", lambda v: np.maximum(v, 0)),
    outputs(DETECTOR, "the last token is lost", lambda v: v[: max(len(v) - 1, 1)]),
]  # fmt: skip
