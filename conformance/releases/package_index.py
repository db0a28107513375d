"""The releases of a package that pip can install, asked of pip itself: its own configuration says where it looks."""

from __future__ import annotations

import re
import sys

from packaging.version import InvalidVersion, Version

from epcheck.conformance.lab.packages import wheels
from epcheck.conformance.releases.error import ReleaseError
from epcheck.conformance.start_process import run_process

PATIENCE = ("--retries", "2", "--timeout", "15")
"""How often pip tries again, and how many seconds it waits for an answer."""

_LAST_RETRY = "Retry(total=0"
"""What pip says before the last attempt: a place that it was to look at did not answer."""


def releases_of(package: str, windows: bool = False) -> tuple[str, ...]:
    """The final releases, the oldest first, that have a file which this Python can install. windows: which the lab's
    Windows Python can.

    Raises ReleaseError when the index cannot be reached, or has no such release.
    """
    pip = wheels.pip()
    if pip is None:
        raise ReleaseError(wheels.missing() or "")
    platform = wheels.FOR_WINDOWS if windows else ()
    command = [*pip, "--disable-pip-version-check", "--no-input", "index", "versions"]
    done = run_process([*command, *PATIENCE, *platform, package])
    listed = re.search(r"^Available versions: (.+)$", done.stdout, re.MULTILINE)
    if _LAST_RETRY in done.stderr:
        raise ReleaseError(f"the package index cannot be reached for the releases of {package}")
    if done.returncode or not listed:
        raise ReleaseError(_why_none(package, windows, done.stderr))
    return tuple(sorted(filter(_is_version, listed[1].split(", ")), key=Version))


def _is_version(text: str) -> bool:
    try:
        return not Version(text).is_prerelease
    except InvalidVersion:
        return False


def _why_none(package: str, windows: bool, errors: str) -> str:
    if "No matching distribution" in errors:
        python = "Windows and Python 3.12" if windows else f"Python {sys.version_info[0]}.{sys.version_info[1]} here"
        return f"the package index has no release of {package} for {python}"
    errors_of_pip = [line.removeprefix("ERROR: ") for line in errors.splitlines() if line.startswith("ERROR: ")]
    return f"pip cannot list the releases of {package}: {errors_of_pip[-1] if errors_of_pip else 'it gives no reason'}"
