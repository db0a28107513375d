"""How far outputs are from the truth, in ULP, within their bounds or not."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from epcheck.conformance.comparison import blocks
from epcheck.conformance.comparison.ulp import ulp_error
from epcheck.conformance.comparison.wrong_elements import form_difference
from epcheck.conformance.records.accuracy import ULP_EDGES, Accuracy, add_accuracy
from epcheck.generators.array import Array
from epcheck.generators.truth import Outputs, Selection, Ulp

_EDGES = np.array(ULP_EDGES)


def measure_accuracy(truth: Outputs | Selection, got: Mapping[str, Array]) -> Accuracy | None:
    """How far the outputs that have a bound in ULP are from the truth; None where none has, or has the right form."""
    if isinstance(truth, Selection):
        return None
    found: Accuracy | None = None
    for output in truth.outputs:
        actual = got.get(output.name)
        if not isinstance(output.bound, Ulp) or actual is None:
            continue
        if form_difference(output.name, output.value, actual) is None:
            exact = output.value if output.exact is None else output.exact
            for _, (values, exactly) in blocks.read(actual, exact):
                found = add_accuracy(found, _accuracy_of_errors(ulp_error(exactly, values)))
    return found


def _accuracy_of_errors(errors: Array) -> Accuracy:
    """errors: float64 in ULP."""
    worst = float(np.maximum.reduce(errors))
    with np.errstate(over="ignore"):  # an error of 1e300 ULP is one of infinitely many
        total = float(np.add.reduce(errors if math.isfinite(worst) else errors[np.isfinite(errors)]))
    return Accuracy(errors.size, worst, total, tuple(np.bincount(_EDGES.searchsorted(errors)).tolist()))
