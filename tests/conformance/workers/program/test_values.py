"""The outputs of a session, by name."""

from __future__ import annotations

import numpy as np

from epcheck.conformance.workers.program.backends.values import name_outputs


def test_an_output_for_which_nothing_came_is_missing() -> None:
    array = np.ones(1)
    assert name_outputs(["a", "b"], [array, array]) == {"a": array, "b": array}
    assert name_outputs(["a", "b"], [array, None]) == {"a": array}
