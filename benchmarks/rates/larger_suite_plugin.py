"""A pytest plugin that makes the suite larger, each round with other random data.

python -m pytest -p benchmarks.rates.larger_suite_plugin --rounds 5 --pyargs epcheck.conformance
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.rates import larger_suite
from epcheck.generators import suite
from epcheck.generators.case import Case


def pytest_addoption(parser: pytest.Parser) -> None:
    """How large."""
    parser.addoption("--rounds", type=int, default=1, help="how often the suite is collected")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Replace the suite before anything looks at it."""
    once, rounds = suite.cases, config.getoption("--rounds")

    def cases(*selection: Any, **further: Any) -> Iterator[Case]:
        return larger_suite.repeated(once(*selection, **further), rounds)

    suite.cases = cases  # type: ignore[assignment]
