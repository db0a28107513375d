"""The page of a site: providers, the matrix of operators, and compressed data for the view of each operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from markupsafe import Markup

from epcheck.conformance.records.terms import EXPECTED, FAILURE, OK
from epcheck.reports.page import shell
from epcheck.reports.page.columns import column
from epcheck.reports.page.embedded_data import pack_json
from epcheck.reports.page.html import SYMBOLS
from epcheck.reports.runs.summary import NOT_RUN
from epcheck.reports.site.deviations import Deviation
from epcheck.reports.site.provider_release import ProviderRelease
from epcheck.reports.site.table import Cell, by_operator, state_of

SCRIPTS = (
    "shell/shell_data.js",
    "site/site_data.js",
    "site/site_matrix.js",
    "site/site_operator.js",
    "site/site_provider.js",
    "site/site_wrong.js",
    "site/site_main.js",
)

MEANINGS = {
    FAILURE: "some cases fail",
    EXPECTED: "all failures are known and expected",
    OK: "all taken cases pass",
    NOT_RUN: "all cases declined",
}


@dataclass(frozen=True)
class Site:
    """What a site shows. runs: how many; last: when the last of them started. problems: files of the store that are not
    counted, in sentences."""

    releases: tuple[ProviderRelease, ...]
    cells: tuple[Cell, ...]
    deviations: tuple[Deviation, ...]
    runs: int
    last: str
    problems: tuple[str, ...] = ()

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators that have records."""
        return tuple(dict.fromkeys(cell.operator for cell in self.cells))


@dataclass(frozen=True)
class Total:
    """Cells of one provider together: operators, and cases as in Cell."""

    operators: int
    passes: int
    failures: int
    expected: int
    declined: int

    @property
    def taken(self) -> int:
        return self.passes + self.failures + self.expected

    @property
    def share(self) -> str:
        """Right cases in percent of those taken, to a tenth, rounded down: only what is all right is 100."""
        return f"{1000 * self.passes // self.taken / 10:.1f}" if self.taken else "0"

    @property
    def percent(self) -> str:
        return f"{self.share} %" if self.taken else "none taken"

    @property
    def state(self) -> str:
        return state_of(self.passes, self.failures, self.expected)

    @property
    def text(self) -> str:
        """The numbers of a matrix cell."""
        if not self.taken:
            return ""
        return str(self.passes) if self.passes == self.taken else f"{self.passes}/{self.taken}"


def total_of(cells: Sequence[Cell]) -> Total:
    """Cells added up."""
    return Total(
        len({cell.operator for cell in cells}),
        *(sum(getattr(cell, name) for cell in cells) for name in ("passes", "failures", "expected", "declined")),
    )


def headline(site: Site) -> str:
    """How much the site compares, in one sentence."""
    counted = (
        (len({release.provider for release in site.releases}), "provider"),
        (len(site.releases), "release"),
        (len({release.adapter for release in site.releases}), "adapter"),
        (len(site.operators), "operator"),
    )
    parts = [f"{number:,} {name}{'' if number == 1 else 's'}" for number, name in counted]
    return f"{parts[0]} in {parts[1]} on {parts[2]}: {parts[3]}"


def write_page(file: IO[bytes], site: Site) -> None:
    """Write `index.html`."""
    shown = [release for release in site.releases if release.is_newest]
    shell.write(
        file,
        "site/site.html.j2",
        scripts=SCRIPTS,
        styles=("shell/shell_views.css", "site/site.css"),
        headline=headline(site),
        runs=site.runs,
        last=site.last,
        problems=site.problems,
        names=Counter(release.name for release in site.releases),
        totals=_totals(site),
        shown=shown,
        rows=[(operator, _row(site, cells)) for operator, cells in by_operator(site.cells)],
        symbols=SYMBOLS,
        meanings=MEANINGS,
        table=_table(site),
        deviations=_deviations(site),
    )


def _totals(site: Site) -> list[tuple[ProviderRelease, Total]]:
    cells: list[list[Cell]] = [[] for _ in site.releases]
    for cell in site.cells:
        cells[cell.provider_release].append(cell)
    return [(release, total_of(own)) for release, own in zip(site.releases, cells, strict=True)]


def _row(site: Site, cells: Sequence[Cell]) -> Mapping[str, Total]:
    """The row of an operator: key of a provider release -> all its cells together."""
    own: dict[str, list[Cell]] = {}
    for cell in cells:
        own.setdefault(site.releases[cell.provider_release].key, []).append(cell)
    return {key: total_of(of_release) for key, of_release in own.items()}


def release_fields(release: ProviderRelease) -> dict[str, Any]:
    """A provider release as the page's script and `table.json` have it."""
    return {
        "key": release.key,
        "name": release.name,
        "provider": release.provider,
        "short": release.short_provider,
        "release": release.release,
        "adapter": release.adapter,
        "line": release.line,
        "newest": release.is_newest,
        "started": release.started,
        "fingerprint": dict(release.fingerprint),
        "runs": [list(run) for run in release.runs],
    }


CELL_FIELDS = (
    "provider_release", "operator", "since_version", "dtype", "passes", "failures", "expected", "declined", "claimed",
    "ulp", "codes", "since", "since_oldest",
)  # fmt: skip


def cell_values(cell: Cell) -> tuple[Any, ...]:
    """A cell by CELL_FIELDS; errors to three significant digits."""
    values = {**vars(cell), "ulp": None if cell.ulp is None else float(f"{cell.ulp:.3g}")}
    return tuple(values[name] for name in CELL_FIELDS)


def _table(site: Site) -> Markup:
    rows = [cell_values(cell) for cell in site.cells]
    columns = zip(CELL_FIELDS, zip(*rows, strict=True), strict=True) if rows else ()
    return pack_json(
        {
            "releases": [release_fields(release) for release in site.releases],
            "count": len(rows),
            "cells": {name: column(values) for name, values in columns},
        }
    )


def _deviations(site: Site) -> Markup:
    fields = [
        {
            "provider_release": found.provider_release, "key": found.key, "operator": found.operator,
            "sample": found.sample, "status": found.status, "blame": found.blame, "reading": found.reading,
            "reason": found.reason, "cases": found.cases, "versions": sorted(found.versions),
            "dtypes": found.listed_dtypes, "case_ids": found.case_ids, "repro": found.repro,
        }
        for found in site.deviations
    ]  # fmt: skip
    return pack_json({"count": len(fields), "rows": column(fields) if fields else None})
