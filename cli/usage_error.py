"""What is wrong with a command line, in one sentence that says what to write instead.

typer's errors are told apart by their attributes: it has classes of its own since 0.25, those of click before.
"""

from __future__ import annotations

import re
from typing import Any

import typer

from epcheck.api.option import ask_if_meant, find_nearest

UsageError: Any = typer.BadParameter.__base__
"""What typer raises for a command line that it cannot read."""


def asks_for_help(error: Any) -> bool:
    """Whether the command was called without arguments, and its help is shown in place of an error."""
    return type(error).__name__ == "NoArgsIsHelpError"


def describe(error: Any, called: str) -> str:
    """The sentence. error: a UsageError. called: the command, for an error that does not say which."""
    context, message = error.ctx, error.message.rstrip(".")
    command = context.command_path if context else called
    see = f"`{command} --help` shows how to call it."
    if hasattr(error, "possibilities"):
        flags = [flag for each in context.command.params for flag in (*each.opts, *each.secondary_opts)]
        meant = ask_if_meant(find_nearest(error.option_name, [flag for flag in flags if flag.startswith("-")]))
        return f"`{command}` has no option {error.option_name}. {meant or f'`{command} --help` lists its options.'}"
    if hasattr(error, "param_type"):
        return f"`{command}` needs {_name(error.param)}. {see}"
    if getattr(error, "param", None) is not None:
        return _describe_value(error.param, message, see)
    if message.startswith("No such command"):
        word = re.findall(r"'(.*?)'", message)[0]
        meant = ask_if_meant(find_nearest(word, context.command.list_commands(context)))
        return f"`{command}` has no command '{word}'. {meant or f'`{command} --help` lists its commands.'}"
    if extra := re.fullmatch(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", message):
        return f"`{command}` has no place for '{extra[1]}'. {see}"
    return f"{message[:1].lower()}{message[1:]}. {see}"


def _describe_value(parameter: Any, message: str, see: str) -> str:
    """Of an option or argument whose value cannot be used."""
    value, *choices = re.findall(r"'([^']*)'", message) or [""]
    if " one of " in message and choices:
        meant = ask_if_meant(find_nearest(value, choices)) or f"Write one of {', '.join(choices)}."
        return f"{_name(parameter)}: unknown value '{value}'. {meant}"
    return f"{_name(parameter)}: {message[:1].lower()}{message[1:]}. {see}"


def _name(parameter: Any) -> str:
    """An option as it is written, an argument as help names it."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper()).removesuffix("...")
    return str(max(parameter.opts, key=len))
