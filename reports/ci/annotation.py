"""Annotations of GitHub Actions: sentences that stand on the page of a workflow, and beside a file of a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from epcheck.reports.text import visible

MOST = 10
"""Annotations of each level that GitHub keeps of a step; more are dropped without a word."""

LONGEST = 600
"""Characters of a sentence; GitHub cuts at 4 KiB, and a page of long ones is not read."""

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Annotation:
    """A sentence. level: ERROR or WARNING. file: that it is about, relative to the repository; empty for
    none."""

    level: str
    title: str
    text: str
    file: str = ""

    @property
    def command(self) -> str:
        """The workflow command that makes it, on one line: `::error title=...::...`.

        Source of the escapes: the `toCommandValue` of GitHub's toolkit, which replaces percent and line ends, and in
        properties the separators too.
        """
        properties = [f"file={_property(self.file)}"] if self.file else []
        properties.append(f"title={_property(self.title)}")
        return f"::{self.level} {','.join(properties)}::{_escape(_cut(self.text))}"


def write_annotations(path: Path, annotations: Sequence[Annotation]) -> None:
    """Write the workflow commands, for a step that prints the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{annotation.command}\n" for annotation in annotations), encoding="utf-8")


def at_most(annotations: Sequence[Annotation], most: int = MOST) -> tuple[Annotation, ...]:
    """The first of them; the last that is kept says how many more there are."""
    if len(annotations) <= most:
        return tuple(annotations)
    *kept, last = annotations[:most]
    rest = len(annotations) - most
    more = f"{_cut(last.text)}\n… and {rest} more like these: see the report."
    return (*kept, replace(last, text=more))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _escape(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
