"""Where a bound comes from, as a value: decisions read its publisher, kind, table and row, people read its text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum


class Publisher(StrEnum):
    """Whose document is cited."""

    DIRECT3D = "Direct3D"
    HIGHAM = "Higham"
    IEEE = "IEEE"
    ONNX = "ONNX"
    OPENCL = "OpenCL"
    VULKAN = "Vulkan"
    WEBNN = "WebNN"


class CitationKind(StrEnum):
    """What a citation contributes to a bound.

    PUBLISHED: a number of a published table. DERIVED: the errors of the computation, by rounding error analysis.
    FLUSH: denormal results may be zero. MEASURED: how far errors of earlier nodes carry. STATED: what the text says.
    """

    PUBLISHED = "published"
    DERIVED = "derived"
    FLUSH = "flush"
    MEASURED = "measured"
    STATED = "stated"


@dataclass(frozen=True)
class Citation:
    """One source of a bound.

    text: the source in words; no decision reads it. publisher: None where nobody published it. table: of the publisher,
    or the section. row: of the table; empty for the whole table. purpose: in words, what the source is cited for; empty
    where the bound itself is meant.
    """

    kind: CitationKind
    text: str
    publisher: Publisher | None = None
    table: str = ""
    row: str = ""
    purpose: str = ""

    @property
    def key(self) -> tuple[Publisher | None, str, str]:
        """Equal for citations of the same row of a table."""
        return self.publisher, self.table, self.row

    def cite_row(self, row: str) -> Citation:
        """A row of the table."""
        return replace(self, row=row, text=f"{self.text}, {row}")

    def add_remark(self, remark: str) -> Citation:
        """The same source with a remark behind its text."""
        return replace(self, text=f"{self.text}: {remark}")


Citations = tuple[Citation, ...]


def statement(text: str) -> Citation:
    """A source that nobody published, which is its text alone."""
    return Citation(CitationKind.STATED, text)


def source_text(citations: Iterable[Citation]) -> str:
    """All citations in words, in their order."""
    return "; ".join(f"{each.purpose}: {each.text}" if each.purpose else each.text for each in citations)
