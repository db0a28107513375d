"""The command line of a call, made from the dataclass of its options.

    @command(app, ReproOptions)
    def repro(options: ReproOptions) -> None: ...

A command takes the options as one object and returns its exit code; None stands for 0.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from epcheck.api.option import PANELS, Group, Option
from epcheck.cli.completion import find_completer
from epcheck.cli.terminal import exit_codes, failure
from epcheck.cli.terminal.terminal import Terminal
from epcheck.conformance.targets.configuration_notice import send_notices

Options = TypeVar("Options")
Command = Callable[[Options], int | None]


def command(
    app: typer.Typer,
    options: type[Options],
    name: str | None = None,
    prints_data: bool = False,
    passes_on: bool = False,
) -> Callable[[Command[Options]], Command[Options]]:
    """Add a function of options to an app as a command, with the function's docstring as its help. What goes wrong in
    it, epcheck's errors and the system's, is one sentence and exit code 2. prints_data: its output is for programs, as
    it is with `--json` and `--quiet`: a notice of the configuration goes to stderr. passes_on: what follows the first
    argument is for another program, also where it begins with a dash."""
    parameters = _in_panels(_in_order(tuple(_parameters(options))))

    def register(function: Command[Options]) -> Command[Options]:
        def call(**values: Any) -> None:
            with failure.one_sentence():
                is_short = prints_data or True in (values.get("json"), values.get("quiet"))
                send_notices(Terminal(stderr=is_short).print)
                code = function(_build_options(options, parameters, values))
            raise typer.Exit(code or exit_codes.GOOD)

        call.__name__, call.__doc__ = function.__name__, function.__doc__
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        signature = inspect.Signature([parameter.in_signature() for parameter in parameters])
        call.__signature__ = signature  # type: ignore[attr-defined]
        app.command(name, context_settings={"allow_interspersed_args": not passes_on})(call)
        return function

    return register


@dataclass(frozen=True)
class _Parameter:
    """An option of a command: the field that it sets and that field's type.

    default: dataclasses.MISSING where there is none. group: the field that holds the dataclass of this one; empty where
    the options themselves do.
    """

    name: str
    option: Option
    type: Any
    default: Any
    group: str = ""

    @property
    def repeats(self) -> bool:
        return self.option.many or get_origin(self.type) is tuple

    @property
    def required(self) -> bool:
        return self.option.required or self.default is dataclasses.MISSING

    @property
    def annotation(self) -> Any:
        """The type of its value on the command line, and what typer shows of it."""
        kind: Any = get_args(self.type)[0] if self.repeats else self.type
        if self.option.parse:
            kind = self.option.parse if isinstance(self.option.parse, type) else str
        if self.repeats:
            kind = list[kind]
        return Annotated[kind if self.required else kind | None, _declare(self.name, self.option)]

    def in_signature(self) -> inspect.Parameter:
        """Options that repeat, and those whose text is parsed, are None where they are left out."""
        default = None if self.repeats or (self.option.parse and not isinstance(self.default, str)) else self.default
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=self.annotation,
            default=inspect.Parameter.empty if self.required else default,
        )

    def value(self, text: Any) -> Any:
        """The field's value. text: what typer made of the command line. Raises what the option's `parse` does."""
        if self.option.parse and not self.option.many and self.repeats:
            return tuple(map(self.option.parse, text))
        if self.option.parse:
            return self.option.parse(text)
        return tuple(text) if self.repeats else text


def _declare(name: str, option: Option) -> Any:
    settings: dict[str, Any] = {
        "help": option.help, "metavar": option.metavar, "show_default": option.default or True,
        "min": option.minimum, "max": option.maximum, "file_okay": option.file, "dir_okay": option.folder,
        "autocompletion": find_completer(name, option.flags, option.argument),
        "rich_help_panel": option.panel or None,
    }  # fmt: skip
    return typer.Argument(**settings) if option.argument else typer.Option(*option.flags, **settings)


def _parameters(options: type, group: str = "", names: Collection[str] | None = None) -> Iterator[_Parameter]:
    """Those of a dataclass, of all fields or of some, and of the groups among them."""
    assert is_dataclass(options)
    hints = get_type_hints(options, include_extras=True)
    for field in dataclasses.fields(options):
        if names is not None and field.name not in names:
            continue
        kind, *notes = get_args(hints[field.name]) if get_origin(hints[field.name]) is Annotated else (None,)
        default = field.default if field.default_factory is dataclasses.MISSING else None
        for note in notes:
            match note:
                case Option():
                    yield _Parameter(field.name, note, kind, default, group)
                case Group(names=chosen, changed=changed):
                    taken = {parameter.name: parameter for parameter in _parameters(kind, field.name, chosen)}
                    for name in chosen:
                        option = changed.get(name, taken[name].option)
                        yield dataclasses.replace(taken[name], option=option)


def _in_order(parameters: Sequence[_Parameter]) -> list[_Parameter]:
    """As they are declared, but for those that follow another one."""
    ordered = [parameter for parameter in parameters if not parameter.option.after]
    for parameter in parameters:
        if parameter.option.after:
            names = [other.name for other in ordered]
            ordered.insert(names.index(parameter.option.after) + 1, parameter)
    return ordered


def _in_panels(parameters: Sequence[_Parameter]) -> tuple[_Parameter, ...]:
    """Those of one panel together, in the order of the panels; without panels where one of the options has none."""
    with_flags = [parameter for parameter in parameters if not parameter.option.argument]
    if all(parameter.option.panel for parameter in with_flags):
        arguments = [parameter for parameter in parameters if parameter.option.argument]
        return (*arguments, *sorted(with_flags, key=lambda parameter: PANELS.index(parameter.option.panel)))
    without = (dataclasses.replace(parameter.option, panel="") for parameter in parameters)
    return tuple(dataclasses.replace(each, option=option) for each, option in zip(parameters, without, strict=True))


def _build_options(options: type[Options], parameters: Sequence[_Parameter], values: Mapping[str, Any]) -> Options:
    """The options, with the defaults of fields whose value was left out."""
    fields: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for parameter in parameters:
        own = groups.setdefault(parameter.group, {}) if parameter.group else fields
        value = values[parameter.name]
        if value is not None and not (parameter.repeats and not value):
            own[parameter.name] = parameter.value(value)
    hints = get_type_hints(options)
    return options(**fields, **{group: hints[group](**own) for group, own in groups.items()})
