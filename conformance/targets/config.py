"""The configuration file `epcheck.toml`: its tables, each checked before it is used."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from epcheck.conformance.comparison.precision import FORMATS
from epcheck.conformance.records.target_facts import base_of
from epcheck.conformance.targets import configuration_notice
from epcheck.conformance.targets.recipes.recipe import RECIPES
from epcheck.conformance.targets.target import TargetError

CONFIG = "epcheck.toml"

BUILT_IN = ("cpu", "dml", "directml", "reference", *RECIPES)
"""Targets that need no table."""

MOST_NAMES = 8
"""Tables of targets that a notice names."""


TABLE: Mapping[str, type | tuple[type, ...]] = {
    "base": str, "python": str, "function": str, "ep": str, "ep_device": dict, "provider": str, "options": dict,
    "config": dict, "env": dict, "device": str, "deadline_s": (int, float), "startup_s": (int, float),
    "memory_mib": int, "window": int, "pack": int, "jobs": int, "expectations": str,
    "claims": str, "precisions": dict, "float32_precision": dict, "jail": bool,
    "writable": list,
}  # fmt: skip
"""The keys of [targets.NAME]; `base` is a specification to start from, `python` an interpreter, `function` m:f,
`ep` a plugin's package or library, `ep_device` which of its devices (`plugin.DEVICE`),
`precisions` a table of tables: name -> the provider's options with which it computes in that precision,
`jail` whether the system bounds its workers, `writable` folders that they may write to."""


VALIDATE = ("rtol", "atol", "snr", "agreement", "placed", "latency", "unjudged", "strict_nodes", "budget")
"""The keys of [validate]: what a model has to keep (`models.gate.limits`)."""

SHARES = ("agreement", "placed")

WINDOWS_PATH = re.compile(r'"([A-Za-z]:|\\)\\')
"""The beginning of a path of Windows in double quotes, where a backslash of TOML begins an escape."""

ESCAPED = re.compile(r"^[A-Za-z]:.*[\b\t\n\f\r]", re.DOTALL)
"""A path of which TOML took a backslash and the letter after it for a character."""

PATHS = "write a path in single quotes, 'C:\\python\\python.exe', or with forward slashes"


def load_config(path: Path | None = None) -> dict[str, Any]:
    """The checked content of `epcheck.toml`: of `path`, or of the working directory when there is one, which is noted.

    Raises TargetError when it cannot be read, has a key that epcheck does not know, or a table whose name is that of
    another target.
    """
    config = _load(path)
    if path is None and Path(CONFIG).is_file():
        configuration_notice.notify(_notice(config))
    return config


def notice_of(path: Path | None = None) -> str:
    """What a report says of the configuration of a call; empty where one was named, and where there is none."""
    return _notice(_load(path)) if path is None and Path(CONFIG).is_file() else ""


def _notice(config: Mapping[str, Any]) -> str:
    limits = ", ".join(f"{key} = {value}" for key, value in config.get("validate", {}).items())
    targets = [f"[targets.{name if name.isprintable() else ascii(name)}]" for name in config.get("targets", {})]
    further = [f"{len(targets) - MOST_NAMES} more targets"] if len(targets) > MOST_NAMES else []
    parts = [*([f"[validate] {limits}"] if limits else []), *targets[:MOST_NAMES], *further]
    return f"Configuration: {CONFIG} of the working directory, with {', '.join(parts) or 'nothing in it'}"


def is_reserved(name: str) -> bool:
    """Whether a name means a target that needs no table (`specification.resolve`), or none at all."""
    is_form = name.startswith(("python:", "ep:")) or any(mark in name for mark in "#/\\")
    return is_form or name in ("", "none") or base_of(name) in BUILT_IN


def _load(path: Path | None) -> dict[str, Any]:
    chosen = path or Path(CONFIG)
    if path is None and not chosen.is_file():
        return {}
    try:
        text = chosen.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(f"{chosen} cannot be read: {error}") from None
    try:
        config = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also of a number with thousands of digits, of brackets in brackets
        raise TargetError(f"{chosen} is not valid TOML: {error}{_advise_on_paths(error, text)}") from None
    if unknown := config.keys() - {"targets", "validate"}:
        raise TargetError(f"{chosen}: unknown key '{min(unknown)}'; it may have tables [targets.NAME] and [validate]")
    _check_validate(f"{chosen}: [validate]", config.get("validate", {}))
    tables = config.get("targets", {})
    if not isinstance(tables, dict):
        raise TargetError(f"{chosen}: targets must be tables [targets.NAME]")
    for name, table in tables.items():
        refuse_reserved(f"{chosen}: [targets.{name}]", name)
        _check_table(f"{chosen}: [targets.{name}]", table)
    return config


def _advise_on_paths(error: BaseException, text: str) -> str:
    """What to do where the line that is no TOML has a path of Windows in double quotes; empty for any other."""
    line = re.search(r"\(at line (\d+),", str(error))
    lines = text.split("\n")
    at_fault = lines[int(line[1]) - 1 : int(line[1])] if line else []
    return f"; {PATHS}" if any(WINDOWS_PATH.search(each) for each in at_fault) else ""


def refuse_reserved(where: str, name: str) -> None:
    """Raise TargetError for a table that would be another target than its name says."""
    if is_reserved(name):
        base = f', with base = "{name}"' if base_of(name) in BUILT_IN else ""
        raise TargetError(f"{where}: '{name}' is the name of another target; rename this table{base}")


def _check_validate(where: str, table: object) -> None:
    if not isinstance(table, dict):
        raise TargetError(f"{where} must be a table")
    for key, value in table.items():
        if key not in VALIDATE:
            raise TargetError(f"{where}: unknown key '{key}'; it may have {', '.join(VALIDATE)}")
        if key == "unjudged":
            if value not in ("fail", "pass"):
                raise TargetError(f'{where}: \'unjudged\' is {value!r}; write "fail" or "pass"')
            continue
        if key == "strict_nodes":
            if not isinstance(value, bool):
                raise TargetError(f"{where}: 'strict_nodes' is {value!r}; write true or false")
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value < float("inf"):
            raise TargetError(f"{where}: '{key}' is {value!r}; write a number that is not negative")
        if key == "budget" and value < 1:
            raise TargetError(f"{where}: 'budget' is {value!r}; write a number of seconds, at least 1")
        if key in SHARES and value > 1:
            raise TargetError(f"{where}: '{key}' is {value}; it is a share, at most 1")


def _check_table(where: str, table: object) -> None:
    if not isinstance(table, dict):
        raise TargetError(f"{where} must be a table")
    for key, value in table.items():
        if key not in TABLE:
            raise TargetError(f"{where}: unknown key '{key}'; a target has {', '.join(TABLE)}")
        if not isinstance(value, TABLE[key]) or (isinstance(value, bool) and TABLE[key] is not bool):
            raise TargetError(f"{where}: '{key}' has the wrong type, {type(value).__name__}")
        if isinstance(value, bool):
            continue
        if isinstance(value, list):
            _check_folders(where, value)
            continue
        if isinstance(value, int | float) and not 0 < value < float("inf"):
            raise TargetError(f"{where}: '{key}' must be positive, not {value}")
        if isinstance(value, dict) and key == "precisions":
            _check_precisions(where, value)
            continue
        for name, text in value.items() if isinstance(value, dict) else ((key, value),):
            if not isinstance(text, str | int | float) or isinstance(text, bool):
                raise TargetError(f"{where}: '{key}' holds a {type(text).__name__} ('{name}'); write text or a number")
            if "\0" in f"{name}{text}":
                raise TargetError(f"{where}: '{key}' holds a NUL character")
            if ESCAPED.search(str(text)):
                raise TargetError(
                    f"{where}: '{key}' is {text!r}, with a backslash that TOML read as an escape; {PATHS}"
                )
    if len({"base", "python", "function"} & table.keys()) > 1:
        raise TargetError(f"{where}: give one of base, python, function")
    if "float32_precision" in table:
        _check_float32_precision(where, table["float32_precision"])
    if "ep" in table and {"base", "function"} & table.keys():
        raise TargetError(f"{where}: 'ep' goes with 'python', not with base or function")
    if "ep_device" in table and "ep" not in table:
        raise TargetError(f"{where}: 'ep_device' chooses a device of the plugin that 'ep' names; add ep")


def _check_folders(where: str, folders: Sequence[object]) -> None:
    for folder in folders:
        if not isinstance(folder, str) or not folder or "\0" in folder:
            raise TargetError(f"{where}: 'writable' holds {folder!r}; write the paths of folders: [\"/var/cache/npu\"]")


def _check_float32_precision(where: str, stated: Mapping[str, object]) -> None:
    example = 'float32_precision = { format = "float16", source = "https://..." }'
    if stated.keys() != {"format", "source"} or not str(stated["source"]).strip():
        raise TargetError(f"{where}: 'float32_precision' needs format and source; write {example}")
    if stated["format"] not in FORMATS:
        raise TargetError(
            f"{where}: 'float32_precision' is '{stated['format']}'; float32 may be computed in {', '.join(FORMATS)}"
        )


def _check_precisions(where: str, precisions: Mapping[str, object]) -> None:
    for name, options in precisions.items():
        if not isinstance(options, dict) or not options:
            raise TargetError(f"{where}: precisions.{name} must be a table of provider options")
        for key, text in options.items():
            if not isinstance(text, str | int | float) or isinstance(text, bool):
                raise TargetError(f"{where}: precisions.{name} holds a {type(text).__name__} ('{key}'); write text")
            if "\0" in f"{name}{key}{text}":
                raise TargetError(f"{where}: 'precisions' holds a NUL character")
