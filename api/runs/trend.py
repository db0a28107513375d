"""What many nights of a store say together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck.api.option import Option
from epcheck.api.option_types import HtmlFile, JsonFile, MarkdownFile
from epcheck.generators.operator_index import group_of
from epcheck.reports import DEFAULT_ROOT, StoreError
from epcheck.reports.runs.run_folder import replacing
from epcheck.reports.store.store import default_store, open_store
from epcheck.reports.trend import trend as trends
from epcheck.reports.trend.json_document import document
from epcheck.reports.trend.markdown import markdown
from epcheck.reports.trend.page import write_html
from epcheck.reports.trend.trend import Trend as Trend

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class TrendOptions:
    """Which nights, and which files are written. store: None for EPCHECK_STORE or `epcheck-store`. since: the first
    day, `2026-11-21`; empty for all. root: where run folders are, to whose reports the page links.
    most: lines of a kind in the Markdown."""

    store: Annotated[Path | None, Option("A store.", default="EPCHECK_STORE, or epcheck-store")] = None
    since: Annotated[str, Option("Only nights from this day on (YYYY-MM-DD).", metavar="YYYY-MM-DD")] = ""
    most: Annotated[int, Option("List at most N entries per section.", flags=("--most",), minimum=1)] = 20
    html: HtmlFile = None
    markdown: MarkdownFile = None
    json: JsonFile = None
    root: Annotated[Path, Option("Parent folder of run folders; the page links to their reports.")] = DEFAULT_ROOT


def trend(options: TrendOptions | None = None) -> Trend:
    """Pass rates, since when which case is broken and what came with it, flaky cases, machines side by side.

    Raises StoreError when the store cannot be read or a file cannot be written.
    """
    options = options or TrendOptions()
    if options.since and not _DAY.fullmatch(options.since):
        raise StoreError(f"--since {options.since}: not a date; write YYYY-MM-DD, for example 2026-11-21")
    opened = open_store(options.store or default_store())
    found = trends.trend(opened, group_of, options.since)
    if options.json:
        _write(options.json, document(found))
    if options.markdown:
        _write(options.markdown, markdown(found, options.most).encode())
    if options.html:
        write_html(found, options.html, options.root)
    return found


def _write(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)
