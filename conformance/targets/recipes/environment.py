"""Environments that are made from recipes: each in a folder of its own in the user's cache."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from epcheck.conformance.lab.folder import size
from epcheck.conformance.lab.process import Progress
from epcheck.conformance.records import atomic_file
from epcheck.conformance.targets import environments
from epcheck.conformance.targets.environments import RuntimeInstallError as RuntimeInstallError
from epcheck.conformance.targets.recipes import swiftshader
from epcheck.conformance.targets.recipes.recipe import RECIPES, Recipe
from epcheck.conformance.targets.target import TargetError
from epcheck.generators.nearest import ask_if_meant, find_nearest

COMPLETE, DRIVER = "environment.json", "swiftshader"
"""The file that marks an environment which is complete, and the folder of its Vulkan driver."""

VERSIONS = """\
import importlib.metadata, json, sys
print(json.dumps({name: importlib.metadata.version(name) for name in sys.argv[1:]}))"""


@dataclass(frozen=True)
class Environment:
    """One that was made, or could be. name: of the recipe, with `@RELEASE` where one was named. versions: package ->
    version; empty where it was not made. driver: its Vulkan driver in words, empty for the machine's or none."""

    name: str
    recipe: Recipe
    folder: Path
    versions: Mapping[str, str] = field(default_factory=dict)
    driver: str = ""

    @property
    def is_complete(self) -> bool:
        return bool(self.versions)

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")

    def variables(self) -> Mapping[str, str]:
        """What is set for programs that run in it."""
        libraries = os.environ.get("LD_LIBRARY_PATH", "")
        return swiftshader.environment(self.folder / DRIVER, libraries) if self.driver else {}


def is_recipe(name: str) -> bool:
    """Whether a target's name is that of a recipe, with a release or without."""
    return name.partition("@")[0] in RECIPES


def environment(name: str) -> Environment:
    """The environment of a recipe, as it is. name: `webgpu`, or `webgpu@0.4.0` for a release of the provider's package.

    Raises TargetError for what is no recipe.
    """
    start, at, release = name.partition("@")
    if start not in RECIPES:
        meant = ask_if_meant(find_nearest(start, RECIPES)) or f"Known are {', '.join(RECIPES)}."
        raise TargetError(f"no recipe '{start}'. {meant}")
    if at and not re.fullmatch(r"\d+(\.\d+)*\w*", release):
        raise TargetError(f"'{name}': '{release}' is not a release; write for example {start}@1.2.3")
    folder = environments.folder() / name.replace("@", "-")
    found = Environment(name, RECIPES[start], folder)
    try:
        made = json.loads((folder / COMPLETE).read_text(encoding="utf-8"))
        return Environment(name, RECIPES[start], folder, dict(made["versions"]), str(made["driver"]))
    except (OSError, ValueError, KeyError, TypeError):
        return found


def known_environments() -> Iterator[Environment]:
    """The environment of each recipe, and those of releases that were made."""
    for name in RECIPES:
        yield environment(name)
        for folder in sorted(environments.folder().glob(f"{name}-*")):
            release = folder.name.removeprefix(f"{name}-")
            if release[:1].isdigit() and (folder / COMPLETE).is_file():
                yield environment(f"{name}@{release}")


def create(
    name: str,
    mirror: str | None = None,
    software_driver: bool = False,
    wheels: Path | None = None,
    packages_from: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Environment:
    """Make the environment of a recipe anew. mirror: the Debian archive for the software Vulkan driver, None for that
    of this machine's apt. software_driver: take it even where the machine has a driver. wheels: a folder of those that
    are installed, all of them and nothing else, without network; then no software Vulkan driver is. packages_from: a
    site-packages folder whose packages the environment has as well.

    Raises TargetError, RuntimeInstallError and LabError; nothing is left behind that would look complete.
    """
    wanted = environment(name)
    recipe, folder = wanted.recipe, wanted.folder
    with_driver = wheels is None and recipe.software_vulkan and (software_driver or swiftshader.is_needed())
    if packages_from is not None and not packages_from.is_dir():
        raise TargetError(f"{packages_from}: no such folder; name a site-packages folder")
    files = [] if wheels is None else sorted(map(str, wheels.glob("*.whl")))
    if wheels is not None and not files:
        raise TargetError(f"{wheels} has no wheels; name the folder that has those of '{name}'")
    total = 3 if with_driver else 2

    def say(step: str, index: int, message: str, done: int | None = None, of: int | None = None) -> None:
        if progress:
            progress(Progress(step, index, total, message, done, of))

    (folder / COMPLETE).unlink(missing_ok=True)
    say("environment", 1, "making a virtual environment")
    failure = f"environment '{name}' cannot be made"
    environments.run_step(failure, environments.make_command(folder))
    say("packages", 2, f"installing {', '.join(recipe.packages)}")
    requirements = ("--no-index", "--no-deps", *files) if files else list_requirements(wanted)
    environments.run_step(failure, environments.install_command(wanted.python, *requirements))
    if packages_from is not None:
        environments.add_packages(wanted.python, packages_from)
    environments.compile_imports(wanted.python)
    driver = ""
    if with_driver:
        driver = swiftshader.install(
            folder / DRIVER, mirror, lambda message, done, of: say("driver", total, message, done, of)
        )
    ask = [str(wanted.python), "-I", "-c", VERSIONS, *recipe.distributions, "numpy"]
    versions = json.loads(environments.run_step(failure, ask))
    text = json.dumps({"recipe": recipe.name, "versions": versions, "driver": driver}, indent=1)
    atomic_file.write_text(folder / COMPLETE, f"{text}\n")
    return environment(name)


def list_requirements(wanted: Environment) -> tuple[str, ...]:
    """What pip installs for an environment."""
    release = wanted.name.partition("@")[2]
    *others, last = wanted.recipe.packages
    return ("numpy", *others, f"{last}=={release}" if release else last)


def remove(name: str) -> int:
    """Delete an environment; returns the bytes that were freed. Raises TargetError when there is none."""
    found = environment(name)
    if not found.folder.is_dir():
        raise TargetError(f"the environment '{name}' was not made; `epcheck env list` shows which were")
    freed = size(found.folder)
    (found.folder / COMPLETE).unlink(missing_ok=True)
    shutil.rmtree(found.folder)
    return freed


def ready(name: str) -> Environment:
    """An environment that a target runs in; one of a release is made where it is not there.

    Raises TargetError, with the command that makes it, RuntimeInstallError and LabError.
    """
    found = environment(name)
    if found.is_complete:
        return found
    if "@" in name:
        return create(name)
    raise TargetError(f"target '{name}': its environment was not made; run: epcheck env create {name}")
