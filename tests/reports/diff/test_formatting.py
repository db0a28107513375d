"""What differs between two runs, in words."""

from __future__ import annotations

import pytest

from epcheck.reports.diff.drift import SpeedDrift
from epcheck.reports.diff.formatting import format_speed


@pytest.mark.parametrize(
    ("speed", "words"),
    [
        (SpeedDrift("Relu", "run", 1.52, 0.9, 1.1, 40), "1.52 times as long (0.9 to 1.1 is noise; 40 sessions)"),
        (SpeedDrift("", "run", 1.1, 0.5, 2, 4000),
         "1.10 times as long (most operators are within 0.5 to 2; 4,000 sessions)"),
        (SpeedDrift("", "run", 1.05, 0.014, 78, 38),
         "1.05 times as long (the measurements are too noisy to tell; 38 sessions)"),
        (SpeedDrift("", "create", 0.00231, 0.00001, 50.0, 453),
         "0.0023 times as long (the measurements are too noisy to tell; 453 sessions)"),
    ],
)  # fmt: skip
def test_a_change_of_speed_says_what_is_noise(speed: SpeedDrift, words: str) -> None:
    assert format_speed(speed) == words
