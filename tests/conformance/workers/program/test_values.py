"""The outputs of a session, by name."""

from __future__ import annotations

import numpy as np

from epcheck.conformance.workers.program.backends.values import returned


def test_an_output_for_which_nothing_came_is_missing() -> None:
    one = np.ones(1)
    assert returned(["a", "b"], [one, one]) == {"a": one, "b": one}
    assert returned(["a", "b"], [one, None]) == {"a": one}
