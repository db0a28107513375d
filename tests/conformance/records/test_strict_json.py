"""JSON without floats is what the slower way writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.conformance.records import strict_json


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, None, True, (2, 3)], "b": {"c": ""}},
        {"ä\x7f": '\x00\b\t\n\f\r\x1f"\\/ é \U0001f600 \u2028'},
        "half of a pair: \ud800",
        [2**70, -(2**70)],
        {"shape": np.arange(3), "size": np.int64(3)},
    ],
    ids=["plain", "characters", "surrogate", "large", "numpy"],
)
def test_it_is_written_as_with_floats(value: Any) -> None:
    assert strict_json.dumps_without_floats(value) == strict_json.dumps(value)


def test_every_character_is_written_as_with_floats() -> None:
    text = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x10100))))
    assert strict_json.dumps_without_floats(text) == strict_json.dumps(text)
