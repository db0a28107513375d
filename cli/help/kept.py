"""The outlines of all commands, kept in the cache until this installation changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

import msgspec

from epcheck.cli import kept_file
from epcheck.cli.help.outline import Outline

NAME = "help.json"


def current(make: Callable[[], Mapping[str, Outline]]) -> Mapping[str, Outline]:
    """Command -> its outline; outlines are cached, and built on a miss."""
    found = read()
    if found is None:
        found = make()
        write(found)
    return found


def read() -> Mapping[str, Outline] | None:
    """None where none are kept, or those of another installation."""
    try:
        return msgspec.convert(kept_file.read(NAME), dict[str, Outline])
    except msgspec.ValidationError:
        return None


def write(outlines: Mapping[str, Outline]) -> None:
    """Keep them."""
    kept_file.write(NAME, {name: asdict(each) for name, each in outlines.items()})


def wanted(arguments: Sequence[str]) -> bool:
    """Whether a command is called for its help alone. arguments: of the command line, the command first."""
    *words, last = arguments
    return last == "--help" and bool(words) and not any(word.startswith("-") for word in words)
