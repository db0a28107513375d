"""Targets: a provider in a runtime. Their specifications, as words on the command line and as tables in `epcheck.toml`.

cpu                    CPUExecutionProvider of this interpreter's onnxruntime
dml                    DmlExecutionProvider: this interpreter's on Windows, the lab's on Linux
directml               DirectML's own operators, called without ONNX Runtime: of the dll that the target dml has
dml@1.20.1, cpu@1.20.1 the same from a release of its own, in the lab or in a virtual environment
reference              onnx.reference.ReferenceEvaluator
python:module:function any callable (model_bytes, feeds) -> outputs
PATH[#PROVIDER]        another Python interpreter with onnxruntime; the CPU provider unless one is named
NAME                   a table [targets.NAME] of epcheck.toml
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from epcheck.conformance import lab
from epcheck.conformance.targets import environments, expectation
from epcheck.conformance.targets.expectation import Expectation
from epcheck.generators.error import EpcheckError
from epcheck.generators.suite import any_matches, matches

CPU, DML = "CPUExecutionProvider", "DmlExecutionProvider"
DML_NAME, DIRECTML = "dml", "directml"
NEED_LAB = (DML_NAME, DIRECTML)
"""Targets that are in the lab where the system is not Windows."""

WORKER = Path(__file__).parents[1] / "workers" / "program" / "worker.py"
CONFIG = "epcheck.toml"

DISABLE_FALLBACK, RECORD = "session.disable_cpu_ep_fallback", "session.record_ep_graph_assignment_info"

STRICT = {DISABLE_FALLBACK: "1", RECORD: "1"}
"""Session options of every provider but CPU: no node may fall back to CPU unseen, and assignments are recorded."""

RECORDED = {RECORD: "1"}

PRELUDE = "EPCHECK_PRELUDE"
"""Environment variable: a Python file that the worker of the native `dml` target executes before onnxruntime loads."""

PACK = 128
"""The largest pack of a provider; how many cases really share a session is measured in each run."""

MEBIBYTE = 1 << 20

ProgressCallback = Callable[[lab.Progress], None]


class TargetError(EpcheckError, ValueError):
    """A target cannot be had; the message says which, why, and what to do."""


@dataclass(frozen=True)
class Target:
    """A provider in a runtime, ready to be started.

    command: the interpreter and what stands before the worker file. environment: the whole environment of the worker,
    None for this process's. arguments: the worker's own. worker: the worker file as that interpreter names it.
    provider: the execution provider whose work has to be proved; None for a callable. device: where its output
    buffers can be bound ('dml', 'cpu'), None where they cannot. deadline_s: seconds for one case; startup_s: seconds
    until the worker answers. memory_bytes: resident memory of a worker. window: cases sent ahead.
    pack: cases that may share a session at most; 1 keeps each in its own. jobs: workers at most; 0 for as many as
    there are cores.
    owns_group: whatever is in the worker's process group ends with the worker, which Wine's daemons must not.
    forks: workers may be forks of one process that has imported everything, where the system can fork.
    direct: the worker takes a case's DirectML operator (`program`) in the place of its model.
    in_lab: it runs under Wine, where files have other names.
    """

    name: str
    command: tuple[str, ...]
    arguments: tuple[str, ...]
    worker: str = str(WORKER)
    environment: Mapping[str, str] | None = None
    provider: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    deadline_s: float = 20.0
    startup_s: float = 60.0
    memory_bytes: int = 4096 * MEBIBYTE
    window: int = 128
    pack: int = 1
    jobs: int = 1
    owns_group: bool = True
    forks: bool = False
    direct: bool = False
    in_lab: bool = False
    expectations: tuple[Expectation, ...] = ()

    def name_of(self, file: Path) -> str:
        """A file of this machine as the target's interpreter names it."""
        return lab.windows_path(file) if self.in_lab else str(file.absolute())

    @cached_property
    def _by_head(self) -> dict[str, tuple[tuple[str, ...], tuple[Expectation, ...]]]:
        """`expectation.head` -> the expectations of that operator and their globs, filled as cases come."""
        return {}

    def expected(self, case_id: str) -> tuple[Expectation, ...]:
        """The expectations whose glob matches the case, in their order."""
        start = expectation.head(case_id)
        if start not in self._by_head:
            possible = tuple(e for e in self.expectations if expectation.may_match(e, start))
            self._by_head[start] = tuple(e.case for e in possible), possible
        globs, possible = self._by_head[start]
        if not possible or not any_matches(globs, case_id):
            return ()
        return tuple(e for e in possible if matches(case_id, e.case))


def resolve(
    specification: str,
    config: Mapping[str, Any] | None = None,
    progress: ProgressCallback | None = None,
    vulkan: Path | None = None,
) -> Target:
    """The target of a specification.

    config: the tables of `load_config`. progress: told while a runtime is installed. vulkan: the ICD file of the
    Vulkan driver that the lab uses instead of its own. Raises TargetError.
    """
    tables = (config or {}).get("targets", {})
    if specification in tables:
        return _from_table(specification, tables[specification], progress, vulkan)
    if specification.startswith("python:"):
        return _function(specification)
    if "#" in specification or os.sep in specification or (os.altsep and os.altsep in specification):
        path, _, provider = specification.partition("#")
        return _interpreter(specification, path, provider or CPU)
    name, at, version = specification.partition("@")
    if at and not re.fullmatch(r"(windowsml-)?\d+(\.\d+)*\w*" if name in NEED_LAB else r"\d+(\.\d+)*\w*", version):
        raise TargetError(f"target '{specification}': '{version}' is no release; write for example {name}@1.20.1")
    if name in ("cpu", DML_NAME):
        target = _cpu(version) if name == "cpu" else _dml(version, progress, vulkan)
        return replace(target, name=specification, expectations=expectation.shipped(name))
    if name == DIRECTML:
        return _directml(specification, version, progress, vulkan)
    if specification == "reference":
        return Target("reference", (sys.executable,), ("reference",), window=32, jobs=0, forks=True)
    known = ", ".join(["cpu", DML_NAME, DIRECTML, "reference", *tables])
    raise TargetError(
        f"unknown target '{specification}'; there are: {known}, NAME@RELEASE, python:module:function, "
        f"and the path of a Python interpreter"
    )


def _cpu(version: str) -> Target:
    python = environments.ensure("onnxruntime", version) if version else Path(sys.executable)
    return Target(
        "cpu", (str(python),), ("onnxruntime",), provider=CPU, config=RECORDED, device="cpu", pack=PACK, jobs=0,
        forks=True,
    )  # fmt: skip


def _dml(version: str, progress: ProgressCallback | None, vulkan: Path | None) -> Target:
    if sys.platform == "win32":
        python = environments.ensure("onnxruntime-directml", version) if version else Path(sys.executable)
        prelude = ("--prelude", os.environ[PRELUDE]) if PRELUDE in os.environ else ()
        native = Target("dml", (str(python),), ("onnxruntime", *prelude), provider=DML, config=STRICT, device="dml")
        return replace(native, options={"device_id": "0"}, pack=PACK)
    try:
        if not lab.status().installed:
            raise TargetError("target 'dml': the lab is not installed; run: epcheck lab install")
        if version:
            lab.ensure_runtime(version, progress=progress)
        launch = lab.python_launch(runtime=version or lab.DEFAULT_RUNTIME, vulkan=vulkan)
    except lab.LabError as error:
        raise TargetError(f"target 'dml': {error}") from error
    return Target(
        "dml",
        launch.argv,
        ("onnxruntime", "--prelude", lab.windows_path(lab.prelude())),
        worker=lab.windows_path(WORKER),
        environment=launch.env,
        provider=DML,
        options={"device_id": "0"},
        config=STRICT,
        device="dml",
        deadline_s=60.0,
        pack=PACK,
        owns_group=False,
        in_lab=True,
    )


def _directml(specification: str, version: str, progress: ProgressCallback | None, vulkan: Path | None) -> Target:
    direct = direct_of(_dml(version, progress, vulkan))
    return replace(direct, name=specification, expectations=expectation.shipped(DIRECTML))


def direct_of(target: Target) -> Target:
    """The target that calls the DirectML of another target's provider directly: same dll, same device, no provider.

    Raises TargetError when that target has another provider.
    """
    if target.provider != DML:
        raise TargetError(f"target '{target.name}' has no DirectML below it; its provider is {target.provider}")
    start, at, version = target.name.partition("@")
    return replace(
        target,
        name=DIRECTML + at + version if start == DML_NAME else f"{DIRECTML} of {target.name}",
        arguments=(DIRECTML, *target.arguments[1:]),
        provider=None,
        options={},
        config={},
        device=None,
        pack=1,
        direct=True,
        expectations=(),
    )


def _function(specification: str) -> Target:
    if not re.fullmatch(r"python:[\w.]+:[\w.]+", specification):
        raise TargetError(f"target '{specification}': write python:module:function")
    here = ("--path", str(Path.cwd()))
    return Target(specification, (sys.executable,), (specification, *here), window=32, forks=True)


def _interpreter(name: str, path: str, provider: str) -> Target:
    if not Path(path).is_file():
        raise TargetError(f"target '{name}': there is no interpreter at '{path}'")
    strict = provider != CPU
    return Target(
        name, (path,), ("onnxruntime",), provider=provider, config=STRICT if strict else RECORDED,
        device=None if strict else "cpu", pack=PACK, jobs=1 if strict else 0,
    )  # fmt: skip


TABLE: Mapping[str, type | tuple[type, ...]] = {
    "base": str, "python": str, "function": str, "provider": str, "options": dict, "config": dict, "env": dict,
    "device": str, "deadline_s": (int, float), "startup_s": (int, float), "memory_mib": int, "window": int, "pack": int,
    "jobs": int, "expectations": str,
}  # fmt: skip
"""The keys of [targets.NAME]; `base` is a specification to start from, `python` an interpreter, `function` m:f."""


def _from_table(name: str, table: Mapping[str, Any], progress: ProgressCallback | None, vulkan: Path | None) -> Target:
    try:
        if "base" in table:
            target = resolve(table["base"], None, progress, vulkan)
        elif "function" in table:
            target = _function(f"python:{table['function']}")
        else:
            target = _interpreter(name, table.get("python", sys.executable), table.get("provider", CPU))
    except TargetError as error:
        raise TargetError(f"[targets.{name}]: {error}") from None
    given = {
        key: table[key]
        for key in ("provider", "device", "deadline_s", "startup_s", "window", "pack", "jobs")
        if key in table
    }
    for key in ("options", "config"):
        if key in table:
            given[key] = {**getattr(target, key), **{k: str(v) for k, v in table[key].items()}}
    if "env" in table:
        base = os.environ if target.environment is None else target.environment
        given["environment"] = {**base, **{key: str(value) for key, value in table["env"].items()}}
    if "memory_mib" in table:
        given["memory_bytes"] = table["memory_mib"] * MEBIBYTE
    if "expectations" in table:
        given["expectations"] = (*target.expectations, *expectation.load(Path(table["expectations"])))
    return replace(target, name=name, **given)


def load_config(path: Path | None = None) -> dict[str, Any]:
    """The checked content of `epcheck.toml`: of `path`, or of the working directory when there is one.

    Raises TargetError when it cannot be read or has a key that epcheck does not know.
    """
    chosen = path or Path(CONFIG)
    if path is None and not chosen.is_file():
        return {}
    try:
        config = tomllib.loads(chosen.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise TargetError(f"{chosen} is not valid TOML: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(f"{chosen} cannot be read: {error}") from None
    if unknown := config.keys() - {"targets"}:
        raise TargetError(f"{chosen}: unknown key '{min(unknown)}'; it may have tables [targets.NAME]")
    tables = config.get("targets", {})
    if not isinstance(tables, dict):
        raise TargetError(f"{chosen}: targets must be tables [targets.NAME]")
    for name, table in tables.items():
        _check_table(f"{chosen}: [targets.{name}]", table)
    return config


def _check_table(where: str, table: object) -> None:
    if not isinstance(table, dict):
        raise TargetError(f"{where} must be a table")
    for key, value in table.items():
        if key not in TABLE:
            raise TargetError(f"{where}: unknown key '{key}'; a target has {', '.join(TABLE)}")
        if not isinstance(value, TABLE[key]) or isinstance(value, bool):
            raise TargetError(f"{where}: '{key}' has the wrong type, {type(value).__name__}")
        if isinstance(value, int | float) and not 0 < value < float("inf"):
            raise TargetError(f"{where}: '{key}' must be positive, not {value}")
        for name, text in value.items() if isinstance(value, dict) else ((key, value),):
            if not isinstance(text, str | int | float) or isinstance(text, bool):
                raise TargetError(f"{where}: '{key}' holds a {type(text).__name__} ('{name}'); write text or a number")
            if "\0" in f"{name}{text}":
                raise TargetError(f"{where}: '{key}' holds a NUL character")
    if len({"base", "python", "function"} & table.keys()) > 1:
        raise TargetError(f"{where}: give one of base, python, function")


@dataclass(frozen=True)
class Choice:
    """The best candidate of this machine. reason: why not a better one, or what has to be installed first."""

    specification: str
    reason: str
    install_lab: bool = False


def best() -> Choice:
    """DirectML where the machine can offer it: native on Windows, in the lab on Linux; otherwise the CPU provider."""
    obstacle = why_no_dml()
    if obstacle is None:
        return Choice("dml", "native DirectML" if sys.platform == "win32" else "DirectML in the lab")
    if sys.platform != "win32" and lab.can_install() is None:
        return Choice("dml", "DirectML in the lab, which is installed first", install_lab=True)
    return Choice("cpu", obstacle)


def default_baseline(candidates: Sequence[str]) -> str:
    """What candidates are compared with by default: the CPU provider, or `reference` where that is the candidate."""
    return "reference" if tuple(candidates) == ("cpu",) else "cpu"


def why_no_dml() -> str | None:
    """What the target `dml` lacks on this machine, in one sentence; None when it is ready."""
    if sys.platform == "win32":
        import onnxruntime

        ready = DML in onnxruntime.get_available_providers()
        return None if ready else "this onnxruntime has no DmlExecutionProvider; install onnxruntime-directml"
    if lab.status().installed:
        return None
    return lab.can_install() or "the lab is not installed; run: epcheck lab install"
