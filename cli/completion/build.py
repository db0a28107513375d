"""Makes the index of completion from the commands and the suite."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from epcheck.api.suite import listing
from epcheck.cli.completion.candidates import CASE, DTYPE, OPERATOR, RUN, RUN_OR_LATEST, SWITCH, TARGET
from epcheck.cli.completion.index import Command, Flag, Index
from epcheck.generators import registry
from epcheck.generators.suite import Source

OF_FLAG = {
    "--op": OPERATOR, "--dtype": DTYPE, "--target": TARGET, "--baseline": TARGET, "--target-a": TARGET,
    "--target-b": TARGET, "--run": RUN, "--resume": RUN_OR_LATEST, "--from": RUN_OR_LATEST, "--against": RUN,
    "--balance": RUN,
}  # fmt: skip
"""Option -> what its value is."""

OF_ARGUMENT = {
    "run": RUN, "runs": RUN, "paths": RUN, "older": RUN, "newer": RUN, "case_id": CASE, "cases": CASE, "target": TARGET,
}  # fmt: skip
"""What stands without a flag, by the name of its field."""


def build(root: Mapping[str, Any]) -> Index:
    """The index of this installation. root: name -> command, as typer makes it. It imports every operator."""
    commands = {name: each for top, command in root.items() for name, each in _commands(command, top)}
    operators, dtypes = _suite()
    return Index(commands, operators, dtypes, listing.target_names())


def _suite() -> tuple[Mapping[str, tuple[int, ...]], tuple[str, ...]]:
    """Operator -> its versions, newest first, and the dtypes: every case is looked at, once."""
    operators: dict[str, tuple[int, ...]] = {}
    labels: set[str] = set()
    for name, operator in registry.all_operators().items():
        versions = set()
        for case in operator.cases():
            versions.add(case.since_version)
            labels.add(case.dtype)
        operators[name] = tuple(sorted(versions, reverse=True))
    return operators, tuple(sorted({name for label in labels for name in label.split("-")}))


def _commands(command: Any, name: str) -> Iterator[tuple[str, Command]]:
    flags = {flag: _flag(option) for option in command.params if option.param_type_name == "option"
             for flag in (*option.opts, *option.secondary_opts)}  # fmt: skip
    arguments = [option for option in command.params if option.param_type_name == "argument"]
    kind = OF_ARGUMENT.get(arguments[0].name, "") if arguments else ""
    yield name, Command(_first_paragraph(command.help or ""), flags, kind)
    for below, each in getattr(command, "commands", {}).items():
        yield from _commands(each, f"{name} {below}")


def _flag(option: Any) -> Flag:
    kind = SWITCH if option.is_flag else next((OF_FLAG[name] for name in option.opts if name in OF_FLAG), "")
    return Flag(kind, _choices(option), _first_paragraph(option.help or ""))


def _choices(option: Any) -> tuple[str, ...]:
    """The values of an option that has an enumeration: releases of typer differ in where they keep it. Where cases come
    from is a folder or one of these."""
    if "--source" in option.opts and option.multiple:
        return tuple(each.value for each in Source)
    annotation = getattr(getattr(option, "type_descriptor", None), "annotation", None)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return tuple(str(each.value) for each in annotation)
    return tuple(map(str, getattr(getattr(option, "type", None), "choices", ())))


def _first_paragraph(text: str) -> str:
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())
