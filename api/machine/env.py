"""Environments in which other providers really run: made, listed and removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from epcheck.api.option import Option
from epcheck.api.progress import SILENT, Progress
from epcheck.conformance.targets.recipes import environment as recipes
from epcheck.conformance.targets.recipes.environment import Environment as Environment
from epcheck.conformance.targets.recipes.environment import known_environments

Name = Annotated[str, Option("webgpu, openvino, openvino-plugin, qnn, cuda; webgpu@0.4.0 is a release.", argument=True)]


@dataclass(frozen=True)
class CreateEnvOptions:
    """Which recipe, with `@RELEASE` for a release of the provider's package. mirror: None for the Debian archive of
    this machine's apt, which only a software Vulkan driver comes from."""

    name: Name
    mirror: Annotated[str | None, Option("Debian archive for packages.", metavar="URL")] = None
    software_driver: Annotated[
        bool,
        Option("Use a software Vulkan driver even if the machine has one.", flags=("--software-driver",)),
    ] = False


@dataclass(frozen=True)
class RemoveEnvOptions:
    """Which environment, by its name."""

    name: Name


def create_env(options: CreateEnvOptions, *, progress: Progress = SILENT) -> Environment:
    """Make the environment of a provider, anew where it is there: a target of the same name runs in it. Less than two
    minutes; no root. Raises TargetError, RuntimeInstallError and LabError."""
    with progress.installing() as step:
        return recipes.create(options.name, options.mirror, options.software_driver, step)


def environments() -> tuple[Environment, ...]:
    """The environment of each recipe, made or not, and those of releases that were made."""
    return tuple(known_environments())


def remove_env(options: RemoveEnvOptions) -> int:
    """Delete an environment. Returns the bytes that were freed. Raises TargetError."""
    return recipes.remove(options.name)
