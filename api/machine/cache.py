"""What runs keep on this machine for the next ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from epcheck.conformance.cache import cache


@dataclass(frozen=True)
class CacheStatus:
    """path: of the cache. entries: prepared cases and opinions. size_bytes, limit_bytes: how large it is, and how large
    it may become."""

    path: Path | None
    entries: int
    size_bytes: int
    limit_bytes: int


def cache_status() -> CacheStatus:
    """Where runs keep prepared cases and opinions for the next ones, and how many."""
    with cache.open_cache() as kept:
        return CacheStatus(kept.path, kept.entries(), kept.size_bytes(), cache.LIMIT_BYTES)


def clear_cache() -> int:
    """Forget everything that is kept: the next run takes longer, and its records are the same. Returns the bytes that
    were freed."""
    with cache.open_cache() as kept:
        before = kept.size_bytes()
        kept.clear()
        return before - kept.size_bytes()
