"""Targets: a provider in a runtime. Their specifications, as words on the command line and as tables in `epcheck.toml`.

cpu                    CPUExecutionProvider of this interpreter's onnxruntime
dml                    DmlExecutionProvider: this interpreter's on Windows, the lab's on Linux
directml               DirectML's own operators, called without ONNX Runtime: of the dll that the target dml has
dml:1, dml:nvidia      the same on another adapter of the machine than its first: its number, or a part of its name
dml@1.20.1, cpu@1.20.1 the same from a release of its own, in the lab or in a virtual environment
webgpu, openvino, ...  a provider in the environment that `epcheck env create` makes (`recipes/recipe.py`)
webgpu@0.4.0           the same with a release of its own of the provider's package
reference              onnx.reference.ReferenceEvaluator
python:module:function any callable (model_bytes, feeds) -> outputs
ep:PACKAGE             the provider of a plugin package, as ep:onnxruntime_ep_webgpu
ep:LIBRARY[#PROVIDER]  the provider of a plugin's library; PATH#ep:... does the same in another interpreter
PATH[#PROVIDER]        another Python interpreter with onnxruntime; the CPU provider unless one is named
NAME                   a table [targets.NAME] of epcheck.toml
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from epcheck.conformance import lab
from epcheck.conformance.comparison.precision import Precision
from epcheck.conformance.lab.vulkan.status import why_none_loads
from epcheck.conformance.records.target_facts import base_of
from epcheck.conformance.targets import adapters, claim_file, environments, expectation_file
from epcheck.conformance.targets.config import BUILT_IN, refuse_reserved
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.plugin import PREFIX, Plugin, device_of, provider_of
from epcheck.conformance.targets.recipes import environment as recipes
from epcheck.conformance.targets.recipes.recipe import RECIPES
from epcheck.conformance.targets.target import (
    CPU,
    DML,
    MEASURED,
    MEBIBYTE,
    RECORDED,
    STRICT,
    WORKER,
    Target,
    TargetError,
)
from epcheck.conformance.windows_path import windows_path
from epcheck.generators.nearest import ask_if_meant, find_nearest

DML_NAME, DIRECTML = "dml", "directml"


RELEASES = {"cpu": CPU, DML_NAME: DML}
"""Targets that can have a release of their own, `NAME@RELEASE`, and their provider."""


NEED_LAB = (DML_NAME, DIRECTML)
"""Targets that are in the lab where the system is not Windows."""


PRELUDE = "EPCHECK_PRELUDE"
"""Environment variable: a Python file that the worker of the native `dml` target executes before onnxruntime loads."""


PACK = 128
"""The largest pack of a provider; how many cases really share a session is measured in each run."""


SAY_RELEASES = frozenset(("runtime", "directml"))
"""What the `when` of an expectation names that says for which releases it holds."""


ProgressCallback = Callable[[lab.Progress], None]


def resolve(
    specification: str,
    config: Mapping[str, Any] | None = None,
    progress: ProgressCallback | None = None,
    vulkan: Path | None = None,
) -> Target:
    """The target of a specification.

    config: the tables of `load_config`. progress: called while a runtime is installed. vulkan: the ICD file of the
    Vulkan driver that the lab uses instead of its own. Raises TargetError.
    """
    tables = (config or {}).get("targets", {})
    if specification in tables:
        refuse_reserved(f"[targets.{specification}]", specification)
        return _from_table(specification, tables[specification], progress, vulkan)
    if specification.startswith("python:"):
        return _function(specification)
    if specification.startswith(PREFIX):
        return _plugin(specification, Plugin.parse(specification.removeprefix(PREFIX)), sys.executable)
    if "#" in specification or os.sep in specification or (os.altsep and os.altsep in specification):
        path, _, provider = specification.partition("#")
        if provider.startswith(PREFIX):
            return _plugin(specification, Plugin.parse(provider.removeprefix(PREFIX)), path)
        return _interpreter(specification, path, provider or CPU)
    if recipes.is_recipe(specification):
        return _recipe(recipes.ready(specification))
    name, adapter, version = _parts(specification)
    if name in RELEASES or name == DIRECTML:
        target = _cpu(version) if name == "cpu" else _dml(specification, version, progress, vulkan)
        target = replace(target, name=specification)
        if adapter:
            target = adapters.choose_adapter(target, adapter)
        target = direct_of(target) if name == DIRECTML else target
        return replace(target, name=specification, expectations=_load_shipped(name, version))
    if specification == "reference":
        return Target("reference", (sys.executable,), ("reference",), window=32, jobs=0, forks=True)
    known = (*BUILT_IN, *tables)
    if meant := ask_if_meant(find_nearest(name, known)):
        raise TargetError(f"unknown target '{specification}'. {meant} `epcheck list targets` prints all.")
    raise TargetError(
        f"unknown target '{specification}'. Known targets: {', '.join(known)}, NAME@RELEASE, python:module:function, "
        f"ep:PACKAGE, and the path of a Python interpreter"
    )


def _parts(specification: str) -> tuple[str, str, str]:
    """`dml:1@1.20.1` in its parts, name, adapter and release, the last two empty where there is none.

    Raises TargetError for no release, and for an adapter of another provider.
    """
    start, at, version = specification.partition("@")
    name, colon, adapter = start.partition(":")
    if colon and name in RELEASES.keys() | {DIRECTML} and not (name in NEED_LAB and adapter.strip()):
        raise TargetError(f"target '{specification}': write dml:ADAPTER, its number or a part of its name, as dml:1")
    if at and not re.fullmatch(r"(windowsml-)?\d+(\.\d+)*\w*" if name in NEED_LAB else r"\d+(\.\d+)*\w*", version):
        raise TargetError(f"target '{specification}': '{version}' is not a release; write for example {name}@1.20.1")
    return name if name in NEED_LAB else start, adapter if name in NEED_LAB else "", version


def describe_target(specification: str, config: Mapping[str, Any]) -> Target:
    """A target of that name with its provider and claim table, and nothing that could be started: no runtime is
    installed for it. config: the tables of `load_config`. Raises TargetError and TableError."""
    table = config.get("targets", {}).get(specification)
    if table is None:
        name, _, _ = _parts(specification)
        if name in RELEASES or name == DIRECTML:
            return Target(specification, (), (), provider=RELEASES.get(name))
        return resolve(specification, config)
    if "base" in table and "provider" not in table:
        try:
            provider = describe_target(table["base"], {}).provider
        except TargetError as error:
            raise TargetError(f"[targets.{specification}]: {error}") from None
    elif "ep" in table and "provider" not in table:
        provider = resolve(specification, config).provider
    else:
        provider = table.get("provider", None if "function" in table else CPU)
    target = Target(specification, (), (), provider=provider)
    return claim_file.with_table(target, Path(table["claims"])) if "claims" in table else target


def _cpu(version: str) -> Target:
    python = environments.ensure("onnxruntime", version) if version else Path(sys.executable)
    return Target(
        "cpu", (str(python),), ("onnxruntime",), provider=CPU, config=RECORDED, device="cpu", pack=PACK, jobs=0,
        forks=True,
    )  # fmt: skip


def _dml(specification: str, version: str, progress: ProgressCallback | None, vulkan: Path | None) -> Target:
    if sys.platform == "win32":
        python = environments.ensure(*environments.find_package(version)) if version else Path(sys.executable)
        prelude = ("--prelude", os.environ[PRELUDE]) if PRELUDE in os.environ else ()
        native = Target("dml", (str(python),), ("onnxruntime", *prelude), provider=DML, config=STRICT, device="dml")
        return replace(native, options={"device_id": "0"}, pack=PACK, jobs=MEASURED)
    try:
        if not lab.status().installed:
            raise TargetError(f"target '{specification}': the lab is not installed; run: epcheck lab install")
        if version:
            lab.ensure_runtime(version, progress=progress)
        launch = lab.python_launch(runtime=version or lab.DEFAULT_RUNTIME, vulkan=vulkan)
    except lab.LabError as error:
        raise TargetError(f"target '{specification}': {error}") from error
    return Target(
        "dml",
        launch.argv,
        ("onnxruntime", "--prelude", windows_path(lab.prelude())),
        worker=windows_path(WORKER),
        environment=launch.env,
        provider=DML,
        options={"device_id": "0"},
        config=STRICT,
        device="dml",
        deadline_s=60.0,
        pack=PACK,
        jobs=MEASURED,
        owns_group=False,
        in_lab=True,
        unavailable_reason=partial(_why_no_driver, launch.env.get("VK_DRIVER_FILES", "")),
        writable=tuple(map(str, lab.written_folders())),
    )


def _why_no_driver(files: str) -> str:
    """Why none of these Vulkan drivers can be loaded."""
    return why_none_loads([Path(name) for name in files.split(os.pathsep) if name])


def _load_shipped(name: str, version: str) -> tuple[Expectation, ...]:
    """The expectations that epcheck ships for a target. version: of a release of its own, empty for none; of another
    release than today's only those that say for which releases they hold: the others were seen on today's."""
    found = expectation_file.load_shipped(name)
    if not version or version == _release_today(name):
        return found
    return tuple(e for e in found if e.when.names & SAY_RELEASES)


def _release_today(name: str) -> str:
    """The release that a target without one has; empty where that is unknown."""
    if name in NEED_LAB and sys.platform != "win32":
        return lab.DEFAULT_RUNTIME
    packages = ("onnxruntime", "onnxruntime-directml")  # on Windows the second has the CPU provider, too
    for package in reversed(packages) if name in NEED_LAB else packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            return metadata.version(package)
    return ""


def direct_of(target: Target) -> Target:
    """The target that calls the DirectML of another target's provider directly: same dll, same device, no provider.

    Raises TargetError when that target has another provider, or is on an NPU.
    """
    if target.provider != DML:
        raise TargetError(f"target '{target.name}' has no DirectML below it; its provider is {target.provider}")
    if target.options.get("device_filter") == "npu" and not target.options.get("device_id"):
        raise TargetError(f"target '{target.name}' is on an NPU; DirectML itself is called on an adapter with a number")
    index = target.options.get("device_id", "0")
    on_index = () if index == "0" else ("--adapter", index)
    is_plain = base_of(target.name) == DML_NAME
    return replace(
        target,
        name=target.name.replace(DML_NAME, DIRECTML, 1) if is_plain else f"{DIRECTML} of {target.name}",
        arguments=(DIRECTML, *target.arguments[1:], *on_index),
        provider=None,
        options={},
        config={},
        device=None,
        pack=1,
        jobs=1,
        calls_directml=True,
        expectations=(),
    )


def _function(specification: str) -> Target:
    if not re.fullmatch(r"python:[\w.]+:[\w.]+", specification):
        raise TargetError(f"target '{specification}': write python:module:function")
    here = ("--path", str(Path.cwd()))
    return Target(specification, (sys.executable,), (specification, *here), window=32, forks=True)


def _interpreter(name: str, path: str, provider: str) -> Target:
    if not Path(path).is_file():
        raise TargetError(f"target '{name}': no such interpreter: {path}")
    strict = provider != CPU
    jobs = MEASURED if provider == DML else int(strict)
    return Target(
        name, (path,), ("onnxruntime",), provider=provider, config=STRICT if strict else RECORDED,
        device="dml" if provider == DML else "cpu", pack=PACK, jobs=jobs,
    )  # fmt: skip


def _plugin(name: str, plugin: Plugin, path: str, variables: Mapping[str, str] | None = None) -> Target:
    """variables: what of the environment is set for it."""
    if not Path(path).is_file():
        raise TargetError(f"target '{name}': no such interpreter: {path}")
    environment = {**os.environ, **variables} if variables else None
    provider = provider_of(name, plugin, (path,), environment)
    shipped = [recipe.name for recipe in RECIPES.values() if recipe.plugin and recipe.plugin == plugin.package]
    return Target(
        name, (path,), ("onnxruntime", *replace(plugin, provider=provider).arguments()), environment=environment,
        provider=provider, config=STRICT, device="cpu", pack=PACK, is_plugin=True, set_variables=variables or {},
        expectations=tuple(each for recipe in shipped for each in expectation_file.load_shipped(recipe)),
    )  # fmt: skip


def _recipe(made: recipes.Environment) -> Target:
    recipe, variables = made.recipe, made.variables()
    if recipe.plugin:
        plugin = Plugin(package=recipe.plugin, provider=recipe.provider)
        target = _plugin(made.name, plugin, str(made.python), variables)
    else:
        target = _interpreter(made.name, str(made.python), recipe.provider)
    packages = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    return replace(
        target,
        options=recipe.options,
        float32_precision=recipe.float32_precision,
        device=recipe.device or target.device,
        deadline_s=recipe.deadline_s,
        jobs=recipe.jobs,
        set_variables={},
        extra_facts={"packages": packages, **({"graphics_stack": made.driver} if made.driver else {})},
        expectations=expectation_file.load_shipped(recipe.name),
    )


def _plugin_of_table(name: str, table: Mapping[str, Any]) -> Target:
    plugin = Plugin.parse(table["ep"])
    device = device_of(table.get("ep_device", {}))
    plugin = replace(plugin, provider=table.get("provider", plugin.provider), device=device)
    variables = {key: str(value) for key, value in table.get("env", {}).items()}
    return _plugin(name, plugin, table.get("python", sys.executable), variables)


def _from_table(name: str, table: Mapping[str, Any], progress: ProgressCallback | None, vulkan: Path | None) -> Target:
    try:
        if "base" in table:
            target = resolve(table["base"], None, progress, vulkan)
        elif "ep" in table:
            target = _plugin_of_table(name, table)
        elif "function" in table:
            target = _function(f"python:{table['function']}")
        else:
            target = _interpreter(name, table.get("python", sys.executable), table.get("provider", CPU))
    except TargetError as error:
        raise TargetError(f"[targets.{name}]: {error}") from None
    changes = {
        key: table[key]
        for key in ("provider", "device", "deadline_s", "startup_s", "window", "pack", "jobs", "jail")
        if key in table
    }
    for key in ("options", "config"):
        if key in table:
            changes[key] = {**getattr(target, key), **{k: str(v) for k, v in table[key].items()}}
    if "options" in table:
        changes["float32_precision"] = None  # what a recipe states holds with its own options
    if "precisions" in table:
        changes["precisions"] = {n: {k: str(v) for k, v in o.items()} for n, o in table["precisions"].items()}
    if "env" in table:
        base = os.environ if target.environment is None else target.environment
        changes["set_variables"] = {**target.set_variables, **{key: str(value) for key, value in table["env"].items()}}
        changes["environment"] = {**base, **changes["set_variables"]}
    if "float32_precision" in table:
        changes["float32_precision"] = Precision(**table["float32_precision"])
    if "writable" in table:
        changes["writable"] = (*target.writable, *table["writable"])
    if "memory_mib" in table:
        changes["memory_bytes"] = table["memory_mib"] * MEBIBYTE
    if "expectations" in table:
        changes["expectations"] = (*target.expectations, *expectation_file.load(Path(table["expectations"])))
    target = replace(target, name=name, **changes)
    return claim_file.with_table(target, Path(table["claims"])) if "claims" in table else target
