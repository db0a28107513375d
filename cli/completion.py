"""What Tab offers for the values of options and arguments, through typer's `autocompletion=`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from epcheck.cli import cache

RUNS = 30
"""Run folders that are offered at most, the newest first."""

SCRIPTS = {
    ".bash_completions/epcheck.sh": "# An operator of another domain (com.microsoft::Gelu) is one word.\n"
    "COMP_WORDBREAKS=${COMP_WORDBREAKS//:}\n",
    ".zfunc/_epcheck": "# zsh reads this file at the first Tab of a shell, as the function that is to answer it.\n"
    '[[ $zsh_eval_context[-1] == loadautofunc ]] && _epcheck_completion "$@"\n',
}
"""Script of typer's in the user's home -> what it lacks."""


@dataclass(frozen=True)
class SuiteNames:
    """operators: name, with its domain -> versions, newest first. dtypes: as `--dtype` takes them. sources: as
    `--source` takes them. targets: those that every machine knows."""

    operators: dict[str, tuple[int, ...]]
    dtypes: tuple[str, ...]
    sources: tuple[str, ...]
    targets: tuple[str, ...]


def load_names() -> SuiteNames:
    """The names of this installation's suite."""
    return cache.load("suite_names.json", SuiteNames, _collect_names)


def load_case_ids() -> list[str]:
    """The ids of all cases."""
    return cache.load("case_ids.json", list[str], _collect_case_ids)


def _collect_names() -> SuiteNames:
    from epcheck.api.suite import listing

    versions: dict[str, set[int]] = {}
    labels: set[str] = set()
    for case in listing.cases():
        versions.setdefault(case.operator_key, set()).add(case.since_version)
        labels.add(case.dtype)
    operators = {name: tuple(sorted(numbers, reverse=True)) for name, numbers in sorted(versions.items())}
    dtypes = {name for label in labels for name in label.split("-")}
    return SuiteNames(operators, tuple(sorted(dtypes)), tuple(listing.Source), listing.target_names())


def _collect_case_ids() -> list[str]:
    from epcheck.api.suite import listing

    return [case.id for case in listing.cases()]


def complete_operator(incomplete: str) -> list[str]:
    return _select(load_names().operators, incomplete)


def complete_dtype(incomplete: str) -> list[str]:
    return _select(load_names().dtypes, incomplete)


def complete_source(incomplete: str) -> list[str]:
    return _select(load_names().sources, incomplete)


def complete_target(incomplete: str) -> list[str]:
    """Those that every machine knows, and those of the `epcheck.toml` here."""
    import tomllib

    try:
        tables = tomllib.loads(Path("epcheck.toml").read_text(encoding="utf-8"))
        own = [*tables.get("targets", ())]
    except (OSError, ValueError, TypeError, AttributeError):
        own = []
    return _select([*load_names().targets, *own], incomplete)


def complete_run(ctx: typer.Context, incomplete: str) -> list[str]:
    """Run folders below `--root`, the newest first."""
    root = ctx.params.get("root") or "epcheck-runs"
    try:
        folders = sorted((entry.path for entry in os.scandir(root) if entry.is_dir()), reverse=True)
    except OSError:
        return []
    return _select(folders[:RUNS], incomplete)


def complete_run_or_latest(ctx: typer.Context, incomplete: str) -> list[str]:
    return _select(["latest", *complete_run(ctx, incomplete)], incomplete)


def complete_case(incomplete: str) -> list[str]:
    """Operators with their versions; behind the slash the ids themselves."""
    if "/" in incomplete:
        return _select(load_case_ids(), incomplete)
    operators = load_names().operators
    return _select((f"{name}-{version}/" for name, numbers in operators.items() for version in numbers), incomplete)


def _select(values: Iterable[str], incomplete: str) -> list[str]:
    """What has characters that do not show is not offered: a shell prints what it is given."""
    return [value for value in values if value.startswith(incomplete) and value.isprintable()]


Completer = Callable[..., list[str]]

OF_FLAG: Mapping[str, Completer] = {
    "--op": complete_operator, "--dtype": complete_dtype, "--source": complete_source,
    "--target": complete_target, "--baseline": complete_target, "--target-a": complete_target,
    "--target-b": complete_target, "--run": complete_run, "--against": complete_run, "--balance": complete_run,
    "--resume": complete_run_or_latest, "--from": complete_run_or_latest,
}  # fmt: skip

OF_ARGUMENT: Mapping[str, Completer] = {
    "run": complete_run, "runs": complete_run, "paths": complete_run, "older": complete_run, "newer": complete_run,
    "case_id": complete_case, "cases": complete_case, "target": complete_target,
}  # fmt: skip


def find_completer(name: str, flags: Sequence[str], is_argument: bool) -> Any:
    """What completes an option, or the argument of a field; None for files, text and numbers."""
    if is_argument:
        return OF_ARGUMENT.get(name)
    return next((OF_FLAG[flag] for flag in flags or (f"--{name.replace('_', '-')}",) if flag in OF_FLAG), None)


def amend_scripts() -> None:
    """Add what they lack to the scripts that typer has just installed."""
    for name, text in SCRIPTS.items():
        script = Path.home() / name
        try:
            installed = script.read_text(encoding="utf-8")
            if text not in installed:
                script.write_text(f"{installed.rstrip()}\n\n{text}", encoding="utf-8", newline="\n")
        except OSError:
            continue
