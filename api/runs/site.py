"""The site of a store: which provider computes what."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck.api.option import Option
from epcheck.reports import StoreError
from epcheck.reports.site.page import Site as Site
from epcheck.reports.site.write import site_of, write_site
from epcheck.reports.store.store import default_store, open_store


@dataclass(frozen=True)
class SiteOptions:
    """Which store, and where the site is written. store: None for EPCHECK_STORE or `epcheck-store`."""

    store: Annotated[
        Path | None,
        Option("A store.", argument=True, metavar="STORE", default="EPCHECK_STORE, or epcheck-store", file=False),
    ] = None
    out: Annotated[Path, Option("Folder for the site.", metavar="DIR", file=False)] = Path("site")


def site(options: SiteOptions | None = None) -> Site:
    """Write a site of a store: every provider, release and adapter side by side. Returns what it shows.

    Raises StoreError when the store cannot be read or has no records, or a file cannot be written.
    """
    options = options or SiteOptions()
    store = options.store or default_store()
    found = site_of(open_store(store))
    if not found.cells:
        why = f" ({found.problems[0]})" if found.problems else ""
        raise StoreError(f"{store}: no records for a site{why}; add runs with: epcheck store add RUN")
    write_site(found, options.out)
    return found
