"""A browser, for the pages that are tested in one."""

from browsing import browser, driver

__all__ = ["browser", "driver"]
