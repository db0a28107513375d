"""A chart as data: what the page draws, and says in a table to those who do not see it or have no script."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass
from typing import Any

LINE, POINTS, BARS = "line", "points", "bars"

_LOCAL = re.compile(r"#|[\w.~%-]+(/[\w.~%-]+)*(#|$)")
"""An address inside this page, or of a file beside it: no scheme, no other host."""


@dataclass(frozen=True)
class Series:
    """One line, row of points or row of bars: a number for each label of its chart, None where there is none. reading:
    whose colour it has (`failure`); empty for a colour by its place."""

    name: str
    values: tuple[float | None, ...]
    reading: str = ""


@dataclass(frozen=True)
class Mark:
    """A vertical line at a label, numbered in the chart and told below it: `driver 31.0.1 -> 31.0.2`."""

    at: int
    text: str


@dataclass(frozen=True)
class Chart:
    """Series over labels (nights, operators, ranges), in the order given.

    kind: LINE, POINTS or BARS. unit: what the numbers are, written at their axis. log: a logarithmic axis; numbers
    below `foot` (0: half the least above zero) are drawn there. Infinite numbers, and those above `most`, are drawn at
    the upper edge, and `beyond` counts them. links:
    for each label where a click on it leads, empty for nowhere: `#...` or a file beside the page; a ValueError refuses
    anything else, and a series whose length is not that of the labels.
    """

    title: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]
    unit: str = ""
    kind: str = LINE
    log: bool = False
    foot: float = 0.0
    marks: tuple[Mark, ...] = ()
    links: tuple[str, ...] = ()
    most: float = math.inf

    def __post_init__(self) -> None:
        for series in self.series:
            if len(series.values) != len(self.labels):
                raise ValueError(f"{self.title}: {series.name} has {len(series.values)} of {len(self.labels)} numbers")
        if self.links and len(self.links) != len(self.labels):
            raise ValueError(f"{self.title}: {len(self.links)} links for {len(self.labels)} labels")
        for link in self.links:
            if link and not _LOCAL.match(link):
                raise ValueError(f"{self.title}: {link!r} leads out of the page's folder")

    @property
    def beyond(self) -> str:
        """How many numbers stand at the upper edge, though they are above it, in a sentence; empty where none does."""
        numbers = [number for series in self.series for number in series.values if number is not None]
        above = sum(number > self.most or number == math.inf for number in numbers)
        unit = f" {self.unit}" if self.unit else ""
        limit = f"above {self.most:,.0f}{unit}" if math.isfinite(self.most) else "infinite"
        return f"{above:,} of {len(numbers):,} are {limit} and drawn at the upper edge." if above else ""

    def plain(self) -> dict[str, Any]:
        """The chart in JSON's types: an infinite number is "inf" or "-inf", an undefined one None."""
        chart = asdict(self)
        for series in chart["series"]:
            series["values"] = [_plain(value) for value in series["values"]]
        chart["most"] = chart["most"] if math.isfinite(chart["most"]) else None
        chart["beyond"] = self.beyond
        return chart


def _plain(value: float | None) -> float | str | None:
    if value is None or math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)
