"""The options of a run on the way to `run.json` and back, so that an interrupted run is resumed as it began."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from epcheck.api.option import Option
from epcheck.api.suite.run_options import RunOptions
from epcheck.conformance.records.run import Run
from epcheck.conformance.scheduling.shard import Shard, ShardError
from epcheck.generators.sources.version_converted import VersionConverted
from epcheck.reports import StoreError

ALWAYS = (
    "targets", "baseline", "reference", "operators", "dtypes", "patterns", "limit", "expect", "config", "vulkan",
    "jobs", "pack", "cache",
)  # fmt: skip
"""Options that every `run.json` has, in this order."""

UNLESS_DEFAULT = (
    "claims",
    "shard",
    "balance",
    "scheduler",
    "source",
    "thin",
    "explain",
    "variants",
    "context_from",
    "uses",
)
"""Options that follow them where they are not the default."""

CANDIDATES = "candidates"
"""The name of `targets` in `run.json`."""


def selection(options: RunOptions, candidates: tuple[str, ...], baseline: str | None) -> dict[str, Any]:
    """The options as `run.json` has them. candidates, baseline: the targets that were chosen."""
    chosen = replace(options, targets=candidates, baseline=baseline or "none")
    default = RunOptions()
    names = (*ALWAYS, *(name for name in UNLESS_DEFAULT if getattr(chosen, name) != getattr(default, name)))
    return {_key(name): _plain(getattr(chosen, name)) for name in names}


def restore_options(run: Run, now: RunOptions) -> RunOptions:
    """The options of an interrupted run. now: those with which it is resumed. Raises StoreError."""
    try:
        missing = [_key(name) for name in ALWAYS if _key(name) not in run.selection]
        if missing:
            raise ValueError(f"'{missing[0]}' is missing")
        stored = {
            name: _value(name, run.selection[_key(name)])
            for name in (*ALWAYS, *UNLESS_DEFAULT)
            if _key(name) in run.selection
        }
    except (ShardError, ValueError) as error:
        raise StoreError(f"run {run.run_id}: its selection cannot be read ({error}); start a new run") from None
    options = RunOptions(**stored)
    return replace(
        options,
        scheduler=now.scheduler or options.scheduler,
        may_differ=now.may_differ,
        trace=now.trace,
        strict=now.strict,
        max_flaky=now.max_flaky,
        strict_accuracy=now.strict_accuracy,
        root=now.root,
        resume=now.resume,
        store=now.store,
    )


def _key(name: str) -> str:
    return CANDIDATES if name == "targets" else name


def _plain(value: Any) -> Any:
    """A value of an option as JSON's own types."""
    match value:
        case tuple():
            return [_plain(item) for item in value]
        case Enum():
            return value.value
        case Path() | Shard() | VersionConverted():
            return str(value)
    return value


def _value(name: str, plain: Any) -> Any:
    """The value of an option. Raises ValueError and what the option's `parse` does."""
    kind, *notes = get_args(_HINTS[name])
    option = next((note for note in notes if isinstance(note, Option) and note.parse), None)
    if option and option.parse and isinstance(plain, list if option.many and isinstance(plain, list) else str):
        return option.parse(plain)
    return _convert_value(kind, plain)


def _convert_value(kind: Any, plain: Any) -> Any:
    """A value of JSON as `kind`: a basic type, Path, an Enum, `tuple[X, ...]` or `X | None`. Raises ValueError."""
    arguments = get_args(kind)
    if get_origin(kind) is tuple and isinstance(plain, list):
        return tuple(_convert_value(arguments[0], item) for item in plain)
    if arguments and get_origin(kind) is not tuple:
        return None if plain is None else _convert_value(arguments[0], plain)
    basic = str if isinstance(kind, type) and issubclass(kind, Path | Enum) else kind
    if type(plain) is not basic:
        raise ValueError(f"{plain!r} stands in place of {kind}")
    return plain if basic is kind else kind(plain)


_HINTS: Mapping[str, Any] = get_type_hints(RunOptions, include_extras=True)
