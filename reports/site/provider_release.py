"""The providers of a store: each execution provider in each release on each adapter, whatever its target was called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from epcheck.reports.runs import fingerprint
from epcheck.reports.store.run_file import StoredRun

SUFFIX = "ExecutionProvider"


@dataclass(frozen=True)
class ProviderRelease:
    """An execution provider in one release on one adapter.

    key: short, stable and unique in a store, for addresses: `dml-1.24.4`. line: equal for the releases of one provider
    on one adapter; ordinal: which of them it is, oldest first. is_newest: whether it is the last of its line.
    fingerprint: of its newest run. runs: (run id, name of the target), oldest first.
    """

    key: str
    provider: str
    release: str
    adapter: str
    line: int
    ordinal: int
    is_newest: bool
    started: str
    fingerprint: Mapping[str, str]
    runs: tuple[tuple[str, str], ...] = field(default=())

    @property
    def short_provider(self) -> str:
        """`Dml` for `DmlExecutionProvider`."""
        return self.provider.removesuffix(SUFFIX) or self.provider

    @property
    def name(self) -> str:
        """Provider and release, for people: `Dml 1.24.4`."""
        return " ".join(filter(None, (self.short_provider, self.release)))


def provider_releases(runs: Sequence[StoredRun]) -> tuple[ProviderRelease, ...]:
    """Every provider, release and adapter that has records, by provider and adapter, the oldest release first.

    runs: in the order of their start.
    """
    found: dict[tuple[str, str], dict[str, list[tuple[StoredRun, str]]]] = {}
    for stored in runs:
        for target in stored.counted:
            cls = fingerprint.fingerprint_class(stored.run, target)
            release = fingerprint.release_of(stored.run.targets.get(target, {}))
            of_line = found.setdefault((cls.provider, cls.adapter), {})
            of_line.setdefault(release, []).append((stored, target))
    keys = _keys((*line, release) for line, releases in found.items() for release in releases)
    made = []
    for number, (line, releases) in enumerate(sorted(found.items())):
        ordered = sorted(releases, key=fingerprint.release_order)
        for ordinal, release in enumerate(ordered):
            stored, target = releases[release][-1]
            made.append(
                ProviderRelease(
                    key=keys[*line, release],
                    provider=line[0],
                    release=release,
                    adapter=line[1],
                    line=number,
                    ordinal=ordinal,
                    is_newest=release == ordered[-1],
                    started=stored.run.started,
                    fingerprint=fingerprint.fingerprint(stored.run, target),
                    runs=tuple((run.run_id, name) for run, name in releases[release]),
                )
            )
    return tuple(made)


def _keys(names: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str, str], str]:
    """(provider, adapter, release) -> key: with the adapter in it where there are several."""
    every = list(names)
    short = {name: _slug(f"{name[0].removesuffix(SUFFIX)}-{name[2]}") for name in every}
    seen = Counter(short.values())
    taken: Counter[str] = Counter()
    keys = {}
    for name in sorted(every):
        key = short[name] if seen[short[name]] == 1 else _slug(f"{short[name]}-{name[1]}")
        taken[key] += 1
        keys[name] = key if taken[key] == 1 else f"{key}-{taken[key]}"
    return keys


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-") or "provider"
