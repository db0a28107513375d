"""What `--help` and Tab show of a command, as plain data: made from its typer app, and made into an app that shows the
same.

Commands of that app do nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from epcheck.cli.completion import find_completer

Kind = Literal["bool", "int", "float", "str", "path", "choice"]

KINDS: Mapping[Kind, type] = {"bool": bool, "int": int, "float": float, "str": str, "path": Path}

SETTINGS = ("help", "metavar", "show_default", "min", "max", "file_okay", "dir_okay", "rich_help_panel")
"""What typer is told of a parameter beside its flags."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a command.

    choices: the values of a `choice`. default: as text where it is a path or a choice; None also where there is none,
    as `required` says. flags: none for an argument, and where the name makes the flag. settings: SETTINGS that are not
    typer's own.
    """

    name: str
    kind: Kind
    choices: tuple[str, ...]
    repeats: bool
    required: bool
    default: bool | int | float | str | None
    argument: bool
    flags: tuple[str, ...]
    settings: dict[str, bool | int | float | str]


@dataclass(frozen=True)
class Command:
    """A command of an app. name: empty where that of the function is meant. help: its docstring."""

    name: str
    function: str
    help: str
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True)
class Outline:
    """An app. settings: those of the app itself, as typer takes them. callback: what runs before its commands."""

    settings: dict[str, bool | str]
    commands: tuple[Command, ...]
    callback: Command | None = field(default=None)

    @property
    def help(self) -> str:
        """Of the app, or of the command that it is."""
        own = self.settings.get("help") or (self.callback or self.commands[0]).help
        return str(own)


def describe_app(app: typer.Typer) -> Outline:
    """Of an app. Raises TypeError for a parameter of a type that is none of KINDS, nor an enumeration."""
    plain = {name: getattr(app.info, name) for name in ("help", "no_args_is_help", "invoke_without_command")}
    settings = {name: value for name, value in plain.items() if isinstance(value, bool | str)}
    commands = tuple(_describe_command(each.name or "", each.callback) for each in app.registered_commands)
    before = app.registered_callback
    return Outline(settings, commands, _describe_command("", before.callback) if before else None)


def build_app(outline: Outline) -> typer.Typer:
    """An app with the same help, whose commands do nothing."""
    settings: dict[str, Any] = dict(outline.settings)
    app = typer.Typer(add_completion=False, **settings)
    if outline.callback:
        app.callback()(_build_function(outline.callback))
    for each in outline.commands:
        app.command(each.name or None)(_build_function(each))
    return app


def _describe_command(name: str, function: Any) -> Command:
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    annotated = [each for each in parameters if get_origin(each.annotation) is Annotated]
    return Command(name, function.__name__, inspect.getdoc(function) or "", tuple(map(_describe_parameter, annotated)))


def _describe_parameter(declared: inspect.Parameter) -> Parameter:
    annotation, info = get_args(declared.annotation)
    kinds = [each for each in get_args(annotation) if each is not type(None)]
    if get_origin(annotation) is list or not kinds:
        kinds = [annotation]
    repeats = get_origin(kinds[0]) is list
    kind = get_args(kinds[0])[0] if repeats else kinds[0]
    required = declared.default is inspect.Parameter.empty
    default = None if required else declared.default
    argument = isinstance(info, typer.models.ArgumentInfo)
    # typer reads the first flag as the default until it meets the annotation
    flags = () if argument else ((info.default,) if isinstance(info.default, str) else ()) + (info.param_decls or ())
    own = vars(typer.Argument() if argument else typer.Option())
    settings = {each: getattr(info, each) for each in SETTINGS if getattr(info, each) != own[each]}
    choices = tuple(str(each.value) for each in kind) if issubclass(kind, Enum) else ()
    default = str(default) if isinstance(default, Path) else default.value if isinstance(default, Enum) else default
    return Parameter(declared.name, _name_kind(kind), choices, repeats, required, default, argument, flags, settings)


def _name_kind(kind: type) -> Kind:
    if issubclass(kind, Enum):
        return "choice"
    for name, known in KINDS.items():
        if kind is known:
            return name
    raise TypeError(f"the help of a parameter of type {kind.__name__} cannot be kept")


def _build_function(shown: Command) -> Any:
    def call(**_values: Any) -> None:
        """A callback is called before the help of a command below it is shown."""

    parameters = [_build_parameter(each) for each in shown.parameters]
    call.__name__, call.__doc__ = shown.function, shown.help
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


def _build_parameter(shown: Parameter) -> inspect.Parameter:
    kind: Any = KINDS.get(shown.kind) or Enum("Choice", {each: each for each in shown.choices})
    default = kind(shown.default) if shown.kind in ("path", "choice") and shown.default is not None else shown.default
    if shown.repeats:
        kind = list[kind]
    completer = find_completer(shown.name, shown.flags, shown.argument)
    settings: dict[str, Any] = {**shown.settings, "autocompletion": completer}
    info: Any = typer.Argument(**settings) if shown.argument else typer.Option(*shown.flags, **settings)
    return inspect.Parameter(
        shown.name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[kind if shown.required else kind | None, info],
        default=inspect.Parameter.empty if shown.required else default,
    )
