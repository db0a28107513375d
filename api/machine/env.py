"""Environments in which other providers really run: made, listed and removed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck.api.option import Option
from epcheck.api.progress import SILENT, Progress
from epcheck.conformance.targets.recipes import environment as recipes
from epcheck.conformance.targets.recipes.environment import Environment as Environment
from epcheck.conformance.targets.recipes.environment import known_environments
from epcheck.conformance.targets.recipes.pack import PackedEnvironments as PackedEnvironments
from epcheck.conformance.targets.recipes.pack import pack

Name = Annotated[str, Option("webgpu, openvino, openvino-plugin, qnn, cuda; webgpu@0.4.0 is a release.", argument=True)]


@dataclass(frozen=True)
class CreateEnvOptions:
    """Which recipe, with `@RELEASE` for a release of the provider's package. mirror: None for the Debian archive of
    this machine's apt, which only a software Vulkan driver comes from. wheels: a folder of those that are installed,
    all of them and nothing else, without network. packages_from: a site-packages folder that the environment has as
    well."""

    name: Name
    mirror: Annotated[str | None, Option("Debian archive for packages.", metavar="URL")] = None
    software_driver: Annotated[
        bool,
        Option("Use a software Vulkan driver even if the machine has one.", flags=("--software-driver",)),
    ] = False
    wheels: Annotated[
        Path | None, Option("Install the wheels of this folder, without network.", metavar="FOLDER", file=False)
    ] = None
    packages_from: Annotated[
        Path | None, Option("Use the packages of this site-packages folder too.", metavar="FOLDER", file=False)
    ] = None


@dataclass(frozen=True)
class PackEnvOptions:
    """What is packed for a machine without network, of the same system and processor, and where. targets: recipes, and
    `dml` for the lab. python: None for the version of this one. part_mb: megabytes of a part at most, 0 for one part.
    without: globs over names of packages. software_driver: the lab is packed with its own Vulkan driver. epcheck: a
    wheel of epcheck, or its source; None for that of this one."""

    folder: Annotated[Path, Option("New folder for the parts.", argument=True, metavar="FOLDER", file=False)]
    targets: Annotated[
        tuple[str, ...], Option("Recipe, or dml for the lab; repeat for more.", flags=("--target",), metavar="NAME")
    ] = ()
    python: Annotated[
        str | None, Option("Python there, for example 3.12.", metavar="VERSION", default="this version")
    ] = None
    part_mb: Annotated[int, Option("Megabytes of a part at most; 0 makes one part.", metavar="N", minimum=0)] = 0
    without: Annotated[
        tuple[str, ...],
        Option("Package that the machine has, as a glob; repeat for more.", flags=("--without",), metavar="PATTERN"),
    ] = ()
    software_driver: Annotated[
        bool,
        Option("Include the lab's software Vulkan driver, for machines without a GPU.", flags=("--software-driver",)),
    ] = False
    epcheck: Annotated[
        Path | None, Option("Wheel or source of epcheck.", metavar="PATH", default="the installed one's source")
    ] = None


@dataclass(frozen=True)
class RemoveEnvOptions:
    """Which environment, by its name."""

    name: Name


def create_env(options: CreateEnvOptions, *, progress: Progress = SILENT) -> Environment:
    """Make the environment of a provider, anew where it is there: a target of the same name runs in it. Less than two
    minutes; no root. Raises TargetError, RuntimeInstallError and LabError."""
    with progress.installing() as step:
        return recipes.create(
            options.name,
            options.mirror,
            options.software_driver,
            wheels=options.wheels,
            packages_from=options.packages_from,
            progress=step,
        )


def pack_env(options: PackEnvOptions, *, progress: Progress = SILENT) -> PackedEnvironments:
    """Write epcheck and environments as parts of a stated size, with a script that installs them without network.
    Raises TargetError, RuntimeInstallError, LabError and OSError."""
    with progress.installing() as step:
        return pack(
            options.folder,
            options.targets,
            python=options.python,
            part_mb=options.part_mb,
            without=options.without,
            source=options.epcheck,
            software_driver=options.software_driver,
            progress=step,
        )


def environments() -> tuple[Environment, ...]:
    """The environment of each recipe, made or not, and those of releases that were made."""
    return tuple(known_environments())


def remove_env(options: RemoveEnvOptions) -> int:
    """Delete an environment. Returns the bytes that were freed. Raises TargetError."""
    return recipes.remove(options.name)
