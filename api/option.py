"""How an option of a call is described once: its type and default are the field's, the rest stands in an `Option`.

    @dataclass(frozen=True)
    class ReproOptions:
        case_id: Annotated[str, Option("A case id, as `epcheck list` prints it.", argument=True)]
        out: Annotated[Path, Option("Folder to write.")] = Path("repro")

`epcheck.cli.options` makes the command line from such a class; nothing here knows of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from epcheck.generators.error import EpcheckError as EpcheckError
from epcheck.generators.nearest import ask_if_meant as ask_if_meant
from epcheck.generators.nearest import find_nearest as find_nearest

SELECT, JUDGE, MACHINE, OUTPUT = "Select", "Judge", "Machine", "Output"
"""Panels of a command's help: what is run on what, what is right, where and how it runs, and what is written."""

PANELS = (SELECT, JUDGE, MACHINE, OUTPUT)
"""In the order in which help shows them."""


class OptionError(EpcheckError, ValueError):
    """The value of an option cannot be used; the message names the option and says what to write."""


@dataclass(frozen=True)
class Option:
    """What a person reads about an option, and how it is written on a command line.

    help: a sentence. flags: how it is written; empty for `--name-of-the-field`. argument: whether it is written by its
    position, without a flag. required: whether the command line needs it, though the field has a default. metavar: what
    stands for its value. default: the default in words, where the value does not say it. minimum, maximum: of a number,
    both inclusive. parse: makes the value of the text on the command line, of all texts (`many`) where the option may
    be repeated; a type says what the text must be as well. file: whether a path may be that of a file; folder: whether
    it may be that of a folder. after: the option that it follows in help, where that is not the field before. panel:
    one of PANELS; help has no panels where an option has none.
    """

    help: str
    flags: tuple[str, ...] = ()
    argument: bool = False
    required: bool = False
    metavar: str | None = None
    default: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    parse: Callable[[Any], object] | None = None
    many: bool = False
    file: bool = True
    folder: bool = True
    after: str = ""
    panel: str = ""


@dataclass(frozen=True)
class Group:
    """Options that a class takes over from another, as a field of that type.

    names: the fields that the command line has, in this order. changed: those among them with another description, as
    when they are required here.
    """

    names: tuple[str, ...]
    changed: Mapping[str, Option] = field(default_factory=dict)
