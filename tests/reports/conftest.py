"""A browser, for the pages that are tested in one."""

from tests.reports.browsing import browser, driver

__all__ = ["browser", "driver"]
