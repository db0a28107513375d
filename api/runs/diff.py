"""Two runs compared, or two targets of one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck.api.option import Option
from epcheck.api.option_types import Factor, HtmlFile, JsonFile, JUnitFile, MarkdownFile
from epcheck.reports.diff import assessment, difference, drift
from epcheck.reports.diff.assessment import Assessment as Assessment
from epcheck.reports.diff.compared_runs import open_pair
from epcheck.reports.diff.write import write_html, write_json, write_junit, write_markdown


@dataclass(frozen=True)
class DiffOptions:
    """Which runs, and which files are written of the comparison. newer: None for another target of the same run.
    factor: how many times larger an error in ULP has to be to count as drift."""

    older: Annotated[Path, Option("A run's folder, or its file in a store.", argument=True, metavar="RUN_A")]
    newer: Annotated[
        Path | None,
        Option("The run that is held against it.", argument=True, metavar="RUN_B", default="the same, two targets"),
    ] = None
    target_a: Annotated[str | None, Option("Which target of RUN_A, where it has several.")] = None
    target_b: Annotated[str | None, Option("Which target of RUN_B, where it has several.")] = None
    factor: Factor = drift.FACTOR
    html: HtmlFile = None
    markdown: MarkdownFile = None
    json: JsonFile = None
    junit: JUnitFile = None


def diff(options: DiffOptions) -> Assessment:
    """Compare two runs: what broke, what was fixed, what drifted, and what changed on the machine.

    Raises StoreError when one cannot be read, or it is not clear which target is meant.
    """
    runs = open_pair(options.older, options.newer, options.target_a, options.target_b)
    found = assessment.assess(difference.compare(*runs, factor=options.factor))
    if options.html:
        folders = {options.older: runs[0].run.run_id, options.newer or options.older: runs[1].run.run_id}
        write_html(options.html, found.title, (found,), {run_id: folder for folder, run_id in folders.items()})
    files = (
        (write_markdown, options.markdown), (write_json, options.json),
        (write_junit, options.junit),
    )  # fmt: skip
    for write, path in files:
        if path:
            write(path, found.title, (found,))
    return found
