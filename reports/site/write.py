"""Write a site: `index.html`, which needs nothing else, and `table.json` with its figures for programs."""

from __future__ import annotations

from pathlib import Path

from epcheck.conformance.records import strict_json
from epcheck.reports.runs.run_folder import StoreError, replacing
from epcheck.reports.site.deviations import deviations_of
from epcheck.reports.site.page import CELL_FIELDS, Site, cell_values, release_fields, write_page
from epcheck.reports.site.provider_release import provider_releases
from epcheck.reports.site.table import cells_of
from epcheck.reports.store.run_file import FileProblemError
from epcheck.reports.store.store import Store

PAGE, TABLE = "index.html", "table.json"
"""The files of a site."""

TABLE_SCHEMA = 1
"""The version of `table.json`. A reader refuses a newer one."""


def site_of(store: Store) -> Site:
    """What the runs of a store say together; files that turn out to be damaged become problems. Raises StoreError."""
    while True:
        releases = provider_releases(store.runs)
        try:
            cells, deviations = cells_of(store.runs, releases), deviations_of(store.runs, releases)
        except FileProblemError as error:
            store = store.without(error.problem)
            continue
        last = store.runs[-1].run.started if store.runs else ""
        problems = tuple(problem.sentence for problem in store.problems)
        return Site(releases, cells, deviations, len(store.runs), last, problems)


def write_site(site: Site, folder: Path) -> tuple[Path, ...]:
    """Write the files of a site into a folder, which is made if need be; the page is the first. Raises StoreError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder}: cannot make the folder of the site ({error.strerror or error})") from error
    with replacing(folder / PAGE) as file:
        write_page(file, site)
    with replacing(folder / TABLE) as file:
        file.write(table_json(site))
    return folder / PAGE, folder / TABLE


def table_json(site: Site) -> bytes:
    """`schema` (TABLE_SCHEMA), `provider_releases`, `columns` and `cells`: each cell is a list of the columns' values.

    `provider_release` and `since` are indices into `provider_releases`. Infinite numbers are `{"$float": "inf"}`.
    """
    lines = ",\n".join(strict_json.dumps(cell_values(cell)) for cell in site.cells)
    head = {
        "schema": TABLE_SCHEMA,
        "provider_releases": [release_fields(release) for release in site.releases],
        "columns": CELL_FIELDS,
    }
    return f'{strict_json.dumps(head)[:-1]},"cells":[\n{lines}\n]}}\n'.encode("ascii")
