"""A trend as Markdown, for a chat, a wiki or the summary of a CI step."""

from __future__ import annotations

from epcheck.reports.markdown import escape_markdown, row
from epcheck.reports.trend.sections import Section, headline, sections
from epcheck.reports.trend.trend import Trend


def markdown(trend: Trend, most: int = 20) -> str:
    """The whole trend; lists are cut after `most` entries."""
    return "\n".join(["# Trend", "", escape_markdown(headline(trend)), "", *map(_section, sections(trend, most))])


def _section(section: Section) -> str:
    lines = [f"## {section.title}", ""]
    for sentence in section.sentences:
        lines += [escape_markdown(sentence), ""]
    if section.rows:
        ruler = ["--:" if column in section.numbers else ":--" for column in range(len(section.header))]
        lines += [row(map(escape_markdown, section.header)), row(ruler)]
        lines += [*(row(map(escape_markdown, cells)) for cells in section.rows), ""]
    return "\n".join(lines)
