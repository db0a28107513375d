"""What a lab has, read from its stamps: no program is started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Layout, size
from epcheck.conformance.lab.packages.pins import DEFAULT_RUNTIME
from epcheck.conformance.lab.plan import plan
from epcheck.conformance.lab.steps import digests, read_stamp


@dataclass(frozen=True)
class StepStatus:
    """One step of a lab. detail: what was done, or what is to be done; empty for a step never begun."""

    name: str
    done: bool
    detail: str


@dataclass(frozen=True)
class LabStatus:
    """A lab as it is on disk.

    installed: every step is done and there is a runtime. runtimes: names that `python_launch` takes. wine_version and
    vulkan are None while unknown; dxil: whether shader model 6 works.
    """

    folder: Path
    installed: bool
    steps: tuple[StepStatus, ...]
    size_bytes: int
    runtimes: tuple[str, ...]
    wine_version: str | None
    vulkan: str | None
    dxil: bool


def status(folder: Path | None = None) -> LabStatus:
    """The state of a lab; a folder that is none, or is not there, has nothing installed. Never raises LabError."""
    layout = Layout.of(folder)
    try:
        config = layout.config()
    except LabError as error:
        reason = (StepStatus("lab", False, str(error)),)
        return LabStatus(layout.folder, False, reason, size(layout.folder), (), None, None, False)
    steps, facts = [], dict[str, str]()
    for name, digest in digests(plan(layout, config)).items():
        stamp = read_stamp(layout, name)
        if stamp is None:
            steps.append(StepStatus(name, False, ""))
        elif stamp.inputs != digest:
            steps.append(
                StepStatus(name, False, "made for another folder, another choice or another release of epcheck")
            )
        else:
            steps.append(StepStatus(name, True, stamp.detail))
            facts.update(stamp.facts)
    runtimes = []
    for path in sorted(layout.runtimes.glob("*")):
        stamp = read_stamp(layout, path.name)
        steps.append(StepStatus(path.name, stamp is not None, stamp.detail if stamp else ""))
        if stamp:
            runtimes.append(runtime_name(path.name))
    return LabStatus(
        folder=layout.folder,
        installed=all(s.done for s in steps) and bool(runtimes),
        steps=tuple(steps),
        size_bytes=size(layout.folder),
        runtimes=tuple(sorted(runtimes, key=lambda r: (r != DEFAULT_RUNTIME, r))),
        wine_version=facts.get("wine_version"),
        vulkan=config.vulkan or facts.get("vulkan"),
        dxil=layout.dxil.is_file() and any(s.name == "dxil" and s.done for s in steps),
    )


def runtime_name(folder: str) -> str:
    """The name of the runtime in such a folder: `1.24.4` for `onnxruntime-directml-1.24.4`, else `windowsml-...`."""
    return folder.removeprefix("onnxruntime-").removeprefix("directml-")
