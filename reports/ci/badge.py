"""The badge of a run: an SVG image for a README, which is made from the run and fetches nothing."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import FAILURE, FLAKY, PASS
from epcheck.reports.runs.summary import Summary
from epcheck.reports.text import visible

GREEN, YELLOW, RED, GREY = "#2e7d32", "#8a6100", "#c62828", "#5f6368"
"""Grounds on which white text has the contrast of WCAG 2.2 AA, 4.5 to 1."""

LABEL_GROUND = "#3c4043"

HEIGHT, PADDING, CHARACTER = 20, 7, 6.6
"""Of the image, in pixels; the text is drawn as wide as its characters count, whatever the font is."""


LONGEST = 32
"""Characters of the candidates' names; of a longer text the end is kept, which tells more of a path."""


def badge(run: Run, summary: Summary) -> str:
    """The image: at the left `epcheck` and the candidates, at the right the result in a few words."""
    names, (message, ground) = ", ".join(run.candidates), _message(run, summary)
    label = f"epcheck {names if len(names) <= LONGEST else f'…{names[1 - LONGEST :]}'}"
    left, right = _width(label), _width(message)
    title = f"{label}: {message}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{HEIGHT}" role="img" '
        f"aria-label={quoteattr(visible(title))}>\n"
        f"<title>{_text(title)}</title>\n"
        f'<clipPath id="r"><rect width="{left + right}" height="{HEIGHT}" rx="3"/></clipPath>\n'
        f'<g clip-path="url(#r)"><rect width="{left}" height="{HEIGHT}" fill="{LABEL_GROUND}"/>'
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{ground}"/></g>\n'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\n'
        f"{_draw_text(label, PADDING, left)}\n{_draw_text(message, left + PADDING, right)}\n</g>\n</svg>\n"
    )


def _message(run: Run, summary: Summary) -> tuple[str, str]:
    """The words at the right, and what is behind them."""
    failures, flaky = summary.by_reading.get(FAILURE, 0), summary.by_reading.get(FLAKY, 0)
    passes = summary.by_status.get(PASS, 0)
    words = f"{passes:,} case{' passes' if passes == 1 else 's pass'}"
    if failures:
        return f"{failures:,} failure{'s' if failures > 1 else ''}", RED
    if run.status != "complete" or summary.missing or not passes:
        return "incomplete" if summary.recorded else "nothing proven", GREY
    if flaky:
        return f"{words}, {flaky:,} flaky", YELLOW
    return words, GREEN


def _width(text: str) -> int:
    return round(len(text) * CHARACTER) + 2 * PADDING


def _draw_text(text: str, x: int, width: int) -> str:
    return (
        f'<text x="{x}" y="14" textLength="{width - 2 * PADDING}" lengthAdjust="spacingAndGlyphs">{_text(text)}</text>'
    )


def _text(text: str) -> str:
    return escape(visible(text))
