"""What each case of the suite is, in a JSON file: types, sizes and magnitudes of its inputs and of its truth.

A parent on Windows and one on Linux make the same cases but for last digits (`parity.py`): numpy's default integer, its
longdouble and the elementary functions below it are other ones there. Run it as `case_summaries.py FILE`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from epcheck.generators import suite
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.truth import Outputs, Selection


def summarize_case(built: BuiltCase) -> list[Any]:
    """Its inputs, those that the model holds included, and what is right."""
    inputs = [summarize_array(operand.value) for operand in built.node.inputs if operand is not None]
    if isinstance(built.truth, Outputs):
        return [
            inputs,
            [[type(output.bound).__name__, *summarize_array(output.value)] for output in built.truth.outputs],
        ]
    if isinstance(built.truth, Selection):
        return [inputs, [list(map(summarize_array, pair)) for pair in built.truth.accepted]]
    return [inputs, type(built.truth).__name__]


def summarize_array(array: Array) -> list[Any]:
    """dtype, shape, how many elements are NaN, and infinite, and the sum of the magnitudes of the others."""
    if array.dtype.kind not in "biufV":
        return [array.dtype.name, list(array.shape)]
    values = np.abs(array.astype(np.float64))
    finite = np.isfinite(values)
    nan = int(np.isnan(values).sum())
    magnitude = float((values[finite] / max(1, int(finite.sum()))).sum())
    return [array.dtype.name, list(array.shape), nan, int((~finite).sum()) - nan, magnitude]


def summarize_suite() -> Iterator[tuple[str, list[Any]]]:
    for case in suite.cases():
        yield case.id, summarize_case(case.build())


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        Path(sys.argv[1]).write_text(json.dumps(dict(summarize_suite())), encoding="utf-8")
