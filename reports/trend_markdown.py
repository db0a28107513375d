"""A trend as Markdown, for a chat, a wiki or the summary of a CI step."""

from __future__ import annotations

import re
from collections.abc import Iterable

from epcheck.reports.text import visible
from epcheck.reports.trend import Trend
from epcheck.reports.trend_sections import Section, headline, sections

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$-])")


def markdown(trend: Trend, most: int = 20) -> str:
    """The whole trend; lists are cut after `most` entries."""
    return "\n".join(["# Trend", "", escaped(headline(trend)), "", *map(_section, sections(trend, most))])


def escaped(text: str) -> str:
    """Text from strangers, on one line, that Markdown and the HTML in it take as text, and that calls nobody."""
    plain = " ".join(visible(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", plain.replace("@", "&#64;"))


def _section(section: Section) -> str:
    lines = [f"## {section.title}", ""]
    for sentence in section.sentences:
        lines += [escaped(sentence), ""]
    if section.rows:
        ruler = ["--:" if column in section.numbers else ":--" for column in range(len(section.header))]
        lines += [_row(map(escaped, section.header)), _row(ruler)]
        lines += [_row(map(escaped, row)) for row in section.rows] + [""]
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
