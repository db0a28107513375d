"""What options about models are on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from epcheck.api.option import OptionError
from epcheck.models.execution.runner import LEVELS
from epcheck.models.execution.session import Level


def level_of(name: str) -> Level:
    """The level of graph optimisation of that name. Raises OptionError."""
    for level in LEVELS:
        if level == name:
            return level
    raise OptionError(f"unknown level '{name}'; choose one of {', '.join(LEVELS)}")


def sizes_of(texts: Sequence[str]) -> Mapping[str, int]:
    """`batch=4` -> {"batch": 4}. Raises OptionError."""
    sizes = {}
    for text in texts:
        name, _, size = text.rpartition("=")
        if not name or not size.isdecimal():
            raise OptionError(f"--dim {text}: write NAME=SIZE, for example batch=4")
        sizes[name] = int(size)
    return sizes


def ranges_of(texts: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
    """`batch=1,4` -> {"batch": (1, 4)}. Raises OptionError."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, equals, sizes = text.rpartition("=")
        try:
            found[name] = tuple(int(size) for size in sizes.split(","))
        except ValueError:
            equals = ""
        if not equals:
            raise OptionError(f"--dim {text}: write a name and sizes, for example --dim batch=1,4")
    return found


def only_target(names: Sequence[str]) -> str:
    """The target of a call that takes one. Raises OptionError for several."""
    if len(names) > 1:
        raise OptionError(
            f"--target is given {len(names)} times ({', '.join(names)}); give one, and call once for each"
        )
    return names[0]
