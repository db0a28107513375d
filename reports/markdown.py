"""Text and tables in Markdown, for a chat, an issue or the summary of a CI step."""

from __future__ import annotations

import re
from collections.abc import Iterable

from epcheck.reports.text import visible

_SPECIAL = re.compile(r"[\\`*_\[\]#!|~$]|^[-+=]")
"""What makes markup, and what makes a list or a heading where it begins a line."""


def escape_markdown(text: str) -> str:
    """Text from strangers, on one line, that Markdown and the HTML in it take as text, and that calls nobody."""
    plain = " ".join(visible(text).split())
    plain = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "&commat;")
    return _SPECIAL.sub(r"\\\g<0>", plain)


def row(cells: Iterable[str]) -> str:
    """A row of a table; what the cells say is not escaped here."""
    return f"| {' | '.join(cells)} |"


def code(text: str) -> str:
    """Text as code, also in a cell of a table; a backtick in it, which would end it, becomes an apostrophe."""
    plain = " ".join(visible(text).split()).replace("`", "'").replace("|", "\\|")
    return f"`{plain}`"
