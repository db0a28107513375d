"""The releases in which a target can be had: which package they are of, how they are named, and the target of each."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from epcheck.conformance import lab
from epcheck.conformance.records.target_facts import base_of
from epcheck.conformance.releases.error import ReleaseError, UnusableReleaseError
from epcheck.conformance.releases.package_index import releases_of
from epcheck.conformance.targets import environments
from epcheck.conformance.targets.environments import WINDOWSML, WINDOWSML_PACKAGE, RuntimeInstallError
from epcheck.conformance.targets.recipes import environment as recipes
from epcheck.conformance.targets.recipes.recipe import RECIPES
from epcheck.conformance.targets.specification import NEED_LAB, ProgressCallback, resolve
from epcheck.conformance.targets.target import Target, TargetError

PACKAGES = {
    "cpu": "onnxruntime",
    **dict.fromkeys(NEED_LAB, "onnxruntime-directml"),
    **{name: recipe.distributions[-1] for name, recipe in RECIPES.items()},
}
"""Target -> the package whose releases it can be had in, as `NAME@RELEASE`; of a recipe the one with the provider."""

RELEASE = re.compile(rf"(?:{WINDOWSML})?\d+(?:\.\d+)*\w*")


@dataclass(frozen=True)
class Series:
    """The releases of one target. name: the target without a release. base: a key of PACKAGES; another one than the
    name where that is a table of `epcheck.toml` with this base."""

    name: str
    base: str

    @property
    def package(self) -> str:
        return PACKAGES[base_of(self.base)]

    @property
    def in_lab(self) -> bool:
        """Whether its runtimes are in the lab, for Windows Python."""
        return base_of(self.base) in NEED_LAB and sys.platform != "win32"


def series_of(specification: str, config: Mapping[str, Any]) -> Series:
    """The series of a target, `dml` or `dml@1.20.1`. config: of `load_config`. Raises ReleaseError, and TargetError
    where the lab that it needs is not installed."""
    name = specification.partition("@")[0]
    table = config.get("targets", {}).get(name)
    base = str(table.get("base", "")).partition("@")[0] if table else name
    if base_of(base) not in PACKAGES:
        known = ", ".join(PACKAGES)
        raise ReleaseError(
            f"target '{specification}' has no releases to compare; name {known}, or a table of epcheck.toml whose "
            f"base is one of them"
        )
    series = Series(name, base)
    if series.in_lab and not lab.status().installed:
        raise TargetError(f"target '{specification}': the lab is not installed; run: epcheck lab install")
    return series


def choose(series: Series, wanted: str, say: Callable[[str], None]) -> tuple[str, ...]:
    """The releases that are meant, the oldest first.

    wanted: `A..B` with both ends (`1.24` as the newer end has 1.24.4 as well), `A..`, `..B`, a list `A,B,C`, or empty
    for all. Ranges are of the package index; where that cannot be asked, of what is installed, and `say` takes a
    sentence. Raises ReleaseError.
    """
    if wanted and ".." not in wanted:
        return tuple(sorted({_check_release(name.strip(), wanted) for name in wanted.split(",")}, key=_order))
    first, _, last = wanted.partition("..")
    oldest, newest = (_check_release(end.strip(), wanted) if end.strip() else "" for end in (first, last))
    if oldest and newest and _order(oldest) > _order(newest):
        raise ReleaseError(f"'{wanted}' ends before it begins; write {newest}..{oldest}")
    try:
        available = _list_releases(series, oldest, newest)
    except ReleaseError as error:
        chosen = in_range(_list_installed(series), oldest, newest)
        if len(chosen) < 2:
            raise ReleaseError(f"{error}; name releases that are installed, as A,B,C") from None
        say(f"Only releases that are installed are compared, since {error}")
        return chosen
    chosen = in_range(available, oldest, newest)
    if not chosen:
        raise ReleaseError(f"there is no release of {series.package} in '{wanted}'; there are {', '.join(available)}")
    return chosen


def in_range(releases: Sequence[str], oldest: str, newest: str) -> tuple[str, ...]:
    """Those of a range, the oldest first; both ends are in it, and empty ones have no end. Releases of Windows ML
    follow those of onnxruntime-directml, from the next number on; they are left out where no end is one."""
    plain = [name for name in releases if not name.startswith(WINDOWSML)]
    others = [name for name in releases if name.startswith(WINDOWSML)]
    if not newest.startswith(WINDOWSML) and not oldest.startswith(WINDOWSML):
        others = []
    elif oldest.startswith(WINDOWSML):
        plain = []
    elif plain:
        last = max(map(_version, plain))
        others = [name for name in others if _version(name) > last]
    chosen = [
        name
        for name in (*plain, *others)
        if (not oldest or _order(oldest) <= _order(name))
        and (not newest or _order(name) <= _order(newest) or _begins_with(name, newest))
    ]
    return tuple(sorted(chosen, key=_order))


def target_at(
    series: Series,
    release: str,
    config: Mapping[str, Any],
    progress: ProgressCallback | None = None,
    vulkan: Path | None = None,
) -> Target:
    """The target in one release, which is installed first where it is not; without expectations, which are of today's
    release. Raises UnusableReleaseError."""
    base = f"{series.base}@{release}"
    try:
        if series.name == series.base:
            target = resolve(base, None, progress, vulkan)
        else:
            table = {**config["targets"][series.name], "base": base}
            target = resolve(series.name, {"targets": {series.name: table}}, progress, vulkan)
    except (TargetError, RuntimeInstallError, lab.LabError) as error:
        raise UnusableReleaseError(str(error)) from error
    return replace(target, name=f"{series.name}@{release}", expectations=())


def _list_releases(series: Series, oldest: str, newest: str) -> tuple[str, ...]:
    """What the index has."""
    found = releases_of(series.package, series.in_lab)
    if any(end.startswith(WINDOWSML) for end in (oldest, newest)):
        found += tuple(f"{WINDOWSML}{number}" for number in releases_of(WINDOWSML_PACKAGE, series.in_lab))
    return found


def _list_installed(series: Series) -> tuple[str, ...]:
    if series.base in RECIPES:
        names = (made.name.partition("@") for made in recipes.known_environments() if made.is_complete)
        return tuple(release for name, _, release in names if name == series.base and release)
    return lab.status().runtimes if series.in_lab else environments.list_installed(series.package)


def _check_release(name: str, wanted: str) -> str:
    example = "write for example 1.17.3..1.24.4, or 1.17.3,1.20.1,1.24.4"
    if not RELEASE.fullmatch(name):
        raise ReleaseError(f"'{wanted}' names no releases; {example}")
    try:
        _version(name)
    except InvalidVersion:
        raise ReleaseError(f"'{name}' is not a release; {example}") from None
    return name


def _version(release: str) -> Version:
    return Version(release.removeprefix(WINDOWSML))


def _order(release: str) -> tuple[bool, Version]:
    return release.startswith(WINDOWSML), _version(release)


def _begins_with(release: str, beginning: str) -> bool:
    """Whether a release is one of `1.24`."""
    if release.startswith(WINDOWSML) != beginning.startswith(WINDOWSML):
        return False
    numbers = _version(beginning).release
    return _version(release).release[: len(numbers)] == numbers
