"""What this version of epcheck was tested with: `debian.json`, `glvnd.json` and `wheels.json` beside this file.

To move on to newer packages: install a lab, check it, and copy `apt/packages.json` of its folder over the entries of
`debian.json` and `glvnd.json`; for wheels, put the version, SHA-256 and size that the index states into `wheels.json`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from epcheck.conformance.lab.errors import LabError

DEFAULT_RUNTIME = "1.24.4"
"""The release of onnxruntime-directml that a lab has unless others are asked for."""

_DIRECTML = "onnxruntime-directml"
_WINDOWSML = "onnxruntime-windowsml"


@dataclass(frozen=True)
class Wheel:
    """One file of a package index. sha256 and size (bytes) are None for a release that is not pinned."""

    name: str
    version: str
    sha256: str | None = None
    size: int | None = None

    @property
    def requirement(self) -> str:
        """The line of a pip requirements file."""
        return f"{self.name}=={self.version}" + (f" --hash=sha256:{self.sha256}" if self.sha256 else "")

    @property
    def folder(self) -> str:
        """The name of a runtime's folder: `onnxruntime-directml-1.24.4`."""
        return f"{self.name}-{self.version}"


@cache
def read(name: str) -> dict[str, Any]:
    """A data file of this package."""
    content: dict[str, Any] = json.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))
    return content


def wheel(name: str, version: str | None = None) -> Wheel:
    """The pinned file of `name`, or of that version of it; not pinned where the version is unknown here."""
    known: dict[str, dict[str, Any]] = read("wheels.json").get(name, {})
    if version is None:
        (version,) = known
    pin = known.get(version)
    return Wheel(name, version, pin["sha256"], pin["size"]) if pin else Wheel(name, version)


def runtime(version: str) -> Wheel:
    """The wheel that a runtime's name means.

    `1.24.4` is that release of onnxruntime-directml, or of onnxruntime-windowsml where only that one is pinned
    (`1.30.0`); `windowsml-1.30.0` and `onnxruntime-windowsml==1.30.0` name the distribution. A release of Windows ML
    may be shortened to its pinned beginning. Raises LabError when it cannot be a version.
    """
    match = re.fullmatch(r"(?:(?:onnxruntime-)?(directml|windowsml)(?:==|-))?([0-9]+(?:\.[0-9A-Za-z]+)*)", version)
    if not match:
        raise LabError(f"{version!r} is not a runtime; name a release like {DEFAULT_RUNTIME} or windowsml-1.30.0")
    flavour, number = match.groups()
    windowsml = [v for v in read("wheels.json")[_WINDOWSML] if v == number or v.startswith(number + ".2")]
    if flavour == "windowsml" or (flavour is None and windowsml and number not in read("wheels.json")[_DIRECTML]):
        return wheel(_WINDOWSML, windowsml[0] if windowsml else number)
    return wheel(_DIRECTML, number)


def is_pinned(version: str) -> bool:
    """Whether a runtime is known here, so that it need not be looked up. Raises LabError as `runtime` does."""
    return runtime(version).sha256 is not None
